//! Logs of pods: a runner gives lines, the server answers them as a kubelet would.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::sync::{Arc, Mutex};

use crate::support::{get, merge, open, post, server, soon};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use portolan_apiserver::{ApiServer, ApiService, LogError, LogLine, LogRun, LogSource, PodLog, PodLogs};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn line(second: i64, text: &str) -> LogLine {
    LogLine { time: Timestamp::from_second(second).unwrap(), text: Bytes::copy_from_slice(text.as_bytes()) }
}

/// A runner whose containers all wrote the same, and one line more whenever `more` is sent to.
struct Runner {
    asked: Mutex<Vec<LogSource>>,
    more: tokio::sync::broadcast::Sender<LogLine>,
}

impl Runner {
    fn new() -> Arc<Self> {
        Arc::new(Self { asked: Mutex::new(Vec::new()), more: tokio::sync::broadcast::channel(8).0 })
    }
}

impl PodLogs for Runner {
    fn open(&self, source: LogSource) -> BoxFuture<'static, Result<PodLog, LogError>> {
        self.asked.lock().unwrap().push(source.clone());
        let coming = futures::stream::unfold(self.more.subscribe(), |mut more| async {
            more.recv().await.ok().map(|line| (line, more))
        });
        Box::pin(async move {
            if source.container == "broken" {
                return Err(LogError::Unreadable("the disk is gone".to_owned()));
            }
            Ok(PodLog { written: vec![line(1, "one"), line(2, "two"), line(3, "three")], coming: coming.boxed() })
        })
    }
}

async fn with_pod(status: Value) -> (ApiServer, ApiService) {
    let server = server().await;
    let service = server.service();
    let container = |name: &str| json!({"name": name, "image": "a"});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"nodeName": "here", "containers": [container("a"), container("broken")], "initContainers": [container("init")]},
    });
    post(&service, PODS, &pod).await.ok();
    merge(&service, &format!("{PODS}/web/status"), &json!({"status": status})).await.ok();
    (server, service)
}

fn running() -> Value {
    let state = |name: &str| json!({"name": name, "image": "a", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}});
    json!({"phase": "Running", "containerStatuses": [state("a"), state("broken")]})
}

async fn log(service: &ApiService, query: &str) -> (u16, String) {
    let answer = get(service, &format!("{PODS}/web/log?{query}")).await;
    let text = String::from_utf8(answer.text.to_vec()).unwrap();
    let message = serde_json::from_str::<Value>(&text).ok().and_then(|v| v["message"].as_str().map(str::to_owned));
    (answer.code, message.unwrap_or(text))
}

#[tokio::test]
async fn a_runner_answers_with_the_lines_that_are_asked_for() {
    let (server, service) = with_pod(running()).await;
    let runner = Runner::new();
    server.set_pod_logs(runner.clone());

    let all = get(&service, &format!("{PODS}/web/log?container=a")).await;
    let last = log(&service, "container=a&tailLines=1&timestamps=true").await;
    let cut = log(&service, "container=a&limitBytes=5").await;
    let since = log(&service, "container=a&sinceTime=1970-01-01T00:00:02Z").await;

    assert_eq!((all.code, &all.text[..]), (200, &b"one\ntwo\nthree\n"[..]));
    assert_eq!(all.headers["content-type"], "text/plain");
    assert_eq!(last, (200, "1970-01-01T00:00:03.000000000Z three\n".to_owned()));
    assert_eq!(cut, (200, "one\nt".to_owned()));
    assert_eq!(since, (200, "two\nthree\n".to_owned()));
    let asked = runner.asked.lock().unwrap();
    assert_eq!((asked[1].pod.as_str(), asked[1].run, asked[1].tail_lines), ("web", LogRun::Current, Some(1)));
}

#[tokio::test]
async fn a_log_is_followed_while_it_is_written() {
    let (server, service) = with_pod(running()).await;
    let runner = Runner::new();
    server.set_pod_logs(runner.clone());

    let path = format!("{PODS}/web/log?container=a&follow=true&tailLines=0");
    let mut body = open(&service, "GET", &path, "", Bytes::new()).await.into_body();
    runner.more.send(line(4, "four")).unwrap();
    let first = soon(body.frame()).await.unwrap().unwrap().into_data().unwrap();
    runner.more.send(line(5, "five")).unwrap();
    let second = soon(body.frame()).await.unwrap().unwrap().into_data().unwrap();

    assert_eq!((&first[..], &second[..]), (&b"four\n"[..], &b"five\n"[..]));
}

#[tokio::test]
async fn a_container_that_has_not_started_says_what_it_waits_for() {
    let waiting = json!({"name": "a", "image": "a", "imageID": "", "ready": false, "restartCount": 0,
                         "state": {"waiting": {"reason": "ContainerCreating"}}});
    let (server, service) = with_pod(json!({"phase": "Pending", "containerStatuses": [waiting]})).await;
    server.set_pod_logs(Runner::new());

    let current = log(&service, "container=a").await;
    let previous = log(&service, "container=a&previous=true").await;
    let unknown = log(&service, "container=init").await;

    assert_eq!(current, (400, "container \"a\" in pod \"web\" is waiting to start: ContainerCreating".to_owned()));
    assert_eq!(previous, (400, "previous terminated container \"a\" in pod \"web\" not found".to_owned()));
    assert_eq!(unknown, (400, "container \"init\" in pod \"web\" is not available".to_owned()));
}

#[tokio::test]
async fn what_cannot_be_read_is_the_servers_fault() {
    let (server, service) = with_pod(running()).await;
    server.set_pod_logs(Runner::new());

    let broken = log(&service, "container=broken").await;

    assert_eq!(broken, (500, "Internal error occurred: the disk is gone".to_owned()));
}

#[tokio::test]
async fn without_a_runner_the_answer_says_what_is_missing() {
    let (_server, service) = with_pod(running()).await;
    let absent = log(&service, "container=a").await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}});
    post(&service, "/api/v1/nodes", &node).await.ok();

    let nobody = log(&service, "container=a").await;

    assert_eq!(absent, (404, "pods \"here\" not found".to_owned()));
    assert_eq!(nobody.0, 500);
    assert!(nobody.1.contains("no runner on this server runs pod \"web\""), "{}", nobody.1);
}
