//! What an attacked history begins with: tenants of two namespaces on one tunnel, each with a token of its own, templates
//! that take part by name and without, definitions that let malformed objects in.

use std::collections::BTreeSet;
use std::time::Duration;

use portolan_cloudflare_sim::{Grant, credential_id};
use rand::Rng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::super::edge_monitor::EdgeMonitor;
use super::super::histories::SECOND_TUNNEL;
use super::super::histories::wanted::{IMPLICIT, TEMPLATES, Users};
use super::super::manifests::in_namespace;
use super::super::wishes::NameWish;
use super::super::{ACCOUNT, Roles, RouteManifest, add_tunnel, template, tenant, token_secret, world};
use super::AttackHistory;
use crate::history::misfortune;
use crate::manifests::{self as m, ZONE};
use crate::world::World;

/// The token of the tenant `shop`.
pub(super) const SHOPS_TOKEN: &str = "canary-of-the-shop-that-must-not-leak";
/// The token of another cluster.
const NEIGHBOURS_TOKEN: &str = "canary-of-another-cluster-that-must-not-leak";
/// How many routes a crowd has: enough that the budget for deletions holds them.
pub(super) const CROWD: usize = 12;
/// The definition of templates.
pub(super) const TEMPLATES_DEFINITION: &str = "cloudflarezerotrusttemplates.cfzt.cloudflare.com";

/// The world of a seed, its operator at rest, and what troubles it.
pub(super) async fn begin(seed: u64, random: &mut StdRng) -> (World, AttackHistory) {
    let latency = Duration::from_millis(random.random_range(0..300));
    let roles = if random.random_bool(0.35) { Roles::apart(2) } else { Roles::default() };
    let world = world().seed(seed).latency(latency).roles(roles).asleep().start().await;
    add_tunnel(&world, ACCOUNT, SECOND_TUNNEL, "second");
    world.cloudflare.simulator.add_token(SHOPS_TOKEN, Grant::all());
    world.cloudflare.keep_seeded();
    let users = Users::default();
    let definition = loose(&definition(&world).await);
    world.cluster.replace_definition(&definition).await;
    world.cluster.apply(&m::namespace("shop")).await;
    for object in standing(&users) {
        world.cluster.apply(&object).await;
    }
    let other = if random.random_bool(0.3) { Some(neighbour(&world, seed).await) } else { None };
    world.restart().await;
    world.settle().await;
    let monitor = EdgeMonitor::post_late(&world);
    for number in 0..3 {
        monitor.contested(&world, &format!("g{number}.{ZONE}"));
    }
    if other.is_some() {
        monitor.neighbour(&world, &credential_id(NEIGHBOURS_TOKEN));
    }
    let crowd = if random.random_bool(0.1) { CROWD } else { 0 };
    let history = AttackHistory { other, monitor, users, definition, crowd, down: BTreeSet::new() };
    crowd_comes(&world, &history).await;
    misfortune(&world);
    (world, history)
}

async fn crowd_comes(world: &World, history: &AttackHistory) {
    for number in 0..history.crowd {
        let hostname = format!("c{number}.{ZONE}");
        history.monitor.wish(world, &hostname, NameWish::Protected);
        let route =
            RouteManifest::to(&format!("c{number}"), &hostname).with("tenant", "prod").allowing("ann@example.com");
        world.cluster.apply(&route.into()).await;
    }
    world.settle().await;
}

/// Another cluster on the account of a world, with a token of its own.
async fn neighbour(world: &World, seed: u64) -> World {
    let neighbour = super::super::world().seed(seed).beside(world).asleep().start().await;
    neighbour.cloudflare.simulator.add_token(NEIGHBOURS_TOKEN, Grant::all());
    neighbour.cluster.apply(&token_secret("default", "cloudflare-api-token", NEIGHBOURS_TOKEN)).await;
    neighbour.restart().await;
    neighbour.settle().await;
    neighbour
}

/// The definition of templates as it is.
pub(super) async fn definition(world: &World) -> Value {
    let id = format!("CustomResourceDefinition/{TEMPLATES_DEFINITION}");
    let found = world.cluster.get(&id).await.expect("templates are defined");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": TEMPLATES_DEFINITION }, "spec": found["spec"],
    })
}

/// The definition of an older release, whose schema lets everything in: objects that do not decode exist.
fn loose(definition: &Value) -> Value {
    let mut loose = definition.clone();
    for version in loose["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        version["schema"]["openAPIV3Schema"]["properties"]["spec"] = open;
    }
    loose
}

/// A template where it takes part.
pub(super) fn template_object(users: &Users, name: &str) -> Value {
    let object = template(name, users.template(name));
    if name == IMPLICIT[1] { in_namespace(object, "shop") } else { object }
}

/// A tenant where it is.
pub(super) fn tenant_object(users: &Users, name: &str) -> Value {
    let mut object = tenant(name);
    match name {
        "second" => object["spec"]["tunnelId"] = json!(SECOND_TUNNEL),
        "prod" => object["spec"]["defaults"]["originService"] = json!(users.origin),
        _ => {}
    }
    if name == "shop" { in_namespace(object, "shop") } else { object }
}

/// The Secret with the API token of a namespace.
pub(super) fn secret_object(namespace: &str) -> Value {
    let token = if namespace == "shop" { SHOPS_TOKEN } else { m::CANARY };
    token_secret(namespace, "cloudflare-api-token", token)
}

/// Everything that stands beside routes.
pub(super) fn standing(users: &Users) -> Vec<Value> {
    let secrets = ["default", "shop"].map(secret_object);
    let tenants = ["prod", "second", "walled", "shop"].map(|name| tenant_object(users, name));
    let templates = TEMPLATES.into_iter().chain(IMPLICIT).map(|name| template_object(users, name));
    secrets.into_iter().chain(tenants).chain(templates).collect()
}
