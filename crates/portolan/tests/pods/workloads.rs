//! Deployments, `StatefulSet`s, Jobs and probes, with the real kubectl.

use serde_json::json;

use crate::stage::{Stage, condition, deployment, is_ready, name, process_counts, script, workload};
use crate::support::process::eventually;

#[test]
fn a_deployment_rolls_out_and_rolls_over_to_new_pods_as_kubectl_tells_it() {
    let stage = Stage::start(&[]);
    stage.apply(&[deployment("web", 3, &script("echo one; exec sleep infinity"))]);

    let told = stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=100s"]).succeeded();
    assert!(told.contains("successfully rolled out"), "{told}");
    let first = stage.pods_ready(3);
    assert_eq!(process_counts(&first), [1, 1, 1]);

    stage.apply(&[deployment("web", 3, &script("echo two; exec sleep infinity"))]);
    stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=100s"]).succeeded();

    let second = eventually("only new pods are there", || {
        let pods = stage.list("pods");
        let is_new = |pod: &&serde_json::Value| first.iter().all(|old| name(old) != name(pod));
        (pods.len() == 3 && pods.iter().filter(is_new).count() == 3).then_some(pods)
    });
    assert_eq!(process_counts(&first), [0, 0, 0], "what was replaced has ended");
    eventually("the new pod has written", || {
        (stage.kubectl(&["logs", &name(&second[0])]).succeeded() == "two\n").then_some(())
    });
}

#[test]
fn the_pods_of_a_stateful_set_begin_one_after_the_other_each_with_a_claim_of_its_own() {
    let stage = Stage::start(&[]);
    let mut set = workload("StatefulSet", "db", 2, &script("date +%s%N > /data/began; exec sleep infinity"));
    let container = &mut set["spec"]["template"]["spec"]["containers"][0];
    container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    container["readinessProbe"] = json!({"exec": {"command": ["test", "-s", "/data/began"]}, "periodSeconds": 1});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}});
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": spec}]);
    stage.apply(&[set]);

    stage.kubectl(&["rollout", "status", "statefulset/db", "--timeout=100s"]).succeeded();

    let pods = stage.pods_ready(2);
    let at =
        |pod: &serde_json::Value, what: &str| condition(pod, what)["lastTransitionTime"].as_str().unwrap().to_owned();
    let of = |wanted: &str| pods.iter().find(|pod| name(pod) == wanted).unwrap();
    assert!(at(of("db-0"), "Ready") <= at(of("db-1"), "PodScheduled"));
    let claims = stage.list("persistentvolumeclaims");
    let mut names: Vec<String> = claims.iter().map(name).collect();
    names.sort();
    assert_eq!(names, ["data-db-0", "data-db-1"]);
    assert!(claims.iter().all(|claim| claim["status"]["phase"] == "Bound"), "{claims:?}");
}

#[test]
fn a_job_runs_to_its_end_and_one_that_fails_says_so() {
    let stage = Stage::start(&[]);
    let job = |name: &str, text: &str| {
        let spec = json!({"restartPolicy": "Never", "containers": [script(text)]});
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
            "spec": {"backoffLimit": 0, "template": {"spec": spec}},
        })
    };
    stage.apply(&[job("good", "echo done"), job("bad", "exit 3")]);

    stage.kubectl(&["wait", "--for=condition=complete", "job/good", "--timeout=100s"]).succeeded();
    stage.kubectl(&["wait", "--for=condition=failed", "job/bad", "--timeout=100s"]).succeeded();
    assert_eq!(stage.kubectl(&["logs", "job/good"]).succeeded(), "done\n");
    let bad = stage.list("pods").into_iter().find(|pod| name(pod).starts_with("bad")).unwrap();
    assert_eq!(bad["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
}

#[test]
fn a_pod_is_ready_while_its_probe_says_so_and_is_restarted_when_it_no_longer_lives() {
    let stage = Stage::start(&[]);
    let mut container = script("touch /v/ready /v/alive; exec sleep infinity");
    let probe = |file: &str| json!({"exec": {"command": ["test", "-e", file]}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 20});
    container["readinessProbe"] = probe("/v/ready");
    container["livenessProbe"] = probe("/v/alive");
    container["livenessProbe"]["initialDelaySeconds"] = json!(2);
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let mut web = deployment("web", 1, &container);
    let volume = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]);
    web["spec"]["template"]["spec"]["volumes"] = volume;
    stage.apply(&[crate::stage::claim("v"), web]);
    let pod = name(&stage.pods_ready(1)[0]);
    let folder = stage.data().join("runner/claims/default/v");

    std::fs::remove_file(folder.join("ready")).unwrap();
    stage.kubectl(&["wait", "--for=condition=Ready=false", &format!("pod/{pod}"), "--timeout=100s"]).succeeded();
    std::fs::remove_file(folder.join("alive")).unwrap();

    eventually("it was restarted and is ready again", || {
        let pod = stage.get("pods", &pod)?;
        (pod["status"]["containerStatuses"][0]["restartCount"] == 1 && is_ready(&pod)).then_some(())
    });
    assert!(stage.events("Killing").iter().any(|message| message.contains("failed liveness probe")));
}
