//! One rule of a zone's redirects.

use serde_json::{Value, json};

use super::INVALID;
use crate::{
    field::{self, BodyVerb, Member, MemberType, optional, required},
    ids::IdForm,
    reply::Refusal,
    state::State,
    store::{id_of, text},
};

const FIELDS: &[Member] = &[
    required("action", MemberType::OneOf(&["redirect"])),
    required("expression", MemberType::Text),
    required("action_parameters", MemberType::Object),
    optional("id", MemberType::Text),
    optional("description", MemberType::Text),
    optional("enabled", MemberType::Bool),
    optional("logging", MemberType::Object),
    optional("ref", MemberType::Text),
];

fn wrong(message: impl Into<String>) -> Refusal {
    Refusal::bad(INVALID, message)
}

/// A rule from what was sent; `old` is the one with the same id, if there is one.
pub(super) fn make(state: &mut State, body: Value, old: Option<&Value>) -> Result<Value, Refusal> {
    let mut body = field::check(body, FIELDS, BodyVerb::Create, INVALID)?;
    body.retain(|name, value| name != "id" && !value.is_null());
    complete(state, Value::Object(body), old)
}

/// A rule with some members changed.
pub(super) fn edit(state: &mut State, body: Value, old: &Value) -> Result<Value, Refusal> {
    let sent = field::check(body, FIELDS, BodyVerb::Patch, INVALID)?;
    if sent.get("id").and_then(Value::as_str).is_some_and(|id| id != id_of(old)) {
        return Err(wrong("the id of a rule cannot change"));
    }
    let mut rule = old.clone();
    for (name, value) in sent {
        rule[name] = value;
    }
    complete(state, rule, Some(old))
}

fn complete(state: &mut State, mut rule: Value, old: Option<&Value>) -> Result<Value, Refusal> {
    check_expression(text(&rule, "expression"))?;
    check_target(&rule["action_parameters"])?;
    let id = old.map_or_else(|| state.ids.next(IdForm::Hex), |old| id_of(old).to_owned());
    let version = old.map_or(0, |old| text(old, "version").parse::<u64>().unwrap_or_default()) + 1;
    (rule["id"], rule["version"]) = (json!(id), json!(version.to_string()));
    rule["last_updated"] = Value::from(state.now());
    for (name, default) in [("enabled", json!(true)), ("description", json!("")), ("ref", json!(id))] {
        if rule.get(name).is_none_or(Value::is_null) {
            rule[name] = default;
        }
    }
    Ok(rule)
}

/// Expressions are not parsed here; those that cannot be any are refused.
fn check_expression(text: &str) -> Result<(), Refusal> {
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    if text.trim().is_empty() || depth != 0 || quoted {
        return Err(Refusal::bad(20127, format!("'{text}' is not a valid value for expression")));
    }
    Ok(())
}

fn check_target(parameters: &Value) -> Result<(), Refusal> {
    let from = &parameters["from_value"];
    let known = |value: &Value, names: &[&str]| {
        value.as_object().is_some_and(|members| members.keys().all(|name| names.contains(&name.as_str())))
    };
    if !known(parameters, &["from_value"]) || !known(from, &["target_url", "status_code", "preserve_query_string"]) {
        return Err(wrong(
            "action_parameters must be a from_value with target_url, status_code, preserve_query_string",
        ));
    }
    let target = &from["target_url"];
    if !known(target, &["value", "expression"]) || target["value"].is_string() == target["expression"].is_string() {
        return Err(wrong("target_url must have either a value or an expression"));
    }
    if target["expression"].is_string() {
        check_expression(text(target, "expression"))?;
    }
    let status = from.get("status_code").map_or(Some(301), Value::as_u64);
    if !matches!(status, Some(301 | 302 | 303 | 307 | 308)) {
        return Err(wrong("status_code must be 301, 302, 303, 307 or 308"));
    }
    match from.get("preserve_query_string") {
        None | Some(Value::Bool(_)) => Ok(()),
        Some(_) => Err(wrong("preserve_query_string must be a boolean")),
    }
}

/// Takes `position` out of a body.
pub(super) fn take_position(mut body: Value) -> Result<(Value, Option<Value>), Refusal> {
    let position = body.as_object_mut().and_then(|members| members.remove("position"));
    let one = |position: &Value| {
        let members = position.as_object().filter(|members| members.len() == 1)?;
        members.keys().next().filter(|name| matches!(name.as_str(), "before" | "after" | "index")).cloned()
    };
    match &position {
        Some(position) if one(position).is_none() => Err(wrong("position must have one of before, after, index")),
        _ => Ok((body, position)),
    }
}

/// The rules with one more at its position; `at` is where it goes without one.
pub(super) fn place(
    mut rules: Vec<Value>,
    rule: Value,
    position: Option<&Value>,
    at: usize,
) -> Result<Vec<Value>, Refusal> {
    let at = match position {
        None => at.min(rules.len()),
        Some(position) => target(&rules, position).ok_or_else(|| wrong("position names no rule"))?,
    };
    rules.insert(at, rule);
    Ok(rules)
}

/// Places are counted from 1; `before: ""` is the first, `after: ""` the last.
fn target(rules: &[Value], position: &Value) -> Option<usize> {
    let of = |id: &str| rules.iter().position(|rule| id_of(rule) == id);
    if let Some(index) = position["index"].as_u64() {
        let index = usize::try_from(index).ok()?;
        return (1..=rules.len() + 1).contains(&index).then(|| index - 1);
    }
    match (position["before"].as_str(), position["after"].as_str()) {
        (Some(""), _) => Some(0),
        (Some(id), _) => of(id),
        (None, Some("")) => Some(rules.len()),
        (None, Some(id)) => of(id).map(|place| place + 1),
        (None, None) => None,
    }
}
