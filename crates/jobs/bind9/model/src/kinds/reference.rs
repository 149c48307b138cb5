//! How statuses name zones, clusters, records and instances.

use portolan_core::{ObjectKey, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A zone, as records and instances name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct ZoneReference {
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The zone's own name, as `example.com`.
    pub zone_name: String,
    /// When it was last brought in line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_reconciled_at: Option<String>,
}

/// A cluster or a provider, as instances name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct ClusterReference {
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace; none for a provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A record, as its zone names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct RecordReferenceWithTimestamp {
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The name that it publishes, within the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_name: Option<String>,
    /// When it was last brought in line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_reconciled_at: Option<String>,
}

/// How far a zone is on an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum InstanceClaim {
    /// It is to serve the zone, and does not yet.
    #[default]
    Claimed,
    /// It serves the zone.
    Configured,
    /// It could not be brought to serve the zone.
    Failed,
    /// It is to serve the zone no longer, and may still do.
    Unclaimed,
}

/// An instance, as the zones that it serves name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct InstanceReferenceWithStatus {
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// How far the zone is there.
    pub status: InstanceClaim,
    /// When that was last looked at and found otherwise than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_reconciled_at: Option<String>,
    /// What there is to say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl InstanceReferenceWithStatus {
    /// Namespace and name of the instance.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace.clone(), self.name.clone())
    }
}
