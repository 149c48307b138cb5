//! Labels, annotations, finalizers and names of objects: those of the older operator, so that what stands stays.

use portolan_core::{ObjectKey, digest_hex};

/// The API group of all kinds.
pub const GROUP: &str = "bindy.firestoned.io";
/// Group and version of all kinds.
pub const API_VERSION: &str = "bindy.firestoned.io/v1beta1";
/// Under which name the older operator owned fields; what it applied is ours to change and to leave out.
pub const FIELD_MANAGER: &str = "bindy-controller";

/// The finalizer of clusters and providers.
pub const CLUSTER_FINALIZER: &str = "bindy.firestoned.io/bind9cluster-finalizer";
/// The finalizer of instances.
pub const INSTANCE_FINALIZER: &str = "bindy.firestoned.io/bind9instance-finalizer";
/// The finalizer of zones.
pub const ZONE_FINALIZER: &str = "bindy.firestoned.io/dnszone-finalizer";

/// Label: the kind of object that made this one.
pub const MANAGED_BY: &str = "bindy.firestoned.io/managed-by";
/// Label: the cluster that this belongs to.
pub const CLUSTER: &str = "bindy.firestoned.io/cluster";
/// Label: the role of a server.
pub const ROLE: &str = "bindy.firestoned.io/role";
/// Label of Kubernetes: the application that this belongs to.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// Annotation: which of its role's instances this is.
pub const INSTANCE_INDEX: &str = "bindy.firestoned.io/instance-index";
/// Annotation of instances, and of providers for all of theirs: namespaces whose zones they serve besides their own.
pub const ALLOW_ZONE_NAMESPACES: &str = "bindy.firestoned.io/allow-zone-namespaces";
/// Annotation of zones: servers that cannot be reached are not waited for when the zone goes.
pub const ORPHAN: &str = "bindy.firestoned.io/orphan";
/// Annotation of a Secret: when its keys were made.
pub const KEYS_CREATED_AT: &str = "bindy.firestoned.io/rndc-created-at";
/// Annotation of a Secret: when its keys are to be renewed.
pub const KEYS_ROTATE_AT: &str = "bindy.firestoned.io/rndc-rotate-at";
/// Annotation of a Secret: how often its keys were renewed.
pub const KEYS_ROTATION_COUNT: &str = "bindy.firestoned.io/rndc-rotation-count";
/// Annotation of a Secret: when its keys were last renewed.
pub const KEYS_ROTATED_AT: &str = "bindy.firestoned.io/rndc-rotated-at";
/// Annotation of pods: what of their configuration only a new pod takes.
pub const ROLLOUT_DIGEST: &str = "bindy.firestoned.io/rollout-digest";
/// Annotation of everything that is made: a digest of what was asked for, so that what is asked for no longer is noticed.
pub const APPLIED_DIGEST: &str = "bindy.firestoned.io/applied-digest";
/// Condition of pods that holds their readiness until they have all zones.
pub const ZONES_LOADED: &str = "bindy.firestoned.io/zones-loaded";

/// The `ServiceAccount` that servers run as, one for a namespace.
pub const SERVICE_ACCOUNT: &str = "bind9";

/// Letters of a digest in a name: enough that no two things of a cluster share one.
const DIGEST: usize = 16;

/// The Secret with an instance's keys, where the user does not name one.
pub fn keys_secret(instance: &str) -> String {
    format!("{instance}-rndc-key")
}

/// The Secret with what servers need of keys, where the user has a Secret for the key itself.
pub fn server_keys_secret(instance: &str) -> String {
    format!("{instance}-server-keys")
}

/// The `ConfigMap` with an instance's configuration. There is none for a whole cluster, so an instance may be called as a cluster is.
pub fn config_map(instance: &str) -> String {
    format!("{instance}-config")
}

/// The Service by which the servers themselves are reached, whether they are ready or not.
pub fn control_service(instance: &str) -> String {
    format!("{instance}-control")
}

/// The instance of a cluster with this role and number.
pub fn instance(cluster: &str, role: &str, index: i32) -> String {
    format!("{cluster}-{role}-{index}")
}

/// The key with which the zones of a server are transferred: it is known to those who follow it, so it has a name of its own.
pub fn transfer_key(server: &ObjectKey) -> String {
    let namespace = server.namespace.as_deref().unwrap_or_default();
    let fits = server.name.len() <= 63 && namespace.len() <= 63 && !server.name.contains('.');
    if fits {
        format!("transfer.{}.{namespace}", server.name)
    } else {
        format!("transfer.{}", digest(&[&server.to_string()]))
    }
}

/// The catalog zone (RFC 9432) by which one server tells another which of its zones to follow.
pub fn catalog(writer: &ObjectKey, follower: &ObjectKey) -> String {
    format!("c{}.catalog.bindy", digest(&[&writer.to_string(), &follower.to_string()]))
}

/// The label of a zone in a catalog: SHA-1 in the standard's example, any label that is unique by its rules (RFC 9432 §4.1).
pub fn catalog_member(zone: &str) -> String {
    digest(&[&zone.to_ascii_lowercase()])
}

/// A few letters that stand for some texts.
pub fn digest(texts: &[&str]) -> String {
    digest_hex(texts.iter().copied(), DIGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_tell_writer_and_follower_apart() {
        let (one, other) = (ObjectKey::namespaced("dns", "a"), ObjectKey::namespaced("dns", "b"));

        assert_ne!(catalog(&one, &other), catalog(&other, &one));
        assert_eq!(catalog(&one, &other), catalog(&one, &other));
        assert!(catalog(&one, &other).ends_with(".catalog.bindy"));
    }

    #[test]
    fn a_transfer_key_has_the_name_of_its_server_unless_that_is_no_label() {
        assert_eq!(transfer_key(&ObjectKey::namespaced("dns", "main-primary-0")), "transfer.main-primary-0.dns");

        let long = transfer_key(&ObjectKey::namespaced("dns", "x".repeat(64)));
        assert!(long.len() < 40 && long != transfer_key(&ObjectKey::namespaced("dns", "y".repeat(64))), "{long}");
    }

    #[test]
    fn members_of_a_catalog_are_found_whatever_their_case() {
        assert_eq!(catalog_member("Example.COM"), catalog_member("example.com"));
    }
}
