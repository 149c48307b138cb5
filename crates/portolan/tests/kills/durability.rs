//! `kill -9` during concurrent creates: what was acknowledged is there, versions never go back.
//!
//! `PORTOLAN_KILLS` sets the number of kills (10 where unset).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::Server;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};

const WRITERS: usize = 16;

/// Name → version of each object whose creation was answered with success.
type Acknowledged = Arc<Mutex<BTreeMap<String, u64>>>;

async fn config_maps(kubeconfig: &Path) -> Api<DynamicObject> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    Api::namespaced_with(client, "default", &kind)
}

fn version_of(object: &DynamicObject) -> u64 {
    object.metadata.resource_version.as_deref().unwrap().parse().unwrap()
}

/// Creates objects one after the other until the server is gone.
async fn write_until_killed(api: Api<DynamicObject>, next: Arc<AtomicUsize>, acknowledged: Acknowledged) {
    loop {
        let name = format!("object-{:06}", next.fetch_add(1, Ordering::Relaxed));
        let object: DynamicObject = serde_json::from_value(serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"name": name},
        }))
        .unwrap();
        match api.create(&PostParams::default(), &object).await {
            Ok(created) => acknowledged.lock().unwrap().insert(name, version_of(&created)),
            Err(kube::Error::Api(status)) => panic!("a create was refused: {status}"),
            Err(_) => return,
        };
    }
}

/// Writes concurrently for a while, then kills the server in the middle of it.
async fn kill_while_writing(server: &mut Server, round: u32, next: &Arc<AtomicUsize>, acknowledged: &Acknowledged) {
    let api = config_maps(&server.kubeconfig()).await;
    let before = acknowledged.lock().unwrap().len();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        writers.spawn(write_until_killed(api.clone(), Arc::clone(next), Arc::clone(acknowledged)));
    }
    // A different moment each round, but never before something was acknowledged.
    while acknowledged.lock().unwrap().len() < before + 20 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(u64::from(round * 37 % 150))).await;
    server.kill();
    while let Some(writer) = writers.join_next().await {
        writer.expect("a writer saw nothing but success until the end");
    }
}

/// Compares what is there with what was acknowledged; returns the collection's version.
async fn check(server: &Server, round: u32, acknowledged: &Acknowledged) -> u64 {
    let api = config_maps(&server.kubeconfig()).await;
    let list = api.list(&ListParams::default()).await.unwrap();
    let there: BTreeMap<String, u64> =
        list.items.iter().map(|object| (object.metadata.name.clone().unwrap(), version_of(object))).collect();
    for (name, version) in acknowledged.lock().unwrap().iter() {
        assert_eq!(there.get(name), Some(version), "round {round}: {name} was acknowledged");
    }
    for object in list.items.iter().filter(|object| object.metadata.name.as_deref().unwrap().starts_with("object-")) {
        assert_eq!(
            object.data["data"]["name"].as_str(),
            object.metadata.name.as_deref(),
            "round {round}: half an object"
        );
    }
    list.metadata.resource_version.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_object_survives_kill_minus_nine() {
    let kills: u32 = std::env::var("PORTOLAN_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let next = Arc::new(AtomicUsize::new(0));
    let acknowledged = Acknowledged::default();
    let mut highest = 0;
    let mut server = Server::start_on(&data);
    for round in 1..=kills {
        kill_while_writing(&mut server, round, &next, &acknowledged).await;
        let promised = acknowledged.lock().unwrap().values().copied().max().unwrap_or(0);

        server = Server::start_on(&data);
        let version = check(&server, round, &acknowledged).await;

        assert!(version >= promised, "round {round}: the version went back from {promised} to {version}");
        assert!(version >= highest, "round {round}: the version went back from {highest} to {version}");
        highest = version;
    }
    let count = acknowledged.lock().unwrap().len();
    println!("{kills} kills, {count} acknowledged objects, all there");
}
