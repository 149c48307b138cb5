//! The policies of one application: either its own, written out, or links to reusable ones; never both.
//!
//! An application's object holds them in the order of their precedence: its own whole, links as `{id, precedence}`.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    INVALID, NOT_FOUND, PAGES,
    app::APPS,
    invalid, misfit,
    policy::{self, POLICIES},
    quota::refuse_over,
    rule,
};
use crate::{
    call::Call,
    crud,
    field::{self, Verb},
    ids::IdForm,
    reply::{Refusal, Reply, Success, to_text},
    state::State,
    store::id_of,
    table::Action,
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
        return Err(misfit("reusable and inline policies are mutually exclusive"));
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

fn sorted(state: &State, mut policies: Vec<Value>) -> Result<Value, Refusal> {
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

fn precedence(item: &Value) -> Result<Option<u64>, Refusal> {
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
            let own = own.ok_or_else(|| misfit(&format!("policy {id} does not exist or belongs to another app")))?;
            Ok(Item::Inline(own_members(members)?, Some(own.clone())))
        }
        (None, Some(members)) => Ok(Item::Inline(own_members(members)?, None)),
        (Some(id), None) => Err(misfit(&format!("policy {id} does not exist"))),
        (None, None) => Err(invalid("an item of policies is an id or an object")),
    }
}

/// The members of a policy of the application's own, without its id and precedence.
fn own_members(members: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    let rest = members.iter().filter(|(name, _)| !matches!(name.as_str(), "id" | "precedence"));
    let rest: Map<String, Value> = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
    field::check(Value::Object(rest), policy::FIELDS, Verb::Create, INVALID)
}

/// `GET …/policies`
pub(crate) fn list(state: &mut State, call: &Call) -> Reply {
    let page = PAGES.read(call)?;
    let _no_filters = crate::filter::read(call, &[])?;
    let account = call.param("account_id");
    let app = crud::existing(state, &APPS, call)?;
    let (shown, info) = page.cut(stored(app).filter_map(|policy| resolved(state, account, policy)).collect());
    Ok(Success { status: 200, result: to_text(&shown), info: Some(info) })
}

/// `GET …/policies/{policy_id}`
pub(crate) fn get(state: &mut State, call: &Call) -> Reply {
    let app = crud::existing(state, &APPS, call)?;
    let policy = find(app, call)?;
    let shown = resolved(state, call.param("account_id"), policy).ok_or_else(|| NOT_FOUND.refusal())?;
    Ok(Success::of(&shown))
}

fn find<'a>(app: &'a Value, call: &Call) -> Result<&'a Value, Refusal> {
    let id = call.param("policy_id");
    match stored(app).find(|policy| id_of(policy) == id) {
        Some(policy) => Ok(policy),
        None if IdForm::Uuid.fits(id) => Err(NOT_FOUND.refusal()),
        None => Err(crud::unroutable(&call.path)),
    }
}

/// `POST …/policies`: one more of the application's own.
pub(crate) fn create(state: &mut State, call: &Call) -> Reply {
    let app = crud::existing(state, &APPS, call)?.clone();
    let body = call.json()?;
    if body.get("id").is_some() {
        return Err(misfit("a policy that exists cannot be added here: list it among the app's policies"));
    }
    if links(&app).next().is_some() {
        return Err(misfit("reusable and inline policies are mutually exclusive"));
    }
    let last = stored(&app).filter_map(|policy| policy["precedence"].as_u64()).max().unwrap_or_default();
    let made = write(state, call, app, &body, last + 1, None)?;
    Ok(Success::of(&made).with(201))
}

/// `PUT …/policies/{policy_id}`
pub(crate) fn update(state: &mut State, call: &Call) -> Reply {
    let app = crud::existing(state, &APPS, call)?.clone();
    let old = find(&app, call)?.clone();
    if is_link(&old) {
        return Err(misfit("a reusable policy is changed where it is, not in an app"));
    }
    let place = old["precedence"].as_u64().unwrap_or(1);
    let changed = write(state, call, app, &call.json()?, place, Some(&old))?;
    Ok(Success::of(&changed))
}

/// Stores an application with a policy of its own, new or changed.
fn write(
    state: &mut State,
    call: &Call,
    mut app: Value,
    body: &Value,
    place: u64,
    old: Option<&Value>,
) -> Result<Value, Refusal> {
    let account = call.param("account_id");
    let Some(members) = body.as_object() else { return Err(invalid("a JSON object is expected")) };
    let place = precedence(body)?.unwrap_or(place);
    let policy = policy::inline(state, account, own_members(members)?, place, old)?;
    let rest = stored(&app).filter(|other| id_of(other) != id_of(&policy)).cloned();
    app["policies"] = sorted(state, rest.chain([policy.clone()]).collect())?;
    state.rows_mut(&APPS, account).replace(app);
    let action = if old.is_some() { Action::Patch } else { Action::Create };
    state.note(call.who(), &POLICIES, account, &[(action, &policy)]);
    Ok(policy)
}

/// `DELETE …/policies/{policy_id}`
pub(crate) fn delete(state: &mut State, call: &Call) -> Reply {
    let account = call.param("account_id");
    let mut app = crud::existing(state, &APPS, call)?.clone();
    let old = find(&app, call)?.clone();
    if is_link(&old) {
        return Err(misfit("a reusable policy is taken out of an app by the app's list of policies"));
    }
    app["policies"] = stored(&app).filter(|policy| id_of(policy) != id_of(&old)).cloned().collect();
    state.rows_mut(&APPS, account).replace(app);
    state.note(call.who(), &POLICIES, account, &[(Action::Delete, &old)]);
    Ok(Success::of(&json!({"id": id_of(&old)})).with(202))
}
