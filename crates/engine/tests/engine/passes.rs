//! What a pass does, and what makes one happen.

use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::gadget::{FINALIZER, Gadget, VALUE, gadget, key};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_new_object_is_made_real_and_says_so() {
    let world = World::start().await;

    world.create(gadget("a", "1")).await;

    assert_eq!(world.remote.value("a").as_deref(), Some("1"));
    assert_eq!(world.ready("a").await, "True/Synced");
    let status = world.get("a").await.unwrap().status.unwrap();
    assert_eq!((status.id.as_deref(), status.observed_generation), (Some("id-a"), Some(1)));
    assert_eq!(world.events().await, ["Created a"]);
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_stored_before_the_first_write_elsewhere() {
    // The toy's `apply` reads the stored object and insists on it.
    let world = World::start().await;

    let created = world.create(gadget("a", "1")).await;

    assert!(created.finalizers().is_empty());
    assert_eq!(world.get("a").await.unwrap().finalizers(), [FINALIZER]);
    assert_eq!(world.remote.take_writes(), ["create a"]);
}

#[tokio::test(start_paused = true)]
async fn a_settled_world_writes_nothing_however_often_it_is_looked_at() {
    let world = World::start().await;
    for name in ["a", "b", "c"] {
        world.create(gadget(name, "1")).await;
    }
    world.remote.take_log();
    let before = world.version();

    for _ in 0..10 {
        world.handle().enqueue_where(|_, _| true);
        world.after(1).await;
    }

    assert_eq!(world.version(), before);
    let looks = world.remote.take_log();
    assert_eq!(looks.len(), 30, "every pass looks, and nothing else: {looks:?}");
    assert!(looks.iter().all(|call| call.what.starts_with("look")));
}

#[tokio::test(start_paused = true)]
async fn a_kind_may_act_though_nothing_remote_changes() {
    let world = World::start().await;
    for name in ["busy", "idle"] {
        world.remote.set(name, "1");
        world.create(gadget(name, "1")).await;
    }

    assert_eq!(world.remote.take_writes(), ["nothing busy"]);
}

#[tokio::test(start_paused = true)]
async fn one_creation_costs_one_pass() {
    let world = World::start().await;

    world.create(gadget("a", "1")).await;
    world.after(3600).await;

    let log: Vec<_> = world.remote.take_log().into_iter().map(|call| call.what).collect();
    assert_eq!(log, ["look a", "create a"], "our own finalizer and status make no pass");
}

#[tokio::test(start_paused = true)]
async fn a_spec_change_is_carried_out_and_moves_no_transition_time() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    let before = world.get("a").await.unwrap().status.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;

    world.merge("a", json!({"spec": {"value": "2"}})).await;

    assert_eq!(world.remote.value("a").as_deref(), Some("2"));
    let after = world.get("a").await.unwrap().status.unwrap();
    assert_eq!(after.observed_generation, Some(2));
    assert_eq!(after.conditions[0].observed_generation, Some(2));
    assert_eq!(after.conditions[0].last_transition_time, before.conditions[0].last_transition_time);
}

#[tokio::test(start_paused = true)]
async fn labels_and_foreign_statuses_are_no_reason_to_run() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.remote.take_log();

    world.merge("a", json!({"metadata": {"labels": {"team": "blue"}}})).await;
    world.annotate("a", "test.portolan.dev/noise", "1").await;
    let status = json!({"status": {"foreign": true}});
    world.raw().patch_status("a", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    world.settle().await;

    assert_eq!(world.remote.take_log(), []);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_forces_a_pass() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.remote.set("a", "theirs");
    world.remote.take_log();

    world.annotate("a", "portolan.dev/reconcile-at", "now").await;

    assert_eq!(world.remote.take_writes(), ["update a"]);
}

#[tokio::test(start_paused = true)]
async fn a_stripped_finalizer_comes_back() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;

    world.merge("a", json!({"metadata": {"finalizers": null}})).await;

    assert_eq!(world.get("a").await.unwrap().finalizers(), [FINALIZER]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_left_alone_and_says_so_once() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.annotate("a", "portolan.dev/paused", "true").await;
    assert_eq!(world.ready("a").await, "True/Paused");
    world.remote.take_log();
    let before = world.version();

    world.handle().enqueue(&key("a"));
    world.settle().await;
    assert_eq!(world.version(), before);
    world.merge("a", json!({"spec": {"value": "2"}})).await;

    assert_eq!(world.remote.take_log(), []);
    let status = world.get("a").await.unwrap().status.unwrap();
    assert_eq!((status.id.as_deref(), status.observed_generation), (Some("id-a"), Some(1)));

    world.annotate("a", "portolan.dev/paused", "false").await;
    assert_eq!(world.remote.take_writes(), ["update a"]);
    assert_eq!(world.ready("a").await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_object_says_why_and_stops_nobody_else() {
    let world = World::start().await;
    let bad = json!({"apiVersion": "test.portolan.dev/v1", "kind": "Gadget",
        "metadata": {"name": "bad", "namespace": "default"}, "spec": {"value": 7}});
    world.raw().create(&PostParams::default(), &serde_json::from_value(bad).unwrap()).await.unwrap();

    world.create(gadget("good", "1")).await;

    assert_eq!(world.ready("good").await, "True/Synced");
    let bad = world.raw().get("bad").await.unwrap();
    let ready = &bad.data["status"]["conditions"][0];
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("InvalidConfig")));
    assert!(ready["message"].as_str().unwrap().contains("invalid type: integer `7`"), "{ready}");
    assert!(bad.finalizers().is_empty(), "what cannot be understood is not held");
    let before = world.version();
    world.after(3600).await;
    assert_eq!(world.version(), before);

    world.merge("bad", json!({"spec": {"value": "1"}})).await;
    assert_eq!(world.ready("bad").await, "True/Synced");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_malformed_at_the_start_stops_nobody_else() {
    let mut world = World::empty().await;
    for (name, value) in [("a", json!("1")), ("b", json!(7)), ("c", json!("1"))] {
        let object = json!({"apiVersion": "test.portolan.dev/v1", "kind": "Gadget",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"value": value}});
        world.raw().create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    world.run();
    world.settle().await;

    assert_eq!((world.ready("a").await, world.ready("c").await), ("True/Synced".to_owned(), "True/Synced".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_change_during_a_pass_gets_a_pass_of_its_own() {
    let world = World::start().await;
    let gate = world.remote.close_gate();
    world.api().create(&PostParams::default(), &gadget("a", "1")).await.unwrap();
    world.idle().await;

    let patch = json!({"spec": {"value": "2"}});
    world.api().patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    world.idle().await;
    gate.add_permits(10);
    world.settle().await;

    assert_eq!(world.remote.take_writes(), ["create a", "update a"]);
    assert_eq!(world.get("a").await.unwrap().status.unwrap().observed_generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn an_annotation_during_a_pass_is_not_lost() {
    let world = World::start().await;
    let gate = world.remote.close_gate();
    world.api().create(&PostParams::default(), &gadget("a", "1")).await.unwrap();
    world.idle().await;

    let patch = json!({"metadata": {"annotations": {"again": "60"}}});
    world.api().patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    gate.add_permits(10);
    world.settle().await;

    let looks = |world: &World| world.remote.take_log().iter().filter(|call| call.what == "look a").count();
    assert_eq!(looks(&world), 2);
    world.after(61).await;
    assert_eq!(looks(&world), 1, "the second pass saw the annotation");
}

/// Merges an annotation without waiting for what comes of it.
async fn set_value(world: &World, name: &str, value: Option<&str>) {
    let patch = json!({"metadata": {"annotations": {VALUE: value}}});
    world.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    world.idle().await;
}

#[tokio::test(start_paused = true)]
async fn finding_14_a_change_that_is_taken_back_during_its_pass_is_taken_back_at_the_remote_side_too() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.remote.take_log();
    let gate = world.remote.close_gate();

    set_value(&world, "a", Some("2")).await;
    set_value(&world, "a", None).await;
    gate.add_permits(10);
    world.settle().await;

    assert_eq!(world.remote.take_writes(), ["update a", "update a"]);
    assert_eq!(world.remote.value("a").as_deref(), Some("1"));
    let before = world.version();
    world.after(3600).await;
    assert_eq!((world.version(), world.remote.take_log()), (before, Vec::new()), "it rests");
}

#[tokio::test(start_paused = true)]
async fn finding_14_of_many_changes_during_a_pass_the_last_one_counts_though_it_was_there_before() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.remote.take_log();
    let gate = world.remote.close_gate();

    for value in [Some("2"), Some("3"), None, Some("3"), None] {
        set_value(&world, "a", value).await;
    }
    gate.add_permits(10);
    world.settle().await;

    assert_eq!(world.remote.take_writes(), ["update a", "update a"], "nothing in between is carried out");
    assert_eq!(world.remote.value("a").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn finding_14_a_change_that_is_taken_back_before_its_pass_begins_is_never_carried_out() {
    let mut world = World::with(|context| context.timing.in_flight = 1).await;
    world.run();
    world.create(gadget("a", "1")).await;
    let gate = world.remote.close_gate();
    world.api().create(&PostParams::default(), &gadget("busy", "1")).await.unwrap();
    world.idle().await;
    world.remote.take_log();

    set_value(&world, "a", Some("2")).await;
    set_value(&world, "a", None).await;
    gate.add_permits(10);
    world.settle().await;

    assert_eq!(world.remote.take_writes(), ["create busy"]);
    assert_eq!(world.remote.value("a").as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_report_may_ask_for_another_look_and_other_objects_do_not_delay_it() {
    let world = World::start().await;
    let mut polled = gadget("polled", "1");
    polled.annotations_mut().insert("again".to_owned(), "30".to_owned());
    world.create(polled).await;
    world.remote.take_log();
    let start = tokio::time::Instant::now();

    for round in 0..100 {
        world.create(gadget(&format!("noise-{round}"), "1")).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    let looks: Vec<u64> = world
        .remote
        .take_log()
        .iter()
        .filter(|call| call.what == "look polled")
        .map(|call| (call.at - start).as_secs())
        .collect();
    assert_eq!(looks, [29, 59, 89]);
}

#[tokio::test(start_paused = true)]
async fn two_hundred_objects_and_a_busy_annotator_never_see_a_conflict() {
    let world = World::start().await;
    for number in 0..200 {
        world.api().create(&PostParams::default(), &gadget(&format!("g{number}"), "1")).await.unwrap();
        for other in (0..=number).rev().take(3) {
            let patch = json!({"metadata": {"annotations": {"busy": number.to_string()}}});
            let params = PatchParams::default();
            world.api().patch(&format!("g{other}"), &params, &Patch::Merge(patch)).await.unwrap();
            tokio::task::yield_now().await;
        }
    }
    world.settle().await;

    let gadgets: Vec<Gadget> = world.api().list(&kube::api::ListParams::default()).await.unwrap().items;
    assert_eq!(gadgets.len(), 200);
    for gadget in gadgets {
        let ready = &gadget.status.as_ref().unwrap().conditions[0];
        assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("Synced", "in sync"));
        assert_eq!(gadget.finalizers(), [FINALIZER]);
    }
    let warnings = Api::<k8s_openapi::api::events::v1::Event>::default_namespaced(world.client.clone())
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter(|event| event.type_.as_deref() == Some("Warning"))
        .count();
    assert_eq!(warnings, 0);
    assert!(world.context.metrics.render().contains(r#"result="success""#));
    assert!(!world.context.metrics.render().contains(r#"result="transient""#));
}

#[tokio::test(start_paused = true)]
async fn an_intent_is_stored_before_the_call_and_gone_after_it() {
    let world = World::start().await;
    world.careful();

    world.create(gadget("a", "1")).await;

    assert_eq!(world.remote.take_writes(), ["intent a", "create a"]);
    let status = world.get("a").await.unwrap().status.unwrap();
    assert_eq!((status.creating, status.id.as_deref()), (None, Some("id-a")));
}

#[tokio::test(start_paused = true)]
async fn what_an_older_operator_left_in_the_status_goes_and_costs_no_more_writes() {
    let world = World::empty().await;
    world.create(gadget("a", "1")).await;
    let status = json!({"status": {"creating": "left behind", "state": "weird"}});
    let params = PatchParams { field_manager: Some("older".to_owned()), ..PatchParams::default() };
    world.raw().patch_status("a", &params, &Patch::Merge(status)).await.unwrap();

    let mut world = world;
    world.run();
    world.settle().await;

    let status = world.get("a").await.unwrap().status.unwrap();
    assert_eq!((status.creating, status.state.as_deref()), (None, Some("active")));
    let before = world.version();
    world.handle().enqueue(&key("a"));
    world.settle().await;
    assert_eq!(world.version(), before);
}

#[tokio::test(start_paused = true)]
async fn an_object_made_anew_under_the_same_name_starts_afresh() {
    let world = World::start().await;
    world.create(gadget("a", "1")).await;
    world.delete("a").await;
    world.remote.take_log();

    world.create(gadget("a", "2")).await;

    assert_eq!(world.remote.take_writes(), ["create a"]);
    assert_eq!(world.ready("a").await, "True/Synced");
}
