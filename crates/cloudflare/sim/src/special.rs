//! Paths that no row of the table describes, and the functions that answer there.

use crate::{
    access::{app_policy, organization, service_token, tag},
    audit,
    auth::RightLevel,
    call::RoutedCall,
    dns, gateway_configuration, network_route,
    reply::{Reply, Success},
    rulesets::calls as rulesets,
    state::State,
    tunnel,
};

/// A function for a path that no row describes.
pub(crate) type Special =
    (&'static str, &'static str, Option<(&'static str, RightLevel)>, fn(&mut State, &RoutedCall) -> Reply);

pub(crate) const SPECIAL: &[Special] = &[
    ("GET", "/user/tokens/verify", None, verify),
    ("GET", "/accounts/{account_id}/tokens/verify", None, verify),
    ("GET", "/accounts/{account_id}/audit_logs", Some(("audit_logs", RightLevel::Read)), audit::list),
    ("POST", "/zones/{zone_id}/dns_records/batch", Some(("dns", RightLevel::Edit)), dns::batch::run),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{id}/token", Some(("tunnel", RightLevel::Edit)), tunnel::token),
    (
        "GET",
        "/accounts/{account_id}/cfd_tunnel/{id}/connections",
        Some(("tunnel", RightLevel::Read)),
        tunnel::connections,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/cfd_tunnel/{id}/connections",
        Some(("tunnel", RightLevel::Edit)),
        tunnel::disconnect,
    ),
    (
        "GET",
        "/accounts/{account_id}/cfd_tunnel/{id}/configurations",
        Some(("tunnel", RightLevel::Read)),
        tunnel::configuration,
    ),
    (
        "PUT",
        "/accounts/{account_id}/cfd_tunnel/{id}/configurations",
        Some(("tunnel", RightLevel::Edit)),
        tunnel::configure,
    ),
    (
        "POST",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", RightLevel::Edit)),
        network_route::create_by_network,
    ),
    (
        "PATCH",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", RightLevel::Edit)),
        network_route::patch_by_network,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/teamnet/routes/network/{network}",
        Some(("networks", RightLevel::Edit)),
        network_route::delete_by_network,
    ),
    (
        "GET",
        "/accounts/{account_id}/teamnet/routes/ip/{ip}",
        Some(("networks", RightLevel::Read)),
        network_route::find_by_ip,
    ),
    (
        "GET",
        "/accounts/{account_id}/access/organizations",
        Some(("access_groups", RightLevel::Read)),
        organization::get,
    ),
    (
        "GET",
        "/accounts/{account_id}/gateway/configuration",
        Some(("gateway", RightLevel::Read)),
        gateway_configuration::get,
    ),
    (
        "PATCH",
        "/accounts/{account_id}/gateway/configuration",
        Some(("gateway", RightLevel::Edit)),
        gateway_configuration::patch,
    ),
    ("GET", "/accounts/{account_id}/access/tags/{tag_name}", Some(("access_apps", RightLevel::Read)), tag::get),
    ("DELETE", "/accounts/{account_id}/access/tags/{tag_name}", Some(("access_apps", RightLevel::Edit)), tag::delete),
    (
        "GET",
        "/accounts/{account_id}/access/apps/{id}/policies",
        Some(("access_apps", RightLevel::Read)),
        app_policy::list,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/apps/{id}/policies",
        Some(("access_apps", RightLevel::Edit)),
        app_policy::create,
    ),
    (
        "GET",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", RightLevel::Read)),
        app_policy::get,
    ),
    (
        "PUT",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", RightLevel::Edit)),
        app_policy::update,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/access/apps/{id}/policies/{policy_id}",
        Some(("access_apps", RightLevel::Edit)),
        app_policy::delete,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens",
        Some(("access_service_tokens", RightLevel::Edit)),
        service_token::create,
    ),
    (
        "PUT",
        "/accounts/{account_id}/access/service_tokens/{id}",
        Some(("access_service_tokens", RightLevel::Edit)),
        service_token::update,
    ),
    (
        "DELETE",
        "/accounts/{account_id}/access/service_tokens/{id}",
        Some(("access_service_tokens", RightLevel::Edit)),
        service_token::delete,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens/{id}/rotate",
        Some(("access_service_tokens", RightLevel::Edit)),
        service_token::rotate,
    ),
    (
        "POST",
        "/accounts/{account_id}/access/service_tokens/{id}/refresh",
        Some(("access_service_tokens", RightLevel::Edit)),
        service_token::refresh,
    ),
    (
        "GET",
        "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint",
        Some(("rulesets", RightLevel::Read)),
        rulesets::entrypoint,
    ),
    (
        "PUT",
        "/zones/{zone_id}/rulesets/phases/{phase}/entrypoint",
        Some(("rulesets", RightLevel::Edit)),
        rulesets::put_entrypoint,
    ),
    ("POST", "/zones/{zone_id}/rulesets/{id}/rules", Some(("rulesets", RightLevel::Edit)), rulesets::add_rule),
    (
        "PATCH",
        "/zones/{zone_id}/rulesets/{id}/rules/{rule_id}",
        Some(("rulesets", RightLevel::Edit)),
        rulesets::edit_rule,
    ),
    (
        "DELETE",
        "/zones/{zone_id}/rulesets/{id}/rules/{rule_id}",
        Some(("rulesets", RightLevel::Edit)),
        rulesets::delete_rule,
    ),
];

/// `GET /user/tokens/verify`
#[expect(clippy::unnecessary_wraps, reason = "the shape of a handler")]
fn verify(state: &mut State, call: &RoutedCall) -> Reply {
    let grant = &call.actor.grant;
    let mut token = serde_json::json!({"id": call.actor.id, "status": grant.status((state.options.clock)())});
    if let Some(time) = grant.expiry() {
        token["expires_on"] = serde_json::Value::from(format!("{time:.0}"));
    }
    Ok(Success::of(&token))
}
