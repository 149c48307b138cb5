//! Creating, keeping and changing.

use serde_json::json;

use super::{CheckOutcome, remote, remote_id, settled, ten_passes_write_nothing};
use crate::cloudflare::operations;
use crate::failpoints::System;
use crate::sample::Owned;
use crate::world::Builder;

pub(super) async fn it_is_created_after_its_finalizer_and_says_so(builder: &Builder, sample: &Owned) {
    let world = builder.clone().start().await;

    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), "True/Synced").await;
    world.settle().await;

    let object = world.cluster.get(&sample.id()).await.expect("it exists");
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    assert_eq!(object["metadata"]["finalizers"].as_array().map(Vec::len), Some(1));
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);
    let steps = world.failpoints.take();
    let finalizer = steps.iter().position(|step| step.system == System::Kubernetes && step.text.ends_with(&name));
    let creation = steps.iter().position(|step| step.system == System::Cloudflare && !step.text.starts_with("GET"));
    assert!(finalizer.is_some() && finalizer < creation, "{}: {steps:#?}", sample.label);
    let there = remote(&world, sample);
    if sample.is_marked() {
        let mark = format!("[managed:{}#", sample.id());
        assert!(there["comment"].as_str().is_some_and(|comment| comment.starts_with(&mark)), "{there}");
    } else {
        let noted = steps
            .iter()
            .position(|step| step.system == System::Kubernetes && step.text.ends_with(&format!("{name}/status")));
        assert!(noted.is_some() && noted < creation, "{}: noted before it is made: {steps:#?}", sample.label);
        assert!(object["status"]["creating"].is_null(), "{}: and no longer: {object}", sample.label);
    }
    assert!(world.cluster.events(&sample.id()).await.contains(&"Created".to_owned()));
}

pub(super) async fn at_rest_it_costs_no_write_over_ten_passes(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;

    ten_passes_write_nothing(&world, &sample.id(), sample.label).await;
}

pub(super) async fn drift_is_repaired_with_one_write(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;
    let before = remote(&world, sample);
    world.cloudflare.edit(sample.collection, &remote_id(&world, sample), sample.drift);

    world.drift_pass().await;
    world.settle().await;

    let writes: Vec<usize> =
        world.cloudflare.simulator.take_requests().iter().map(operations).filter(|count| *count > 0).collect();
    assert_eq!(writes, [1], "{}", sample.label);
    assert_eq!(crate::cloudflare::essence(&remote(&world, sample)), crate::cloudflare::essence(&before));
    assert_eq!(world.cluster.ready(&sample.id()).await, "True/Synced");
}

pub(super) async fn a_changed_spec_is_written_once(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;
    let (id, before) = (remote_id(&world, sample), remote(&world, sample));

    world.cluster.apply(&sample.changed()).await;
    world.settle().await;

    assert_eq!(world.writes().len(), 1, "{}", sample.label);
    assert_eq!(remote_id(&world, sample), id, "it is changed in place");
    assert_ne!(crate::cloudflare::essence(&remote(&world, sample)), crate::cloudflare::essence(&before));
    let object = world.cluster.get(&sample.id()).await.expect("it exists");
    assert_eq!(object["status"]["observedGeneration"], object["metadata"]["generation"]);
    assert_eq!(world.cluster.ready(&sample.id()).await, "True/Synced");
}

pub(super) async fn what_cannot_change_in_place_is_replaced(builder: &Builder, sample: &Owned) -> CheckOutcome {
    let Some(replace) = sample.replace else { return CheckOutcome::Nothing };
    let world = settled(builder, sample).await;
    let before = remote(&world, sample);
    let mut manifest = (sample.manifest)();
    replace(&mut manifest["spec"]);

    world.cluster.apply(&manifest).await;
    world.settle().await;

    let after = remote(&world, sample);
    let key = |object: &serde_json::Value| json!([object["name"], object["network"]]);
    assert_ne!(key(&before), key(&after), "{}", sample.label);
    assert_eq!(world.cluster.ready(&sample.id()).await, "True/Synced");
    if sample.collection == "routes" {
        let writes = world.writes();
        let place = |method: &str| writes.iter().position(|write| write.starts_with(method));
        assert!(place("POST").is_some() && place("POST") < place("DELETE"), "the new one comes first: {writes:?}");
    }
    CheckOutcome::Ran
}

pub(super) async fn gone_remotely_it_is_made_again(builder: &Builder, sample: &Owned) {
    let world = settled(builder, sample).await;
    let before = remote_id(&world, sample);
    world.cloudflare.remove(sample.collection, &before);

    world.drift_pass().await;
    world.settle().await;

    let after = remote_id(&world, sample);
    assert_ne!(after, before, "{}", sample.label);
    assert_eq!(world.cluster.ready(&sample.id()).await, "True/Synced");
    let object = world.cluster.get(&sample.id()).await.expect("it exists");
    assert!(
        !object["status"].to_string().contains(&before),
        "{}: the old id is forgotten: {}",
        sample.label,
        object["status"]
    );
}
