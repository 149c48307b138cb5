//! Watches: complete, in order, resumable, and cheap for the server when their reader is slow.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::collections::BTreeSet;

use crate::support::{Lines, MAPS, delete, get, map, merge, post, put, send, soon, version_of};
use futures::future::join_all;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use portolan_apiserver::store::HistoryLimits;
use portolan_apiserver::{ApiServer, ApiService, Config};
use serde_json::{Value, json};

const WATCHERS: usize = 50;
const WRITERS: usize = 20;
const OBJECTS_A_WRITER: usize = 200;

/// What a watcher notes of an event: its type and its version.
fn noted(line: &[u8]) -> (u8, u64) {
    let text = std::str::from_utf8(line).unwrap();
    let kind = text.strip_prefix("{\"type\":\"").unwrap().as_bytes()[0];
    let (_, rest) = text.split_once("\"resourceVersion\":\"").unwrap();
    (kind, rest.split_once('"').unwrap().0.parse().unwrap())
}

/// Creates, changes and deletes its own objects and tells the versions that it was given: five writes for two objects.
async fn write(service: ApiService, writer: usize) -> Vec<(u8, u64)> {
    let mut acknowledged = Vec::new();
    for n in 0..OBJECTS_A_WRITER {
        let name = format!("w{writer}-{n}");
        let path = format!("{MAPS}/{name}");
        acknowledged.push((b'A', version_of(&post(&service, MAPS, &map(&name, "1")).await.ok())));
        acknowledged.push((b'M', version_of(&put(&service, &path, &map(&name, "2")).await.ok())));
        if n % 2 == 0 {
            delete(&service, &path).await.ok();
        }
    }
    acknowledged
}

/// 20 writers × 200 objects × 2½ writes are 10,000 events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_watchers_see_ten_thousand_events_once_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { data_dir: Some(directory.path().join("data")), ..Config::default() };
    let server = ApiServer::open(config).await.unwrap();
    let service = server.service();
    let total = WRITERS * OBJECTS_A_WRITER * 5 / 2;
    let from = server.store().version();
    let watchers: Vec<_> = join_all((0..WATCHERS).map(|_| {
        let service = service.clone();
        async move { Lines::watch(&service, MAPS, &format!("&resourceVersion={from}")).await }
    }))
    .await;
    let watchers: Vec<_> = watchers
        .into_iter()
        .map(|mut lines| {
            tokio::spawn(async move {
                let mut seen = Vec::with_capacity(total);
                while seen.len() < total {
                    seen.push(noted(&soon(lines.line()).await.unwrap()));
                }
                seen
            })
        })
        .collect();

    let writers = (0..WRITERS).map(|writer| tokio::spawn(write(service.clone(), writer)));
    let acknowledged: BTreeSet<(u64, u8)> =
        join_all(writers).await.into_iter().flat_map(Result::unwrap).map(|(kind, version)| (version, kind)).collect();
    let seen: Vec<Vec<(u8, u64)>> = join_all(watchers).await.into_iter().map(Result::unwrap).collect();

    assert_eq!(total, 10_000);
    let first = &seen[0];
    assert!(first.windows(2).all(|pair| pair[0].1 < pair[1].1), "in order, none twice");
    assert!(seen.iter().all(|other| other == first), "all saw the same");
    let written: BTreeSet<(u64, u8)> =
        first.iter().filter(|e| e.0 != b'D').map(|(kind, version)| (*version, *kind)).collect();
    assert_eq!(written, acknowledged);
    assert_eq!(first.iter().filter(|e| e.0 == b'D').count(), WRITERS * OBJECTS_A_WRITER / 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_over_tls_see_every_event_once_and_in_order() {
    let server = crate::support::server().await;
    let service = server.service();
    let running = server.serve(([127, 0, 0, 1], 0).into()).await.unwrap();
    let client = crate::support::tls_client(&running).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut watchers = Vec::new();
    for _ in 0..10 {
        let mut stream = watcher(maps.clone(), watcher::Config::default()).boxed();
        while !matches!(soon(stream.try_next()).await.unwrap().unwrap(), watcher::Event::InitDone) {}
        watchers.push(tokio::spawn(async move {
            let versions = stream.applied_objects().take(500).map(|o| o.unwrap().resource_version().unwrap());
            soon(versions.map(|v| v.parse::<u64>().unwrap()).collect::<Vec<u64>>()).await
        }));
    }

    let mut written = Vec::new();
    for n in 0..500 {
        written.push(version_of(&post(&service, MAPS, &map(&format!("n{n}"), "1")).await.ok()));
    }

    for seen in join_all(watchers).await {
        assert_eq!(seen.unwrap(), written);
    }
    running.shutdown().await;
}

#[tokio::test]
async fn a_watch_resumes_across_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { data_dir: Some(directory.path().join("data")), ..Config::default() };
    let server = ApiServer::open(config.clone()).await.unwrap();
    let service = server.service();
    post(&service, MAPS, &map("a", "1")).await.ok();
    let mut lines = Lines::watch(&service, MAPS, "&resourceVersion=0").await;
    let seen = lines.seen(1).await;
    merge(&service, &format!("{MAPS}/a"), &json!({"data": {"value": "2"}})).await.ok();
    post(&service, MAPS, &map("b", "1")).await.ok();
    delete(&service, &format!("{MAPS}/a")).await.ok();
    let before = server.store().version();
    server.store().close().await;
    drop((lines, service, server));

    let server = ApiServer::open(config).await.unwrap();
    let service = server.service();
    let mut lines = Lines::watch(&service, MAPS, &format!("&resourceVersion={}", seen[0].2)).await;
    let missed = lines.seen(3).await;
    let created = version_of(&post(&service, MAPS, &map("c", "1")).await.ok());
    let followed = lines.seen(1).await;

    let kinds: Vec<(&str, &str)> = missed.iter().map(|(kind, name, _)| (kind.as_str(), name.as_str())).collect();
    assert_eq!(kinds, [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]);
    assert_eq!(missed[2].2, before);
    assert_eq!(followed, [("ADDED".to_owned(), "c".to_owned(), created)]);
    assert!(created > before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_goes_on_after_a_restart_without_listing_again() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { data_dir: Some(directory.path().join("data")), ..Config::default() };
    let open = async |address| ApiServer::open(config.clone()).await.unwrap().serve(address).await.unwrap();
    let running = open(([127, 0, 0, 1], 0).into()).await;
    let address = running.address();
    let maps: Api<ConfigMap> = Api::default_namespaced(crate::support::tls_client(&running).await);
    let object: ConfigMap = serde_json::from_value(map("a", "1")).unwrap();
    maps.create(&kube::api::PostParams::default(), &object).await.unwrap();
    let mut stream = watcher(maps.clone(), watcher::Config::default()).default_backoff().boxed();
    while !matches!(soon(stream.try_next()).await.unwrap().unwrap(), watcher::Event::InitDone) {}

    let (seen, arrived) = tokio::sync::oneshot::channel();
    let watching = tokio::spawn(async move {
        let mut seen = Some(seen);
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            // The server is away for a while.
            let Ok(event) = event else { continue };
            events.push(event.to_string());
            if events.last().is_some_and(|e| e == "Apply(b)") {
                break;
            }
        }
        let _ = seen.take().unwrap().send(());
        events
    });
    running.shutdown().await;
    let running = open(address).await;
    let object: ConfigMap = serde_json::from_value(map("b", "1")).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(crate::support::tls_client(&running).await);
    maps.create(&kube::api::PostParams::default(), &object).await.unwrap();
    soon(arrived).await.unwrap();

    assert_eq!(watching.await.unwrap(), ["Apply(b)"]);
    running.shutdown().await;
}

#[tokio::test]
async fn a_compacted_version_is_gone_for_watches_lists_and_chunks() {
    let server = crate::support::server().await;
    let service = server.service();
    for n in 0..6 {
        post(&service, MAPS, &map(&format!("n{n}"), "1")).await.ok();
    }
    let page = get(&service, &format!("{MAPS}?limit=2")).await.ok();
    let (old, token) = (version_of(&page), page["metadata"]["continue"].as_str().unwrap().to_owned());
    post(&service, MAPS, &map("z-later", "1")).await.ok();
    server.store().compact(server.store().version());

    let error = Lines::watch(&service, MAPS, &format!("&resourceVersion={old}")).await.event().await.unwrap();
    let exact = get(&service, &format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact")).await;
    let chunk = get(&service, &format!("{MAPS}?limit=2&continue={token}")).await;

    assert_eq!(error["type"], "ERROR");
    assert_eq!((&error["object"]["code"], &error["object"]["reason"]), (&json!(410), &json!("Expired")));
    assert_eq!((exact.code, exact.json()["reason"].clone()), (410, json!("Expired")));
    assert_eq!((chunk.code, chunk.json()["reason"].clone()), (410, json!("Expired")));
    // The answer carries a token that goes on with the present.
    let status = chunk.json();
    let token = status["metadata"]["continue"].as_str().unwrap();
    let rest = get(&service, &format!("{MAPS}?limit=20&continue={token}")).await.ok();
    let names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"z-later") && !names.contains(&"n0"), "{names:?}");
}

#[tokio::test]
async fn a_watcher_recovers_from_a_compacted_version() {
    let server = crate::support::server().await;
    let service = server.service();
    let maps: Api<ConfigMap> = Api::default_namespaced(kube::Client::new(server.service(), "default"));
    post(&service, MAPS, &map("a", "1")).await.ok();
    let mut stream = watcher(maps, watcher::Config::default()).boxed();
    while !matches!(soon(stream.try_next()).await.unwrap().unwrap(), watcher::Event::InitDone) {}
    post(&service, MAPS, &map("b", "1")).await.ok();
    assert_eq!(soon(stream.try_next()).await.unwrap().unwrap().to_string(), "Apply(b)");

    // Nobody reads meanwhile.
    post(&service, MAPS, &map("c", "1")).await.ok();
    delete(&service, &format!("{MAPS}/a")).await.ok();
    server.store().compact(server.store().version());
    let error = soon(stream.next()).await.unwrap().unwrap_err();
    let mut relisted = Vec::new();
    while relisted.last().is_none_or(|e| e != "InitDone") {
        relisted.push(soon(stream.try_next()).await.unwrap().unwrap().to_string());
    }
    post(&service, MAPS, &map("d", "1")).await.ok();
    let followed = soon(stream.try_next()).await.unwrap().unwrap().to_string();

    assert!(matches!(error, watcher::Error::WatchError(status) if status.code == 410));
    assert_eq!(relisted, ["Init", "InitApply(b)", "InitApply(c)", "InitDone"]);
    assert_eq!(followed, "Apply(d)");
}

#[tokio::test]
async fn a_slow_reader_falls_out_of_the_history() {
    let history = HistoryLimits { events: 50, bytes: 1 << 20 };
    let server = ApiServer::open(Config { history, ..Config::default() }).await.unwrap();
    let service = server.service();
    let mut slow = Lines::watch(&service, MAPS, "").await;
    post(&service, MAPS, &map("a", "0")).await.ok();
    assert_eq!(slow.seen(1).await.len(), 1);

    for n in 0..200 {
        merge(&service, &format!("{MAPS}/a"), &json!({"data": {"value": n.to_string()}})).await.ok();
    }
    let error = slow.event().await.unwrap();
    let end = slow.event().await;

    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["object"]["code"], 410);
    assert!(end.is_none(), "nothing follows");
}

#[tokio::test]
async fn a_quiet_watch_outlives_the_history_of_other_kinds() {
    let history = HistoryLimits { events: 50, bytes: 1 << 20 };
    let server = ApiServer::open(Config { history, ..Config::default() }).await.unwrap();
    let service = server.service();
    let mut quiet = Lines::watch(&service, "/api/v1/namespaces/default/secrets", "").await;
    for n in 0..200 {
        post(&service, MAPS, &map(&format!("n{n}"), "1")).await.ok();
    }

    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    post(&service, "/api/v1/namespaces/default/secrets", &secret).await.ok();

    assert_eq!(quiet.seen(1).await[0].1, "a");
}

#[tokio::test]
async fn selectors_turn_matches_into_added_and_deleted() {
    let server = crate::support::server().await;
    let service = server.service();
    let path = format!("{MAPS}/a");
    let mut lines = Lines::watch(&service, MAPS, "&labelSelector=tier%3Dfront").await;
    let mut by_name = Lines::watch(&service, MAPS, "&fieldSelector=metadata.name%3Da").await;
    let label = |value: Value| json!({"metadata": {"labels": {"tier": value}}});

    post(&service, MAPS, &map("a", "1")).await.ok();
    post(&service, MAPS, &map("other", "1")).await.ok();
    merge(&service, &path, &label(json!("front"))).await.ok();
    merge(&service, &path, &json!({"data": {"value": "2"}})).await.ok();
    let away = version_of(&merge(&service, &path, &label(json!("back"))).await.ok());
    merge(&service, &path, &json!({"data": {"value": "3"}})).await.ok();
    let back = version_of(&merge(&service, &path, &label(json!("front"))).await.ok());
    let gone = delete(&service, &path).await;

    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(lines.event().await.unwrap());
    }
    let kinds: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]);
    // What left the selection is shown as it was last selected, in the version in which it left.
    assert_eq!(version_of(&events[2]["object"]), away);
    assert_eq!(events[2]["object"]["metadata"]["labels"]["tier"], "front");
    assert_eq!(events[2]["object"]["data"]["value"], "2");
    assert_eq!(version_of(&events[3]["object"]), back);
    assert_eq!(gone.code, 200);
    let named = by_name.seen(7).await;
    assert!(named.iter().all(|(_, name, _)| name == "a"));
    assert_eq!(named[6].0, "DELETED");
}

#[tokio::test]
async fn initial_events_end_with_their_bookmark() {
    let server = crate::support::server().await;
    let service = server.service();
    post(&service, MAPS, &map("a", "1")).await.ok();
    let version = version_of(&post(&service, MAPS, &map("b", "1")).await.ok());
    let query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

    let mut lines = Lines::watch(&service, MAPS, query).await;
    let initial = lines.seen(2).await;
    let bookmark = lines.event().await.unwrap();
    post(&service, MAPS, &map("c", "1")).await.ok();
    let followed = lines.seen(1).await;
    let empty = Lines::watch(&service, "/api/v1/namespaces/default/secrets", query).await.event().await.unwrap();
    let unclear = get(&service, &format!("{MAPS}?watch=true&sendInitialEvents=true")).await;

    let names: Vec<&str> = initial.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert!(version_of(&bookmark["object"]) >= version);
    assert_eq!(followed[0].1, "c");
    assert_eq!(empty["type"], "BOOKMARK");
    assert_eq!((unclear.code, unclear.json()["reason"].clone()), (422, json!("Invalid")));
}

#[tokio::test]
async fn a_bookmark_comes_before_a_watch_ends() {
    let server = crate::support::server().await;
    let service = server.service();
    let mut lines = Lines::watch(&service, MAPS, "&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion=1").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let version = version_of(&post(&service, "/api/v1/namespaces/default/secrets", &secret).await.ok());

    let bookmark = lines.event().await.unwrap();
    let end = lines.event().await;

    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    assert!(version_of(&bookmark["object"]) >= version, "it moves on though only other kinds changed");
    assert!(end.is_none());
}

#[tokio::test]
async fn a_watch_can_start_now_at_a_version_or_with_the_present() {
    let server = crate::support::server().await;
    let service = server.service();
    let first = version_of(&post(&service, MAPS, &map("a", "1")).await.ok());
    post(&service, MAPS, &map("b", "1")).await.ok();

    let mut from_first = Lines::watch(&service, MAPS, &format!("&resourceVersion={first}")).await;
    let mut with_present = Lines::watch(&service, MAPS, "&resourceVersion=0").await;
    let mut any = Lines::watch(&service, MAPS, "").await;
    let table = send(&service, "GET", &format!("{MAPS}?watch=true&timeoutSeconds=1"), "", "").await;
    let malformed = get(&service, &format!("{MAPS}?watch=true&resourceVersion=abc")).await;

    assert_eq!(from_first.seen(1).await[0].1, "b");
    assert_eq!(with_present.seen(2).await.iter().map(|e| e.1.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(any.seen(2).await.len(), 2);
    assert_eq!(String::from_utf8_lossy(&table.text).lines().count(), 2, "it ended by its own time");
    // As the real server answers it.
    assert_eq!(malformed.code, 500);
}
