//! Access policies: who may pass, as it is wanted, written and compared.

use std::collections::BTreeSet;

use portolan_cloudflare_api::{Item, TypedCollection, collections};
use portolan_core::{Claim, Mark};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::is_empty;

/// Characters of a policy's or token's name.
pub(crate) const NAME_LIMIT: usize = 250;
/// Members of a policy that we never write. Who added one to a policy of ours narrowed whom it lets pass: it stays.
pub(crate) const KEPT: [&str; 10] = [
    "exclude",
    "require",
    "approval_groups",
    "approval_required",
    "connection_rules",
    "isolation_required",
    "mfa_config",
    "purpose_justification_prompt",
    "purpose_justification_required",
    "session_duration",
];
/// Stands for the id of a token that is still to be made.
const NEW_TOKEN: &str = "(new token)";

/// What is kept of a reusable policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Value")]
pub struct ReusablePolicy(pub(crate) Value);

impl From<Value> for ReusablePolicy {
    fn from(raw: Value) -> Self {
        Self(raw)
    }
}

impl ReusablePolicy {
    /// Its name.
    pub fn name(&self) -> &str {
        self.0.get("name").and_then(Value::as_str).unwrap_or_default()
    }
}

impl ReusablePolicy {
    /// Whether whom it is for passes unasked, and without a token.
    pub(crate) fn is_bypass(&self) -> bool {
        self.0.get("decision").and_then(Value::as_str) == Some("bypass")
    }

    /// The policy for a change's text.
    pub(crate) fn shown(&self) -> Value {
        let fields = ["name", "decision", "include"];
        fields.iter().filter_map(|field| Some(((*field).to_owned(), self.0.get(*field)?.clone()))).collect()
    }
}

/// An account's reusable policies.
pub(crate) static POLICIES: TypedCollection<ReusablePolicy> = TypedCollection::of(collections::ACCESS_POLICIES);

impl Item for ReusablePolicy {
    fn natural_key(&self) -> String {
        self.name().to_owned()
    }

    fn mark_text(&self) -> &str {
        self.name()
    }

    fn owner_key(&self) -> Option<String> {
        portolan_core::owner_key(self.name()).map(str::to_owned)
    }
}

/// Somebody whom a policy lets pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grant {
    Everyone,
    Group(String),
    Email(String),
    /// Who shows this name's service token.
    Token,
}

impl Grant {
    fn body(&self, token_id: Option<&str>) -> Value {
        match self {
            Self::Everyone => json!({"everyone": {}}),
            Self::Group(id) => json!({"group": {"id": id}}),
            Self::Email(address) => json!({"email": {"email": address}}),
            Self::Token => json!({"service_token": {"token_id": token_id.unwrap_or(NEW_TOKEN)}}),
        }
    }
}

/// Which of our policies it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyRole {
    /// For people.
    Allow,
    /// For the service token.
    Service,
}

impl PolicyRole {
    fn decision(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Service => "non_identity",
        }
    }
}

/// A policy of ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OwnPolicy {
    pub(crate) role: PolicyRole,
    pub(crate) name: String,
    pub(crate) grants: Vec<Grant>,
}

impl OwnPolicy {
    /// The policy as part of an application, or of a request for one policy of an application.
    pub(crate) fn inline(&self, precedence: usize, token_id: Option<&str>) -> Value {
        let mut body = self.body(&self.name, token_id);
        body["precedence"] = json!(precedence);
        body
    }

    /// The policy as one that applications link.
    pub(crate) fn reusable(&self, mark: &Mark, token_id: Option<&str>) -> Value {
        self.body(&self.marked_name(mark), token_id)
    }

    /// The name of a reusable policy, which says whose it is.
    pub(crate) fn marked_name(&self, mark: &Mark) -> String {
        mark.write(&self.name, NAME_LIMIT)
    }

    fn body(&self, name: &str, token_id: Option<&str>) -> Value {
        let include: Vec<Value> = self.grants.iter().map(|grant| grant.body(token_id)).collect();
        json!({"name": name, "decision": self.role.decision(), "include": include})
    }

    /// Whether a found inline policy lets the same people pass under the same name.
    pub(crate) fn is(&self, found: &Value, token_id: Option<&str>) -> bool {
        same_policy(found, &self.body(&self.name, token_id))
    }

    /// Whether a found reusable policy is as wanted.
    pub(crate) fn is_reusable(&self, found: &Value, mark: &Mark, token_id: Option<&str>) -> bool {
        same_policy(found, &self.reusable(mark, token_id))
    }
}

/// A policy as it is written over a found one: what somebody added there stays.
pub(crate) fn keeping(mut body: Value, found: Option<&Value>) -> Value {
    for field in KEPT {
        if let Some(value) = found.and_then(|found| found.get(field)).filter(|value| !is_empty(Some(value))) {
            body[field] = value.clone();
        }
    }
    body
}

fn same_policy(found: &Value, wanted: &Value) -> bool {
    let text = |policy: &Value, field: &str| policy.get(field).and_then(Value::as_str).map(str::to_owned);
    text(found, "name") == text(wanted, "name")
        && text(found, "decision") == text(wanted, "decision")
        && includes(found) == includes(wanted)
}

/// Who passes, whatever the order and whatever else the API tells of them.
fn includes(policy: &Value) -> BTreeSet<String> {
    let rules = policy.get("include").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    rules.iter().map(include_key).collect()
}

fn include_key(rule: &Value) -> String {
    let at = |pointer: &str| rule.pointer(pointer).and_then(Value::as_str);
    if let Some(address) = at("/email/email") {
        format!("email {}", address.to_ascii_lowercase())
    } else if let Some(id) = at("/group/id") {
        format!("group {id}")
    } else if let Some(id) = at("/service_token/token_id") {
        format!("token {id}")
    } else if rule.get("everyone").is_some() {
        "everyone".to_owned()
    } else {
        rule.to_string()
    }
}

/// Whether a policy lets somebody pass who shows this token.
pub(crate) fn includes_token(policy: &Value, token_id: &str) -> bool {
    includes(policy).contains(&format!("token {token_id}"))
}

/// Whether a policy of that name is one of ours.
pub(crate) fn is_marked(name: &str, mark: &Mark) -> bool {
    matches!(mark.claim(name), Claim::Ours { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(grants: Vec<Grant>) -> OwnPolicy {
        OwnPolicy { role: PolicyRole::Allow, name: "web-allow-policy".to_owned(), grants }
    }

    #[test]
    fn groups_addresses_and_everyone_are_written_as_the_api_has_them() {
        let policy = allow(vec![Grant::Group("g1".into()), Grant::Email("a@x.com".into()), Grant::Everyone]);

        assert_eq!(
            policy.inline(1, None),
            json!({
                "name": "web-allow-policy", "decision": "allow", "precedence": 1,
                "include": [{"group": {"id": "g1"}}, {"email": {"email": "a@x.com"}}, {"everyone": {}}],
            })
        );
    }

    #[test]
    fn order_case_and_additions_of_the_api_do_not_make_a_difference() {
        let policy = allow(vec![Grant::Group("g1".into()), Grant::Email("A@x.com".into())]);
        let found = json!({
            "id": "p1", "name": "web-allow-policy", "decision": "allow", "reusable": false, "exclude": [],
            "include": [{"email": {"email": "a@x.com"}}, {"group": {"id": "g1", "name": "Engineering"}}],
        });

        assert!(policy.is(&found, None));
        assert!(!allow(vec![Grant::Group("g1".into())]).is(&found, None));
    }

    #[test]
    fn another_token_is_another_policy() {
        let policy = OwnPolicy { role: PolicyRole::Service, name: "s".to_owned(), grants: vec![Grant::Token] };

        let found = policy.inline(1, Some("t1"));

        assert!(policy.is(&found, Some("t1")) && includes_token(&found, "t1"));
        assert!(!policy.is(&found, Some("t2")) && !policy.is(&found, None));
    }
}
