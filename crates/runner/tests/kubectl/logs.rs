//! `kubectl logs`.

use serde_json::{Value, json};

use crate::support::{Harbour, Written, is_up, script};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_chosen_by_container_time_number_and_length() {
    let Some(harbour) = Harbour::open().await else { return };
    let chatty = script("a", "echo one; echo two >&2; echo three; sleep infinity");
    let containers = json!([chatty, script("b", "echo other; sleep infinity")]);
    let wrote = |pod: &Value| is_up(pod);
    harbour.run(json!({"containers": containers}), wrote).await;
    // Both streams come by pipes of their own, so that their order is not given.
    let all = loop {
        let all = harbour.kubectl(&["logs", "web", "-c", "a"]).await.ok();
        if all.lines().count() == 3 {
            break all;
        }
    };
    let last = all.lines().last().unwrap().to_owned();

    let tail = harbour.kubectl(&["logs", "web", "-c", "a", "--tail=1", "--timestamps"]).await.ok();
    let (time, text) = tail.trim_end().split_once(' ').unwrap();
    assert_eq!(text, last);
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{tail}");
    assert_eq!(harbour.kubectl(&["logs", "web", "-c", "a", "--limit-bytes=3"]).await.ok(), all[..3]);
    assert_eq!(harbour.kubectl(&["logs", "web", "-c", "a", "--since=1h"]).await.ok(), all);
    let later = "--since-time=2099-01-01T00:00:00Z";
    assert_eq!(harbour.kubectl(&["logs", "web", "-c", "a", later]).await.ok(), "");

    let both = harbour.kubectl(&["logs", "web", "--all-containers", "--prefix"]).await.ok();
    assert!(both.contains("[pod/web/a] one\n") && both.contains("[pod/web/b] other\n"), "{both}");
    let (_, unknown) = harbour.kubectl(&["logs", "web", "-c", "c"]).await.failed();
    assert!(unknown.contains("container c is not valid for pod web"), "{unknown}");
    let (_, none) = harbour.kubectl(&["logs", "web", "-c", "a", "--previous"]).await.failed();
    assert!(none.contains("previous terminated container \"a\" in pod \"web\" not found"), "{none}");
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_the_run_before_is_kept() {
    let Some(harbour) = Harbour::open().await else { return };
    let twice = "if [ -e /v/f ]; then echo second; exec sleep infinity; fi; touch /v/f; echo first; exit 1";
    let mut container = script("a", twice);
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let spec = json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]});
    harbour.run(spec, |pod| is_up(pod) && pod["status"]["containerStatuses"][0]["restartCount"] == 1).await;

    assert_eq!(harbour.kubectl(&["logs", "web", "--previous"]).await.ok(), "first\n");
    let mut follow = harbour.start(&["logs", "web", "-f"]);
    assert_eq!(Written::by(follow.stdout.take().unwrap()).line().await.as_deref(), Some("second"));
    follow.kill().await.unwrap();
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_followed_as_it_is_written_and_ends_with_its_container() {
    let Some(harbour) = Harbour::open().await else { return };
    let mut container = script("a", "echo before; while [ ! -e /v/go ]; do sleep 0.05; done; echo after");
    container["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "gate"}});
    let gate = harbour.put_claim("gate").await;
    harbour.run(json!({"containers": [container], "volumes": [volume], "restartPolicy": "Never"}), is_up).await;

    let mut follow = harbour.start(&["logs", "web", "--follow"]);
    let mut written = Written::by(follow.stdout.take().unwrap());
    assert_eq!(written.line().await.as_deref(), Some("before"));
    std::fs::write(gate.join("go"), "").unwrap();

    assert_eq!(written.line().await.as_deref(), Some("after"));
    assert_eq!(written.line().await, None);
    assert!(crate::support::soon(follow.wait()).await.unwrap().success());
    harbour.close().await;
}
