//! `DNSZone`: a zone, which servers have it, and which records are in it.

use std::collections::BTreeMap;

use kube::{CustomResource, ResourceExt as _};
use portolan_core::{Condition, ObjectKey, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::patterns;
use crate::kinds::reference::{InstanceReferenceWithStatus, RecordReferenceWithTimestamp};
use crate::kinds::selector::{InstanceSource, RecordSource};

/// A zone.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "bindy.firestoned.io", version = "v1beta1", kind = "DNSZone", plural = "dnszones", namespaced)]
#[kube(shortname = "zone", shortname = "zones", shortname = "dz", shortname = "dzs", status = "ZoneStatus")]
#[kube(doc = "A zone on BIND 9 servers.")]
#[kube(printcolumn = r#"{"name":"Zone","type":"string","jsonPath":".spec.zoneName"}"#)]
#[kube(printcolumn = r#"{"name":"Provider","type":"string","jsonPath":".spec.clusterRef"}"#)]
#[kube(printcolumn = r#"{"name":"Records","type":"integer","jsonPath":".status.recordsCount"}"#)]
#[kube(printcolumn = r#"{"name":"Instances","type":"integer","jsonPath":".status.bind9InstancesCount"}"#)]
#[kube(printcolumn = r#"{"name":"TTL","type":"integer","jsonPath":".spec.ttl"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct DNSZoneSpec {
    /// The zone's name, as `example.com`.
    #[schemars(length(min = 1, max = 253), regex(pattern = patterns::ZONE_PATTERN), transform = schema::rules(patterns::ZONE))]
    pub zone_name: String,
    /// Its SOA record.
    pub soa_record: SOARecord,
    /// Seconds that answers may be kept where a record does not say; 300 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub ttl: Option<i32>,
    /// Name of the cluster in the same namespace, or of the provider, all of whose servers have the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub cluster_ref: Option<String>,
    /// The zone's name servers, with their addresses where those lie in the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub name_servers: Option<Vec<NameServer>>,
    /// Older form of `nameServers`: host names and their IPv4 addresses. Used only where that is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub name_server_ips: Option<BTreeMap<String, String>>,
    /// Which records of the namespace are in the zone: those that any of these select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub records_from: Option<Vec<RecordSource>>,
    /// Which servers have the zone besides those of the cluster: those that any of these select.
    #[serde(default, rename = "bind9InstancesFrom", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub bind9_instances_from: Option<Vec<InstanceSource>>,
    /// Name of the policy that it is signed by; that of the cluster where absent, if that signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = patterns::POLICY_PATTERN))]
    pub dnssec_policy: Option<String>,
}

/// A zone's SOA record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct SOARecord {
    /// The first name server, as `ns1.example.com.`.
    #[schemars(length(min = 2, max = 254), regex(pattern = patterns::HOST_PATTERN))]
    pub primary_ns: String,
    /// The mailbox of who is responsible, with a dot for the `@`, as `admin.example.com.`.
    #[schemars(length(min = 2, max = 254), regex(pattern = patterns::MAILBOX_PATTERN))]
    pub admin_email: String,
    /// The serial that the zone begins with; it never goes back.
    #[schemars(range(min = 0, max = 4_294_967_295_i64))]
    pub serial: i64,
    /// Seconds after which secondaries look for changes.
    #[schemars(range(min = 1))]
    pub refresh: i32,
    /// Seconds after which they look again where that failed.
    #[schemars(range(min = 1))]
    pub retry: i32,
    /// Seconds after which they stop answering where that goes on failing.
    #[schemars(range(min = 1))]
    pub expire: i32,
    /// Seconds that the absence of a name may be kept.
    #[schemars(range(min = 0))]
    pub negative_ttl: i32,
}

/// A name server of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct NameServer {
    /// Its name, as `ns1.example.com.`.
    #[schemars(length(min = 2, max = 254), regex(pattern = patterns::HOST_PATTERN), transform = schema::rules(patterns::HOST))]
    pub hostname: String,
    /// Its IPv4 address; needed, or the other, where the name lies in the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), regex(pattern = patterns::IPV4_PATTERN))]
    pub ipv4_address: Option<String>,
    /// Its IPv6 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45), regex(pattern = patterns::IPV6_PATTERN))]
    pub ipv6_address: Option<String>,
}

/// What became of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ZoneStatus {
    /// What is known of its health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many records are in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_count: Option<i32>,
    /// The same under the name that older dashboards know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_count: Option<i32>,
    /// The first fifty of the records that are in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub records: Vec<RecordReferenceWithTimestamp>,
    /// The servers that have it, or are to.
    #[serde(rename = "bind9Instances", skip_serializing_if = "Vec::is_empty")]
    pub bind9_instances: Vec<InstanceReferenceWithStatus>,
    /// How many servers are to have it.
    #[serde(rename = "bind9InstancesCount", skip_serializing_if = "Option::is_none")]
    pub bind9_instances_count: Option<i32>,
    /// Addresses of the secondaries that have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secondary_ips: Vec<String>,
    /// How it is signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dnssec: Option<ZoneSigning>,
    /// The serial on the server that it is written to: the highest that was ever seen of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<i64>,
    /// How it stands on primaries, the one that it is written to first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub primaries: Vec<ZoneOnServer>,
    /// How it stands on secondaries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secondaries: Vec<ZoneOnServer>,
}

/// How a zone stands on one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ZoneOnServer {
    /// The instance, with its namespace.
    #[schemars(transform = schema::no_default)]
    pub instance: String,
    /// The pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The pod's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The serial that it answers with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<i64>,
    /// Whether it answers for the zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaded: Option<bool>,
    /// Whether its serial is behind that of the server that the zone is written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<i64>,
    /// When its serial was last seen to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transfer: Option<String>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a zone is signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct ZoneSigning {
    /// Whether it is.
    #[schemars(transform = schema::no_default)]
    pub signed: bool,
    /// What the parent zone is to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ds_records: Vec<String>,
    /// Tag of the key-signing key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_tag: Option<i64>,
    /// What it is signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// When a key is renewed next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_key_rollover: Option<String>,
    /// When a key was renewed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_key_rollover: Option<String>,
}

impl DNSZone {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace().unwrap_or_default(), self.name_any())
    }
}
