//! A busy or broken API.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault};

use super::remote;
use crate::sample::Owned;
use crate::world::Builder;

pub(super) async fn too_many_requests_are_obeyed(builder: &Builder, sample: &Owned) {
    let world = builder.clone().start().await;
    let wait = world.pace.scaled(Duration::from_secs(90));
    world.cloudflare.fault(Fault::on("", &sample.path(), Effect::status(429)).times(1).retry_after(wait));

    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), "True/Synced").await;

    let requests = world.cloudflare.simulator.take_requests();
    let refused = requests.iter().position(|request| request.status == 429).expect("the fault was hit");
    let next = requests.get(refused + 1).expect("it was tried again");
    let waited = next.at_ms - requests[refused].at_ms;
    let asked = i64::try_from(wait.as_millis().div_ceil(1000) * 1000).expect("a short wait");
    assert!(waited >= asked, "{}: {waited} ms after a refusal that asked for {asked} ms", sample.label);
}

pub(super) async fn a_lost_answer_makes_no_second_one(builder: &Builder, sample: &Owned) {
    let world = builder.clone().start().await;
    world.cloudflare.fault(Fault::on("POST", &sample.path(), Effect::Reset).after_write().times(1));

    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), "True/Synced").await;
    world.settle().await;

    remote(&world, sample);
    assert_eq!(world.cloudflare.all(sample.collection).len(), expected_objects(sample), "{}", sample.label);
}

/// Every account has a default network by itself.
fn expected_objects(sample: &Owned) -> usize {
    if sample.collection == "virtual_networks" { 2 } else { 1 }
}
