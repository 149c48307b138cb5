//! The kinds' controller is held to its word: what is shipped, with one step broken from outside, ends in a panic.

use kube::api::DeleteParams;
use kube::{Api, CustomResourceExt as _};
use portolan_testkit::breach::{BreachWorld, PureStep, missed};
use serde_json::json;

use super::*;
use crate::kinds::CloudflareDomain;

type Domains = KindReconciler<CloudflareDomain>;

/// A domain that is being deleted goes through all steps without Cloudflare.
async fn leaving_domain() -> (BreachWorld, Domains) {
    let domain = json!({
        "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "CloudflareDomain",
        "metadata": { "name": "example-com", "finalizers": [CloudflareDomain::FINALIZER] },
        "spec": { "domain": "example.com" },
    });
    let definition = serde_json::to_value(CloudflareDomain::crd()).expect("definitions are plain JSON");
    let world = BreachWorld::with::<Domains>(&[definition], &domain).await;
    let api: Api<CloudflareDomain> = Api::all(world.context.client.clone());
    api.delete("example-com", &DeleteParams::default()).await.expect("it is there");
    let shared = Arc::new(JobContext::new(&world.context, world.clients()));
    (world, Domains::new(shared))
}

#[tokio::test(start_paused = true)]
async fn a_pure_step_of_a_kind_that_asks_the_world_outside_is_found() {
    assert_eq!(missed(PureStep::OF_EVERY_PASS, leaving_domain).await, []);
}

#[tokio::test(start_paused = true)]
async fn the_controller_of_kinds_keeps_its_word() {
    let (world, domains) = leaving_domain().await;
    assert!(!world.panics_by_itself(domains).await);
    let api: Api<CloudflareDomain> = Api::all(world.context.client.clone());
    assert!(api.get_opt("example-com").await.expect("the cluster answers").is_none(), "it came to its end");
}
