//! `/accounts/{account_id}/access/policies`: policies that several applications use, and what all policies have.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    INVALID, NOT_FOUND, PAGES,
    app::APPS,
    app_policies, check_duration, invalid,
    quota::{count, refuse_more, refuse_over},
    rule, stamp,
};
use crate::{
    call::Call,
    field::{Field, Kind, Verb, optional, required},
    ids::IdForm,
    reply::Refusal,
    state::State,
    store::{id_of, text},
    table::{Action, Change, Collection, PLAIN, Rules, Scope},
};

pub(crate) static POLICIES: Collection = Collection {
    name: "access_policies",
    what: "access_policy",
    scope: Scope::Account,
    path: "access/policies",
    id: IdForm::Uuid,
    actions: &[Action::List, Action::Get, Action::Create, Action::Replace, Action::Delete],
    fields: FIELDS,
    filters: &[],
    paging: PAGES,
    soft_delete: false,
    times: ("created_at", Some("updated_at")),
    key: |value| text(value, "name").to_owned(),
    duplicate: None,
    not_found: NOT_FOUND,
    invalid: INVALID,
    group: "access_apps",
    statuses: (201, 202),
    rules: Rules { prepare, may_delete, changed, show, ..PLAIN },
};

/// What the sender of a policy may write; in an application, a precedence comes with it.
pub(super) const FIELDS: &[Field] = &[
    required("name", Kind::Text),
    required("decision", Kind::OneOf(&["allow", "deny", "non_identity", "bypass"])),
    required("include", Kind::List),
    optional("exclude", Kind::List),
    optional("require", Kind::List),
    optional("approval_groups", Kind::List),
    optional("approval_required", Kind::Bool),
    optional("connection_rules", Kind::Object),
    optional("isolation_required", Kind::Bool),
    optional("mfa_config", Kind::Object),
    optional("purpose_justification_prompt", Kind::Text),
    optional("purpose_justification_required", Kind::Bool),
    optional("session_duration", Kind::Text),
];

/// Checks what all policies have in common, and completes it.
pub(super) fn check(state: &State, account: &str, value: &mut Value) -> Result<(), Refusal> {
    if text(value, "name").trim().is_empty() {
        return Err(invalid("name must not be empty"));
    }
    check_duration(value, "session_duration")?;
    rule::check_lists(state, account, value)
}

/// A policy of one application alone, from checked members; `old` is the one it replaces.
pub(super) fn inline(
    state: &mut State,
    account: &str,
    members: Map<String, Value>,
    precedence: u64,
    old: Option<&Value>,
) -> Result<Value, Refusal> {
    let mut value = Value::Object(members.into_iter().filter(|(_, member)| !member.is_null()).collect());
    check(state, account, &mut value)?;
    let id = old.map_or_else(|| state.ids.next(IdForm::Uuid), |old| id_of(old).to_owned());
    (value["id"], value["uid"]) = (json!(id), json!(id));
    (value["precedence"], value["reusable"]) = (json!(precedence), json!(false));
    stamp(state, &mut value, old.is_none());
    if let Some(old) = old {
        value["created_at"] = old["created_at"].clone();
    }
    Ok(value)
}

fn prepare(state: &mut State, change: &Change<'_>, value: &mut Value) -> Result<(), Refusal> {
    check(state, change.scope, value)?;
    refuse_over(rule::count(value), state.options.quotas.rules_per_application, "rules")?;
    if change.verb == Verb::Create {
        let limit = state.options.quotas.policies;
        refuse_more(count(state, &POLICIES, change.scope), limit, "reusable policies")?;
    }
    value["uid"] = value["id"].clone();
    stamp(state, value, change.verb == Verb::Create);
    Ok(())
}

fn may_delete(state: &State, _: &Call, account: &str, value: &Value) -> Result<(), Refusal> {
    match used_by(state, account, id_of(value)) {
        0 => Ok(()),
        n => Err(invalid(format!("the policy is used by {n} applications"))),
    }
}

/// A policy that is taken away by force leaves the applications that use it.
fn changed(state: &mut State, account: &str, action: Action, value: &Value) {
    if action == Action::Delete {
        app_policies::unlink(state, account, id_of(value));
    }
}

fn used_by(state: &State, account: &str, id: &str) -> usize {
    state.all(&APPS, account).filter(|app| app_policies::links(app).any(|link| id_of(link) == id)).count()
}

fn show<'a>(state: &State, account: &str, value: &'a Value, _: Action) -> Cow<'a, Value> {
    let mut shown = value.clone();
    (shown["reusable"], shown["app_count"]) = (json!(true), json!(used_by(state, account, id_of(value))));
    Cow::Owned(shown)
}
