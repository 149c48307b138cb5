//! What is lost and must not be: credentials that vanish with their namespace, states, names that many edits take down at
//! once, and what a removal that is taken back has half done.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault};
use portolan_testkit_suites::World;
use portolan_testkit_suites::cluster::condition;
use portolan_testkit_suites::manifests::CANARY;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::manifests::{PREFIX, in_namespace};
use portolan_testkit_suites::zerotrust::{
    self as z, OPERATOR_NAMESPACE, Roles, RouteManifest, TUNNEL, tenant, token_secret,
};
use serde_json::{Value, json};

use super::{publish, settled};

const TENANT: &str = "CloudflareZeroTrustTenant/default/prod";
const LEDGER: &str = "portolan-held-default.prod-names";
const SECRET: &str = "Secret/shop/cloudflare-api-token";
/// So long everything may take.
const LONG: Duration = Duration::from_secs(1800);

fn protected() -> RouteManifest {
    RouteManifest::to("api", "api.example.com").allowing("user@example.com").with("serviceToken", "true")
}

/// A namespace with a tenant, its Secret and two routes, all published.
async fn shop() -> World {
    let world = z::world().start().await;
    world.cluster.apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } })).await;
    world.cluster.apply(&token_secret("shop", "cloudflare-api-token", CANARY)).await;
    world.cluster.apply(&in_namespace(tenant("shop"), "shop")).await;
    publish(&world, RouteManifest::to("web", "web.example.com").within("shop")).await;
    publish(&world, protected().within("shop")).await;
    assert!(world.name("web.example.com").is_public() && world.name("api.example.com").is_published());
    world
}

async fn is_gone(world: &World, id: &str) -> bool {
    world.holds_within(LONG, async |world: &World| world.cluster.get(id).await.is_none()).await
}

fn assert_nothing_at_cloudflare(world: &World, place: &str) {
    assert_eq!(z::config(world, TUNNEL), z::foreign_config(), "{place}");
    for collection in ["dns_records", "access_apps", "service_tokens", "access_policies"] {
        assert_eq!(world.cloudflare.all(collection), Vec::<Value>::new(), "{place}: {collection}");
    }
}

#[tokio::test(start_paused = true)]
async fn finding_5_deleting_a_namespace_with_tenant_secret_and_routes_ends_and_leaves_nothing() {
    let world = shop().await;

    world.cluster.delete("Namespace/shop").await;

    assert!(is_gone(&world, "Namespace/shop").await, "{:#?}", world.cluster.get(SECRET).await);
    assert_nothing_at_cloudflare(&world, "the namespace is gone");
    assert_eq!(world.state_of("api").await, None);
}

#[tokio::test(start_paused = true)]
async fn finding_5_a_namespace_that_was_deleted_while_nobody_ran_ends_when_somebody_does() {
    let world = shop().await;
    world.stop().await;
    world.cluster.delete("Namespace/shop").await;
    world.pass(Duration::from_secs(120)).await;
    assert!(world.cluster.get(SECRET).await.is_some(), "the finalizer needs nobody to run");

    world.restart().await;

    assert!(is_gone(&world, "Namespace/shop").await);
    assert_nothing_at_cloudflare(&world, "after the restart");
}

#[tokio::test(start_paused = true)]
async fn finding_5_whatever_is_deleted_first_a_moment_before_the_rest_everything_goes() {
    for first in [SECRET, "CloudflareZeroTrustTenant/shop/shop", "HTTPRoute/shop/api"] {
        let world = shop().await;
        world.cluster.delete(first).await;
        world.pass(Duration::from_secs(3)).await;

        world.cluster.delete("Namespace/shop").await;

        assert!(is_gone(&world, "Namespace/shop").await, "{first} first");
        assert_nothing_at_cloudflare(&world, first);
    }
}

#[tokio::test(start_paused = true)]
async fn finding_5_a_secret_that_is_replaced_goes_at_once_and_names_stay() {
    let world = shop().await;

    world.cluster.delete(SECRET).await;
    let gone =
        world.holds_within(Duration::from_secs(15), async |world: &World| world.cluster.get(SECRET).await.is_none());
    assert!(gone.await, "it does not hang");
    world.settle().await;
    assert!(world.name("web.example.com").is_public());

    world.cluster.apply(&token_secret("shop", "cloudflare-api-token", CANARY)).await;
    world.settle().await;
    let secret = world.cluster.get(SECRET).await.expect("it is there");
    let held = secret["metadata"]["finalizers"][0].as_str().unwrap_or_default();
    assert!(held.starts_with("portolan.dev/credential-zerotrust-"), "{secret:#}");

    for route in ["web", "api"] {
        world.cluster.delete(&format!("HTTPRoute/shop/{route}")).await;
    }
    world.pass(Duration::from_secs(120)).await;
    let secret = world.cluster.get(SECRET).await.expect("nobody deleted it");
    assert_eq!(secret["metadata"]["finalizers"], Value::Null, "nothing needs it any more");
}

#[tokio::test(start_paused = true)]
async fn finding_5_what_lost_its_credential_is_taken_down_with_another_that_an_administrator_names() {
    let world = shop().await;
    world.stop().await;
    world.cluster.patch(SECRET, &json!({ "metadata": { "finalizers": null } })).await;
    world.cluster.delete("Namespace/shop").await;
    assert!(is_gone(&world, SECRET).await, "an older version had no finalizer on it");
    world.restart().await;
    world.pass(Duration::from_secs(120)).await;
    assert!(world.cluster.get("Namespace/shop").await.is_some());

    world.cluster.apply(&token_secret(OPERATOR_NAMESPACE, "rescue", CANARY)).await;
    for route in ["web", "api"] {
        let state = format!("ConfigMap/{OPERATOR_NAMESPACE}/cfzt-shop-{route}");
        world.cluster.annotate(&state, "portolan.dev/credential", &format!("{OPERATOR_NAMESPACE}/rescue")).await;
    }

    assert!(is_gone(&world, "Namespace/shop").await);
    assert_nothing_at_cloudflare(&world, "with another credential");
}

fn bulk(n: usize) -> RouteManifest {
    RouteManifest::to(&format!("r{n:02}"), &format!("r{n:02}.example.com"))
}

async fn many(count: usize) -> World {
    let world = z::world().start().await;
    let routes: Vec<Value> = (0..count).map(|n| bulk(n).into()).collect();
    for route in &routes {
        world.cluster.apply(route).await;
    }
    world.settle().await;
    world
}

async fn stalled(world: &World) -> Value {
    let tenant = world.cluster.get(TENANT).await.expect("it is there");
    portolan_testkit_suites::cluster::condition(&tenant, "Stalled").cloned().unwrap_or_default()
}

fn standing(world: &World, count: usize, suffix: &str) -> usize {
    (0..count).filter(|n| world.name(&format!("r{n:02}{suffix}.example.com")).is_public()).count()
}

async fn digest(world: &World) -> String {
    let ledger =
        world.cluster.get(&format!("ConfigMap/{OPERATOR_NAMESPACE}/{LEDGER}")).await.expect("there is a ledger");
    ledger["data"]["digest"].as_str().expect("something is held").to_owned()
}

#[tokio::test(start_paused = true)]
async fn ux_c4_renaming_all_names_at_once_is_held_as_deleting_them_is() {
    let world = many(15).await;

    for n in 0..15 {
        let renamed = bulk(n).with("hostname", &format!("r{n:02}x.example.com"));
        world.cluster.apply(renamed.manifest()).await;
    }
    world.settle().await;

    let (old, new) = (standing(&world, 15, ""), standing(&world, 15, "x"));
    assert!(old >= 5 && old + new == 15, "{old} stand, {new} moved");
    assert_eq!(stalled(&world).await["status"], "True");
    let told = world.output("r14", "statusMessage").await.unwrap_or_default();
    assert!(told.contains("DeletionBudgetExceeded"), "{told}");

    world.cluster.annotate(TENANT, "portolan.dev/release-deletions", &digest(&world).await).await;
    world.settle().await;
    assert_eq!((standing(&world, 15, ""), standing(&world, 15, "x")), (0, 15));
    assert_eq!(world.output("r14", "statusMessage").await, None);
}

#[tokio::test(start_paused = true)]
async fn ux_m14_what_is_brought_back_is_no_longer_held_after_a_restart_either() {
    for restarts in [false, true] {
        let world = many(15).await;
        for n in 0..15 {
            world.cluster.apply(bulk(n).with("enabled", "false").manifest()).await;
        }
        world.settle().await;
        assert_eq!(stalled(&world).await["status"], "True");
        if restarts {
            world.stop().await;
        }

        for n in 0..15 {
            world.cluster.apply(bulk(n).manifest()).await;
        }
        if restarts {
            world.restart().await;
        }
        world.settle().await;

        assert_eq!(standing(&world, 15, ""), 15);
        assert_ne!(stalled(&world).await["status"], "True", "{:#}", stalled(&world).await);
        let ledger = world.cluster.get(&format!("ConfigMap/{OPERATOR_NAMESPACE}/{LEDGER}")).await;
        assert_eq!(ledger.expect("it is kept")["data"]["digest"], Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn finding_6_what_is_held_is_released_on_the_ledger_where_nobody_stands_for_it() {
    let world = many(15).await;
    world.stop().await;
    world.cluster.patch(TENANT, &json!({ "metadata": { "finalizers": null } })).await;
    world.cluster.delete(TENANT).await;
    for n in 0..15 {
        world.cluster.delete(&bulk(n).id()).await;
    }
    world.restart().await;
    world.settle().await;
    assert!(standing(&world, 15, "") > 0, "held");

    let ledger = format!("ConfigMap/{OPERATOR_NAMESPACE}/{LEDGER}");
    world.cluster.annotate(&ledger, "portolan.dev/release-deletions", &digest(&world).await).await;
    world.settle().await;

    assert_eq!(standing(&world, 15, ""), 0);
    assert_eq!(world.cluster.list("HTTPRoute").await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn finding_6_names_outside_the_watched_namespaces_are_not_counted_as_going() {
    let world = many(15).await;
    world.cluster.apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "apps" } })).await;
    world.cluster.apply(&in_namespace(tenant("prod"), OPERATOR_NAMESPACE)).await;
    world.cluster.apply(&token_secret(OPERATOR_NAMESPACE, "cloudflare-api-token", CANARY)).await;
    let apart = RouteManifest::to("one", "one.example.com").within("apps").with("tenant", "default/prod");
    let allowed = json!({ "spec": { "allowedNamespaces": ["apps", "default"] } });
    world.cluster.patch(TENANT, &allowed).await;
    publish(&world, apart).await;
    world.stop().await;
    let world = world.with_roles(Roles::watching(&["apps"]));
    world.restart().await;
    world.settle().await;

    world.cluster.delete("HTTPRoute/apps/one").await;
    world.settle().await;

    assert_eq!(world.cluster.get("HTTPRoute/apps/one").await, None, "one of sixteen is few");
    assert_eq!(standing(&world, 15, ""), 15);
}

#[tokio::test(start_paused = true)]
async fn finding_41_routes_outside_the_watched_namespaces_are_frozen_and_told_until_they_are_watched_again() {
    let world = settled([protected()]).await;
    world.stop().await;
    let world = world.with_roles(Roles::watching(&["apps"]));
    world.restart().await;
    world.settle().await;

    world.cluster.delete("HTTPRoute/default/api").await;
    world.settle().await;

    assert!(world.name("api.example.com").is_published() && !world.name("api.example.com").is_public());
    let told = world.cluster.get(TENANT).await.and_then(|tenant| condition(&tenant, "RoutesNotWatched").cloned());
    let message = told.expect("it is told")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("default/api") && message.contains("WATCH_NAMESPACES"), "{message}");
    let events = world.cluster.list("Event").await;
    assert_eq!(events.iter().filter(|event| event["reason"] == "RoutesNotWatched").count(), 1);
    world.stop().await;
    let world = world.with_roles(Roles::default());
    world.restart().await;
    assert!(is_gone(&world, "HTTPRoute/default/api").await);
    assert_nothing_at_cloudflare(&world, "watched again");
    let tenant = world.cluster.get(TENANT).await.expect("the tenant is there");
    assert_eq!(condition(&tenant, "RoutesNotWatched").map(|one| one["status"].clone()), Some(json!("False")));
}

#[tokio::test(start_paused = true)]
async fn finding_16_a_removal_that_is_taken_back_leaves_the_name_whole() {
    let world = settled([protected()]).await;
    world.cloudflare.fault(Fault::on("DELETE", "/access/apps/", Effect::status(500)));
    world.cluster.apply(protected().with("enabled", "false").manifest()).await;
    let half = world.holds_within(Duration::from_secs(300), async |world: &World| {
        !world.name("api.example.com").is_published()
            && world.tasks().await.iter().any(|task| task["status"]["phase"] == "Failed")
    });
    assert!(half.await, "rule and record are gone, the application is not");

    world.cluster.apply(protected().manifest()).await;
    world.cloudflare.simulator.clear_faults();
    world.settle().await;

    let name = world.name("api.example.com");
    assert_eq!((name.rules().len(), name.records().len(), name.apps().len()), (1, 1, 1));
    assert!(name.lets_in("user@example.com") && !name.is_public());
    world.assert_sound("finding 16").await;
}

/// Makes the state of `api` vanish, while the operator runs or not.
async fn lose_state(world: &World, running: bool) {
    if !running {
        world.stop().await;
    }
    world.cluster.delete(&format!("ConfigMap/{OPERATOR_NAMESPACE}/cfzt-default-api")).await;
    if !running {
        world.restart().await;
    }
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn heldout_f1_a_lost_state_is_rebuilt_and_its_route_can_be_deleted() {
    for running in [true, false] {
        let world = settled([protected()]).await;
        let (app, record) = (world.name("api.example.com").app(), world.name("api.example.com").record());
        world.forget();

        lose_state(&world, running).await;

        let state = world.state_of("api").await.expect("it is rebuilt").to_string();
        for id in [&app["id"], &record["id"]] {
            assert!(state.contains(id.as_str().unwrap_or_default()), "{id}: {state}");
        }
        assert_eq!(world.output("api", "accessAppId").await.as_deref(), app["id"].as_str());
        assert!(!world.name("api.example.com").is_public());
        let writes = world.writes();
        assert!(!writes.iter().any(|write| write.starts_with("DELETE") || write.contains("deletes")), "{writes:?}");

        world.cluster.delete("HTTPRoute/default/api").await;
        world.settle().await;
        assert_eq!(world.cluster.get("HTTPRoute/default/api").await, None);
        assert_nothing_at_cloudflare(&world, "the state was lost");
    }
}

#[tokio::test(start_paused = true)]
async fn heldout_f1_a_route_that_is_deleted_while_its_state_is_lost_leaves_nothing() {
    let world = settled([protected()]).await;
    world.stop().await;
    world.cluster.delete(&format!("ConfigMap/{OPERATOR_NAMESPACE}/cfzt-default-api")).await;
    world.cluster.delete("HTTPRoute/default/api").await;

    world.restart().await;
    world.settle().await;

    assert_eq!(world.cluster.get("HTTPRoute/default/api").await, None);
    assert_nothing_at_cloudflare(&world, "the state was lost");
}

#[tokio::test(start_paused = true)]
async fn heldout_f1_ids_that_a_route_claims_give_it_nothing_of_others() {
    let world = settled([RouteManifest::to("web", "web.example.com"), protected()]).await;
    let app = world.name("api.example.com").app();
    let token = world.cloudflare.all("service_tokens")[0]["id"].clone();
    let forged = RouteManifest::to("thief", "thief.example.com")
        .with("accessAppId", app["id"].as_str().unwrap_or_default())
        .with("serviceTokenId", token.as_str().unwrap_or_default())
        .with("cnameRecordId", world.name("web.example.com").record()["id"].as_str().unwrap_or_default());

    world.cluster.apply(forged.with("enabled", "false").manifest()).await;
    world.settle().await;
    world.cluster.delete("HTTPRoute/default/thief").await;
    world.settle().await;

    assert_eq!(world.cluster.get("HTTPRoute/default/thief").await, None, "it does not hang");
    assert_eq!(world.name("api.example.com").app()["id"], app["id"]);
    assert!(world.name("web.example.com").is_public());
    assert_eq!(world.cloudflare.all("service_tokens").len(), 1);
    world.assert_sound("forged ids").await;
}

#[tokio::test(start_paused = true)]
async fn heldout_f6_while_cloudflare_refuses_neither_route_nor_tenant_is_ready() {
    for status in [429, 500] {
        let world = z::world().start().await;
        let effect = Effect::status(status);
        world.cloudflare.fault(Fault::on("POST", "/dns_records", effect.clone()));
        world.cloudflare.fault(Fault::on("PUT", "/configurations", effect));
        world.cluster.apply(RouteManifest::to("web", "web.example.com").manifest()).await;
        world.pass(Duration::from_secs(20)).await;

        let ready = world.cluster.ready(TENANT).await;
        assert!(ready.starts_with("False/"), "{status}: {ready}");
        let message = world.output("web", "statusMessage").await.unwrap_or_default();
        assert!(!message.is_empty(), "{status}: the route says so");

        world.cloudflare.simulator.clear_faults();
        let well = world.holds_within(LONG, async |world: &World| {
            world.cluster.ready(TENANT).await == "True/ReconcileSuccess" && world.name("web.example.com").is_public()
        });
        assert!(well.await, "{status}");
        let cleared =
            world.holds_within(LONG, async |world: &World| world.output("web", "statusMessage").await.is_none());
        assert!(cleared.await, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn ux_c4_a_name_without_a_record_is_not_ready_nor_is_its_tenant() {
    let world = settled([RouteManifest::to("web", "web.elsewhere.net")]).await;

    let ready = world.cluster.ready(TENANT).await;
    assert!(ready.starts_with("False/"), "{ready}");
    let told = world.cluster.get("HTTPRoute/default/web").await.expect("it is there");
    let message = told["metadata"]["annotations"][format!("{PREFIX}statusMessage")].as_str().unwrap_or_default();
    assert!(message.contains("DNSSkipped"), "{message}");
}
