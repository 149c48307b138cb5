//! What users see of pods: `logs`, `status`, `doctor`.

use serde_json::{Value, json};

use crate::stage::{Stage, deployment, name, script};
use crate::support::portolan;
use crate::support::process::{Process, eventually};

#[test]
fn logs_show_what_was_written_what_is_written_and_what_was_before() {
    let stage = Stage::start(&[]);
    let mut container = script(
        "test -e /v/m && { echo two; while :; do sleep 0.1; test -e /v/go && echo three && rm /v/go; done; }; touch /v/m; echo one",
    );
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let mut web = deployment("web", 1, &container);
    web["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]);
    stage.apply(&[crate::stage::claim("v"), web]);
    let pod = eventually("it was restarted", || {
        let pods = stage.list("pods");
        let pod = pods.first()?;
        (pod["status"]["containerStatuses"][0]["restartCount"] == 1 && crate::stage::is_ready(pod)).then(|| name(pod))
    });
    eventually("the second run writes", || (stage.logs(&pod) == "two\n").then_some(()));

    assert_eq!(stage.run(&["logs", &pod, "--previous", "-n", "default"]).succeeded(), "one\n");
    let mut following = Process::start(
        portolan().env("KUBECONFIG", stage.data().join("kubeconfig")).args(["logs", "-f", "--tail", "1", &pod]),
    );
    following.line_with("two");
    std::fs::write(stage.data().join("runner/claims/default/v/go"), "").unwrap();
    following.line_with("three");
    let error = stage.run(&["logs", "nobody"]).failed();
    assert!(error.contains("nobody") && error.contains("next:"), "{error}");
}

#[test]
fn status_shows_pods_with_what_they_use_and_doctor_what_the_runner_may_do() {
    let stage = Stage::start(&[]);
    stage.apply(&[deployment(
        "web",
        2,
        &script("x=0; while [ $x -lt 200000 ]; do x=$((x+1)); done; exec sleep infinity"),
    )]);
    let pods = stage.pods_ready(2);

    let shown = eventually("both have computed", || {
        let status: Value = serde_json::from_str(&stage.run(&["status", "-o", "json"]).succeeded()).unwrap();
        let leaves = status["pods"]["pods"].as_array()?.clone();
        let computed = |leaf: &Value| leaf["cpuSeconds"].as_f64() > Some(0.0) && leaf["memoryBytes"].as_u64() > Some(0);
        (leaves.len() == 2 && leaves.iter().all(computed)).then_some(status)
    });
    assert_eq!(shown["pods"]["ready"], 2);
    let text = stage.run(&["status"]).succeeded();
    assert!(text.contains("pods: 2 of 2 ready") && text.contains("s CPU"), "{text}");
    assert!(text.contains(&format!("pod default/{}", name(&pods[0]))), "{text}");

    let doctor = stage.run(&["doctor", "-o", "json"]);
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let finding =
        |check: &str| report["findings"].as_array().unwrap().iter().find(|one| one["check"] == check).cloned().unwrap();
    assert!(finding("programs")["message"].as_str().unwrap().contains("tools"));
    let is_root = std::fs::metadata(stage.data()).is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0);
    assert_eq!(finding("pods")["result"], if is_root { "ok" } else { "warning" });
}
