//! What takes its time: restarts by the clock, and Jobs on real processes.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::played::{LOOK, PATIENCE, Stage, bare_row};
use crate::rows::Row;

#[tokio::test]
async fn restarts_wait_twice_as_long_each_time_up_to_the_longest_wait() {
    let mount = json!({"name": "v", "mountPath": "/v"});
    let script = "date +%s%3N >> /v/f; exit 1";
    let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": [mount]});
    let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "times"}});
    let stage = Stage::of(Row { spec: json!({"containers": [container], "volumes": [claim]}), ..bare_row() }).await;
    let file = stage.scene.home.path().join("runner/claims/default/times/f");
    stage.scene.put(&json!({"kind": "PersistentVolumeClaim", "name": "times"})).await;
    stage.scene.create().await;

    let times = || -> Vec<i64> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let waiting = async {
        while times().len() < 6 {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is started again and again");

    // Half a second doubles to four: these are the runner's settings here. The first restart waits for nothing.
    let gaps: Vec<i64> = times().windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (gap, least) in gaps.iter().zip([0, 500, 1000, 2000, 4000]) {
        assert!((least..least + 10_000).contains(gap), "{gaps:?}");
    }
    stage.runner.stop().await;
}

fn job(name: &str, policy: &str, limit: i32, script: &str) -> Job {
    let mount = json!({"name": "v", "mountPath": "/v"});
    let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": [mount]});
    let volume = json!({"name": "v", "emptyDir": {}});
    let pod = json!({"restartPolicy": policy, "containers": [container], "volumes": [volume]});
    let spec = json!({"backoffLimit": limit, "template": {"spec": pod}});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

async fn ended(jobs: &Api<Job>, name: &str) -> Value {
    let waiting = async {
        loop {
            let status = serde_json::to_value(jobs.get(name).await.unwrap().status).unwrap();
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            if conditions.iter().any(|one| ["Complete", "Failed"].contains(&one["type"].as_str().unwrap_or_default())) {
                return status;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE + Duration::from_secs(60), waiting).await.expect("the job ends")
}

#[tokio::test]
async fn jobs_try_again_in_the_same_pod_or_in_another_as_their_pods_say() {
    let stage = Stage::of(bare_row()).await;
    let jobs: Api<Job> = Api::namespaced(stage.scene.client.clone(), "default");
    let once = "test -e /v/m || { touch /v/m; exit 1; }";
    // Restarts of containers count as well, and a job fails with the first that reaches the limit.
    for job in [job("same", "OnFailure", 2, once), job("other", "Never", 1, once)] {
        jobs.create(&PostParams::default(), &job).await.unwrap();
    }

    let (same, other) = (ended(&jobs, "same").await, ended(&jobs, "other").await);

    assert_eq!((&same["succeeded"], &same["failed"]), (&json!(1), &Value::Null), "{same}");
    // The empty folder is another one in each pod: all of them fail.
    assert_eq!((&other["succeeded"], &other["failed"]), (&Value::Null, &json!(2)), "{other}");
    stage.runner.stop().await;
}
