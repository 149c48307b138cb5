//! The jobs as worlds run them: what is at Cloudflare and in the cluster when their operators come, and what must hold.

use futures::FutureExt as _;
use portolan_cloudflare_sim::{Grant, Simulator};
use serde_json::{Value, json};

use crate::job::{OncePerJob, WorldJob};
use crate::manifests as m;
use crate::process::Processes;
use crate::world::Builder;
use crate::zerotrust::{self as z, Roles};

/// The kinds of `networking.cloudflare-operator.io`.
pub static CLOUDFLARE: WorldJob = WorldJob {
    definition: &portolan_cloudflare::JOB,
    account: m::ACCOUNT,
    zone: m::ZONE_ID,
    token: m::CANARY,
    namespaces: &[m::OPERATOR_NAMESPACE, m::NAMESPACE],
    processes: || Processes::one(portolan_cloudflare::JOB.sheet.name),
    seed: |simulator, plan| {
        seed(simulator, m::ACCOUNT, plan);
        let tunnel = json!({ "name": m::TUNNEL, "config_src": "cloudflare" });
        simulator.put("cfd_tunnel", m::ACCOUNT, tunnel).expect("the tunnel is made");
    },
    objects: cloudflare_objects,
    assert_sound: |world, place| crate::invariants::assert_all(world, place).boxed_local(),
    canonical_form: |world| crate::invariants::canonical_form(world).boxed_local(),
    once: OncePerJob::new(),
};

/// Annotated routes, tenants and templates.
pub static ZEROTRUST: WorldJob = WorldJob {
    definition: &portolan_zerotrust::JOB,
    account: z::ACCOUNT,
    zone: m::ZONE_ID,
    token: m::CANARY,
    namespaces: &[z::OPERATOR_NAMESPACE, m::NAMESPACE],
    processes: || Roles::default().into(),
    seed: zerotrust_account,
    objects: |_| vec![z::token_secret("default", "cloudflare-api-token", m::CANARY), z::tenant("prod")],
    assert_sound: |world, place| z::invariants::assert_all(world, place).boxed_local(),
    canonical_form: |world| z::canonical::form(world).boxed_local(),
    once: OncePerJob::new(),
};

/// All of them.
pub static ALL: [&WorldJob; 2] = [&CLOUDFLARE, &ZEROTRUST];

/// A world of the cloudflare job with nothing special about it.
pub fn cloudflare_world() -> Builder {
    Builder::of(&CLOUDFLARE)
}

/// An account with the operator's token and a zone of this plan.
fn seed(simulator: &Simulator, account: &str, plan: &str) {
    simulator.add_account_with_id(account, "Example");
    simulator.add_token(m::CANARY, Grant::all().email("operator@example.com"));
    simulator.add_zone_with_id(m::ZONE_ID, m::ZONE, account, plan).expect("the plan exists");
}

fn cloudflare_objects(simulator: &Simulator) -> Vec<Value> {
    let tunnels = simulator.objects("cfd_tunnel", m::ACCOUNT);
    let tunnel = tunnels.iter().find(|one| one["name"] == m::TUNNEL).expect("the account has the tunnel");
    vec![
        m::token_secret(m::OPERATOR_NAMESPACE, "cloudflare-api", m::CANARY),
        m::with(m::credentials("main", "cloudflare-api"), "isDefault", json!(true)),
        m::domain(m::ZONE),
        m::cluster_tunnel(m::TUNNEL, tunnel["id"].as_str().unwrap_or_default()),
    ]
}

/// As the worked examples have it: a tunnel that others use too, a group.
fn zerotrust_account(simulator: &Simulator, plan: &str) {
    seed(simulator, z::ACCOUNT, plan);
    simulator.add_token(z::SOMEBODY, Grant::all().email("somebody@example.com"));
    z::make_tunnel(simulator, z::ACCOUNT, z::TUNNEL, "edge");
    let group =
        json!({ "id": z::GROUP, "name": "Engineering", "include": [{ "email_domain": { "domain": "example.com" } }] });
    simulator.put("access_groups", z::ACCOUNT, group).expect("the group is made");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::OperatorProcess;

    fn assert_has_rights(job: &WorldJob, role: &'static str, accounts: &[Value]) {
        let user = job.user_of(OperatorProcess::of(role));
        let name = user.rsplit(':').next().unwrap_or_default();
        let is_account = |one: &Value| one["kind"] == "ServiceAccount" && one["metadata"]["name"] == name;
        assert!(accounts.iter().any(is_account), "{user} has an account");
        assert!(accounts.iter().any(|one| one["subjects"][0]["name"] == name), "{user} has rights");
    }

    #[test]
    fn every_role_of_every_job_has_an_account_and_a_binding() {
        for job in ALL {
            for role in job.definition.sheet.roles {
                assert_has_rights(job, role.name, job.accounts(job.is_part(OperatorProcess::of(role.name))));
            }
        }
    }
}
