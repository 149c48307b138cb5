//! Worlds of the zerotrust job: what they begin with, how its processes are divided, and what must hold in them.

pub mod attacks;
pub mod canonical;
pub mod edge_monitor;
pub mod examples;
pub mod fail_closed;
pub mod fleet;
pub mod histories;
pub mod invariants;
pub mod late;
pub mod manifests;
pub mod migration;
pub mod names;
pub mod orders;
mod roles;
pub mod wishes;

pub use manifests::{RouteManifest, template, tenant, token_secret};
pub use names::{RouteWorld, WorldName};
pub use roles::{ROUTES, Roles, worker};

use bytes::Bytes;
use futures::FutureExt as _;
use http::Request;
use portolan_cloudflare_sim::Simulator;
use serde_json::{Value, json};

use crate::world::{Builder, World};

/// Where the operator's own objects are.
pub const OPERATOR_NAMESPACE: &str = "cloudflare-zero-trust";
/// The account of the tenant that every world has.
pub const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
/// The tunnel of that tenant.
pub const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";
/// The id of the group `Engineering`.
pub const GROUP: &str = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee";
/// Where the tenant's routes go unless they say otherwise.
pub const ORIGIN: &str = "http://traefik.traefik.svc:80";
/// The token of somebody else who works in the same account.
pub const SOMEBODY: &str = "somebodys-own-token";

/// A world with nothing special about it.
pub fn world() -> Builder {
    Builder::of(&crate::jobs::ZEROTRUST)
}

/// What a tunnel holds before we come: a rule with a path, settings for all, and a catch-all of its owner.
pub fn foreign_config() -> Value {
    json!({
        "ingress": [
            { "hostname": "legacy.example.com", "path": "^/v1", "service": "http://legacy:8080", "originRequest": { "connectTimeout": 7 } },
            { "hostname": "*.internal.example.com", "service": "https://internal:8443", "originRequest": { "noTLSVerify": true } },
            { "service": "http_status:503" },
        ],
        "originRequest": { "connectTimeout": 30, "keepAliveConnections": 50 },
        "warp-routing": { "enabled": true },
    })
}

/// Makes a remotely managed tunnel with [`foreign_config`].
pub fn add_tunnel(world: &World, account: &str, id: &str, name: &str) {
    make_tunnel(&world.cloudflare.simulator, account, id, name);
}

/// The same at a simulator.
pub(crate) fn make_tunnel(simulator: &Simulator, account: &str, id: &str, name: &str) {
    let body = json!({ "id": id, "name": name, "config_src": "cloudflare" });
    simulator.put("cfd_tunnel", account, body).expect("the tunnel is made");
    let path = format!("accounts/{account}/cfd_tunnel/{id}/configurations");
    demand(simulator, "PUT", &path, &json!({ "config": foreign_config() }));
}

/// Asks the API as somebody else does, at once; returns the result.
pub fn as_somebody(world: &World, method: &str, path: &str, body: &Value) -> Value {
    demand(&world.cloudflare.simulator, method, path, body)
}

fn demand(simulator: &Simulator, method: &str, path: &str, body: &Value) -> Value {
    let answer = ask(simulator, method, path, body);
    assert_eq!(answer["success"], true, "{method} {path} by somebody: {answer}");
    answer["result"].clone()
}

/// The same, with the whole answer.
pub fn ask(simulator: &Simulator, method: &str, path: &str, body: &Value) -> Value {
    let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder()
        .method(method)
        .uri(format!("https://api.cloudflare.com/client/v4/{path}"))
        .header("authorization", format!("Bearer {SOMEBODY}"))
        .header("content-type", "application/json")
        .body(bytes)
        .expect("the request is complete");
    // The simulator of a world has no latency of its own.
    let answer = simulator.answer(request).now_or_never().expect("the simulator answers at once");
    let answer = answer.expect("nothing fails for somebody");
    serde_json::from_slice(answer.body()).unwrap_or_default()
}

/// The configuration of a tunnel at Cloudflare.
pub fn config(world: &World, tunnel: &str) -> Value {
    world.cloudflare.simulator.state()["configurations"][tunnel]["config"].clone()
}

/// The rules of a tunnel for a hostname.
pub fn rules(world: &World, tunnel: &str, hostname: &str) -> Vec<Value> {
    let config = config(world, tunnel);
    let all = config["ingress"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|rule| rule["hostname"] == hostname).collect()
}
