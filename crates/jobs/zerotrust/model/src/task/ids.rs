//! What stands at Cloudflare for a name, as tasks and states write it.

use std::collections::BTreeSet;

use portolan_core::schema::{self, AnyObject};
use portolan_publication::{Footprint, Part};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::status::TaskNotice;

/// Ids of what stands for a name, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct Ids {
    /// The account that all of it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub account_id: Option<String>,
    /// The name that it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub hostname: Option<String>,
    /// The tunnel that the rule is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub tunnel_id: Option<String>,
    /// The zone that the record is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub zone_id: Option<String>,
    /// The tunnel's UUID, where a rule of ours stands in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub hostname_route_id: Option<String>,
    /// Whether a rule of ours stands in the tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_rule: Option<bool>,
    /// The CNAME record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub cname_record_id: Option<String>,
    /// The A record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub dns_record_id: Option<String>,
    /// The address in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub dns_record_ip: Option<String>,
    /// The Access application.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub access_app_id: Option<String>,
    /// Those of its policies that are reusable and nobody's but ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 64)), transform = schema::no_default)]
    pub reusable_policy_ids: Vec<String>,
    /// The service token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub service_token_id: Option<String>,
    /// The public half of its credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub service_token_client_id: Option<String>,
    /// The request for new credentials that was fulfilled last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub service_token_rotation: Option<String>,
    /// The redirect rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub redirect_rule_id: Option<String>,
    /// The ruleset that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub redirect_ruleset_id: Option<String>,
    /// Why there is no redirect rule: what was asked for, when, and what Cloudflare said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub redirect_refusal: Option<String>,
    /// The name that the application stands for, while that is still another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub app_hostname: Option<String>,
    /// What existed before us: it is released, not deleted.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "Vec<String>", length(max = 16), inner(length(max = 32)), transform = schema::no_default)]
    pub adopted: BTreeSet<Part>,
    /// What still stands at places that the name has left: to be removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<AnyObject>", length(max = 100), transform = schema::no_default)]
    pub former: Vec<Value>,
}

/// What is known to stand for the route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ExistingIds {
    /// Ids and where they are.
    #[serde(flatten)]
    pub ids: Ids,
    /// The application's policies that are ours, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub access_policy_ids: Option<String>,
}

/// What is taken down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct DeleteIds {
    /// Ids and where they are.
    #[serde(flatten)]
    pub ids: Ids,
    /// The application's policies that are ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 64)), transform = schema::no_default)]
    pub access_policy_ids: Vec<String>,
    /// The Secret with the token's credentials, in the route's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_token_secret_name: Option<String>,
}

/// What stands now, as far as the task came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TaskResult {
    /// Ids and where they are.
    #[serde(flatten)]
    pub ids: Ids,
    /// The application's policies that are ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 64)), transform = schema::no_default)]
    pub access_policy_ids: Vec<String>,
    /// Whether the token got new credentials, which lie in a Secret until they are collected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_token_created: Option<bool>,
    /// That Secret, in the task's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_token_secret_name: Option<String>,
    /// The zone that the record is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub resolved_zone_id: Option<String>,
    /// What the route's owner should be told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), transform = schema::no_default)]
    pub notices: Vec<TaskNotice>,
}

impl Ids {
    /// What is recorded as ours, the policies of the application apart. The names are the same.
    fn of(footprint: &Footprint) -> Self {
        let ids: Self = same_names(footprint);
        let hostname_route_id = ids.tunnel_id.clone().filter(|_| footprint.has_rule);
        Self { hostname_route_id, has_rule: Some(footprint.has_rule), ..ids }
    }

    /// The same as a footprint. A tunnel that stands as the rule's id means that there is a rule: tasks of older
    /// operators say no more. Texts that are empty say nothing.
    fn footprint(&self, policies: Vec<String>) -> Footprint {
        let rule = given(self.hostname_route_id.as_ref());
        let tunnel_id = given(self.tunnel_id.as_ref()).or_else(|| rule.clone());
        let has_rule = Some(self.has_rule.unwrap_or(rule.is_some()) && tunnel_id.is_some());
        let said: Footprint = same_names(&Self { tunnel_id, has_rule, ..self.clone() });
        Footprint { access_policy_ids: policies, ..said }
    }
}

/// The same fields in another struct; empty texts are left out.
fn same_names<T: DeserializeOwned>(ids: &impl Serialize) -> T {
    let mut fields = serde_json::to_value(ids).expect("ids are plain JSON");
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|_, value| value.as_str().is_none_or(|text| !text.trim().is_empty()));
    }
    serde_json::from_value(fields).expect("both have optional fields of the same types")
}

impl From<&Footprint> for ExistingIds {
    fn from(footprint: &Footprint) -> Self {
        let policies = &footprint.access_policy_ids;
        Self { ids: Ids::of(footprint), access_policy_ids: (!policies.is_empty()).then(|| policies.join(",")) }
    }
}

impl ExistingIds {
    /// The same as a footprint.
    pub fn footprint(&self) -> Footprint {
        self.ids.footprint(comma_separated(self.access_policy_ids.as_deref().unwrap_or_default()))
    }
}

impl From<&Footprint> for DeleteIds {
    fn from(footprint: &Footprint) -> Self {
        let access_policy_ids = footprint.access_policy_ids.clone();
        Self { ids: Ids::of(footprint), access_policy_ids, service_token_secret_name: None }
    }
}

impl DeleteIds {
    /// The same as a footprint. A name and a tunnel alone mean that there is a rule.
    pub fn footprint(&self) -> Footprint {
        let ids = &self.ids;
        let has_rule = ids
            .has_rule
            .unwrap_or_else(|| given(ids.hostname.as_ref()).is_some() && given(ids.tunnel_id.as_ref()).is_some());
        Ids { has_rule: Some(has_rule), ..ids.clone() }.footprint(self.access_policy_ids.clone())
    }
}

impl From<&Footprint> for TaskResult {
    fn from(footprint: &Footprint) -> Self {
        Self {
            ids: Ids::of(footprint),
            access_policy_ids: footprint.access_policy_ids.clone(),
            resolved_zone_id: footprint.zone_id.clone(),
            ..Self::default()
        }
    }
}

impl TaskResult {
    /// The same as a footprint.
    pub fn footprint(&self) -> Footprint {
        let zone_id = given(self.ids.zone_id.as_ref()).or_else(|| given(self.resolved_zone_id.as_ref()));
        Ids { zone_id, ..self.ids.clone() }.footprint(self.access_policy_ids.clone())
    }
}

/// A text that says something: older operators wrote empty ones for absent ones.
pub(crate) fn given(text: Option<&String>) -> Option<String> {
    text.map(String::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

pub(crate) fn comma_separated(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
