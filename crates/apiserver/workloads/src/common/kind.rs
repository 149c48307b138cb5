//! The kinds that own or are owned, and the collections that their objects are in.

/// A kind of objects.
pub(crate) struct ObjectKind {
    /// As `apps/v1`.
    pub(crate) api_version: &'static str,
    /// As `ReplicaSet`.
    pub(crate) name: &'static str,
    /// As `replicasets.apps`.
    pub(crate) collection: &'static str,
}

pub(crate) const PODS: &str = "pods";
pub(crate) const SERVICES: &str = "services";
pub(crate) const ENDPOINTS: &str = "endpoints";
pub(crate) const NODES: &str = "nodes";
pub(crate) const NAMESPACES: &str = "namespaces";
pub(crate) const DEPLOYMENTS: &str = "deployments.apps";
pub(crate) const REPLICA_SETS: &str = "replicasets.apps";
pub(crate) const STATEFUL_SETS: &str = "statefulsets.apps";
pub(crate) const JOBS: &str = "jobs.batch";

pub(crate) const POD: ObjectKind = ObjectKind { api_version: "v1", name: "Pod", collection: PODS };
pub(crate) const SERVICE: ObjectKind = ObjectKind { api_version: "v1", name: "Service", collection: SERVICES };
pub(crate) const WRITTEN_ENDPOINTS: ObjectKind =
    ObjectKind { api_version: "v1", name: "Endpoints", collection: ENDPOINTS };
pub(crate) const DEPLOYMENT: ObjectKind =
    ObjectKind { api_version: "apps/v1", name: "Deployment", collection: DEPLOYMENTS };
pub(crate) const REPLICA_SET: ObjectKind =
    ObjectKind { api_version: "apps/v1", name: "ReplicaSet", collection: REPLICA_SETS };
pub(crate) const STATEFUL_SET: ObjectKind =
    ObjectKind { api_version: "apps/v1", name: "StatefulSet", collection: STATEFUL_SETS };
pub(crate) const JOB: ObjectKind = ObjectKind { api_version: "batch/v1", name: "Job", collection: JOBS };
