//! `/accounts/{account_id}/access/groups`: rules under a name, for policies.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    ACCESS,
    app::APPS,
    app_policies, invalid,
    policy::POLICIES,
    quota::{count, refuse_more, refuse_over},
    rule, stamp,
};
use crate::{
    call::RoutedCall,
    field::{BodyVerb, Member, MemberType, optional, required},
    filter::{Filter, Test, filter},
    reply::Refusal,
    state::State,
    store::{id_of, text},
    table::{Collection, CollectionAction, PLAIN, PendingChange, Rules},
};

pub(crate) static GROUPS: Collection = Collection {
    name: "access_groups",
    what: "access_group",
    path: "access/groups",
    fields: FIELDS,
    filters: FILTERS,
    group: "access_groups",
    rules: Rules { prepare, may_delete, show, ..PLAIN },
    ..ACCESS
};

const FIELDS: &[Member] = &[
    required("name", MemberType::Text),
    required("include", MemberType::List),
    optional("exclude", MemberType::List),
    optional("require", MemberType::List),
    optional("is_default", MemberType::Bool),
];

const FILTERS: &[Filter] = &[filter("name", Test::Is("name")), filter("search", Test::Contains("name"))];

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    if text(value, "name").trim().is_empty() {
        return Err(invalid("name must not be empty"));
    }
    rule::check_lists(state, change.scope, value)?;
    if rule::names(value, "group", "id", id_of(value)) {
        return Err(invalid("a group cannot be part of itself"));
    }
    let quotas = &state.options.quotas;
    refuse_over(rule::count(value), quotas.rules_per_group, "rules per group")?;
    if change.verb == BodyVerb::Create {
        refuse_more(count(state, &GROUPS, change.scope), quotas.groups, "groups")?;
    }
    value["uid"] = value["id"].clone();
    stamp(state, value, change.verb == BodyVerb::Create);
    Ok(())
}

fn may_delete(state: &State, _: &RoutedCall, account: &str, value: &Value) -> Result<(), Refusal> {
    if is_named(state, account, "group", "id", id_of(value)) {
        Err(invalid("the group is used by a policy or another group"))
    } else {
        Ok(())
    }
}

/// Whether a policy or group of the account names this id in a rule.
pub(super) fn is_named(state: &State, account: &str, kind: &str, member: &str, id: &str) -> bool {
    let names = |value: &Value| rule::names(value, kind, member, id);
    state.all(&GROUPS, account).any(names)
        || state.all(&POLICIES, account).any(names)
        || state.all(&APPS, account).any(|app| app_policies::stored(app).any(names))
}

/// Whether a group is the default is not told.
fn show<'a>(_: &State, _: &str, value: &'a Value, _: CollectionAction) -> Cow<'a, Value> {
    if value.get("is_default").is_none() {
        return Cow::Borrowed(value);
    }
    let mut shown = value.clone();
    if let Some(members) = shown.as_object_mut() {
        members.remove("is_default");
    }
    Cow::Owned(shown)
}
