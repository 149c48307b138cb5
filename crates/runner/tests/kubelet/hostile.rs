//! Pods that do harm, beside one that does not. Each is bounded in what it can do even where nothing holds it.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use portolan_runner::machine::leftovers::process_count;
use portolan_runner::machine::usage::folder_size;
use portolan_runner::node::WhichRun;
use serde_json::{Value, json};

use crate::played::{LOOK, PATIENCE, Scene, Stage, bare_row};

impl Scene {
    async fn add(&self, name: &str, spec: Value) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    /// The pod, once that holds for it.
    async fn when(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Value::Null;
        let waiting = async {
            loop {
                seen = serde_json::to_value(self.pods.get_opt(name).await.unwrap()).unwrap();
                if holds(&seen) {
                    return seen.clone();
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, waiting).await;
        found.unwrap_or_else(|_| panic!("{name} did not come so far: {}", seen["status"]))
    }

    async fn gone(&self, name: &str) {
        self.pods.delete(name, &DeleteParams::default().grace_period(1)).await.unwrap();
        self.when(name, Value::is_null).await;
    }

    fn written(&self, pod: &Value) -> Vec<String> {
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        let (lines, _) = self.outputs.lines(uid, "a", WhichRun::Current, None).unwrap().unwrap();
        lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
    }
}

fn shell(script: &str) -> Value {
    json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox", "command": ["sh", "-c", script]}]})
}

fn neighbour() -> Value {
    let probe = json!({"exec": {"command": ["true"]}, "periodSeconds": 1});
    let container = json!({"name": "a", "image": "busybox", "command": ["sleep", "infinity"], "readinessProbe": probe});
    json!({"containers": [container]})
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["ready"] == true
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bomb_a_hog_and_a_flood_end_and_say_why_and_their_neighbour_lives_on() {
    let stage = Stage::of(bare_row()).await;
    let scene = &stage.scene;
    scene.add("neighbour", neighbour()).await;
    scene.when("neighbour", is_ready).await;
    let bomb = "for k in 1 2 3; do (for i in `seq 100`; do sleep 60 & done; wait) & done; exec sleep 60";
    let mut hog = shell("x=`head -c 100000000 /dev/zero | tr '\\0' a`; sleep 60");
    hog["containers"][0]["resources"] = json!({"limits": {"memory": "32Mi"}});
    let mut flood = shell("head -c 16000000 /dev/zero > f; trap '' TERM; while :; do sleep 1; done");
    flood["containers"][0]["resources"] = json!({"limits": {"ephemeral-storage": "4Mi"}});

    for (name, spec) in [("bomb", shell(bomb)), ("hog", hog), ("flood", flood)] {
        scene.add(name, spec).await;
    }

    for (name, place, why) in [
        ("bomb", "/status/reason", "Evicted"),
        ("hog", "/status/containerStatuses/0/state/terminated/reason", "OOMKilled"),
        ("flood", "/status/reason", "Evicted"),
    ] {
        let ended = scene.when(name, |pod| pod["status"]["phase"] == "Failed").await;
        assert_eq!(ended.pointer(place), Some(&json!(why)), "{name}: {}", ended["status"]);
        let ended =
            scene.when(name, |pod| pod["status"]["containerStatuses"][0]["state"]["terminated"].is_object()).await;
        assert_eq!(process_count(uid(&ended)).unwrap(), 0, "{name}");
    }
    let neighbour = scene.when("neighbour", is_ready).await;
    assert_eq!(neighbour["status"]["containerStatuses"][0]["restartCount"], 0);
    stage.runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_output_is_kept_to_its_end_and_a_neighbour_becomes_ready_beside_it() {
    let stage = Stage::of(bare_row()).await;
    let scene = &stage.scene;
    scene.add("loud", shell("exec yes")).await;
    let loud = scene.when("loud", is_ready).await;
    let folder = scene.home.path().join("runner/pods").join(uid(&loud)).join("containers/a/0");
    // The first file is full and has made room for a second one.
    scene.when("loud", |_| folder.join("log.1").exists()).await;

    scene.add("neighbour", neighbour()).await;
    scene.when("neighbour", is_ready).await;

    assert!(folder_size(&folder) <= 11 << 20, "{}", folder_size(&folder));
    assert!(scene.written(&loud).iter().rev().skip(1).take(100).all(|line| line == "y"));
    scene.gone("loud").await;
    stage.runner.stop().await;
}

#[tokio::test]
async fn a_pod_that_hides_its_processes_leaves_none_behind() {
    // Only a user of its own tells whose a process is that has cleared its variables and left its group.
    if !is_root() {
        return;
    }
    let stage = Stage::of(bare_row()).await;
    let scene = &stage.scene;
    let seconds = (1_000_000 + std::process::id()).to_string();
    let hidden = || {
        let wanted = format!("sleep\0{seconds}\0");
        let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        all.filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes()))
            .count()
    };
    scene.add("sly", shell(&format!("env -i setsid sleep {seconds} & exec sleep 60"))).await;
    scene.when("sly", |_| hidden() == 1).await;

    scene.gone("sly").await;

    assert_eq!(hidden(), 0);
    stage.runner.stop().await;
}

#[tokio::test]
async fn a_pod_reads_no_file_of_another_and_leaves_none_where_everybody_may_write() {
    // All pods of a runner that is not root are one user.
    if !is_root() {
        return;
    }
    let stage = Stage::of(bare_row()).await;
    let scene = &stage.scene;
    let left = format!("/tmp/portolan-hostile-{}", std::process::id());
    let mut owner = shell(&format!("touch {left}; exec sleep 60"));
    owner["volumes"] = json!([{"name": "v", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]);
    owner["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    scene.add("owner", owner).await;
    let owner = scene.when("owner", |_| std::path::Path::new(&left).exists()).await;
    let file = scene.home.path().join("runner/pods").join(uid(&owner)).join("volumes/v/name");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "owner");

    scene.add("reader", shell(&format!("cat {} || echo refused", file.display()))).await;
    let reader = scene.when("reader", |pod| pod["status"]["phase"] == "Succeeded").await;

    assert_eq!(scene.written(&reader).last().map(String::as_str), Some("refused"));
    scene.gone("owner").await;
    assert!(!std::path::Path::new(&left).exists());
    stage.runner.stop().await;
}
