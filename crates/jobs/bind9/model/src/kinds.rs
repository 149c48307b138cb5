//! The kinds of the job: one line each.

pub mod cluster;
pub mod dnssec;
pub mod instance;
pub mod keys;
pub(crate) mod patterns;
pub mod reference;
pub mod selector;
pub mod server;
pub mod zone;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub use cluster::{
    Bind9Cluster, Bind9ClusterSpec, ClusterBind9Provider, ClusterBind9ProviderSpec, ClusterStatus, CommonClusterSpec,
    RoleConfig,
};
pub use instance::{Bind9Instance, Bind9InstanceSpec, InstanceStatus, RndcKeyRotation, ServerRole};
pub use zone::{DNSZone, DNSZoneSpec, NameServer, SOARecord, ZoneOnServer, ZoneSigning, ZoneStatus};

/// The definitions of all kinds, what others refer to first.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![ClusterBind9Provider::crd(), Bind9Cluster::crd(), Bind9Instance::crd(), DNSZone::crd()]
}

#[cfg(test)]
mod tests;
