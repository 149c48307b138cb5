//! `/zones`: names under management, each on a plan that says what its records may be.

use serde_json::{Value, json};

use crate::{
    account::ACCOUNTS,
    certificate_pack,
    field::{BodyVerb, Member, MemberType, Presence},
    filter::{Filter, Test, filter},
    ids::IdForm,
    reply::Refusal,
    state::State,
    store::text,
    table::{Below, Collection, CollectionAction, Fail, PLAIN, PendingChange, ROW, Rules},
};

pub(crate) static ZONES: Collection = Collection {
    name: "zones",
    what: "zone",
    scope: Below::Root,
    path: "zones",
    id: IdForm::Hex,
    fields: FIELDS,
    filters: FILTERS,
    times: ("created_on", Some("modified_on")),
    duplicate: Some(Fail(400, 1061, "The zone already exists.")),
    not_found: Fail(404, 1001, "Invalid zone identifier"),
    group: "zone",
    rules: Rules {
        visible: |grant, value| grant.sees_zone(text(value, "id"), text(&value["account"], "id")),
        prepare,
        changed: |state, _, action, value| match action {
            CollectionAction::Create => certificate_pack::make_universal(state, value),
            CollectionAction::Delete => state.drop_scope(text(value, "id")),
            CollectionAction::List | CollectionAction::Get | CollectionAction::Replace | CollectionAction::Patch => {}
        },
        ..PLAIN
    },
    ..ROW
};

const TYPES: MemberType = MemberType::OneOf(&["full", "partial", "secondary", "internal"]);

const FIELDS: &[Member] = &[
    Member { name: "name", kind: MemberType::Text, role: Presence::RequiredOnce },
    Member { name: "account", kind: MemberType::Object, role: Presence::RequiredOnce },
    Member { name: "type", kind: TYPES, role: Presence::Optional },
    Member { name: "paused", kind: MemberType::Bool, role: Presence::PatchOnly },
    Member { name: "vanity_name_servers", kind: MemberType::Texts, role: Presence::PatchOnly },
];

const FILTERS: &[Filter] = &[
    filter("name", Test::Special(|value, wanted| compare(text(value, "name"), wanted))),
    filter("account.id", Test::Is("account.id")),
    filter("account.name", Test::Special(|value, wanted| compare(text(&value["account"], "name"), wanted))),
    filter("status", Test::Is("status")),
    filter("type", Test::Special(|value, wanted| wanted.split(',').any(|kind| kind == text(value, "type")))),
    filter("match", Test::Manner),
    filter("order", Test::Manner),
    filter("direction", Test::Manner),
];

/// `value`, or an operator and a value: `contains:value`.
fn compare(value: &str, wanted: &str) -> bool {
    let (operator, operand) = wanted.split_once(':').unwrap_or(("equal", wanted));
    let (lower, plain) = (operand.to_lowercase(), value.to_lowercase());
    match operator {
        "equal" => plain == lower,
        "not_equal" => plain != lower,
        "starts_with" => plain.starts_with(&lower),
        "ends_with" => plain.ends_with(&lower),
        "contains" => plain.contains(&lower),
        "starts_with_case_sensitive" => value.starts_with(operand),
        "ends_with_case_sensitive" => value.ends_with(operand),
        "contains_case_sensitive" => value.contains(operand),
        _ => false,
    }
}

/// What a plan allows in a zone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ZonePlan {
    pub(crate) legacy_id: &'static str,
    name: &'static str,
    id: &'static str,
    /// Records in the zone.
    pub(crate) records: usize,
    /// Operations in a batch.
    pub(crate) batch: usize,
    /// Characters of a record's comment.
    pub(crate) comment: usize,
    /// Tags of a record.
    pub(crate) tags: usize,
    /// Shortest time to live.
    pub(crate) min_ttl: u64,
    /// Single redirects.
    pub(crate) redirects: usize,
}

/// As documented for zones made after September 2024; an enterprise account's quota is a million.
pub(crate) static PLANS: [ZonePlan; 4] = [
    ZonePlan {
        legacy_id: "free",
        name: "Free Website",
        id: "0feeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        records: 200,
        batch: 200,
        comment: 100,
        tags: 0,
        min_ttl: 60,
        redirects: 10,
    },
    ZonePlan {
        legacy_id: "pro",
        name: "Pro Website",
        id: "1acefbeeefffffffffffffffffffffff",
        records: 3500,
        batch: 3500,
        comment: 500,
        tags: 20,
        min_ttl: 60,
        redirects: 25,
    },
    ZonePlan {
        legacy_id: "business",
        name: "Business Website",
        id: "2bcefbeeefffffffffffffffffffffff",
        records: 3500,
        batch: 3500,
        comment: 500,
        tags: 20,
        min_ttl: 60,
        redirects: 50,
    },
    ZonePlan {
        legacy_id: "enterprise",
        name: "Enterprise Website",
        id: "94f3b7b768b0458b56d2cac4fe5ec0f9",
        records: 1_000_000,
        batch: 3500,
        comment: 500,
        tags: 20,
        min_ttl: 30,
        redirects: 300,
    },
];

impl ZonePlan {
    pub(crate) fn find(legacy_id: &str) -> Option<&'static Self> {
        PLANS.iter().find(|plan| plan.legacy_id == legacy_id)
    }

    /// The plan of a zone.
    pub(crate) fn of(zone: &Value) -> &'static Self {
        Self::find(text(&zone["plan"], "legacy_id")).unwrap_or(&PLANS[0])
    }

    pub(crate) fn to_json(&self) -> Value {
        let paid = self.legacy_id != "free";
        json!({
            "id": self.id, "name": self.name, "legacy_id": self.legacy_id, "price": 0, "currency": "USD",
            "frequency": if paid { "monthly" } else { "" }, "is_subscribed": paid, "can_subscribe": false,
            "legacy_discount": false, "externally_managed": false,
        })
    }
}

fn prepare(state: &mut State, change: &PendingChange<'_>, value: &mut Value) -> Result<(), Refusal> {
    if change.verb != BodyVerb::Create {
        return Ok(());
    }
    let name = text(value, "name").trim_end_matches('.').to_lowercase();
    if !crate::dns::name::is_domain(&name) || !name.contains('.') {
        return Err(Refusal::bad(1049, format!("{name} is not a registered domain")));
    }
    let account = text(&value["account"], "id").to_owned();
    let Some(account) = state.get(&ACCOUNTS, "", &account) else {
        return Err(Refusal::new(403, 1068, "Permission denied: the account is not known"));
    };
    let owner = json!({"id": account["id"], "name": account["name"]});
    let id = value["id"].clone();
    let created = value["created_on"].clone();
    *value = fresh(&name, text(value, "type"), owner);
    (value["id"], value["created_on"], value["modified_on"]) = (id, created.clone(), created);
    Ok(())
}

/// A zone that was just added: free, and pending until its name servers are changed.
fn fresh(name: &str, kind: &str, account: Value) -> Value {
    json!({
        "name": name, "status": "pending", "paused": false, "type": if kind.is_empty() { "full" } else { kind },
        "development_mode": 0,
        "name_servers": ["ada.ns.cloudflare.com", "bob.ns.cloudflare.com"],
        "original_name_servers": [], "original_registrar": null, "original_dnshost": null, "activated_on": null,
        "meta": {"step": 2, "custom_certificate_quota": 0, "page_rule_quota": 3, "phishing_detected": false},
        "owner": {"id": null, "type": "user", "email": null},
        "account": account, "tenant": {"id": null, "name": null}, "tenant_unit": {"id": null},
        "permissions": ["#dns_records:edit", "#dns_records:read", "#zone:read"],
        "plan": PLANS[0].to_json(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_the_operator_says() {
        for wanted in ["example.com", "EXAMPLE.com", "contains:amp", "starts_with:ex", "not_equal:example.org"] {
            assert!(compare("example.com", wanted), "{wanted}");
        }
        assert!(!compare("example.com", "example") && !compare("example.com", "contains_case_sensitive:AMP"));
    }
}
