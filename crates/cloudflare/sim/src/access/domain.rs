//! The domains that an application covers. Each belongs to one application of an account.

use serde_json::{Value, json};

use super::{
    app::{APPS, TAKEN},
    invalid,
    quota::refuse_over,
};
use crate::{
    dns::name::ancestors,
    reply::Refusal,
    state::State,
    store::{id_of, text},
    table::PendingChange,
    zone::ZONES,
};

/// The domains that an application covers, as `destinations` and in the older form.
pub(super) fn set(state: &State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    let main = domain(text(value, "domain"))?;
    let destinations = change.sent.get("destinations").and_then(Value::as_array);
    let older = change.sent.get("self_hosted_domains").and_then(Value::as_array);
    let public = |uri: &str| domain(uri).map(|uri| json!({"type": "public", "uri": uri}));
    let destinations = match (destinations, older) {
        (Some(list), _) => list.iter().map(destination).collect::<Result<Vec<_>, _>>()?,
        (None, Some(list)) => list.iter().filter_map(Value::as_str).map(public).collect::<Result<Vec<_>, _>>()?,
        (None, None) => vec![public(&main)?],
    };
    value["domain"] = Value::from(main.as_str());
    value["self_hosted_domains"] =
        destinations.iter().filter(|found| is_public(found)).map(|found| found["uri"].clone()).collect();
    value["destinations"] = Value::Array(destinations);
    let number = domains(value).count();
    if !domains(value).any(|found| found == main) {
        return Err(invalid(format!("domain {main} is not included in destinations")));
    }
    if !domains(value).all(|found| lies_in_active_zone(state, change.scope, found)) {
        return Err(invalid("domain does not belong to zone"));
    }
    refuse_over(number, state.options.quotas.domains_per_application, "domains per application")
}

fn is_public(destination: &Value) -> bool {
    text(destination, "type") == "public"
}

/// The public domains of an application.
pub(crate) fn domains(app: &Value) -> impl Iterator<Item = &str> {
    app["self_hosted_domains"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn destination(sent: &Value) -> Result<Value, Refusal> {
    let kinds = [
        "public",
        "private",
        "via_mcp_server_portal",
        "worker",
        "preview_worker",
        "all_workers",
        "all_preview_workers",
    ];
    let mut destination = sent.clone();
    if sent.is_object() && sent.get("type").is_none() {
        destination["type"] = json!("public");
    }
    let kind = text(&destination, "type");
    if !kinds.contains(&kind) {
        return Err(invalid("a destination has a type: public, private, …"));
    }
    if kind == "public" {
        let known = ["type", "uri", "overrides"];
        let members = destination.as_object().into_iter().flatten();
        if let Some((name, _)) = members.into_iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(invalid(format!("a public destination has no member {name}")));
        }
        destination["uri"] = Value::from(domain(text(&destination, "uri"))?);
    }
    Ok(destination)
}

/// A host with perhaps a path; `*` may stand for any part of either.
fn domain(given: &str) -> Result<String, Refusal> {
    let given = given.trim_end_matches('/');
    let (host, path) = given.split_once('/').map_or((given, None), |(host, path)| (host, Some(path)));
    let host = host.to_ascii_lowercase();
    if !host.contains('.')
        || !crate::dns::name::is_domain(&host.replace('*', "x"))
        || given.contains(char::is_whitespace)
    {
        return Err(invalid(format!("{given} is not a domain")));
    }
    Ok(path.map_or(host.clone(), |path| format!("{host}/{path}")))
}

/// Only names in an active zone of the account can be protected; a zone that is still pending is none:
/// <https://github.com/cloudflare/terraform-provider-cloudflare/issues/5181>.
fn lies_in_active_zone(state: &State, account: &str, domain: &str) -> bool {
    let host = domain.split('/').next().unwrap_or(domain);
    let usable = |zone: &Value| text(zone, "status") == "active" && text(&zone["account"], "id") == account;
    let zones = state.rows(&ZONES, "");
    zones.is_some_and(|zones| ancestors(host).any(|name| zones.by_key(name).any(usable)))
}

pub(super) fn refuse_taken(state: &State, account: &str, value: &Value) -> Result<(), Refusal> {
    let mut others = state.all(&APPS, account).filter(|other| id_of(other) != id_of(value));
    let shares = |other: &Value| domains(other).any(|taken| domains(value).any(|wanted| wanted == taken));
    if others.any(shares) { Err(TAKEN.refusal()) } else { Ok(()) }
}
