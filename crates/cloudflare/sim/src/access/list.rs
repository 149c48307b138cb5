//! `/accounts/{account_id}/gateway/lists`: addresses under a name, which rules of policies refer to by id.
//!
//! <https://developers.cloudflare.com/api/resources/zero_trust/subresources/gateway/subresources/lists/>

use serde_json::{Value, json};

use super::stamp;
use crate::{
    field::{BodyVerb, Member, MemberType, optional, required},
    filter::{Filter, Test, filter},
    page::Paging,
    reply::Refusal,
    state::State,
    table::{Collection, CollectionAction, Fail, PLAIN, PendingChange, ROW, Rules},
};

pub(crate) static LISTS: Collection = Collection {
    name: "gateway_lists",
    what: "gateway_list",
    path: "gateway/lists",
    actions: &[CollectionAction::List, CollectionAction::Get, CollectionAction::Create, CollectionAction::Delete],
    fields: FIELDS,
    filters: FILTERS,
    paging: Paging::Single,
    times: ("created_at", Some("updated_at")),
    not_found: Fail(404, 2009, "list not found"),
    invalid: 2010,
    group: "access_groups",
    rules: Rules { prepare, ..PLAIN },
    ..ROW
};

const FIELDS: &[Member] = &[
    required("name", MemberType::Text),
    required("type", MemberType::OneOf(&["SERIAL", "URL", "DOMAIN", "EMAIL", "IP"])),
    optional("description", MemberType::Text),
    optional("items", MemberType::List),
];

const FILTERS: &[Filter] = &[filter("type", Test::Is("type"))];

#[expect(clippy::unnecessary_wraps, reason = "the shape of a rule")]
fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    value["count"] = json!(value["items"].as_array().map_or(0, Vec::len));
    stamp(state, value, change.verb == BodyVerb::Create);
    Ok(())
}
