//! The built-in kinds as a table: names, verbs, subresources, generation rules, as the real server's discovery has them.

use std::sync::LazyLock;

use portolan_schema::{Cursor, Schema};
use serde_json::{Map, Value};

use crate::meta::NameRule;

/// How `metadata.generation` of a kind is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// Never set.
    None,
    /// Starts at `first`; a change below one of the JSON pointers in `fields` adds one.
    Tracked {
        /// The value on creation; `0` means that the field stays absent until the first change.
        first: i64,
        /// JSON pointers, such as `/spec`.
        fields: &'static [&'static str],
    },
}

/// What the server knows about one built-in kind.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table, not a state")]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind, as `Deployment`.
    pub kind: &'static str,
    /// Resource name, as `deployments`.
    pub plural: &'static str,
    /// Singular resource name, as `deployment`.
    pub singular: &'static str,
    /// Short names, as `deploy`.
    pub short_names: &'static [&'static str],
    /// Categories, as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Name of the kind's definition in [`schema`].
    pub definition: &'static str,
    /// Whether `/status` is served.
    pub status: bool,
    /// Whether `/scale` is served.
    pub scale: bool,
    /// Further subresources that are served.
    pub subresources: &'static [&'static str],
    /// Verbs of the resource, sorted.
    pub verbs: &'static [&'static str],
    /// How the generation is kept.
    pub generation: Generation,
    /// Seconds between a delete request and the removal where the request names none; `0` removes at once.
    /// Pods use `spec.terminationGracePeriodSeconds` instead, and only once they are on a node.
    pub grace_seconds: i64,
    /// What names look like.
    pub name_rule: NameRule,
    /// Whether an update may create the object.
    pub create_on_update: bool,
    /// Whether an update may leave out `metadata.resourceVersion`.
    pub unconditional_update: bool,
    /// The warning that every request for this kind carries.
    pub warning: Option<&'static str>,
}

const ALL_VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
/// Verbs of kinds that are answered and never stored.
const CREATE_ONLY: &[&str] = &["create"];
const POD_SUBRESOURCES: &[&str] =
    &["attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize"];
const SPEC: Generation = Generation::Tracked { first: 1, fields: &["/spec"] };
const SPEC_OR_ANNOTATIONS: Generation = Generation::Tracked { first: 1, fields: &["/spec", "/metadata/annotations"] };

impl Kind {
    const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        singular: &'static str,
        definition: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            singular,
            short_names: &[],
            categories: &[],
            namespaced: true,
            definition,
            status: false,
            scale: false,
            subresources: &[],
            verbs: ALL_VERBS,
            generation: Generation::None,
            grace_seconds: 0,
            name_rule: NameRule::Subdomain,
            create_on_update: false,
            unconditional_update: true,
            warning: None,
        }
    }

    const fn cluster(mut self) -> Self {
        self.namespaced = false;
        self
    }

    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    const fn category(mut self, names: &'static [&'static str]) -> Self {
        self.categories = names;
        self
    }

    const fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    const fn with_scale(mut self) -> Self {
        self.scale = true;
        self
    }

    const fn also(mut self, subresources: &'static [&'static str]) -> Self {
        self.subresources = subresources;
        self
    }

    const fn verbs(mut self, verbs: &'static [&'static str]) -> Self {
        self.verbs = verbs;
        self
    }

    const fn generation(mut self, generation: Generation) -> Self {
        self.generation = generation;
        self
    }

    const fn grace(mut self, seconds: i64) -> Self {
        self.grace_seconds = seconds;
        self
    }

    const fn named(mut self, rule: NameRule) -> Self {
        self.name_rule = rule;
        self
    }

    const fn creates_on_update(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    const fn needs_version(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    const fn warns(mut self, warning: &'static str) -> Self {
        self.warning = Some(warning);
        self
    }

    /// `group/version`, or just the version in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether its objects are answered and never stored.
    pub fn is_virtual(&self) -> bool {
        self.verbs == CREATE_ONLY
    }

    /// The kind of its lists.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// The schema of its objects.
    pub fn cursor(&self) -> Cursor<'static> {
        schema().definition(self.definition).expect("the generated data has every kind of the table")
    }
}

/// The schemas of all built-in kinds.
///
/// The `default`s in it are those that `OpenAPI` publishes, zero values among them: they complete the keys of
/// associative lists. What an object gets on creation is decided by [`crate::strategy::prepare_create`].
pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let definitions: Map<String, Value> =
            serde_json::from_str(include_str!("../data/schemas.json")).expect("the generated data is JSON");
        Schema::parse_definitions(&definitions).expect("the generated data is a closed set of schemas")
    });
    &SCHEMA
}

/// The kind of a group, version and kind name.
pub fn find(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|k| k.group == group && k.version == version && k.kind == kind)
}

/// Definitions that requests use beside the kinds themselves.
pub const OTHER_DEFINITIONS: &[&str] = &[
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];

macro_rules! kind {
    ($group:literal $version:literal $kind:literal $plural:literal $singular:literal in $package:literal) => {
        Kind::new($group, $version, $kind, $plural, $singular, concat!($package, ".", $version, ".", $kind))
    };
}

/// What `/token` of a service account takes and answers.
pub const TOKEN_REQUEST: Kind =
    kind!("authentication.k8s.io" "v1" "TokenRequest" "tokenrequests" "tokenrequest" in "io.k8s.api.authentication")
        .verbs(CREATE_ONLY);

/// What `/scale` of a kind reads and writes; it has no collection.
pub const SCALE: Kind =
    kind!("autoscaling" "v1" "Scale" "scales" "scale" in "io.k8s.api.autoscaling").verbs(CREATE_ONLY);

/// Every built-in kind, in the order of discovery: by group, then by resource name.
pub const KINDS: &[Kind] = &[
    kind!("" "v1" "ConfigMap" "configmaps" "configmap" in "io.k8s.api.core").short(&["cm"]),
    kind!("" "v1" "Endpoints" "endpoints" "endpoints" in "io.k8s.api.core")
        .short(&["ep"])
        .creates_on_update()
        .warns("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    kind!("" "v1" "Event" "events" "event" in "io.k8s.api.core")
        .short(&["ev"])
        .named(NameRule::PathSegment)
        .creates_on_update(),
    kind!("" "v1" "LimitRange" "limitranges" "limitrange" in "io.k8s.api.core").short(&["limits"]).creates_on_update(),
    kind!("" "v1" "Namespace" "namespaces" "namespace" in "io.k8s.api.core")
        .cluster()
        .short(&["ns"])
        .with_status()
        .also(&["finalize"])
        .verbs(NAMESPACE_VERBS)
        .named(NameRule::Label),
    kind!("" "v1" "Node" "nodes" "node" in "io.k8s.api.core").cluster().short(&["no"]).with_status(),
    kind!("" "v1" "PersistentVolumeClaim" "persistentvolumeclaims" "persistentvolumeclaim" in "io.k8s.api.core")
        .short(&["pvc"])
        .with_status(),
    kind!("" "v1" "PersistentVolume" "persistentvolumes" "persistentvolume" in "io.k8s.api.core")
        .cluster()
        .short(&["pv"])
        .with_status(),
    kind!("" "v1" "Pod" "pods" "pod" in "io.k8s.api.core")
        .short(&["po"])
        .category(&["all"])
        .with_status()
        .also(POD_SUBRESOURCES)
        .generation(SPEC)
        .grace(30),
    kind!("" "v1" "ResourceQuota" "resourcequotas" "resourcequota" in "io.k8s.api.core")
        .short(&["quota"])
        .with_status(),
    kind!("" "v1" "Secret" "secrets" "secret" in "io.k8s.api.core"),
    kind!("" "v1" "ServiceAccount" "serviceaccounts" "serviceaccount" in "io.k8s.api.core")
        .short(&["sa"])
        .also(&["token"]),
    kind!("" "v1" "Service" "services" "service" in "io.k8s.api.core")
        .short(&["svc"])
        .category(&["all"])
        .with_status()
        .named(NameRule::Label)
        .creates_on_update(),
    kind!("admissionregistration.k8s.io" "v1" "MutatingWebhookConfiguration" "mutatingwebhookconfigurations"
        "mutatingwebhookconfiguration" in "io.k8s.api.admissionregistration")
    .cluster()
    .category(&["api-extensions"])
    .generation(Generation::Tracked { first: 1, fields: &["/webhooks"] })
    .needs_version(),
    kind!("admissionregistration.k8s.io" "v1" "ValidatingWebhookConfiguration" "validatingwebhookconfigurations"
        "validatingwebhookconfiguration" in "io.k8s.api.admissionregistration")
    .cluster()
    .category(&["api-extensions"])
    .generation(Generation::Tracked { first: 1, fields: &["/webhooks"] })
    .needs_version(),
    Kind::new(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    )
    .cluster()
    .short(&["crd", "crds"])
    .category(&["api-extensions"])
    .with_status()
    .generation(SPEC)
    .needs_version(),
    kind!("apps" "v1" "ControllerRevision" "controllerrevisions" "controllerrevision" in "io.k8s.api.apps"),
    kind!("apps" "v1" "DaemonSet" "daemonsets" "daemonset" in "io.k8s.api.apps")
        .short(&["ds"])
        .category(&["all"])
        .with_status()
        .generation(SPEC),
    kind!("apps" "v1" "Deployment" "deployments" "deployment" in "io.k8s.api.apps")
        .short(&["deploy"])
        .category(&["all"])
        .with_status()
        .with_scale()
        .generation(SPEC_OR_ANNOTATIONS),
    kind!("apps" "v1" "ReplicaSet" "replicasets" "replicaset" in "io.k8s.api.apps")
        .short(&["rs"])
        .category(&["all"])
        .with_status()
        .with_scale()
        .generation(SPEC),
    kind!("apps" "v1" "StatefulSet" "statefulsets" "statefulset" in "io.k8s.api.apps")
        .short(&["sts"])
        .category(&["all"])
        .with_status()
        .with_scale()
        .generation(SPEC)
        .named(NameRule::Label),
    kind!("authentication.k8s.io" "v1" "SelfSubjectReview" "selfsubjectreviews" "selfsubjectreview"
        in "io.k8s.api.authentication")
    .cluster()
    .verbs(CREATE_ONLY),
    kind!("authentication.k8s.io" "v1" "TokenReview" "tokenreviews" "tokenreview" in "io.k8s.api.authentication")
        .cluster()
        .verbs(CREATE_ONLY),
    kind!("authorization.k8s.io" "v1" "LocalSubjectAccessReview" "localsubjectaccessreviews"
        "localsubjectaccessreview" in "io.k8s.api.authorization")
    .verbs(CREATE_ONLY),
    kind!("authorization.k8s.io" "v1" "SelfSubjectAccessReview" "selfsubjectaccessreviews" "selfsubjectaccessreview"
        in "io.k8s.api.authorization")
    .cluster()
    .verbs(CREATE_ONLY),
    kind!("authorization.k8s.io" "v1" "SelfSubjectRulesReview" "selfsubjectrulesreviews" "selfsubjectrulesreview"
        in "io.k8s.api.authorization")
    .cluster()
    .verbs(CREATE_ONLY),
    kind!("authorization.k8s.io" "v1" "SubjectAccessReview" "subjectaccessreviews" "subjectaccessreview"
        in "io.k8s.api.authorization")
    .cluster()
    .verbs(CREATE_ONLY),
    kind!("autoscaling" "v2" "HorizontalPodAutoscaler" "horizontalpodautoscalers" "horizontalpodautoscaler"
        in "io.k8s.api.autoscaling")
    .short(&["hpa"])
    .category(&["all"])
    .with_status(),
    kind!("batch" "v1" "CronJob" "cronjobs" "cronjob" in "io.k8s.api.batch")
        .short(&["cj"])
        .category(&["all"])
        .with_status()
        .generation(SPEC),
    kind!("batch" "v1" "Job" "jobs" "job" in "io.k8s.api.batch").category(&["all"]).with_status().generation(SPEC),
    kind!("coordination.k8s.io" "v1" "Lease" "leases" "lease" in "io.k8s.api.coordination")
        .creates_on_update()
        .needs_version(),
    kind!("discovery.k8s.io" "v1" "EndpointSlice" "endpointslices" "endpointslice" in "io.k8s.api.discovery")
        .generation(Generation::Tracked {
            first: 1,
            fields: &["/addressType", "/endpoints", "/ports", "/metadata/labels"],
        }),
    kind!("events.k8s.io" "v1" "Event" "events" "event" in "io.k8s.api.events").short(&["ev"]).creates_on_update(),
    kind!("networking.k8s.io" "v1" "IngressClass" "ingressclasses" "ingressclass" in "io.k8s.api.networking")
        .cluster()
        .generation(SPEC),
    kind!("networking.k8s.io" "v1" "Ingress" "ingresses" "ingress" in "io.k8s.api.networking")
        .short(&["ing"])
        .with_status()
        .generation(SPEC),
    kind!("networking.k8s.io" "v1" "NetworkPolicy" "networkpolicies" "networkpolicy" in "io.k8s.api.networking")
        .short(&["netpol"])
        .generation(SPEC),
    kind!("policy" "v1" "PodDisruptionBudget" "poddisruptionbudgets" "poddisruptionbudget" in "io.k8s.api.policy")
        .short(&["pdb"])
        .named(NameRule::PathSegment)
        .with_status()
        .generation(SPEC)
        .needs_version(),
    kind!("rbac.authorization.k8s.io" "v1" "ClusterRoleBinding" "clusterrolebindings" "clusterrolebinding"
        in "io.k8s.api.rbac")
    .cluster()
    .named(NameRule::PathSegment)
    .creates_on_update(),
    kind!("rbac.authorization.k8s.io" "v1" "ClusterRole" "clusterroles" "clusterrole" in "io.k8s.api.rbac")
        .cluster()
        .named(NameRule::PathSegment)
        .creates_on_update(),
    kind!("rbac.authorization.k8s.io" "v1" "RoleBinding" "rolebindings" "rolebinding" in "io.k8s.api.rbac")
        .named(NameRule::PathSegment)
        .creates_on_update(),
    kind!("rbac.authorization.k8s.io" "v1" "Role" "roles" "role" in "io.k8s.api.rbac")
        .named(NameRule::PathSegment)
        .creates_on_update(),
    kind!("scheduling.k8s.io" "v1" "PriorityClass" "priorityclasses" "priorityclass" in "io.k8s.api.scheduling")
        .cluster()
        .short(&["pc"])
        .generation(Generation::Tracked { first: 1, fields: &[] }),
    kind!("storage.k8s.io" "v1" "CSIDriver" "csidrivers" "csidriver" in "io.k8s.api.storage")
        .cluster()
        .generation(Generation::Tracked { first: 0, fields: &["/spec"] })
        .needs_version(),
    kind!("storage.k8s.io" "v1" "CSINode" "csinodes" "csinode" in "io.k8s.api.storage").cluster().needs_version(),
    kind!("storage.k8s.io" "v1" "StorageClass" "storageclasses" "storageclass" in "io.k8s.api.storage")
        .cluster()
        .short(&["sc"]),
    kind!("storage.k8s.io" "v1" "VolumeAttachment" "volumeattachments" "volumeattachment" in "io.k8s.api.storage")
        .cluster()
        .with_status()
        .needs_version(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_table_has_a_schema_with_metadata() {
        for kind in KINDS {
            assert!(kind.cursor().property("metadata").is_some(), "{}", kind.definition);
        }
    }

    #[test]
    fn lists_told_apart_by_keys_keep_their_keys() {
        let pod = find("", "v1", "Pod").unwrap().cursor();

        let containers = pod.property("spec").and_then(|s| s.property("containers")).unwrap();
        let ports = containers.items().and_then(|c| c.property("ports")).unwrap();

        assert_eq!(containers.node().list_map_keys, ["name"]);
        assert_eq!(ports.node().list_map_keys, ["containerPort", "protocol"]);
        let protocol = ports.items().and_then(|p| p.property("protocol")).unwrap();
        assert_eq!(protocol.node().default, Some("TCP".into()));
    }

    #[test]
    fn status_stands_in_the_schema_of_every_kind_that_serves_it() {
        for kind in KINDS.iter().filter(|kind| kind.status) {
            assert!(kind.cursor().property("status").is_some(), "{}", kind.kind);
        }
    }
}
