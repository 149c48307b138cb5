//! An object is walked from its watch to Cloudflare and back → the files that it came by, in the order in which it first did, as
//! `docs/architecture.md` shows them.
//!
//! Each file on a main path says that a walk comes by (`portolan_core::waypoint!`). What must be on it is listed here, so that a walk
//! does not become shorter by saying less.

mod main_path;
mod walk;

use portolan_testkit_suites::cloudflare_world;
use portolan_testkit_suites::manifests as m;
use portolan_testkit_suites::zerotrust::{self, RouteManifest};
use serde_json::json;

use walk::Walker;

/// The page that shows the walks.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/architecture.md");

/// A route with everything that a route can have: a rule, a record, an application with a policy, a token.
#[tokio::test(start_paused = true)]
async fn the_walk_of_a_route_is_the_one_that_the_page_shows() {
    let walker = Walker::default();
    let _listening = walker.listen();
    let world = zerotrust::world().start().await;

    walker.begin();
    let route = RouteManifest::to("api", "api.example.com").allowing("user@example.com").with("serviceToken", "true");
    world.cluster.apply(route.manifest()).await;
    world.settle().await;

    walker.end(main_path::ROUTE).assert("An annotated HTTPRoute is published", PAGE);
}

/// A record of two addresses is made in one batch, and taken away again, which asks the ledger first.
#[tokio::test(start_paused = true)]
async fn the_walk_of_a_record_is_the_one_that_the_page_shows() {
    let walker = Walker::default();
    let _listening = walker.listen();
    let world = cloudflare_world().start().await;
    world.cluster.apply(&zerotrust::manifests::load_balancer(m::NAMESPACE, "web")).await;
    let addresses = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]}}});
    world.cluster.patch_status(&format!("Service/{}/web", m::NAMESPACE), &addresses).await;
    world.settle().await;

    walker.begin();
    let spec = json!({
        "name": format!("www.{}", m::ZONE), "sourceRef": {"service": {"name": "web"}}, "addressSelection": "All", "cloudflare": {},
    });
    world.cluster.apply(&m::object("DNSRecord", "www", spec)).await;
    world.settle().await;
    world.cluster.delete(&format!("DNSRecord/{}/www", m::NAMESPACE)).await;
    world.settle().await;

    walker.end(main_path::RECORD).assert("A DNSRecord is made and deleted", PAGE);
}
