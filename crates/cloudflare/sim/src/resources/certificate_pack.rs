//! `/zones/{zone_id}/ssl/certificate_packs`: which names of a zone the edge has certificates for. Listed alone, whatever their
//! status; what is ordered and validated elsewhere comes from seeds.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    field::{Member, MemberType, optional, required},
    filter::{Filter, Test, filter},
    reply::Refusal,
    state::State,
    store::text,
    table::{Below, Collection, CollectionAction, Fail, LOOKED_AT, PLAIN, PendingChange, ROW, Rules},
};

pub(crate) static CERTIFICATE_PACKS: Collection = Collection {
    name: "certificate_packs",
    what: "certificate_pack",
    scope: Below::Zone,
    path: "ssl/certificate_packs",
    actions: LOOKED_AT,
    fields: FIELDS,
    filters: FILTERS,
    times: ("created_on", None),
    key: |value| text(value, "type").to_owned(),
    not_found: Fail(404, 1001, "Certificate pack not found"),
    group: "ssl",
    rules: Rules { prepare, show, ..PLAIN },
    ..ROW
};

const FIELDS: &[Member] = &[
    required("hosts", MemberType::Texts),
    optional("type", MemberType::OneOf(&["universal", "advanced", "total_tls", "mh_custom", "sni_custom"])),
    optional("status", MemberType::Text),
];

/// Active or not, all are shown: what is not comes from a seed that says so.
const FILTERS: &[Filter] = &[filter("status", Test::Manner), filter("deploy", Test::Manner)];

#[expect(clippy::unnecessary_wraps, reason = "the shape of a rule")]
fn prepare(_: &mut State, _: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    for (member, usual) in [("type", "advanced"), ("status", "active"), ("validation_method", "txt")] {
        if value.get(member).is_none() {
            value[member] = Value::from(usual);
        }
    }
    value["certificates"] = json!([]);
    Ok(())
}

/// When a pack was made is not told.
fn show<'a>(_: &State, _: &str, value: &'a Value, _: CollectionAction) -> Cow<'a, Value> {
    let mut shown = value.clone();
    if let Some(members) = shown.as_object_mut() {
        members.remove("created_on");
    }
    Cow::Owned(shown)
}

/// The certificate that every zone has from the start: its own name, and one label below it.
pub(crate) fn make_universal(state: &mut State, zone: &Value) {
    let (id, name) = (text(zone, "id").to_owned(), text(zone, "name"));
    let pack = json!({
        "id": as_uuid(&id), "type": "universal", "status": "active", "hosts": [name, format!("*.{name}")],
        "validation_method": "txt", "certificates": [], "created_on": zone["created_on"],
    });
    state.rows_mut(&CERTIFICATE_PACKS, &id).insert(pack);
}

/// The zone's id in another form, so that making a zone uses up no other id.
fn as_uuid(hex: &str) -> String {
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
