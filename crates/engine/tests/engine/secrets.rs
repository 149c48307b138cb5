//! Secrets that are read by name, without a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_core::ObjectKey;
use portolan_engine::Secrets;
use secrecy::ExposeSecret as _;
use serde_json::json;
use tower::ServiceExt as _;

use crate::world::World;

const KEPT: Duration = Duration::from_secs(5);

async fn put(world: &World, token: &str) {
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"token": token}});
    let api: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    api.patch("a", &PatchParams::apply("a-user").force(), &Patch::Apply(secret)).await.unwrap();
}

/// Secrets that are kept for a while, and how often the server was asked.
fn secrets(world: &World) -> (Secrets, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let service = world.server.service().map_request(move |request: http::Request<_>| {
        count.fetch_add(1, Ordering::Relaxed);
        request
    });
    (Secrets::kept_for(Client::new(service, "default"), KEPT), asked)
}

async fn token(secrets: &Secrets) -> Option<String> {
    let values = secrets.find("default", "a").await.unwrap()?;
    Some(values["token"].expose_secret().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_kept_for_a_while_and_then_read_anew() {
    let world = World::empty().await;
    put(&world, "t1").await;
    let (secrets, asked) = secrets(&world);
    assert_eq!(token(&secrets).await.as_deref(), Some("t1"));

    put(&world, "t2").await;

    assert_eq!((token(&secrets).await.as_deref(), asked.load(Ordering::Relaxed)), (Some("t1"), 1));
    tokio::time::advance(KEPT).await;
    assert_eq!(token(&secrets).await.as_deref(), Some("t2"));
}

#[tokio::test(start_paused = true)]
async fn those_who_want_a_secret_at_once_read_it_once() {
    let world = World::empty().await;
    put(&world, "t1").await;
    let (secrets, asked) = secrets(&world);

    let tokens = futures::future::join_all((0..50).map(|_| token(&secrets))).await;

    assert!(tokens.iter().all(|token| token.as_deref() == Some("t1")));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_look_tells_contents_apart_and_forgets_one_that_is_old() {
    let world = World::empty().await;
    let (secrets, _) = secrets(&world);
    let key = ObjectKey::namespaced("default", "a");
    let missing = secrets.look(&key).await.unwrap();
    put(&world, "t1").await;
    let first = secrets.found(&key).await.unwrap().version;

    assert!(missing != first && secrets.look(&key).await.unwrap() == first);
    put(&world, "t2").await;

    assert_ne!(secrets.look(&key).await.unwrap(), first);
    assert_eq!(token(&secrets).await.as_deref(), Some("t2"), "though it was read a moment ago");
}
