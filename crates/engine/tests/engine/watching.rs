//! Watches that break, resources that come late, objects that many others point at.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DeleteParams, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use portolan_core::{Problem, reasons};
use portolan_engine::{CancellationToken, Controller, Job, Manager, Related, Selection, key_of};
use serde_json::json;

use crate::gadget::{Gadgets, definition, gadget, key};
use crate::world::{World, without_kinds};

fn config_map(name: &str, names: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"names": names}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_history_is_gone_lists_anew_and_misses_nothing() {
    let world = World::start().await;
    world.create(gadget("kept", "1")).await;
    world.create(gadget("deleted", "1")).await;
    world.create(gadget("vanished", "1")).await;

    world.offline.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(300)).await;
    world.api().create(&PostParams::default(), &gadget("new", "1")).await.unwrap();
    let patch = json!({"spec": {"value": "2"}});
    world.api().patch("kept", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    world.api().delete("deleted", &DeleteParams::default()).await.unwrap();
    world.raw().delete("vanished", &DeleteParams::default()).await.unwrap();
    world.merge("vanished", json!({"metadata": {"finalizers": null}})).await;
    world.server.store().compact(world.version());
    assert_eq!(world.remote.value("new"), None, "nobody looks");
    world.offline.store(false, Ordering::Relaxed);
    world.after(60).await;

    assert_eq!(world.remote.value("new").as_deref(), Some("1"));
    assert_eq!(world.remote.value("kept").as_deref(), Some("2"));
    assert_eq!(world.remote.value("deleted"), None);
    assert!(world.get("deleted").await.is_none());
    assert!(world.handle().get(&key("vanished")).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_lives_longer_than_its_connections() {
    let world = World::start().await;

    for hour in 0..5 {
        world.after(3600).await;
        world.create(gadget(&format!("g{hour}"), "1")).await;
    }

    assert_eq!(world.remote.take_writes().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_later_is_picked_up() {
    let world = without_kinds().await;
    let client = world.cluster.client().clone();
    let context = Arc::new(world.context(client.clone()));
    let remote: Arc<crate::gadget::Remote> = Arc::default();
    let gadgets = Arc::new(Gadgets { client: client.clone(), remote: remote.clone() });
    let job = {
        let context = context.clone();
        Job::new("gadgets", move |shutdown| {
            vec![Controller::new(context.clone(), gadgets.clone()).into_task(shutdown.clone())]
        })
    };
    let manager = Manager::start(&context, [job]);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(manager.busy(), 0, "a kind that is not there keeps nobody busy");

    Api::all(client.clone()).create(&PostParams::default(), &definition()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    Api::namespaced(client, "default").create(&PostParams::default(), &gadget("a", "1")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(75)).await;

    assert_eq!(remote.value("a").as_deref(), Some("1"));
}

/// A world whose gadgets also run when the config map that names them changes.
async fn triggered(metadata_only: bool) -> World {
    let mut world = World::empty().await;
    let (context, client, remote) = (world.context.clone(), world.client.clone(), world.remote.clone());
    let job = Job::new("gadgets", move |shutdown: &CancellationToken| {
        let gadgets = Arc::new(Gadgets { client: client.clone(), remote: remote.clone() });
        let controller = Controller::new(context.clone(), gadgets);
        let controller = if metadata_only {
            let resource = ApiResource::erase::<ConfigMap>(&());
            controller.watch_metadata(&resource, Selection::labels("toys=yes"), |seen, _| match seen {
                Related::Here(map) => vec![key(&map.name_any())],
                Related::Gone(gone) => vec![key(&gone.name)],
            })
        } else {
            controller.watch::<ConfigMap>(Selection::all(), |seen, store| match seen {
                Related::Here(map) => {
                    let names = map.data.iter().flatten().map(|(_, name)| key(name));
                    names.filter(|key| store.get(key).is_some()).collect()
                }
                Related::Gone(_) => Vec::new(),
            })
        };
        let unknown = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "Gateway"));
        let controller = controller.watch_metadata(&unknown, Selection::all(), |_, _| Vec::new());
        vec![controller.into_task(shutdown.clone())]
    });
    world.manager = Some(Manager::start(&world.context, [job]));
    world.settle().await;
    world.create(gadget("a", "1")).await;
    world.create(gadget("b", "1")).await;
    world.remote.take_log();
    world
}

fn looked_at(world: &World) -> Vec<String> {
    world.remote.take_log().into_iter().map(|call| call.what).collect()
}

#[tokio::test(start_paused = true)]
async fn objects_run_when_what_they_depend_on_changes_even_if_it_no_longer_names_them() {
    let world = triggered(false).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());

    maps.create(&PostParams::default(), &config_map("m", "a")).await.unwrap();
    world.settle().await;
    assert_eq!(looked_at(&world), ["look a"]);

    maps.patch("m", &PatchParams::default(), &Patch::Merge(json!({"data": {"names": "b"}}))).await.unwrap();
    world.settle().await;
    assert_eq!(looked_at(&world), ["look a", "look b"]);

    maps.delete("m", &DeleteParams::default()).await.unwrap();
    world.settle().await;
    assert_eq!(looked_at(&world), ["look b"]);
}

#[tokio::test(start_paused = true)]
async fn a_dependency_ends_a_wait_at_once() {
    let world = triggered(false).await;
    world.remote.problems("a", &Problem::denied(reasons::CREDENTIALS_DENIED, "403"), 1);
    world.force("a").await;
    assert_eq!(world.ready("a").await, "False/CredentialsDenied");

    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    maps.create(&PostParams::default(), &config_map("m", "a")).await.unwrap();
    world.settle().await;

    assert_eq!(world.ready("a").await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn metadata_is_enough_to_be_woken_and_selections_are_kept() {
    let world = triggered(true).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.client.clone());
    let mut chosen = config_map("a", "");
    chosen.metadata.labels = Some([("toys".to_owned(), "yes".to_owned())].into());

    maps.create(&PostParams::default(), &chosen).await.unwrap();
    maps.create(&PostParams::default(), &config_map("b", "")).await.unwrap();
    world.settle().await;

    assert_eq!(looked_at(&world), ["look a"]);
    assert_eq!(key_of(&chosen.metadata).name, "a");
}

#[tokio::test(start_paused = true)]
async fn more_objects_than_are_kept_in_memory_are_all_passed_over() {
    let mut world = World::empty().await;
    for number in 0..1500 {
        world.api().create(&PostParams::default(), &gadget(&format!("g{number}"), "1")).await.unwrap();
    }

    world.run();
    world.settle().await;

    assert_eq!(world.remote.take_writes().len(), 1500);
    assert_eq!(world.handle().read(portolan_engine::Store::len), 1500);
}
