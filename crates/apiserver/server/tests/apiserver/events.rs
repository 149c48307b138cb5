//! Events end by their age, and nothing else does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::support::{Lines, MAPS, get, map, merge, post};
use jiff::Timestamp;
use portolan_apiserver::{ApiServer, Config};
use serde_json::{Value, json};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const HOUR: i64 = 3600;

fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "type": "Normal", "reason": "Tested", "message": "m",
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "a"},
    })
}

async fn server(seconds: &Arc<AtomicI64>) -> ApiServer {
    let seconds = seconds.clone();
    let clock = Arc::new(move || Timestamp::from_second(seconds.load(Ordering::Relaxed)).unwrap());
    ApiServer::open(Config { clock, ..Config::default() }).await.unwrap()
}

/// The clock stands still while the timer runs: what is due goes with the next event that is written.
#[tokio::test(start_paused = true)]
async fn an_event_goes_an_hour_after_its_last_write() {
    let seconds = Arc::new(AtomicI64::new(1_000_000));
    let server = server(&seconds).await;
    let service = server.service();
    for name in ["old", "renewed"] {
        post(&service, EVENTS, &event(name)).await.ok();
    }
    post(&service, MAPS, &map("kept", "1")).await.ok();
    seconds.fetch_add(HOUR / 2, Ordering::Relaxed);
    merge(&service, &format!("{EVENTS}/renewed"), &json!({"count": 2})).await.ok();
    let mut watch = Lines::watch(&service, EVENTS, &format!("&resourceVersion={}", server.store().version())).await;

    seconds.fetch_add(HOUR / 2, Ordering::Relaxed);
    post(&service, EVENTS, &event("new")).await.ok();

    assert_eq!(
        watch.seen(2).await.iter().map(|(kind, name, _)| format!("{kind} {name}")).collect::<Vec<_>>(),
        ["ADDED new", "DELETED old"]
    );
    assert_eq!(get(&service, &format!("{EVENTS}/renewed")).await.code, 200);
    assert_eq!(get(&service, &format!("{MAPS}/kept")).await.code, 200);
}

/// With a clock that follows the timer nobody has to write for an event to go.
#[tokio::test(start_paused = true)]
async fn an_event_goes_by_itself() {
    let start = tokio::time::Instant::now();
    let clock = Arc::new(move || {
        let passed = i64::try_from(start.elapsed().as_millis()).unwrap();
        Timestamp::from_millisecond(1_000_000_000 + passed).unwrap()
    });
    let server = ApiServer::open(Config { clock, ..Config::default() }).await.unwrap();
    let service = server.service();
    post(&service, EVENTS, &event("a")).await.ok();

    tokio::time::sleep(std::time::Duration::from_secs(3590)).await;
    let before = get(&service, &format!("{EVENTS}/a")).await.code;
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    let after = get(&service, &format!("{EVENTS}/a")).await.code;

    assert_eq!((before, after), (200, 404));
}
