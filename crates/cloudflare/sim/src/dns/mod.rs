//! `/zones/{zone_id}/dns_records`: every type, with the checks and normalisations of the real service.

pub(crate) mod batch;
mod conflict;
mod content;
mod data;
pub(crate) mod name;
mod record_type;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use self::record_type::{RecordType, TYPE_NAMES, ValueSource};
use crate::{
    field::{BodyVerb, Member, MemberType, optional, required},
    filter::{Filter, Test, filter},
    ids::IdForm,
    page::Paging,
    reply::Refusal,
    state::State,
    store::{flag, text},
    table::{ALL_ACTIONS, Below, Collection, Fail, PLAIN, PendingChange, ROW, Rules},
    zone::{ZONES, ZonePlan},
};

pub(crate) static RECORDS: Collection = Collection {
    name: "dns_records",
    what: "DNS_record",
    scope: Below::Zone,
    path: "dns_records",
    id: IdForm::Hex,
    actions: ALL_ACTIONS,
    fields: FIELDS,
    filters: FILTERS,
    paging: Paging::Pages { default: 100, min: 1, max: 5_000_000 },
    times: ("created_on", Some("modified_on")),
    not_found: Fail(404, 81044, "Record does not exist."),
    invalid: 9207,
    group: "dns",
    rules: Rules { prepare, ..PLAIN },
    ..ROW
};

const FIELDS: &[Member] = &[
    required("type", MemberType::OneOf(&TYPE_NAMES)),
    required("name", MemberType::Text),
    optional("content", MemberType::Text),
    optional("data", MemberType::Object),
    optional("priority", MemberType::Number),
    optional("ttl", MemberType::Number),
    optional("proxied", MemberType::Bool),
    optional("comment", MemberType::Text),
    optional("tags", MemberType::Texts),
    optional("settings", MemberType::Object),
    optional("private_routing", MemberType::Bool),
];

const FILTERS: &[Filter] = &[
    filter("name", Test::Caseless("name")),
    filter("name.exact", Test::Caseless("name")),
    filter("name.contains", Test::Contains("name")),
    filter("name.startswith", Test::StartsWith("name")),
    filter("name.endswith", Test::EndsWith("name")),
    filter("type", Test::Is("type")),
    filter("content", Test::Caseless("content")),
    filter("content.exact", Test::Caseless("content")),
    filter("content.contains", Test::Contains("content")),
    filter("content.startswith", Test::StartsWith("content")),
    filter("content.endswith", Test::EndsWith("content")),
    filter("comment", Test::Caseless("comment")),
    filter("comment.exact", Test::Caseless("comment")),
    filter("comment.contains", Test::Contains("comment")),
    filter("comment.startswith", Test::StartsWith("comment")),
    filter("comment.endswith", Test::EndsWith("comment")),
    filter("comment.present", Test::Present("comment")),
    filter("comment.absent", Test::Absent("comment")),
    filter("tag.exact", Test::Special(|value, wanted| tags(value).any(|tag| tag.eq_ignore_ascii_case(wanted)))),
    filter("tag.present", Test::Special(|value, wanted| tags(value).any(|tag| tag_name(tag) == wanted))),
    filter("tag.absent", Test::Special(|value, wanted| !tags(value).any(|tag| tag_name(tag) == wanted))),
    filter("proxied", Test::Is("proxied")),
    filter("search", Test::Special(|value, wanted| value.to_string().to_lowercase().contains(&wanted.to_lowercase()))),
    filter("match", Test::Manner),
    filter("tag_match", Test::Manner),
    filter("order", Test::Manner),
    filter("direction", Test::Manner),
    filter("include_shadow_metadata", Test::Manner),
];

fn tags(value: &Value) -> impl Iterator<Item = &str> {
    value["tags"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn tag_name(tag: &str) -> &str {
    tag.split(':').next().unwrap_or(tag)
}

/// A refusal of the DNS service, which wraps some of its reasons.
fn invalid(code: u64, message: impl Into<String>) -> Refusal {
    Refusal::bad(1004, "DNS Validation Error").because(code, message)
}

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    let Some(zone) = state.get(&ZONES, "", change.scope) else { return Err(ZONES.not_found.refusal()) };
    let (zone_name, plan) = (text(zone, "name").to_owned(), ZonePlan::of(zone));
    let kind =
        RecordType::find(text(value, "type")).ok_or_else(|| Refusal::bad(9000, "DNS record type is invalid."))?;
    refuse_strangers(kind, change.sent)?;
    drop_leftovers(kind, value);
    value["name"] = Value::from(name::expand(text(value, "name"), &zone_name)?);
    set_content(kind, value, state.options.verbatim)?;
    set_priority(kind, value)?;
    set_proxied(kind, value)?;
    set_ttl(plan, value)?;
    set_annotations(plan, change, value)?;
    set_settings(kind, value)?;
    value["meta"] = json!({});
    conflict::check(state.rows(&RECORDS, change.scope), value, &zone_name)?;
    let full = state.rows(&RECORDS, change.scope).is_some_and(|rows| rows.len() >= plan.records);
    if change.verb == BodyVerb::Create && full { Err(Refusal::bad(81045, "Record quota exceeded.")) } else { Ok(()) }
}

/// Members that other types have are unknown to this one.
fn refuse_strangers(kind: &RecordType, sent: &Map<String, Value>) -> Result<(), Refusal> {
    let stranger = |name: &str| match (name, &kind.form) {
        ("content", ValueSource::Data(_)) | ("data", ValueSource::Content(_)) => true,
        ("priority", _) => !kind.priority,
        ("private_routing", _) => !matches!(kind.name, "A" | "AAAA"),
        _ => false,
    };
    match sent.keys().find(|name| stranger(name)) {
        Some(name) => {
            Err(Refusal::bad(9207, format!("Request body is invalid: {name} is not a field of {} records.", kind.name)))
        }
        None => Ok(()),
    }
}

/// What an object of another type left behind when its type changed.
fn drop_leftovers(kind: &RecordType, value: &mut Value) {
    let Some(members) = value.as_object_mut() else { return };
    if matches!(kind.form, ValueSource::Content(_)) {
        members.remove("data");
    }
    if !kind.priority {
        members.remove("priority");
    }
}

fn set_content(kind: &RecordType, value: &mut Value, verbatim: bool) -> Result<(), Refusal> {
    match &kind.form {
        ValueSource::Content(normal) => {
            let Some(given) = value.get("content").and_then(Value::as_str) else {
                return Err(Refusal::bad(9100, "content is a required field."));
            };
            let content = normal(given.trim())?;
            if kind.name == "CNAME" && content == text(value, "name") {
                return Err(Refusal::bad(9039, "CNAME content cannot reference itself."));
            }
            if !verbatim {
                value["content"] = Value::from(content);
            }
        }
        ValueSource::Data(form) => {
            let given = value.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
            let (data, content) = form.read(&given)?;
            value["data"] = Value::Object(data);
            value["content"] = Value::from(content);
        }
    }
    Ok(())
}

fn set_priority(kind: &RecordType, value: &Value) -> Result<(), Refusal> {
    match value.get("priority") {
        None if kind.priority => Err(Refusal::bad(9100, "priority is a required field.")),
        Some(number) if number.as_u64().is_none_or(|n| n > 65_535) => {
            Err(Refusal::bad(9102, "Invalid priority, must be between 0 and 65535."))
        }
        _ => Ok(()),
    }
}

fn set_proxied(kind: &RecordType, value: &mut Value) -> Result<(), Refusal> {
    let proxied = flag(value, "proxied");
    let reachable = content::may_be_proxied(text(value, "content")) || flag(value, "private_routing");
    if proxied && !kind.proxiable {
        return Err(Refusal::bad(9004, "This record type cannot be proxied."));
    }
    if proxied && !reachable {
        let message = format!("Target {} is not allowed for a proxied record.", text(value, "content"));
        return Err(Refusal::bad(9003, message));
    }
    value["proxied"] = Value::from(proxied);
    value["proxiable"] = Value::from(kind.proxiable && reachable);
    Ok(())
}

/// Proxied records are answered with Cloudflare's own addresses and time to live.
fn set_ttl(plan: &ZonePlan, value: &mut Value) -> Result<(), Refusal> {
    let ttl = match value.get("ttl") {
        None => 1,
        Some(given) => {
            whole(given).filter(|ttl| *ttl == 1 || (plan.min_ttl..=86_400).contains(ttl)).ok_or_else(|| {
                let message =
                    format!("Invalid TTL. Must be between {} and 86400 seconds, or 1 for Automatic.", plan.min_ttl);
                Refusal::bad(9021, message)
            })?
        }
    };
    value["ttl"] = Value::from(if flag(value, "proxied") { 1 } else { ttl });
    Ok(())
}

/// A whole number, also as `60.0`.
fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0);
    value.as_u64().or_else(|| number.and_then(|number| format!("{number:.0}").parse().ok()))
}

fn set_annotations(plan: &ZonePlan, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    let characters = text(value, "comment").chars().count();
    if characters > plan.comment {
        let message =
            format!("DNS record comment has {characters} characters, exceeding the limit of {}.", plan.comment);
        return Err(invalid(9313, message));
    }
    let tags = value["tags"].as_array().map_or(0, Vec::len);
    if tags > plan.tags {
        return Err(invalid(9300, format!("DNS record has {tags} tags, exceeding the quota of {}.", plan.tags)));
    }
    for (name, when, empty) in
        [("comment", "comment_modified_on", json!(null)), ("tags", "tags_modified_on", json!([]))]
    {
        if value[name].is_null() || value[name] == json!("") {
            value[name] = empty.clone();
        }
        let changed = change.old.is_none_or(|old| old[name] != value[name]);
        match (value[name] == empty, changed) {
            (true, _) => drop(value.as_object_mut().and_then(|members| members.remove(when))),
            (false, true) => value[when] = value["modified_on"].clone(),
            (false, false) => {}
        }
    }
    Ok(())
}

fn set_settings(kind: &RecordType, value: &mut Value) -> Result<(), Refusal> {
    let Some(settings) = value.get("settings").and_then(Value::as_object) else {
        value["settings"] = json!({});
        return Ok(());
    };
    for (name, setting) in settings {
        let known =
            matches!(name.as_str(), "ipv4_only" | "ipv6_only") || name == "flatten_cname" && kind.name == "CNAME";
        if !known || !setting.is_boolean() {
            return Err(Refusal::bad(9207, format!("Request body is invalid: settings.{name}.")));
        }
    }
    Ok(())
}
