//! Reasons that only the bind9 job has, in the words of the older operator: each with when it appears.

portolan_core::reasons! {
    /// Zone, progressing: it is being made on the servers that it is written to.
    PRIMARY_RECONCILING = "PrimaryReconciling";
    /// Zone, degraded: it could not be made on the servers that it is written to; secondaries are left as they are.
    PRIMARY_FAILED = "PrimaryFailed";
    /// Zone, progressing: the servers that it is written to have it.
    PRIMARY_RECONCILED = "PrimaryReconciled";
    /// Zone, progressing: secondaries are being brought to follow.
    SECONDARY_RECONCILING = "SecondaryReconciling";
    /// Zone, progressing: secondaries follow.
    SECONDARY_RECONCILED = "SecondaryReconciled";
    /// Zone, ready: all servers that are to have it have it. Also beside conditions that say that nothing is wrong.
    RECONCILE_SUCCEEDED = "ReconcileSucceeded";
    /// Zone, degraded: secondaries do not follow; the servers that it is written to answer.
    SECONDARY_FAILED = "SecondaryFailed";
    /// Zone, progressing: records are being looked for.
    RECORDS_DISCOVERING = "RecordsDiscovering";
    /// Zone, not ready: an older zone has the name on one of the same servers.
    DUPLICATE_ZONE = "DuplicateZone";
    /// Zone, degraded: fewer servers have it than are to have it.
    PARTIAL_RECONCILIATION = "PartialReconciliation";
    /// Zone, not ready: something is degraded, which another condition tells.
    RECONCILE_DEGRADED = "ReconcileDegraded";
    /// Zone: nothing is being done.
    RECONCILE_COMPLETE = "ReconcileComplete";
    /// Zone, not ready: no server is selected, or none that may serve zones of this namespace.
    NO_INSTANCES = "NoInstances";
    /// Zone, not ready: a field says something that no zone can have.
    INVALID_SPEC = "InvalidSpec";
    /// Zone, not ready: a name server lies in the zone and has no address.
    GLUE_MISSING = "GlueMissing";

    /// Cluster or provider, not ready: it has no instances.
    NO_CHILDREN = "NoChildren";
    /// Ready: everything that belongs to it is.
    ALL_READY = "AllReady";
    /// Not ready: some of what belongs to it is, and some is not.
    PARTIALLY_READY = "PartiallyReady";
    /// Not ready: nothing of what belongs to it is, or it could not be made.
    NOT_READY = "NotReady";
    /// An instance of a cluster, or a pod of an instance, is ready.
    CHILD_READY = "Ready";
    /// Instance: its configuration is one that a server starts with.
    CONFIGURATION_VALID = "ConfigurationValid";
    /// Instance, cluster: no server would start with this; what runs goes on as it was.
    CONFIGURATION_INVALID = "ConfigurationInvalid";
    /// Fields are taken that have no effect; the message names them.
    FIELDS_IGNORED = "FieldsIgnored";
    /// Every field has its effect.
    FIELDS_HONOURED = "FieldsHonoured";
    /// Instance, not ready: pods have not started yet.
    PODS_PENDING = "PodsPending";
    /// Instance, not ready: pods end again and again.
    PODS_CRASHING = "PodsCrashing";
    /// Instance, not ready: an object of its name belongs to somebody else.
    OBJECT_NOT_OURS = "ObjectNotOurs";
    /// Instance: the cluster or provider that it names does not exist.
    CLUSTER_NOT_FOUND = "ClusterNotFound";
    /// Event: instances were made or deleted, so that there are as many as asked for.
    INSTANCES_SCALING = "InstancesScaling";
    /// Event: the keys of an instance were renewed.
    KEYS_ROTATED = "KeysRotated";
}
