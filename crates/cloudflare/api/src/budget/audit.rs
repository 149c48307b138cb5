//! An account's audit log → where somebody changed something lately: what is looked at first for drift.
//!
//! `GET /accounts/{account_id}/audit_logs`, fields `metadata.zone_name` and `resource.id`:
//! <https://developers.cloudflare.com/api/resources/audit_logs/methods/list/>. It needs `Account Settings Read`; a credential
//! without it is refused with 403 and code 10000, and then nothing is known.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::budget::governor::Lane;
use crate::call::error::ApiError;
use crate::call::request::Request;
use crate::reader::Reader;

/// Entries that are read at once; more are not needed to know that much changes.
const ENTRIES: &str = "1000";

/// Where something was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditChanges {
    /// Names of zones, in lower case.
    pub zones: BTreeSet<String>,
    /// Ids of what was changed.
    pub resources: BTreeSet<String>,
    /// Something of the account that is in no zone.
    pub account: bool,
}

impl AuditChanges {
    /// Takes in what changed elsewhere.
    pub fn extend(&mut self, other: Self) {
        self.zones.extend(other.zones);
        self.resources.extend(other.resources);
        self.account |= other.account;
    }

    /// Whether a name lies in one of the zones.
    pub fn concern(&self, name: &str) -> bool {
        let parents = std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, parent)| parent));
        parents.into_iter().any(|name| self.zones.contains(name))
    }

    fn read(entries: Value) -> Self {
        let mut changes = Self::default();
        let Value::Array(entries) = entries else { return changes };
        for entry in entries {
            changes.resources.extend(entry["resource"]["id"].as_str().map(str::to_owned));
            match entry["metadata"]["zone_name"].as_str() {
                Some(zone) if !zone.is_empty() => drop(changes.zones.insert(zone.to_ascii_lowercase())),
                _ => changes.account = true,
            }
        }
        changes
    }
}

/// What was changed in an account since a moment, by one request in the lane of drift.
pub async fn changes(reader: &Reader, account: &str, since: Timestamp) -> Result<AuditChanges, ApiError> {
    let request = Request::get("/accounts/{account_id}/audit_logs", &[account])
        .with_query("since", format!("{since:.0}"))
        .with_query("direction", "desc")
        .with_query("per_page", ENTRIES);
    reader.get(Lane::Drift, &request).await.map(AuditChanges::read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_tell_of_zones_and_of_the_account() {
        let entries = json!([
            {"action": {"type": "add"}, "metadata": {"zone_name": "Example.com"}, "resource": {"type": "DNS_record"}},
            {"action": {"type": "rotate"}, "metadata": {"zone_name": ""}, "resource": {"id": "t1"}},
        ]);

        let changes = AuditChanges::read(entries);

        assert_eq!(changes.zones, BTreeSet::from(["example.com".to_owned()]));
        assert!(changes.concern("a.b.example.com") && changes.concern("example.com") && !changes.concern("ample.com"));
        assert_eq!((changes.resources, changes.account), (BTreeSet::from(["t1".to_owned()]), true));
    }

    #[test]
    fn an_entry_of_an_unknown_shape_counts_for_the_account() {
        assert_eq!(
            AuditChanges::read(json!([{"metadata": "text"}])),
            AuditChanges { account: true, ..AuditChanges::default() }
        );
        assert_eq!(AuditChanges::read(json!([])), AuditChanges::default());
        assert_eq!(AuditChanges::read(json!(null)), AuditChanges::default());
    }
}
