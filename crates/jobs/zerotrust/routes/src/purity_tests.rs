//! The controller of routes is held to its word: what is shipped, with one step broken from outside, ends in a panic.

use std::sync::Arc;

use futures::executor::block_on;
use portolan_cloudflare_api::Readers;
use portolan_testkit::breach::{BreachWorld, Breaching, PureStep};
use serde_json::json;

use crate::routes::RouteController;
use crate::settings::Settings;
use crate::shared::RoutesContext;

type Breach = fn(&RouteController);

const BREACHES: [(&str, Breach); 3] = [
    ("starts a task", |_| drop(tokio::spawn(async {}))),
    ("asks the cluster", |real| drop(block_on(real.shared.client().apiserver_version()))),
    ("asks the time", |real| assert!((real.shared.context.clock)().as_second() > 0)),
];

/// Whether it is found that a step of the controller is broken, over a route that asks for nothing.
async fn is_found(broken: Option<PureStep>, breach: Breach) -> bool {
    let definition = include_str!("../../../../portolan/data/httproutes.yaml");
    let definition = serde_saphyr::from_str(definition).expect("the definition is YAML");
    let route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {
            "name": "app", "namespace": "default", "annotations": { "cfzt.cloudflare.com/enabled": "false" },
        },
        "spec": { "rules": [{ "backendRefs": [{ "name": "web", "port": 80 }] }] },
    });
    let world = BreachWorld::with::<RouteController>(&[definition], &route).await;
    let readers = Readers::of(world.clients());
    let shared = Arc::new(RoutesContext::new(Arc::clone(&world.context), readers, Settings::default()));
    world.finds(Breaching::new(RouteController { shared }, broken, breach)).await
}

#[tokio::test(start_paused = true)]
async fn a_pure_step_over_a_route_that_asks_the_world_outside_is_found() {
    for step in PureStep::ALL {
        for (what, breach) in BREACHES {
            assert!(is_found(Some(step), breach).await, "{step:?} {what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_controller_of_routes_keeps_its_word() {
    assert!(!is_found(None, |_| {}).await);
}
