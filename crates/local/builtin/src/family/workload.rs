//! `Deployment`, `ReplicaSet`, `StatefulSet`, `DaemonSet`, `ControllerRevision`.

use serde_json::{Value, json};

use crate::pod::template_defaults;
use crate::value::{default, existing, list_mut, object, text, text_at};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Replicas, strategy and limits of a Deployment.
pub(crate) fn deployment_defaults(deployment: &mut Value) {
    let Some(spec) = existing(deployment, "spec") else {
        return;
    };
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = object(spec, "strategy") {
        rolling(
            strategy,
            &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))],
        );
    }
    template(spec);
}

/// Replicas of a ReplicaSet.
pub(crate) fn replica_set_defaults(set: &mut Value) {
    let Some(spec) = existing(set, "spec") else { return };
    default(spec, "replicas", 1);
    template(spec);
}

/// Strategy and history of a DaemonSet.
pub(crate) fn daemon_set_defaults(set: &mut Value) {
    let Some(spec) = existing(set, "spec") else { return };
    default(spec, "revisionHistoryLimit", 10);
    if let Some(strategy) = object(spec, "updateStrategy") {
        rolling(strategy, &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
    }
    template(spec);
}

/// Policies, strategy and claims of a StatefulSet.
pub(crate) fn stateful_set_defaults(set: &mut Value) {
    let Some(spec) = existing(set, "spec") else { return };
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = object(spec, "updateStrategy") {
        if text(strategy, "type").is_empty() {
            strategy["type"] = json!("RollingUpdate");
            object(strategy, "rollingUpdate");
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(update) = existing(strategy, "rollingUpdate")
        {
            default(update, "partition", 0);
        }
    }
    if let Some(policy) = object(spec, "persistentVolumeClaimRetentionPolicy") {
        default(policy, "whenDeleted", "Retain");
        default(policy, "whenScaled", "Retain");
    }
    for claim in list_mut(spec, "volumeClaimTemplates") {
        default(claim, "apiVersion", "v1");
        default(claim, "kind", "PersistentVolumeClaim");
        super::storage::claim_defaults(claim);
    }
    template(spec);
}

/// The kind of update, and how it rolls.
fn rolling(strategy: &mut Value, limits: &[(&str, Value)]) {
    default(strategy, "type", "RollingUpdate");
    if text(strategy, "type") != "RollingUpdate" {
        return;
    }
    if let Some(update) = object(strategy, "rollingUpdate") {
        for (field, value) in limits {
            default(update, field, value.clone());
        }
    }
}

fn template(spec: &mut Value) {
    if let Some(template) = existing(spec, "template") {
        template_defaults(template);
    }
}

/// A DaemonSet counts its templates in an annotation.
pub(crate) fn prepare_daemon_set(set: &mut Value) {
    set_template_generation(set, 1);
}

/// A changed template counts one up; clients cannot set the count.
pub(crate) fn update_daemon_set(set: &mut Value, old: &Value) {
    let there = text_at(old, "/metadata/annotations/deprecated.daemonset.template.generation")
        .parse()
        .unwrap_or(0);
    let changed = set.pointer("/spec/template") != old.pointer("/spec/template");
    set_template_generation(set, there + i64::from(changed));
}

fn set_template_generation(set: &mut Value, generation: i64) {
    if let Some(annotations) = object(set, "metadata").and_then(|metadata| object(metadata, "annotations")) {
        annotations[TEMPLATE_GENERATION] = json!(generation.to_string());
    }
}
