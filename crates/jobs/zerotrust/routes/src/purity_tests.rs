//! The controller of routes is held to its word: what is shipped, with one step broken from outside, ends in a panic.

use std::sync::Arc;

use portolan_cloudflare_api::Readers;
use portolan_testkit::breach::{BreachWorld, PureStep, missed};
use serde_json::json;

use crate::routes::RouteController;
use crate::settings::Settings;
use crate::shared::RoutesContext;

/// A route that asks for nothing.
async fn quiet_route() -> (BreachWorld, RouteController) {
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
    (world, RouteController { shared })
}

#[tokio::test(start_paused = true)]
async fn a_pure_step_over_a_route_that_asks_the_world_outside_is_found() {
    assert_eq!(missed(PureStep::OF_EVERY_PASS, quiet_route).await, []);
}

#[tokio::test(start_paused = true)]
async fn the_controller_of_routes_keeps_its_word() {
    let (world, routes) = quiet_route().await;
    assert!(!world.panics_by_itself(routes).await);
}
