//! `--pods`, `--once` and the stop.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::stage::{Stage, data, deployment, is_ready, open_folder, process_counts, script};
use crate::support::Run;
use crate::support::process::{eventually, up};

fn nginx() -> Value {
    let mut container = script("");
    container["image"] = "nginx:1".into();
    container.as_object_mut().unwrap().remove("command");
    container["readinessProbe"] = serde_json::json!({"httpGet": {"path": "/", "port": 80}});
    deployment("web", 2, &container)
}

fn once(objects: &[Value], more: &[&str]) -> Run {
    let home = open_folder();
    let file = home.path().join("objects.yaml");
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    std::fs::write(&file, text.join("\n---\n")).unwrap();
    up(&data(home.path())).arg("--once").arg(&file).args(more).output().unwrap().into()
}

#[test]
fn an_image_without_a_program_waits_and_is_ready_only_where_it_is_simulated_and_marked() {
    let mut stage = Stage::start(&[]);
    stage.apply(&[nginx()]);
    let waiting = eventually("it says so", || {
        let pods = stage.list("pods");
        let waits =
            |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "NoLocalProgram";
        (pods.len() == 2 && pods.iter().all(waits)).then_some(pods)
    });
    assert!(!waiting.iter().any(is_ready));
    let told = stage.events("Failed");
    assert!(told.iter().any(|message| message.contains("nginx:1") && message.contains("--pods simulate")), "{told:?}");
    assert_eq!(stage.process.terminate(), Some(0));

    stage.again(&["--pods", "simulate"]);

    let pods = stage.pods_ready(2);
    assert!(pods.iter().all(|pod| pod["status"]["reason"] == "Simulated"), "{pods:?}");
    assert_eq!(process_counts(&pods), [0, 0]);
    assert!(stage.kubectl(&["get", "pods"]).succeeded().contains("Simulated"));
    stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]).succeeded();
    stage.kubectl(&["delete", "deployment", "web"]).succeeded();
    eventually("simulated pods end as others do", || stage.list("pods").is_empty().then_some(()));
}

#[test]
fn without_pods_they_stay_pending_and_what_an_earlier_start_left_ends() {
    let mut stage = Stage::start(&[]);
    stage.apply(&[deployment("web", 1, &script("exec sleep infinity"))]);
    let pods = stage.pods_ready(1);
    stage.process.kill();
    assert_eq!(process_counts(&pods), [1], "nobody ended it");

    stage.again(&["--pods", "off"]);

    assert_eq!(process_counts(&pods), [0]);
    stage.apply(&[deployment("other", 1, &script("exec sleep infinity"))]);
    let other = eventually("the pod is made", || stage.list("pods").into_iter().find(|pod| !is_ready(pod)));
    assert!(other["spec"]["nodeName"].is_null());
}

#[test]
fn up_once_waits_for_workloads_and_ends_their_processes() {
    let run =
        once(&[deployment("web", 2, &script("trap 'exit 0' TERM; sleep 1; touch ready; sleep infinity & wait"))], &[]);

    assert!(run.stdout.contains("1 of 1 objects Ready"), "{run}");
    run.succeeded();
}

#[test]
fn up_once_names_the_pod_that_is_not_ready_and_why() {
    let error = once(&[nginx()], &["--timeout", "4s"]).failed();

    assert!(error.contains("Deployment default/web") && error.contains("pod web-"), "{error}");
    assert!(error.contains("NoLocalProgram") && error.contains("nginx:1"), "{error}");
}

#[test]
fn a_stop_ends_every_pod_in_time_also_those_that_do_not_listen() {
    let mut stage = Stage::start(&[]);
    let stubborn = script("trap '' TERM; echo up; while :; do sleep 1; done");
    let mut deaf = deployment("deaf", 3, &stubborn);
    deaf["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600.into();
    stage.apply(&[deaf]);
    let pods = stage.pods_ready(3);
    let began = Instant::now();

    assert_eq!(stage.process.terminate(), Some(0));

    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert_eq!(process_counts(&pods), [0, 0, 0]);
}

#[test]
fn pods_run_where_their_users_could_not_reach_the_data_directory() {
    let home = open_folder();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let stage = Stage::start_in(home, &[]);
    let echo = serde_json::json!({
        "name": "a", "image": "portolan-echo", "args": ["--port=0", "--text=hello"],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}], "workingDir": "/v",
    });
    let mut web = deployment("web", 1, &echo);
    web["spec"]["template"]["spec"]["volumes"] = serde_json::json!([{"name": "v", "emptyDir": {}}]);
    stage.apply(&[web]);

    let pods = stage.pods_ready(1);

    assert_eq!(process_counts(&pods), [1]);
    let said = eventually("the program of the runner itself runs", || {
        let said = stage.logs(&crate::stage::name(&pods[0]));
        said.contains("listening").then_some(said)
    });
    assert!(!said.contains("denied"), "{said}");
}
