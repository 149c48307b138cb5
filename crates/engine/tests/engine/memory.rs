//! Stores keep projections: a few hundred bytes an object.

use kube::api::PostParams;
use portolan_engine::Projected;
use serde_json::json;

use crate::gadget::{gadget, key};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn the_store_keeps_the_projection_and_nothing_of_the_object() {
    let world = World::start().await;
    let mut big = gadget("a", "small");
    big.metadata.annotations = Some([("big".to_owned(), "x".repeat(100_000))].into());
    world.api().create(&PostParams::default(), &big).await.unwrap();
    world.settle().await;

    let known = world.handle().get(&key("a")).unwrap();

    assert_eq!((known.projection.as_deref(), known.ready), (Some("small"), Some(true)));
    // What the entry takes besides its key's and uid's text: the rest of 600 bytes is room for those.
    assert!(size_of::<Projected<[u8; 100]>>() <= 240, "{}", size_of::<Projected<[u8; 100]>>());
}

#[tokio::test(start_paused = true)]
async fn what_is_seen_of_an_object_is_told_in_order_with_what_was_known_before_and_its_end_last() {
    let world = World::start().await;

    world.create(gadget("a", "1")).await;
    world.merge("a", json!({"spec": {"value": "2"}})).await;
    world.delete("a").await;

    let mut told = world.remote.seen.lock().unwrap().clone();
    // Our own writes, and a deletion that waits for the finalizer, change nothing of the value.
    told.retain(|news| !news.ends_with("\"1\" → \"1\"") && !news.ends_with("\"2\" → \"2\""));
    assert_eq!(told, ["a \"\" → \"1\"", "a \"1\" → \"2\"", "a \"2\" → \"\""]);
}
