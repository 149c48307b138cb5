//! The policies of one application: either its own, written out, or links to reusable ones; never both.
//!
//! An application's object holds them in the order of their precedence: its own whole, links as `{id, precedence}`.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    INVALID,
    app::APPS,
    invalid,
    policy::{self, POLICIES},
    quota::refuse_over,
    rule,
};
use crate::{
    field::{self, BodyVerb},
    reply::Refusal,
    state::State,
    store::id_of,
};

/// All policies of an application as stored.
pub(crate) fn stored(app: &Value) -> impl Iterator<Item = &Value> {
    app["policies"].as_array().into_iter().flatten()
}

/// A link has nothing but an id and a precedence.
pub(super) fn is_link(policy: &Value) -> bool {
    policy.get("decision").is_none()
}

pub(super) fn links(app: &Value) -> impl Iterator<Item = &Value> {
    stored(app).filter(|policy| is_link(policy))
}

/// A policy as it is shown: a link brings the policy that it leads to.
pub(crate) fn resolved<'a>(state: &State, account: &str, policy: &'a Value) -> Option<Cow<'a, Value>> {
    if !is_link(policy) {
        return Some(Cow::Borrowed(policy));
    }
    let mut whole = state.get(&POLICIES, account, id_of(policy))?.clone();
    (whole["precedence"], whole["reusable"]) = (policy["precedence"].clone(), json!(true));
    Some(Cow::Owned(whole))
}

/// Takes a reusable policy out of all applications of an account.
pub(super) fn unlink(state: &mut State, account: &str, id: &str) {
    let uses = |app: &&Value| links(app).any(|link| id_of(link) == id);
    let apps: Vec<Value> = state.all(&APPS, account).filter(uses).cloned().collect();
    for mut app in apps {
        app["policies"] = stored(&app).filter(|policy| id_of(policy) != id).cloned().collect();
        state.rows_mut(&APPS, account).replace(app);
    }
}

/// An item of an application's `policies`, as sent.
enum Item {
    Link(String),
    Inline(Map<String, Value>, Option<Value>),
}

/// The policies that an application gets by its body; `old` are those it has.
pub(super) fn read(state: &mut State, account: &str, sent: &Value, old: &[Value]) -> Result<Value, Refusal> {
    let Some(sent) = sent.as_array() else { return Err(invalid("policies must be an array")) };
    let mut items = Vec::with_capacity(sent.len());
    for (place, item) in sent.iter().enumerate() {
        items.push((precedence(item)?.unwrap_or(place as u64 + 1), item_of(state, account, item, old)?));
    }
    let links = items.iter().filter(|(_, item)| matches!(item, Item::Link(_))).count();
    if links > 0 && links < items.len() {
        return Err(invalid("reusable and inline policies are mutually exclusive"));
    }
    let mut policies = Vec::with_capacity(items.len());
    for (precedence, item) in items {
        policies.push(match item {
            Item::Link(id) => json!({"id": id, "precedence": precedence}),
            Item::Inline(members, old) => policy::inline(state, account, members, precedence, old.as_ref())?,
        });
    }
    sorted(state, policies)
}

pub(super) fn sorted(state: &State, mut policies: Vec<Value>) -> Result<Value, Refusal> {
    let place = |policy: &Value| policy["precedence"].as_u64().unwrap_or_default();
    policies.sort_by_key(place);
    if policies.windows(2).any(|pair| place(&pair[0]) == place(&pair[1])) {
        return Err(invalid("policy precedences must be unique"));
    }
    let ids: BTreeSet<&str> = policies.iter().map(id_of).collect();
    if ids.len() < policies.len() {
        return Err(invalid("a policy is listed twice"));
    }
    let rules = policies.iter().map(rule::count).sum();
    refuse_over(rules, state.options.quotas.rules_per_application, "rules per application")?;
    Ok(Value::Array(policies))
}

pub(super) fn precedence(item: &Value) -> Result<Option<u64>, Refusal> {
    match item.get("precedence") {
        None | Some(Value::Null) => Ok(None),
        Some(number) => match number.as_u64().filter(|number| *number > 0) {
            Some(number) => Ok(Some(number)),
            None => Err(invalid("precedence must be a whole number from 1 on")),
        },
    }
}

fn item_of(state: &State, account: &str, item: &Value, old: &[Value]) -> Result<Item, Refusal> {
    let id = item.as_str().or_else(|| item["id"].as_str());
    match (id, item.as_object()) {
        (Some(id), members) if state.get(&POLICIES, account, id).is_some() => {
            let known = ["id", "precedence", "account_id"];
            match members.and_then(|members| members.keys().find(|name| !known.contains(&name.as_str()))) {
                Some(name) => Err(invalid(format!("a link to a reusable policy has no member {name}"))),
                None => Ok(Item::Link(id.to_owned())),
            }
        }
        (Some(id), Some(members)) => {
            let own = old.iter().find(|policy| id_of(policy) == id && !is_link(policy));
            let own = own.ok_or_else(|| invalid(format!("policy {id} does not exist or belongs to another app")))?;
            Ok(Item::Inline(own_members(members)?, Some(own.clone())))
        }
        (None, Some(members)) => Ok(Item::Inline(own_members(members)?, None)),
        (Some(id), None) => Err(invalid(format!("policy {id} does not exist"))),
        (None, None) => Err(invalid("an item of policies is an id or an object")),
    }
}

/// The members of a policy of the application's own, without its id and precedence.
pub(super) fn own_members(members: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    let rest = members.iter().filter(|(name, _)| !matches!(name.as_str(), "id" | "precedence"));
    let rest: Map<String, Value> = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
    field::check(Value::Object(rest), policy::FIELDS, BodyVerb::Create, INVALID)
}
