//! What every world begins with: definitions, an account with a token, a zone, a tunnel, and the objects that name them.

use portolan_cloudflare_sim::Grant;
use serde_json::json;

use crate::jobs::Jobs;
use crate::manifests as m;
use crate::prepared;
use crate::world::World;
use crate::zerotrust as z;

/// Makes everything that the world's job needs; at Cloudflare unless another world has it there already.
pub(crate) async fn furnish(world: &World, plan: &str, beside: bool) {
    if world.is_shared() {
        world.cluster.install_definitions().await;
        world.cluster.clear().await;
        prepared::furnish(&world.cluster, world.jobs(), world.is_apart()).await;
    }
    match world.jobs() {
        Jobs::Cloudflare => cloudflare(world, plan).await,
        Jobs::ZeroTrust => {
            if !beside {
                zero_trust_account(world, plan).await;
            }
            world.cluster.apply(&z::token_secret("default", "cloudflare-api-token", m::CANARY)).await;
            world.cluster.apply(&z::tenant("prod")).await;
        }
    }
}

async fn cloudflare(world: &World, plan: &str) {
    let cloudflare = &world.cloudflare.simulator;
    cloudflare.add_account_with_id(m::ACCOUNT, "Example");
    cloudflare.add_token(m::CANARY, Grant::all().email("operator@example.com"));
    cloudflare.add_zone_with_id(m::ZONE_ID, m::ZONE, m::ACCOUNT, plan).expect("the plan exists");
    let tunnel = cloudflare.put("cfd_tunnel", m::ACCOUNT, json!({ "name": m::TUNNEL, "config_src": "cloudflare" }));
    world.cluster.apply(&m::token_secret(m::OPERATOR_NAMESPACE, "cloudflare-api", m::CANARY)).await;
    world.cluster.apply(&m::with(m::credentials("main", "cloudflare-api"), "isDefault", json!(true))).await;
    world.cluster.apply(&m::domain(m::ZONE)).await;
    world.cluster.apply(&m::cluster_tunnel(m::TUNNEL, &tunnel.expect("the tunnel is made"))).await;
}

/// As the worked examples have it: a tunnel that others use too, a group.
async fn zero_trust_account(world: &World, plan: &str) {
    let cloudflare = &world.cloudflare.simulator;
    cloudflare.add_account_with_id(z::ACCOUNT, "Example");
    cloudflare.add_token(m::CANARY, Grant::all().email("operator@example.com"));
    cloudflare.add_token(z::SOMEBODY, Grant::all().email("somebody@example.com"));
    cloudflare.add_zone_with_id(m::ZONE_ID, m::ZONE, z::ACCOUNT, plan).expect("the plan exists");
    z::add_tunnel(world, z::ACCOUNT, z::TUNNEL, "edge").await;
    cloudflare
        .put("access_groups", z::ACCOUNT, json!({ "id": z::GROUP, "name": "Engineering", "include": [{ "email_domain": { "domain": "example.com" } }] }))
        .expect("the group is made");
}
