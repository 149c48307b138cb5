//! `/accounts`: made by seeds and tests alone, listed and read by everybody who sees them.

use serde_json::{Value, json};

use crate::{
    field::{Member, MemberType, optional, required},
    filter::{Filter, Test, filter},
    ids::IdForm,
    state::State,
    store::text,
    table::{Below, Collection, CollectionAction, Fail, LOOKED_AT, PLAIN, ROW, Rules},
    virtual_network,
};

pub(crate) static ACCOUNTS: Collection = Collection {
    name: "accounts",
    what: "account",
    scope: Below::Root,
    path: "accounts",
    id: IdForm::Hex,
    actions: LOOKED_AT,
    fields: FIELDS,
    filters: FILTERS,
    times: ("created_on", None),
    not_found: Fail(404, 1003, "Account not found"),
    group: "account_settings",
    rules: Rules { visible: |grant, value| grant.sees_account(text(value, "id")), prepare, changed, ..PLAIN },
    ..ROW
};

const FIELDS: &[Member] =
    &[required("name", MemberType::Text), optional("type", MemberType::OneOf(&["standard", "enterprise"]))];

const FILTERS: &[Filter] = &[filter("name", Test::Contains("name")), filter("direction", Test::Manner)];

#[expect(clippy::unnecessary_wraps, reason = "the shape of a rule")]
fn prepare(_: &mut State, _: &crate::table::PendingChange<'_>, value: &mut Value) -> Result<(), crate::reply::Refusal> {
    if value.get("type").is_none() {
        value["type"] = Value::from("standard");
    }
    value["settings"] = json!({"enforce_twofactor": false, "abuse_contact_email": null});
    Ok(())
}

/// An account has a default virtual network from the start.
fn changed(state: &mut State, _: &str, action: CollectionAction, value: &Value) {
    if action == CollectionAction::Create {
        virtual_network::make_default(state, text(value, "id"));
    }
}
