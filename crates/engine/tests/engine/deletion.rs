//! Finalizers leave last.

use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use portolan_core::{Problem, reasons};
use serde_json::json;

use crate::gadget::{FINALIZER, OLDER, gadget};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_deleted_object_takes_its_remote_part_along() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;

    world.delete("a").await;

    assert_eq!(world.remote.take_writes(), ["create a", "delete a"]);
    assert!(world.get("a").await.is_none());
    assert_eq!(world.events().await, ["Created a", "Deleted a"]);
    assert_eq!(world.handle().read(portolan_engine::Store::len), 0);
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_stays_while_the_delete_fails_and_one_event_says_so() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    for number in 0..5 {
        let problem = Problem::transient(reasons::API_ERROR, format!("500, request {number}"));
        world.remote.problems("a", &problem, 1);
    }

    world.delete("a").await;
    for _ in 0..4 {
        assert_eq!(world.get("a").await.unwrap().finalizers(), [FINALIZER]);
        world.after(20).await;
    }
    world.after(600).await;

    assert!(world.get("a").await.is_none());
    assert_eq!(world.remote.value("a"), None);
    assert_eq!(world.events().await, ["Created a", "DeleteFailed a", "Deleted a"]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_deleted_when_it_goes_on() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.annotate("a", "portolan.dev/paused", "true").await;

    world.delete("a").await;
    assert_eq!(world.get("a").await.unwrap().finalizers(), [FINALIZER]);
    world.annotate("a", "portolan.dev/paused", "false").await;

    assert!(world.get("a").await.is_none());
    assert_eq!(world.remote.value("a"), None);
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_earlier_operators_go_with_ours_and_foreign_ones_stay() {
    let world = World::empty().await;
    let mut old = gadget("a", "1");
    old.metadata.finalizers = Some(vec![OLDER.to_owned(), "foreign.example.com/hold".to_owned()]);
    world.create(old).await;
    world.remote.set("a", "1");
    let mut world = world;
    world.run();
    world.settle().await;

    world.delete("a").await;

    assert_eq!(world.remote.take_writes(), ["delete a"]);
    assert_eq!(world.get("a").await.unwrap().finalizers(), ["foreign.example.com/hold"]);
    world.merge("a", json!({"metadata": {"finalizers": null}})).await;
    assert!(world.get("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_living_object_that_needs_no_finalizer_loses_it_and_gets_it_back_when_it_does() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;

    world.merge("a", json!({"metadata": {"annotations": {"test.portolan.dev/free": "true"}}})).await;
    assert!(world.get("a").await.unwrap().finalizers().is_empty());
    let rests = world.version();
    world.after(600).await;
    assert_eq!(world.version(), rests, "taking it away once is enough");
    world.merge("a", json!({"metadata": {"annotations": {"test.portolan.dev/free": null}}})).await;

    assert_eq!(world.get("a").await.unwrap().finalizers(), [FINALIZER]);
    assert_eq!(world.remote.value("a").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_deleted_while_nobody_looked_is_cleaned_up() {
    let mut world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.crash();
    world.delete("a").await;
    assert!(world.get("a").await.is_some());

    world.run();
    world.settle().await;

    assert!(world.get("a").await.is_none());
    assert_eq!(world.remote.value("a"), None);
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_before_its_first_pass_leaves_nothing_behind() {
    let world = World::start().await;
    world.api().create(&PostParams::default(), &gadget("a", "1")).await.unwrap();
    world.delete("a").await;

    assert!(world.get("a").await.is_none());
    assert_eq!(world.remote.value("a"), None);
}

#[tokio::test(start_paused = true)]
async fn force_lets_an_object_go_whose_remote_part_cannot_be_reached() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.remote.problems("a", &Problem::waiting(reasons::DEPENDENCY_ERROR, "no credentials"), 100);
    world.delete("a").await;
    world.after(120).await;
    assert_eq!(world.ready("a").await, "False/DependencyError");
    assert_eq!(world.events().await, ["Created a"], "waiting is no failure");

    world.annotate("a", "older.example.com/force-delete", "true").await;

    assert!(world.get("a").await.is_none());
    assert_eq!(world.events().await, ["Created a", "ForcedCleanup a"]);
}

#[tokio::test(start_paused = true)]
async fn force_does_not_skip_a_cleanup_that_may_work_next_time() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.remote.problems("a", &Problem::transient(reasons::API_ERROR, "500"), 1);
    world.annotate("a", "test.portolan.dev/noise", "1").await;
    world.merge("a", json!({"metadata": {"annotations": {"portolan.dev/paused": "true"}}})).await;
    world.delete("a").await;

    let both = json!({"metadata": {"annotations": {"portolan.dev/force-delete": "true", "portolan.dev/paused": null}}});
    world.merge("a", both).await;
    assert!(world.get("a").await.is_some());
    world.after(60).await;

    assert!(world.get("a").await.is_none());
    assert_eq!(world.remote.value("a"), None);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_everything_in_it() {
    let world = World::start().await;
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(world.client.clone());
    let team = serde_json::from_value(json!({"metadata": {"name": "team"}})).unwrap();
    namespaces.create(&PostParams::default(), &team).await.unwrap();
    let api: Api<crate::gadget::Gadget> = Api::namespaced(world.client.clone(), "team");
    for number in 0..20 {
        let mut gadget = gadget(&format!("g{number}"), "1");
        gadget.metadata.namespace = Some("team".to_owned());
        api.create(&PostParams::default(), &gadget).await.unwrap();
    }
    world.settle().await;

    namespaces.delete("team", &kube::api::DeleteParams::default()).await.unwrap();
    world.settle().await;
    world.after(10).await;

    assert!(namespaces.get_opt("team").await.unwrap().is_none());
    assert_eq!(world.remote.value("g0"), None);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_object_goes_only_when_its_user_insists() {
    let world = World::empty().await;
    let bad = json!({"apiVersion": "test.portolan.dev/v1", "kind": "Gadget",
        "metadata": {"name": "bad", "namespace": "default", "finalizers": [FINALIZER]}, "spec": {"value": 7}});
    world.raw().create(&PostParams::default(), &serde_json::from_value(bad).unwrap()).await.unwrap();
    let mut world = world;
    world.run();
    world.settle().await;
    world.delete("bad").await;
    let bad = world.raw().get("bad").await.unwrap();
    let message = bad.data["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("portolan.dev/force-delete"), "{message}");

    world.annotate("bad", "portolan.dev/force-delete", "true").await;

    assert!(world.raw().get_opt("bad").await.unwrap().is_none());
}
