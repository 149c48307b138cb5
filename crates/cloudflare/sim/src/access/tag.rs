//! `/accounts/{account_id}/access/tags`: words that applications are sorted by. An application can only carry tags that exist.
//!
//! <https://developers.cloudflare.com/api/resources/zero_trust/subresources/access/subresources/tags/>: a tag has a name and no id.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{ACCESS, INVALID, NOT_FOUND, invalid, stamp};
use crate::{
    call::RoutedCall,
    crud,
    field::{BodyVerb, Member, MemberType, required},
    reply::{Refusal, Reply, Success},
    state::State,
    store::text,
    table::{Collection, CollectionAction, Fail, PLAIN, PendingChange, Rules},
};

pub(crate) static TAGS: Collection = Collection {
    name: "access_tags",
    what: "access_tag",
    path: "access/tags",
    actions: &[CollectionAction::List, CollectionAction::Create],
    fields: FIELDS,
    duplicate: Some(Fail(409, INVALID, "access.api.error.invalid_request: tag already exists")),
    rules: Rules { prepare, show, ..PLAIN },
    ..ACCESS
};

const FIELDS: &[Member] = &[required("name", MemberType::Text)];

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    if text(value, "name").trim().is_empty() {
        return Err(invalid("tag name must not be empty"));
    }
    stamp(state, value, change.verb == BodyVerb::Create);
    Ok(())
}

/// The name is all that is told.
fn show<'a>(_: &State, _: &str, value: &'a Value, _: CollectionAction) -> Cow<'a, Value> {
    Cow::Owned(json!({"name": value["name"]}))
}

fn tags(app: &Value) -> impl Iterator<Item = &str> {
    app["tags"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Refuses an application with a tag that the account does not have.
pub(super) fn refuse_unknown(state: &State, account: &str, app: &Value) -> Result<(), Refusal> {
    let known = |tag: &str| state.rows(&TAGS, account).is_some_and(|rows| rows.by_key(tag).next().is_some());
    if tags(app).all(known) { Ok(()) } else { Err(invalid("tags contain a tag that does not exist")) }
}

fn named<'a>(state: &'a State, call: &RoutedCall) -> Result<&'a Value, Refusal> {
    let rows = state.rows(&TAGS, call.param("account_id"));
    rows.and_then(|rows| rows.by_key(call.param("tag_name")).next()).ok_or_else(|| NOT_FOUND.refusal())
}

/// `GET …/tags/{tag_name}`
pub(crate) fn get(state: &mut State, call: &RoutedCall) -> Reply {
    let tag = named(state, call)?;
    Ok(Success::of(&show(state, call.param("account_id"), tag, CollectionAction::Get)))
}

/// `DELETE …/tags/{tag_name}`
pub(crate) fn delete(state: &mut State, call: &RoutedCall) -> Reply {
    let account = call.param("account_id");
    let old = named(state, call)?.clone();
    let gone = crud::remove(state, &TAGS, account, old);
    state.note(call.who(), &TAGS, account, &[(CollectionAction::Delete, &gone)]);
    Ok(Success::of(&json!({"name": gone["name"]})).with(202))
}
