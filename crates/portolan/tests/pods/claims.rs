//! Claims: folders of the data directory, bound as a provisioner binds them, kept until they go.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use serde_json::{Value, json};

use crate::stage::{Stage, claim, deployment, process_counts, script};
use crate::support::process::eventually;

fn writer(text: &str) -> Value {
    let mut container = script(text);
    container["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    let mut web = deployment("web", 1, &container);
    web["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    web
}

#[test]
fn a_claim_is_bound_to_a_folder_that_outlives_its_pods_and_goes_with_it() {
    let stage = Stage::start(&[]);
    stage.apply(&[claim("data"), writer("umask 077; echo run >> /data/f; exec sleep infinity")]);
    let pods = stage.pods_ready(1);
    let folder = stage.data().join("runner/claims/default/data");
    let runs = || std::fs::read_to_string(folder.join("f")).unwrap_or_default().lines().count();
    eventually("it has written", || (runs() == 1).then_some(()));

    let bound = stage.get("persistentvolumeclaims", "data").unwrap();
    let volume = bound["spec"]["volumeName"].as_str().unwrap().to_owned();
    assert_eq!(volume, format!("pvc-{}", bound["metadata"]["uid"].as_str().unwrap()));
    let shown = stage.kubectl(&["get", "pvc,pv"]).succeeded();
    assert!(shown.contains("Bound") && shown.contains(&volume) && shown.contains("default/data"), "{shown}");

    // Another pod has another uid of the API and goes on with the files of the one before.
    stage.kubectl(&["delete", "pod", &crate::stage::name(&pods[0])]).succeeded();
    eventually("the next pod has written", || (runs() == 2).then_some(()));
    // Who deletes a claim that is in use waits for the pods.
    stage.kubectl(&["delete", "pvc", "data", "--wait=false"]).succeeded();
    assert!(folder.exists());
    stage.kubectl(&["delete", "deployment", "web"]).succeeded();

    eventually("claim, volume and files are gone", || {
        let is_gone = stage.get("persistentvolumeclaims", "data").is_none()
            && stage.run(&["get", "pv", "-o", "name"]).succeeded().is_empty()
            && !folder.exists();
        is_gone.then_some(())
    });
}

#[test]
fn a_pod_waits_for_a_claim_that_is_not_there_and_says_so() {
    let stage = Stage::start(&[]);
    stage.apply(&[writer("exec sleep infinity")]);
    eventually("the pod says what it waits for", || {
        let told = stage.events("FailedMount");
        told.iter().any(|message| message.contains("persistentvolumeclaim \"data\" not found")).then_some(())
    });

    stage.apply(&[claim("data")]);

    stage.pods_ready(1);
}

#[test]
fn a_claim_that_cannot_be_a_folder_says_why() {
    let stage = Stage::start(&[]);
    let mut block = claim("block");
    block["spec"]["volumeMode"] = json!("Block");
    stage.apply(&[block]);

    eventually("it is told", || {
        stage.events("ProvisioningFailed").iter().any(|message| message.contains("Block")).then_some(())
    });
    assert_eq!(stage.get("persistentvolumeclaims", "block").unwrap()["status"]["phase"], "Pending");
}

#[test]
fn pods_their_files_and_their_uid_outlive_a_stop_and_a_start() {
    let mut stage = Stage::start(&[]);
    stage.apply(&[claim("data"), writer("umask 077; echo run >> /data/f && exec sleep infinity")]);
    let pods = stage.pods_ready(1);
    let file = stage.data().join("runner/claims/default/data/f");
    let owner = eventually("it has written", || std::fs::metadata(&file).ok()).uid();

    assert_eq!(stage.process.terminate(), Some(0));
    assert_eq!(process_counts(&pods), [0], "a stop ends what runs");
    stage.again(&[]);

    eventually("the same pod runs again with its files", || {
        (std::fs::read_to_string(&file).unwrap() == "run\nrun\n").then_some(())
    });
    assert_eq!(stage.pods_ready(1)[0]["metadata"]["uid"], pods[0]["metadata"]["uid"]);
    assert_eq!(std::fs::metadata(&file).unwrap().uid(), owner);
}

#[test]
fn nobody_but_their_owner_reads_what_is_in_a_data_directory_that_pods_pass_through() {
    let stage = Stage::start(&[]);
    stage.apply(&[claim("data"), writer("exec sleep infinity")]);
    stage.pods_ready(1);

    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut seen = 0;
    for entry in std::fs::read_dir(stage.data()).unwrap().flatten().filter(|entry| entry.file_name() != "runner") {
        seen += 1;
        assert_eq!(mode(&entry.path()) & 0o077, 0, "{}", entry.path().display());
    }
    assert!(seen > 3, "{seen}");
    for folder in ["", "runner", "runner/pods", "runner/claims", "runner/claims/default"] {
        assert_eq!(mode(&stage.data().join(folder)) & 0o066, 0, "{folder}");
    }
    assert_eq!(mode(&stage.data().join("runner/claims/default/data")) & 0o007, 0);
}

#[test]
fn what_a_pod_is_given_is_read_by_no_other_pod() {
    let stage = Stage::start(&[]);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"key": "hunter2"},
    });
    let mut container = script("cat /s/key; echo; exec sleep infinity");
    container["volumeMounts"] = json!([{"name": "s", "mountPath": "/s"}]);
    let mut one = deployment("one", 1, &container);
    one["spec"]["template"]["spec"]["volumes"] = json!([{"name": "s", "secret": {"secretName": "s"}}]);
    stage.apply(&[secret, one]);
    let owner = stage.pods_ready(1).remove(0);
    eventually("its own pod reads it", || {
        (stage.logs(&crate::stage::name(&owner)).trim_end() == "hunter2").then_some(())
    });

    let file = stage.data().join("runner/pods").join(owner["metadata"]["uid"].as_str().unwrap()).join("volumes/s/key");
    let spy = script(&format!("cat {} 2>&1; echo; exec sleep infinity", file.display()));
    stage.apply(&[deployment("spy", 1, &spy)]);
    let spy = eventually("the other pod is there", || {
        stage.list("pods").into_iter().find(|pod| crate::stage::name(pod).starts_with("spy"))
    });

    let is_root = std::fs::metadata(stage.data()).unwrap().uid() == 0;
    let expected = if is_root { "Permission denied" } else { "hunter2" };
    eventually("what it may", || {
        let run = stage.run(&["logs", &crate::stage::name(&spy), "-n", "default"]);
        run.stdout.contains(expected).then_some(())
    });
}
