//! `Bind9Instance`: one server, or several with the same content.

use std::collections::BTreeMap;

use kube::{CustomResource, ResourceExt as _};
use portolan_core::schema::{self, AnyObject};
use portolan_core::{Condition, ObjectKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kinds::keys::{RndcKeyConfig, RndcSecretRef};
use crate::kinds::patterns;
use crate::kinds::reference::{ClusterReference, ZoneReference};
use crate::kinds::server::{Bind9Config, BindcarConfig, ConfigMapRefs, ImageConfig, StorageConfig};

/// What a server does for its zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerRole {
    /// Zones are written to it.
    #[default]
    Primary,
    /// It follows those that zones are written to.
    Secondary,
}

impl ServerRole {
    /// Both roles.
    pub const ALL: [Self; 2] = [Self::Primary, Self::Secondary];

    /// As manifests and labels have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        }
    }
}

/// A server, or several with the same content.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "bindy.firestoned.io", version = "v1beta1", kind = "Bind9Instance", namespaced)]
#[kube(shortname = "b9", shortname = "b9s", status = "InstanceStatus", doc = "A BIND 9 server.")]
#[kube(printcolumn = r#"{"name":"Cluster","type":"string","jsonPath":".spec.clusterRef"}"#)]
#[kube(printcolumn = r#"{"name":"Role","type":"string","jsonPath":".spec.role"}"#)]
#[kube(printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}"#)]
#[kube(printcolumn = r#"{"name":"Zones","type":"integer","jsonPath":".status.zonesCount"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct Bind9InstanceSpec {
    /// Name of the cluster in the same namespace, or of the provider, that it belongs to; empty where it stands alone.
    #[schemars(length(max = 253))]
    pub cluster_ref: String,
    /// What it does for its zones.
    pub role: ServerRole,
    /// How many pods it has; 1 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: Option<i32>,
    /// Version of BIND 9; that of the cluster where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = patterns::VERSION_PATTERN))]
    pub version: Option<String>,
    /// Which image runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageConfig>,
    /// Whole configuration files of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_refs: Option<ConfigMapRefs>,
    /// What it is configured with, over what its cluster says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Bind9Config>,
    /// Addresses of servers elsewhere that it follows besides those of its zones: they may tell it of changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(max = 45), regex(pattern = patterns::ADDRESS_PATTERN)))]
    pub primary_servers: Option<Vec<String>>,
    /// Volumes of its pods besides those that they have, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyObject>>", length(max = 64))]
    pub volumes: Option<Vec<Value>>,
    /// Where those volumes are mounted, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyObject>>", length(max = 64))]
    pub volume_mounts: Option<Vec<Value>>,
    /// A Secret of the user's with the key; `rndcKey` says the same and goes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rndc_secret_ref: Option<RndcSecretRef>,
    /// How its keys are made and renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rndc_key: Option<RndcKeyConfig>,
    /// Where zones are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageConfig>,
    /// The management sidecar of the older operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindcar_config: Option<BindcarConfig>,
}

/// What became of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct InstanceStatus {
    /// What is known of its health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The generation of its cluster that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_parent_generation: Option<i64>,
    /// Where its Service answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_address: Option<String>,
    /// The cluster or provider that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterReference>,
    /// The zones that it serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneReference>,
    /// How many zones it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones_count: Option<i32>,
    /// When its keys were and will be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rndc_key_rotation: Option<RndcKeyRotation>,
}

/// When keys were and will be renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct RndcKeyRotation {
    /// When the present keys were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
    /// When they will be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub rotate_at: Option<String>,
    /// When keys were last renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_rotated_at: Option<String>,
    /// How often keys were renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_count: Option<i64>,
}

impl Bind9Instance {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace().unwrap_or_default(), self.name_any())
    }

    /// The cluster or provider that it names, where it does not stand alone.
    pub fn cluster_name(&self) -> Option<&str> {
        Some(self.spec.cluster_ref.as_str()).filter(|name| !name.is_empty())
    }

    /// How many pods it is to have.
    pub fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1).clamp(0, 100)
    }

    /// Its labels, by which zones select it.
    pub fn selectable_labels(&self) -> BTreeMap<String, String> {
        self.metadata.labels.clone().unwrap_or_default()
    }
}
