//! What all collections do alike: list, get, create, replace, patch, delete, as their rows say.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::{
    call::RoutedCall,
    field::{self, BodyVerb},
    filter,
    reply::{Refusal, Reply, Success},
    state::State,
    store::{Rows, StoredItem, id_of, is_deleted},
    table::{Collection, CollectionAction, PendingChange},
    zone::ZONES,
};

/// Answers one of the six.
pub(crate) fn run(state: &mut State, row: &'static Collection, action: CollectionAction, call: &RoutedCall) -> Reply {
    match action {
        CollectionAction::List => list(state, row, call),
        CollectionAction::Get => get(state, row, call),
        CollectionAction::Create => {
            let value = create(state, row, row.scope_of(call), call.json()?, None)?;
            Ok(written(state, row, action, call, &value).with(row.statuses.0))
        }
        CollectionAction::Replace => update(state, row, call, BodyVerb::Replace),
        CollectionAction::Patch => update(state, row, call, BodyVerb::Patch),
        CollectionAction::Delete => delete(state, row, call),
    }
}

fn list(state: &State, row: &Collection, call: &RoutedCall) -> Reply {
    let page = row.paging.read(call, state.options.largest_page)?;
    let wanted = filter::read(call, row.filters)?;
    let scope = row.scope_of(call);
    let seen = |stored: &&StoredItem| (row.rules.visible)(&call.actor.grant, &stored.value) && wanted(&stored.value);
    let all = state.listed(row, scope).into_iter().flat_map(Rows::iter_stored);
    let mut found: Vec<&StoredItem> = all.filter(seen).collect();
    filter::order(call, &mut found);
    let (shown, info) = page.cut(found);
    let text = |stored: &'_ StoredItem| match (row.rules.show)(state, scope, &stored.value, CollectionAction::List) {
        Cow::Borrowed(_) => None,
        Cow::Owned(value) => Some(value.to_string()),
    };
    let texts = shown.iter().map(|stored| text(stored).map_or(Cow::Borrowed(&*stored.text), Cow::Owned));
    Ok(Success::list(texts, Some(info)))
}

fn get(state: &State, row: &Collection, call: &RoutedCall) -> Reply {
    let value = existing(state, row, call)?;
    Ok(Success::of(&(row.rules.show)(state, row.scope_of(call), value, CollectionAction::Get)))
}

/// The object that the path names, deleted or not, if the sender sees it.
pub(crate) fn existing<'a>(state: &'a State, row: &Collection, call: &RoutedCall) -> Result<&'a Value, Refusal> {
    let id = call.param("id");
    match state.get(row, row.scope_of(call), id) {
        Some(value) if (row.rules.visible)(&call.actor.grant, value) => Ok(value),
        Some(_) => Err(hidden()),
        None if row.id.fits(id) && row.name == ZONES.name && state.options.hides_vanished_zones => Err(hidden()),
        None if row.id.fits(id) => Err(row.not_found.refusal()),
        None => Err(unroutable(&call.path)),
    }
}

/// The answer to a credential that does not see what it asks for.
pub(crate) fn hidden() -> Refusal {
    Refusal::new(403, 9109, "Unauthorized to access requested resource")
}

/// The answer to an id that cannot be one.
pub(crate) fn unroutable(path: &str) -> Refusal {
    let message = format!("Could not route to {path}, perhaps your object identifier is invalid?");
    Refusal::new(404, 7003, message).and(7000, "No route for that URI")
}

/// Makes an object in a scope; `id` when someone already knows which it gets.
pub(crate) fn create(
    state: &mut State,
    row: &'static Collection,
    scope: &str,
    body: Value,
    id: Option<String>,
) -> Result<Value, Refusal> {
    let sent = field::check(body, row.fields, BodyVerb::Create, row.invalid)?;
    let mut value = Value::Object(without_nulls(&sent));
    value["id"] = Value::from(id.unwrap_or_else(|| state.ids.next(row.id)));
    stamp(state, row, &mut value);
    let change = PendingChange { scope, verb: BodyVerb::Create, sent: &sent, old: None };
    (row.rules.prepare)(state, &change, &mut value)?;
    refuse_duplicate(state, row, scope, &value)?;
    state.rows_mut(row, scope).insert(value.clone());
    (row.rules.changed)(state, scope, CollectionAction::Create, &value);
    Ok(value)
}

fn stamp(state: &State, row: &Collection, value: &mut Value) {
    let now = state.now();
    value[row.times.0] = Value::from(now.as_str());
    if let Some(modified) = row.times.1 {
        value[modified] = Value::from(now);
    }
    if row.soft_delete {
        value["deleted_at"] = Value::Null;
    }
}

fn update(state: &mut State, row: &'static Collection, call: &RoutedCall, verb: BodyVerb) -> Reply {
    let old = existing(state, row, call)?.clone();
    if is_deleted(&old) {
        return Err(row.not_found.refusal());
    }
    let value = change(state, row, row.scope_of(call), verb, call.json()?, &old)?;
    Ok(written(state, row, CollectionAction::Patch, call, &value))
}

/// Applies a body to an object and stores the outcome.
pub(crate) fn change(
    state: &mut State,
    row: &'static Collection,
    scope: &str,
    verb: BodyVerb,
    body: Value,
    old: &Value,
) -> Result<Value, Refusal> {
    let sent = field::check(body, row.fields, verb, row.invalid)?;
    let mut value = merged(row, verb, &sent, old);
    if let Some(modified) = row.times.1 {
        value[modified] = Value::from(state.now());
    }
    let change = PendingChange { scope, verb, sent: &sent, old: Some(old) };
    (row.rules.prepare)(state, &change, &mut value)?;
    refuse_duplicate(state, row, scope, &value)?;
    state.rows_mut(row, scope).replace(value.clone());
    (row.rules.changed)(state, scope, CollectionAction::Patch, &value);
    Ok(value)
}

/// A PATCH keeps what it does not name; a PUT drops it.
fn merged(row: &Collection, verb: BodyVerb, sent: &Map<String, Value>, old: &Value) -> Value {
    let mut value = old.clone();
    let Some(members) = value.as_object_mut() else { return value };
    if verb == BodyVerb::Replace {
        members.retain(|name, _| !row.fields.iter().any(|field| field.name == name));
    }
    for (name, member) in sent {
        match member {
            Value::Null => drop(members.remove(name)),
            _ => drop(members.insert(name.clone(), member.clone())),
        }
    }
    value
}

fn without_nulls(sent: &Map<String, Value>) -> Map<String, Value> {
    sent.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Refuses a second live object with the same natural key, where the row says so.
pub(crate) fn refuse_duplicate(state: &State, row: &Collection, scope: &str, value: &Value) -> Result<(), Refusal> {
    let Some(duplicate) = row.duplicate else { return Ok(()) };
    let Some(rows) = state.rows(row, scope) else { return Ok(()) };
    let other = |found: &Value| id_of(found) != id_of(value) && !is_deleted(found);
    if rows.by_key(&(row.key)(value)).any(other) { Err(duplicate.refusal()) } else { Ok(()) }
}

fn delete(state: &mut State, row: &'static Collection, call: &RoutedCall) -> Reply {
    let old = existing(state, row, call)?.clone();
    if is_deleted(&old) {
        return Err(row.not_found.refusal());
    }
    let scope = row.scope_of(call);
    (row.rules.may_delete)(state, call, scope, &old)?;
    let gone = remove(state, row, scope, old);
    state.note(call.who(), row, scope, &[(CollectionAction::Delete, &gone)]);
    let shown = if row.soft_delete {
        Success::of(&(row.rules.show)(state, scope, &gone, CollectionAction::Delete))
    } else {
        Success::of(&json!({"id": id_of(&gone)}))
    };
    Ok(shown.with(row.statuses.1))
}

/// Takes an object away, or marks it as deleted where that is the collection's way.
pub(crate) fn remove(state: &mut State, row: &'static Collection, scope: &str, mut old: Value) -> Value {
    if row.soft_delete {
        old["deleted_at"] = Value::from(state.now());
        state.rows_mut(row, scope).replace(old.clone());
    } else {
        state.rows_mut(row, scope).remove(id_of(&old));
    }
    (row.rules.changed)(state, scope, CollectionAction::Delete, &old);
    old
}

fn written(state: &mut State, row: &Collection, action: CollectionAction, call: &RoutedCall, value: &Value) -> Success {
    let scope = row.scope_of(call);
    state.note(call.who(), row, scope, &[(action, value)]);
    Success::of(&(row.rules.show)(state, scope, value, action))
}
