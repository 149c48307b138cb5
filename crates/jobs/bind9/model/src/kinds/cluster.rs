//! `Bind9Cluster` and `ClusterBind9Provider`: how many servers of each role there are, and what they have in common.

use std::collections::BTreeMap;

use kube::CustomResource;
use portolan_core::Condition;
use portolan_core::schema::{self, AnyObject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kinds::keys::{RndcKeyConfig, RndcSecretRef};
use crate::kinds::patterns;
use crate::kinds::server::{Bind9Config, ConfigMapRefs, ImageConfig, ServiceConfig};

/// What the servers of a cluster have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct CommonClusterSpec {
    /// Version of BIND 9, as `9.18`, which is the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = patterns::VERSION_PATTERN))]
    pub version: Option<String>,
    /// Servers that zones are written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<RoleConfig>,
    /// Servers that follow those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary: Option<RoleConfig>,
    /// Which image runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageConfig>,
    /// Whole configuration files of the user's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_refs: Option<ConfigMapRefs>,
    /// What all servers are configured with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global: Option<Bind9Config>,
    /// Secrets with further keys that servers know, for `key NAME` in ACLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rndc_secret_refs: Option<Vec<RndcSecretRef>>,
    /// Lists of addresses and keys under names that other lists may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub acls: Option<BTreeMap<String, Vec<String>>>,
    /// Volumes of the pods besides those that they have, as in a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyObject>>", length(max = 64))]
    pub volumes: Option<Vec<Value>>,
    /// Where those volumes are mounted, as in a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyObject>>", length(max = 64))]
    pub volume_mounts: Option<Vec<Value>>,
}

/// What the servers of one role have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct RoleConfig {
    /// How many there are; none where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: Option<i32>,
    /// Labels of the instances, by which zones select them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// How their Services look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceConfig>,
    /// Who may take whole zones from them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = patterns::ACL_ENTRIES), inner(length(max = 256)))]
    pub allow_transfer: Option<Vec<String>>,
    /// A Secret of the user's with the key; `rndcKey` says the same and goes before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rndc_secret_ref: Option<RndcSecretRef>,
    /// How their keys are made and renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rndc_key: Option<RndcKeyConfig>,
}

/// Servers of a namespace, primaries and secondaries.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "bindy.firestoned.io", version = "v1beta1", kind = "Bind9Cluster", namespaced)]
#[kube(shortname = "b9c", shortname = "b9cs", status = "ClusterStatus", doc = "BIND 9 servers of a namespace.")]
#[kube(printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.version"}"#)]
#[kube(printcolumn = r#"{"name":"Primary","type":"integer","jsonPath":".spec.primary.replicas"}"#)]
#[kube(printcolumn = r#"{"name":"Secondary","type":"integer","jsonPath":".spec.secondary.replicas"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct Bind9ClusterSpec {
    /// What the servers have in common.
    #[serde(flatten)]
    pub common: CommonClusterSpec,
}

/// A cluster of servers that is made in every namespace that has instances of it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "bindy.firestoned.io", version = "v1beta1", kind = "ClusterBind9Provider")]
#[kube(shortname = "cb9p", shortname = "cb9ps", status = "ClusterStatus")]
#[kube(doc = "A cluster of BIND 9 servers for the namespaces that use it.")]
#[kube(printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.version"}"#)]
#[kube(printcolumn = r#"{"name":"Primary","type":"integer","jsonPath":".spec.primary.replicas"}"#)]
#[kube(printcolumn = r#"{"name":"Secondary","type":"integer","jsonPath":".spec.secondary.replicas"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct ClusterBind9ProviderSpec {
    /// What the servers have in common.
    #[serde(flatten)]
    pub common: CommonClusterSpec,
    /// Where the cluster is made while no namespace has instances of it; the operator's own namespace where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// What became of a cluster or a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ClusterStatus {
    /// What is known of its health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many instances there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_count: Option<i32>,
    /// How many of them are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_instances: Option<i32>,
    /// Their names; of a provider with their namespaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<String>,
}
