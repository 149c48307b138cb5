//! Paths that no row of the table describes, and the functions that answer there.

use crate::{
    access::{app_policy, organization, service_token, tag},
    audit,
    auth::Level,
    call::Call,
    dns, network_route,
    reply::{Reply, Success},
    rulesets::calls as rulesets,
    state::State,
    tunnel,
};

/// A function for a path that no row describes.
pub(crate) type Special = (&'static str, &'static str, Option<(&'static str, Level)>, fn(&mut State, &Call) -> Reply);

pub(crate) const SPECIAL: &[Special] = &[
    ("GET", "/user/tokens/verify", None, verify),
    ("GET", "/accounts/{account_id}/tokens/verify", None, verify),
    ("GET", "/accounts/{account_id}/audit_logs", Some(("audit_logs", Level::Read)), audit::list),
    ("POST", "/zones/{zone_id}/dns_records/batch", Some(("dns", Level::Edit)), dns::batch::run),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{id}/token", Some(("tunnel", Level::Edit)), tunnel::token),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{id}/connections", Some(("tunnel", Level::Read)), tunnel::connections),
    ("DELETE", "/accounts/{account_id}/cfd_tunnel/{id}/connections", Some(("tunnel", Level::Edit)), tunnel::disconnect),
    (
        "GET",
        "/accounts/{account_id}/cfd_tunnel/{id}/configurations",
        Some(("tunnel", Level::Read)),
        tunnel::configuration,
    ),
    ("PUT", "/accounts/{account_id}/cfd_tunnel/{id}/configurations", Some(("tunnel", Level::Edit)), tunnel::configure),
    (
        "POST",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", Level::Edit)),
        network_route::create_by_network,
    ),
    (
        "PATCH",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", Level::Edit)),
        network_route::patch_by_network,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", Level::Edit)),
        network_route::delete_by_network,
    ),
    (
        "GET",
        "/accounts/{account_id}/teamnet/routes/ip/{ip}",
        Some(("networks", Level::Read)),
        network_route::find_by_ip,
    ),
    ("GET", "/accounts/{account_id}/access/organizations", Some(("access_groups", Level::Read)), organization::get),
    ("GET", "/accounts/{account_id}/access/tags/{tag_name}", Some(("access_apps", Level::Read)), tag::get),
    ("DELETE", "/accounts/{account_id}/access/tags/{tag_name}", Some(("access_apps", Level::Edit)), tag::delete),
    ("GET", "/accounts/{account_id}/access/apps/{id}/policies", Some(("access_apps", Level::Read)), app_policy::list),
    (
        "POST",
        "/accounts/{account_id}/access/apps/{id}/policies",
        Some(("access_apps", Level::Edit)),
        app_policy::create,
    ),
    (
        "GET",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", Level::Read)),
        app_policy::get,
    ),
    (
        "PUT",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", Level::Edit)),
        app_policy::update,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", Level::Edit)),
        app_policy::delete,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens",
        Some(("access_service_tokens", Level::Edit)),
        service_token::create,
    ),
    (
        "PUT",
        "/accounts/{account_id}/access/service_tokens/{id}",
        Some(("access_service_tokens", Level::Edit)),
        service_token::update,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/access/service_tokens/{id}",
        Some(("access_service_tokens", Level::Edit)),
        service_token::delete,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens/{id}/rotate",
        Some(("access_service_tokens", Level::Edit)),
        service_token::rotate,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens/{id}/refresh",
        Some(("access_service_tokens", Level::Edit)),
        service_token::refresh,
    ),
    (
        "GET",
        "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint",
        Some(("rulesets", Level::Read)),
        rulesets::entrypoint,
    ),
    (
        "PUT",
        "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint",
        Some(("rulesets", Level::Edit)),
        rulesets::put_entrypoint,
    ),
    ("POST", "/zones/{zone_id}/rulesets/{id}/rules", Some(("rulesets", Level::Edit)), rulesets::add_rule),
    ("PATCH", "/zones/{zone_id}/rulesets/{id}/rules/{rule_id}", Some(("rulesets", Level::Edit)), rulesets::edit_rule),
    (
        "DELETE",
        "/zones/{zone_id}/rulesets/{id}/rules/{rule_id}",
        Some(("rulesets", Level::Edit)),
        rulesets::delete_rule,
    ),
];

/// `GET /user/tokens/verify`
#[expect(clippy::unnecessary_wraps, reason = "the shape of a handler")]
fn verify(state: &mut State, call: &Call) -> Reply {
    let grant = &call.actor.grant;
    let mut token = serde_json::json!({"id": call.actor.id, "status": grant.status((state.options.clock)())});
    if let Some(time) = grant.expiry() {
        token["expires_on"] = serde_json::Value::from(format!("{time:.0}"));
    }
    Ok(Success::of(&token))
}
