//! `/zones/{zone_id}/rulesets`: as far as redirects need them, the phase `http_request_dynamic_redirect`.

pub(crate) mod calls;
mod redirect;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    field::{Member, MemberType, Presence, optional},
    filter::{Filter, Test, filter},
    ids::IdForm,
    page::Paging,
    reply::Refusal,
    state::State,
    store::{flag, id_of, text},
    table::{Below, Collection, CollectionAction, Fail, PLAIN, PendingChange, REPLACED, ROW, Rules},
    zone::{ZONES, ZonePlan},
};

pub(crate) static RULESETS: Collection = Collection {
    name: "rulesets",
    what: "ruleset",
    scope: Below::Zone,
    path: "rulesets",
    id: IdForm::Hex,
    actions: REPLACED,
    fields: FIELDS,
    filters: FILTERS,
    paging: Paging::Single,
    times: ("last_updated", Some("last_updated")),
    key: |value| text(value, "phase").to_owned(),
    duplicate: Some(Fail(400, 20217, "A ruleset of this zone for this phase exists already.")),
    not_found: Fail(404, 10003, "could not find ruleset"),
    invalid: INVALID,
    group: "rulesets",
    statuses: (200, 204),
    rules: Rules { prepare, show, ..PLAIN },
    ..ROW
};

const INVALID: u64 = 20015;

/// The phase in which redirects are.
const REDIRECTS: &str = "http_request_dynamic_redirect";

const PHASES: [&str; 20] = [
    "ddos_l7",
    "http_config_settings",
    "http_custom_errors",
    "http_log_custom_fields",
    "http_ratelimit",
    "http_request_cache_settings",
    REDIRECTS,
    "http_request_firewall_custom",
    "http_request_firewall_managed",
    "http_request_late_transform",
    "http_request_origin",
    "http_request_redirect",
    "http_request_sanitize",
    "http_request_sbfm",
    "http_request_transform",
    "http_response_cache_settings",
    "http_response_compression",
    "http_response_firewall_managed",
    "http_response_headers_transform",
    "ddos_l4",
];

const FIELDS: &[Member] = &[
    Member { name: "kind", kind: MemberType::OneOf(&["zone"]), role: Presence::RequiredOnce },
    Member { name: "phase", kind: MemberType::OneOf(&PHASES), role: Presence::RequiredOnce },
    optional("name", MemberType::Text),
    optional("description", MemberType::Text),
    optional("rules", MemberType::List),
];

const FILTERS: &[Filter] = &[filter("cursor", Test::Manner)];

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    if let Some(old) = change.old {
        (value["kind"], value["phase"]) = (old["kind"].clone(), old["phase"].clone());
    }
    let phase = text(value, "phase");
    if phase != REDIRECTS {
        return Err(Refusal::bad(INVALID, format!("phase {phase} is not served here, {REDIRECTS} alone is")));
    }
    let old = change.old.map(rules_of).unwrap_or_default();
    let sent = value["rules"].as_array().cloned().unwrap_or_default();
    let rules = sent.into_iter().map(|rule| {
        let same = old.iter().find(|old| !text(&rule, "id").is_empty() && id_of(old) == text(&rule, "id"));
        redirect::make(state, rule, same)
    });
    let rules = rules.collect::<Result<Vec<_>, _>>()?;
    set_rules(state, change.scope, value, rules)?;
    for name in ["name", "description"] {
        if value.get(name).is_none() {
            value[name] = json!(if name == "name" { "default" } else { "" });
        }
    }
    value["version"] = Value::from(change.old.map_or("1".to_owned(), next_version));
    Ok(())
}

/// The rules of a ruleset, in order.
fn rules_of(ruleset: &Value) -> Vec<Value> {
    ruleset["rules"].as_array().cloned().unwrap_or_default()
}

fn set_rules(state: &State, zone: &str, ruleset: &mut Value, rules: Vec<Value>) -> Result<(), Refusal> {
    let limit = state.get(&ZONES, "", zone).map_or(0, |zone| ZonePlan::of(zone).redirects);
    if rules.len() > limit {
        let message =
            format!("exceeded maximum number of rules in the phase {REDIRECTS}: {} out of {limit}", rules.len());
        return Err(Refusal::bad(20021, message));
    }
    for (place, rule) in rules.iter().enumerate() {
        if rules[..place].iter().any(|other| text(other, "ref") == text(rule, "ref")) {
            return Err(Refusal::bad(INVALID, format!("duplicate ref {} in the ruleset", text(rule, "ref"))));
        }
    }
    ruleset["rules"] = Value::Array(rules);
    Ok(())
}

fn next_version(value: &Value) -> String {
    (text(value, "version").parse::<u64>().unwrap_or_default() + 1).to_string()
}

/// Lists show no rules.
fn show<'a>(_: &State, _: &str, value: &'a Value, action: CollectionAction) -> Cow<'a, Value> {
    if action != CollectionAction::List {
        return Cow::Borrowed(value);
    }
    let mut shown = value.clone();
    if let Some(members) = shown.as_object_mut() {
        members.remove("rules");
    }
    Cow::Owned(shown)
}

/// The redirects of a zone that are switched on, in order: for the edge.
pub(crate) fn redirects<'a>(state: &'a State, zone: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let rules = state.all(&RULESETS, zone).filter(|ruleset| text(ruleset, "phase") == REDIRECTS);
    rules.flat_map(|ruleset| ruleset["rules"].as_array().into_iter().flatten()).filter(|rule| flag(rule, "enabled"))
}
