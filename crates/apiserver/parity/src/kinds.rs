//! Short names that the cases use for collections, and what an object in them is called.

/// A built-in collection under its short name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortKind {
    pub short: &'static str,
    pub api_version: &'static str,
    pub name: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

const fn namespaced(
    short: &'static str,
    api_version: &'static str,
    name: &'static str,
    plural: &'static str,
) -> ShortKind {
    ShortKind { short, api_version, name, plural, namespaced: true }
}

const fn cluster(
    short: &'static str,
    api_version: &'static str,
    name: &'static str,
    plural: &'static str,
) -> ShortKind {
    ShortKind { short, api_version, name, plural, namespaced: false }
}

/// Every collection that a case can name.
pub(crate) const KINDS: &[ShortKind] = &[
    namespaced("cm", "v1", "ConfigMap", "configmaps"),
    namespaced("secret", "v1", "Secret", "secrets"),
    namespaced("svc", "v1", "Service", "services"),
    namespaced("ep", "v1", "Endpoints", "endpoints"),
    namespaced("pod", "v1", "Pod", "pods"),
    namespaced("sa", "v1", "ServiceAccount", "serviceaccounts"),
    namespaced("event", "v1", "Event", "events"),
    namespaced("pvc", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    namespaced("quota", "v1", "ResourceQuota", "resourcequotas"),
    namespaced("deploy", "apps/v1", "Deployment", "deployments"),
    namespaced("rs", "apps/v1", "ReplicaSet", "replicasets"),
    namespaced("sts", "apps/v1", "StatefulSet", "statefulsets"),
    namespaced("ds", "apps/v1", "DaemonSet", "daemonsets"),
    namespaced("job", "batch/v1", "Job", "jobs"),
    namespaced("cronjob", "batch/v1", "CronJob", "cronjobs"),
    namespaced("lease", "coordination.k8s.io/v1", "Lease", "leases"),
    namespaced("slice", "discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    namespaced("ing", "networking.k8s.io/v1", "Ingress", "ingresses"),
    namespaced("netpol", "networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    namespaced("role", "rbac.authorization.k8s.io/v1", "Role", "roles"),
    namespaced("rolebinding", "rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    namespaced("pdb", "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    namespaced("newevent", "events.k8s.io/v1", "Event", "events"),
    cluster("namespace", "v1", "Namespace", "namespaces"),
    cluster("node", "v1", "Node", "nodes"),
    cluster("pv", "v1", "PersistentVolume", "persistentvolumes"),
    cluster("ingclass", "networking.k8s.io/v1", "IngressClass", "ingressclasses"),
    cluster("clusterrole", "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
    cluster("binding", "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
    cluster("sc", "storage.k8s.io/v1", "StorageClass", "storageclasses"),
    cluster("pc", "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
    cluster("crd", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
];

/// Group, version and kind of the custom resource that each case may define; `id` keeps the cases apart.
pub(crate) const CUSTOM: [(&str, &str); 3] = [("cr", "v1"), ("cr2", "v2"), ("cr3", "v1beta1")];

impl ShortKind {
    /// The path of the collection.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let folder = if self.namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        format!("/{root}/{}/{folder}{}", self.api_version, self.plural)
    }
}
