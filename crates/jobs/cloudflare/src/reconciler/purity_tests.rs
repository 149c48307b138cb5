//! The kinds' controller is held to its word: what is shipped, with one step broken from outside, ends in a panic.

use futures::executor::block_on;
use kube::api::DeleteParams;
use kube::{Api, CustomResourceExt as _};
use portolan_testkit::breach::{BreachWorld, Breaching, PureStep};
use serde_json::json;

use super::*;
use crate::kinds::CloudflareDomain;

type Domains = KindReconciler<CloudflareDomain>;
type Breach = fn(&Domains);

const BREACHES: [(&str, Breach); 3] = [
    ("starts a task", |_| drop(tokio::spawn(async {}))),
    ("asks the cluster", |real| drop(block_on(real.shared.client.apiserver_version()))),
    ("asks the time", |real| assert!((real.shared.clock)().as_second() > 0)),
];

/// A domain that is being deleted goes through all steps without Cloudflare.
async fn leaving_domain() -> BreachWorld {
    let domain = json!({
        "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "CloudflareDomain",
        "metadata": { "name": "example-com", "finalizers": [CloudflareDomain::FINALIZER] },
        "spec": { "domain": "example.com" },
    });
    let definition = serde_json::to_value(CloudflareDomain::crd()).expect("definitions are plain JSON");
    let world = BreachWorld::with::<Domains>(&[definition], &domain).await;
    let api: Api<CloudflareDomain> = Api::all(world.context.client.clone());
    api.delete("example-com", &DeleteParams::default()).await.expect("it is there");
    world
}

async fn is_found(broken: Option<PureStep>, breach: Breach) -> bool {
    let world = leaving_domain().await;
    let shared = Arc::new(JobContext::new(&world.context, world.clients()));
    world.finds(Breaching::new(Domains::new(shared), broken, breach)).await
}

#[tokio::test(start_paused = true)]
async fn a_pure_step_of_a_kind_that_asks_the_world_outside_is_found() {
    for step in PureStep::ALL {
        for (what, breach) in BREACHES {
            assert!(is_found(Some(step), breach).await, "{step:?} {what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_controller_of_kinds_keeps_its_word() {
    let world = leaving_domain().await;
    let shared = Arc::new(JobContext::new(&world.context, world.clients()));
    assert!(!world.finds(Breaching::new(Domains::new(shared), None, |_| {})).await);
    let api: Api<CloudflareDomain> = Api::all(world.context.client.clone());
    assert!(api.get_opt("example-com").await.expect("the cluster answers").is_none(), "it came to its end");
}
