//! Whole objects of kinds that have few.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use portolan_core::ObjectKey;
use portolan_engine::{Cache, Controller, Job, Manager};
use serde_json::json;

use crate::gadget::{Gadget, Gadgets, gadget};
use crate::world::World;

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "b"}})).unwrap()
}

/// A world whose gadgets all run when a config map changes.
async fn world(cache: &Cache<ConfigMap>) -> World {
    let mut world = World::empty().await;
    world.create(gadget("a", "1")).await;
    let (context, client, remote, cache) =
        (world.context.clone(), world.client.clone(), world.remote.clone(), cache.clone());
    let job = Job::new("gadgets", move |shutdown| {
        let gadgets = Arc::new(Gadgets { client: client.clone(), remote: remote.clone() });
        let controller = Controller::new(context.clone(), gadgets)
            .follow(&cache, |_, _, store| store.projections().map(|(key, _)| key.clone()).collect());
        vec![cache.into_task(&context, shutdown.clone()), controller.into_task(shutdown.clone())]
    });
    world.manager = Some(Manager::start(&world.context, [job]));
    world
}

#[tokio::test(start_paused = true)]
async fn a_cache_mirrors_its_collection_and_makes_others_run() {
    let cache = Cache::<ConfigMap>::new();
    let world = world(&cache).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    cache.ready().await;
    world.settle().await;
    world.remote.take_log();
    let key = ObjectKey::namespaced("default", "m");
    assert!(cache.get(&key).is_none());

    maps.create(&PostParams::default(), &config_map("m")).await.unwrap();
    world.settle().await;

    let cached = cache.get(&key).unwrap();
    assert_eq!(cached.data.as_ref().unwrap()["a"], "b");
    assert_eq!(cached.metadata.managed_fields, None);
    assert_eq!(world.remote.take_log().len(), 1);

    maps.delete("m", &DeleteParams::default()).await.unwrap();
    world.settle().await;
    assert_eq!(cache.iter().count(), 0);
    assert_eq!(world.remote.take_log().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_controller_starts_when_the_caches_it_needs_are_complete() {
    let (context, cache) = (World::empty().await, Cache::<ConfigMap>::new());
    let (client, remote) = (context.client.clone(), context.remote.clone());
    context.create(gadget("a", "1")).await;
    let (inner, never_filled) = (context.context.clone(), cache.clone());
    let job = Job::new("gadgets", move |shutdown| {
        let gadgets = Arc::new(Gadgets { client: client.clone(), remote: remote.clone() });
        let controller = Controller::new(inner.clone(), gadgets).follow(&never_filled, |_, _, _| Vec::new());
        vec![controller.into_task(shutdown.clone())]
    });

    let manager = Manager::start(&context.context, [job]);
    context.after(3600).await;

    assert_eq!(context.remote.take_log(), []);
    assert_eq!(manager.busy(), 1, "the object waits for the cache");
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_an_unknown_kind_is_complete_and_empty() {
    let world = crate::world::without_kinds().await;
    let context = world.context(world.cluster.client().clone());
    let (cache, context) = (Cache::<Gadget>::new(), Arc::new(context));
    let (filled, inner) = (cache.clone(), context.clone());

    let _manager =
        Manager::start(&context, [Job::new("cache", move |shutdown| vec![filled.into_task(&inner, shutdown.clone())])]);
    cache.ready().await;

    assert_eq!(cache.iter().count(), 0);
}
