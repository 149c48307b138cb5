//! The namespace of the worked examples is deleted, and what goes first is a matter of chance: Secret, tenant, templates or
//! routes, at once or with pauses, with the operator there or dead meanwhile. It always ends, and leaves nothing behind.
//!
//! A Secret that somebody deletes by itself is kept readable for ten seconds only, as one that is replaced: so what follows
//! it here follows within moments.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use super::manifests::in_namespace;
use super::{Roles, RouteManifest, TUNNEL, config, foreign_config, template, tenant, token_secret, world};
use crate::manifests::{self as m, id};
use crate::world::World;
use crate::zerotrust::RouteWorld as _;

/// Where the examples are.
const NAMESPACE: &str = "examples";
/// How long a namespace may take to go.
const GONE_WITHIN: Duration = Duration::from_secs(7200);

/// What an order was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderTally {
    /// What happened, in order.
    pub events: Vec<String>,
    /// How long the namespace took, in seconds of the world's clock.
    pub seconds: i64,
}

/// The routes of the worked examples, and a tenant with what it needs.
fn objects() -> Vec<Value> {
    let routes = [
        RouteManifest::to("simple-app", "simple.example.com"),
        RouteManifest::to("admin-panel", "admin.example.com").allowing("admin@example.com,manager@example.com"),
        RouteManifest::to("api-service", "api.example.com")
            .with("accessApp", "true")
            .with("allowGroups", "Engineering")
            .with("serviceToken", "true"),
        RouteManifest::to("app", "app.example.com").with("template", "team"),
        RouteManifest::to("walled", "walled.example.com"),
    ];
    let access = |emails: &str| json!({ "accessApplication": { "enabled": true, "allowEmails": [emails] } });
    let open = routes[0].clone().with("access.enabled", "false");
    let all = [
        token_secret(NAMESPACE, "cloudflare-api-token", m::CANARY),
        in_namespace(tenant("examples"), NAMESPACE),
        in_namespace(template("team", access("ann@example.com")), NAMESPACE),
        in_namespace(template("base-examples", access("bob@example.com")), NAMESPACE),
    ];
    let routes = routes.into_iter().skip(1).chain([open]).map(|route| Value::from(route.within(NAMESPACE)));
    all.into_iter().chain(routes).collect()
}

/// Deletes the namespace in the order of a seed. Panics where it does not end, or leaves something.
pub async fn live(seed: u64) -> OrderTally {
    let mut random = StdRng::seed_from_u64(seed ^ 0x0de1_e7e0);
    let roles = if random.random_bool(0.4) { Roles::apart(1) } else { Roles::default() };
    let latency = Duration::from_millis(random.random_range(0..400));
    let world = world().seed(seed).latency(latency).roles(roles).start().await;
    world.cluster.apply(&m::namespace(NAMESPACE)).await;
    for object in objects() {
        world.cluster.apply(&object).await;
    }
    world.settle().await;
    for name in ["simple", "admin", "api", "app", "walled"] {
        assert!(world.name(&format!("{name}.example.com")).is_published(), "{name} is there before anything goes");
    }
    let mut told = OrderTally::default();
    let begun = world.now();
    go(&world, &mut random, &mut told).await;
    let gone = async |world: &World| world.cluster.get(&format!("Namespace/{NAMESPACE}")).await.is_none();
    let ended = world.holds_within(GONE_WITHIN, gone).await;
    told.seconds = (world.now() - begun) / 1000;
    assert!(ended, "seed {seed}: the namespace does not go: {:#?}\n{}", told.events, left(&world).await);
    world.settle().await;
    assert_nothing_left(&world, &format!("seed {seed}: {:#?}", told.events)).await;
    told
}

/// Some objects go first, one after the other; then the namespace.
async fn go(world: &World, random: &mut StdRng, told: &mut OrderTally) {
    let mut objects = objects();
    objects.shuffle(random);
    objects.truncate(random.random_range(0..=objects.len()));
    let mut hurry = false;
    for object in &objects {
        told.events.push(format!("{} is deleted", id(object)));
        world.cluster.delete(&id(object)).await;
        hurry |= object["kind"] == "Secret";
        pause(world, random, told, hurry).await;
    }
    told.events.push("the namespace is deleted".to_owned());
    world.cluster.delete(&format!("Namespace/{NAMESPACE}")).await;
    pause(world, random, told, false).await;
}

async fn pause(world: &World, random: &mut StdRng, told: &mut OrderTally, hurry: bool) {
    match random.random_range(0..10) {
        0..5 => {}
        5..7 => tokio::time::sleep(Duration::from_millis(random.random_range(0..500))).await,
        7..9 if hurry => {}
        7..9 => tokio::time::sleep(Duration::from_secs(random.random_range(1..60))).await,
        _ => {
            told.events.push("the operator dies and comes back".to_owned());
            world.crash().await;
            tokio::time::sleep(Duration::from_secs(random.random_range(0..30))).await;
            world.restart().await;
        }
    }
}

async fn left(world: &World) -> String {
    let mut left = Vec::new();
    for kind in ["HTTPRoute", "Secret", "CloudflareZeroTrustTenant", "CloudflareZeroTrustTemplate", "CloudflareTask"] {
        let all = world.cluster.list(kind).await;
        left.extend(all.iter().map(|one| format!("{} {} {}", id(one), one["metadata"]["finalizers"], one["status"])));
    }
    left.join("\n")
}

async fn assert_nothing_left(world: &World, place: &str) {
    for name in ["simple", "admin", "api", "app", "walled"] {
        let hostname = format!("{name}.example.com");
        assert!(!world.name(&hostname).is_public(), "{place}: {hostname} is public");
    }
    assert_eq!(config(world, TUNNEL), foreign_config(), "{place}");
    for collection in ["dns_records", "access_apps", "service_tokens", "access_policies"] {
        assert_eq!(world.cloudflare.all(collection), Vec::<Value>::new(), "{place}: {collection}");
    }
    assert_eq!(world.tasks().await, Vec::<Value>::new(), "{place}");
    let states = world.cluster.list("ConfigMap").await;
    assert!(!states.iter().any(super::canonical::is_state), "{place}: {states:#?}");
}
