//! Deleting, and what can be in its way.

use portolan_cloudflare_sim::{Effect, Fault};

use super::{remote_id, settled};
use crate::sample::Owned;
use crate::world::Builder;

const WRITES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

pub(super) async fn it_goes_with_its_object(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;

    world.cluster.delete(&sample.id()).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(&sample.id()).await, "gone");
    assert!(sample.standing(&world).is_empty());
    assert_eq!(world.writes().len(), 1, "{}", sample.label);
}

pub(super) async fn deleting_what_is_gone_already_succeeds(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;
    world.cloudflare.remove(sample.collection, &remote_id(&world, sample));

    world.cluster.delete(&sample.id()).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(&sample.id()).await, "gone", "{}", sample.label);
}

pub(super) async fn refused_deletes_keep_the_finalizer(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;
    for method in WRITES {
        world.cloudflare.fault(Fault::on(method, &sample.path(), Effect::status(500)));
    }

    world.cluster.delete(&sample.id()).await;
    world.pass(std::time::Duration::from_secs(180)).await;

    let object = world.cluster.get(&sample.id()).await.expect("the finalizer keeps it");
    assert_eq!(object["metadata"]["finalizers"].as_array().map(Vec::len), Some(1));
    assert_eq!(sample.standing(&world).len(), 1);
    let events = world.cluster.events(&sample.id()).await;
    let failed = events.iter().filter(|reason| *reason == "DeleteFailed").count();
    assert!((1..=2).contains(&failed), "{}: told, and not again and again: {events:?}", sample.label);

    world.cloudflare.simulator.clear_faults();
    world.until_ready(&sample.id(), "gone").await;
    assert!(sample.standing(&world).is_empty());
}

pub(super) async fn orphaned_it_stays(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;
    let id = remote_id(&world, sample);
    world.cluster.annotate(&sample.id(), "cloudflare-operator.io/deletion-policy", "Orphan").await;
    world.settle().await;
    world.forget();

    world.cluster.delete(&sample.id()).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(&sample.id()).await, "gone");
    assert_eq!(remote_id(&world, sample), id);
    assert_eq!(world.writes(), [""; 0], "{}", sample.label);
}
