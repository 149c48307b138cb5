//! What is recorded as ours for a name: ids, and where they are. The content of states and of task results.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::desired::Desired;

/// A part of a name's publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// The tunnel's rule.
    Rule,
    /// The DNS record.
    Record,
    /// The Access application.
    App,
    /// The service token.
    Token,
    /// The redirect to HTTPS.
    Redirect,
}

/// What is recorded as ours for a name. Everything that is not there is simply not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Footprint {
    /// Account that all of it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The name that the rule, the record and the application stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Tunnel with the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel_id: Option<String>,
    /// Zone with the record and the redirect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// Whether a rule of ours for `hostname` stands in `tunnel_id`.
    #[serde(skip_serializing_if = "is_false")]
    pub has_rule: bool,
    /// The CNAME of a name that is reached through a tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cname_record_id: Option<String>,
    /// The A record of a name that is only resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_record_id: Option<String>,
    /// Its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_record_ip: Option<String>,
    /// The Access application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_app_id: Option<String>,
    /// All policies of the application that are ours: inline ones, or our own reusable ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access_policy_ids: Vec<String>,
    /// Those of `access_policy_ids` that are our own reusable ones; never somebody else's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reusable_policy_ids: Vec<String>,
    /// The service token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_token_id: Option<String>,
    /// The part of its credentials that is no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_token_client_id: Option<String>,
    /// The request for a new secret that was last carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_token_rotation: Option<String>,
    /// Our redirect rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_rule_id: Option<String>,
    /// The ruleset that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_ruleset_id: Option<String>,
    /// Why there is no redirect rule: what was asked for, when, and what Cloudflare said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_refusal: Option<String>,
    /// The name that the application stands for, while that is still another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_hostname: Option<String>,
    /// Parts that existed before us: they are released, not deleted.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub adopted: BTreeSet<Part>,
    /// What still stands at places that the name has left: to be removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<Former>,
}

/// A rule, a record, a redirect or an application of ours at a place that the name has left: another hostname, tunnel or zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Former {
    /// The name it stands for.
    pub hostname: String,
    /// Tunnel, of a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel_id: Option<String>,
    /// Zone, of a record or a redirect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// The CNAME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cname_record_id: Option<String>,
    /// The A record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_record_id: Option<String>,
    /// The Access application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_app_id: Option<String>,
    /// The redirect rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_rule_id: Option<String>,
    /// The ruleset that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_ruleset_id: Option<String>,
    /// Whether it existed before us.
    #[serde(skip_serializing_if = "is_false")]
    pub adopted: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Footprint {
    /// The same, with blanks that older records have filled by where the name is to be.
    pub fn completed_by(&self, desired: &Desired) -> Self {
        let mut whole = self.clone();
        whole.hostname.get_or_insert_with(|| desired.hostname.as_str().to_owned());
        if let (None, Some(record)) = (&whole.zone_id, &desired.record) {
            whole.zone_id = Some(record.zone_id().to_owned());
        }
        if let (None, Some(rule)) = (&whole.tunnel_id, &desired.rule) {
            whole.tunnel_id = Some(rule.tunnel_id.clone());
        }
        whole
    }

    /// Whether nothing at Cloudflare is recorded as ours.
    pub fn is_empty(&self) -> bool {
        portolan_core::waypoint!();
        !self.is_published()
            && self.access_app_id.is_none()
            && self.access_policy_ids.is_empty()
            && self.reusable_policy_ids.is_empty()
            && self.service_token_id.is_none()
            && self.redirect_rule_id.is_none()
            && self.former.is_empty()
    }

    /// Whether a rule or a record is recorded: the name can be reached.
    pub fn is_published(&self) -> bool {
        self.has_rule || self.cname_record_id.is_some() || self.dns_record_id.is_some()
    }

    /// The names that an application of ours stands for.
    pub fn protected_names(&self) -> impl Iterator<Item = &str> {
        let own = self.access_app_id.as_ref().and(self.app_hostname.as_deref().or(self.hostname.as_deref()));
        let former = self.former.iter().filter(|former| former.access_app_id.is_some());
        own.into_iter().chain(former.map(|former| former.hostname.as_str()))
    }

    /// The records that are ours where the name is now.
    pub fn record_ids(&self) -> impl Iterator<Item = &str> {
        [&self.cname_record_id, &self.dns_record_id].into_iter().flatten().map(String::as_str)
    }

    /// The applications that are ours, those at places that the name has left among them.
    pub fn app_ids(&self) -> impl Iterator<Item = &String> {
        self.access_app_id.iter().chain(self.former.iter().filter_map(|former| former.access_app_id.as_ref()))
    }

    /// Whether it is the footprint of a name.
    pub fn is_at(&self, hostname: &str) -> bool {
        self.hostname.as_deref() == Some(hostname)
    }

    /// Notes a part of ours: whether it existed before us.
    pub fn take(&mut self, part: Part, adopted: bool) {
        if adopted {
            self.adopted.insert(part);
        }
    }

    /// Whether a part existed before us.
    pub fn is_adopted(&self, part: Part) -> bool {
        self.adopted.contains(&part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_empty_footprint_is_an_empty_object() {
        assert_eq!(serde_json::to_value(Footprint::default()).unwrap(), json!({}));
        assert_eq!(serde_json::from_value::<Footprint>(json!({})).unwrap(), Footprint::default());
        assert!(Footprint::default().is_empty());
    }

    #[test]
    fn the_names_are_those_of_task_results() {
        let footprint = Footprint {
            cname_record_id: Some("r1".to_owned()),
            has_rule: true,
            access_policy_ids: vec!["p1".to_owned()],
            adopted: [Part::Record].into(),
            ..Footprint::default()
        };

        let json = json!({"cnameRecordId": "r1", "hasRule": true, "accessPolicyIds": ["p1"], "adopted": ["record"]});
        assert_eq!(serde_json::to_value(&footprint).unwrap(), json);
        assert!(footprint.is_published() && !footprint.is_empty());
    }
}
