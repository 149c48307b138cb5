//! `/accounts/{account_id}/access/policies`: policies that several applications use, and what all policies have.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::{
    ACCESS,
    app::APPS,
    app_policies, check_duration, invalid,
    quota::{count, refuse_more, refuse_over},
    rule, stamp,
};
use crate::{
    call::RoutedCall,
    field::{BodyVerb, Member, MemberType, optional, required},
    ids::IdForm,
    reply::Refusal,
    state::State,
    store::{id_of, text},
    table::{Collection, CollectionAction, PLAIN, PendingChange, Rules},
};

pub(crate) static POLICIES: Collection = Collection {
    name: "access_policies",
    what: "access_policy",
    path: "access/policies",
    fields: FIELDS,
    rules: Rules { prepare, may_delete, changed, show, ..PLAIN },
    ..ACCESS
};

/// What the sender of a policy may write; in an application, a precedence comes with it.
pub(super) const FIELDS: &[Member] = &[
    required("name", MemberType::Text),
    required("decision", MemberType::OneOf(&["allow", "deny", "non_identity", "bypass"])),
    required("include", MemberType::List),
    optional("exclude", MemberType::List),
    optional("require", MemberType::List),
    optional("approval_groups", MemberType::List),
    optional("approval_required", MemberType::Bool),
    optional("connection_rules", MemberType::Object),
    optional("isolation_required", MemberType::Bool),
    optional("mfa_config", MemberType::Object),
    optional("purpose_justification_prompt", MemberType::Text),
    optional("purpose_justification_required", MemberType::Bool),
    optional("session_duration", MemberType::Text),
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

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    check(state, change.scope, value)?;
    refuse_over(rule::count(value), state.options.quotas.rules_per_application, "rules")?;
    if change.verb == BodyVerb::Create {
        let limit = state.options.quotas.policies;
        refuse_more(count(state, &POLICIES, change.scope), limit, "reusable policies")?;
    }
    value["uid"] = value["id"].clone();
    stamp(state, value, change.verb == BodyVerb::Create);
    Ok(())
}

fn may_delete(state: &State, _: &RoutedCall, account: &str, value: &Value) -> Result<(), Refusal> {
    match used_by(state, account, id_of(value)) {
        0 => Ok(()),
        n => Err(invalid(format!("the policy is used by {n} applications"))),
    }
}

/// A policy that is taken away by force leaves the applications that use it.
fn changed(state: &mut State, account: &str, action: CollectionAction, value: &Value) {
    if action == CollectionAction::Delete {
        app_policies::unlink(state, account, id_of(value));
    }
}

fn used_by(state: &State, account: &str, id: &str) -> usize {
    state.all(&APPS, account).filter(|app| app_policies::links(app).any(|link| id_of(link) == id)).count()
}

fn show<'a>(state: &State, account: &str, value: &'a Value, _: CollectionAction) -> Cow<'a, Value> {
    let mut shown = value.clone();
    (shown["reusable"], shown["app_count"]) = (json!(true), json!(used_by(state, account, id_of(value))));
    Cow::Owned(shown)
}
