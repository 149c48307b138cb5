//! What a replica set says of its pods.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Step;
use crate::common::diff::merge_patch;
use crate::common::kind::REPLICA_SETS;
use crate::common::object::{at, label, list, number, seconds};
use crate::common::step::{change_status, target};
use crate::common::{condition, pod};

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Pods by what they have come to.
pub(super) struct PodCounts {
    replicas: usize,
    fully_labeled: usize,
    pub(super) ready: usize,
    pub(super) available: usize,
    terminating: usize,
}

impl PodCounts {
    pub(super) fn of(set: &Value, active: &[Arc<Value>], terminating: usize, now: Timestamp) -> Self {
        let template = at(set, "/spec/template/metadata/labels").and_then(Value::as_object);
        let is_labeled =
            |pod: &Value| template.into_iter().flatten().all(|(key, value)| label(pod, key) == value.as_str());
        let min_ready_seconds = number(set, "/spec/minReadySeconds");
        let count = |is: &dyn Fn(&Value) -> bool| active.iter().filter(|pod| is(pod)).count();
        Self {
            replicas: active.len(),
            fully_labeled: count(&is_labeled),
            ready: count(&pod::is_ready),
            available: count(&|pod| pod::is_available(pod, min_ready_seconds, now)),
            terminating,
        }
    }
}

/// The step to the status that says so, where it is another one. `failure` is why pods could not be made or deleted.
pub(super) fn update(set: &Value, counted: &PodCounts, failure: Option<(&str, &str)>, now: Timestamp) -> Option<Step> {
    let mut status = json!({"replicas": counted.replicas, "terminatingReplicas": counted.terminating});
    let shown_unless_zero = [
        ("fullyLabeledReplicas", counted.fully_labeled),
        ("readyReplicas", counted.ready),
        ("availableReplicas", counted.available),
    ];
    for (field, count) in shown_unless_zero.into_iter().filter(|(_, count)| *count > 0) {
        status[field] = json!(count);
    }
    let generation = number(set, "/metadata/generation");
    if generation > 0 {
        status["observedGeneration"] = json!(generation);
    }
    let conditions = list(set, "/status/conditions");
    if !conditions.is_empty() {
        status["conditions"] = json!(conditions);
    }
    match failure {
        // A failure that is already told is not told anew.
        Some(_) if condition::find(&status, REPLICA_FAILURE).is_some() => {}
        Some((reason, message)) => condition::set(
            &mut status,
            json!({
                "type": REPLICA_FAILURE, "status": "True", "reason": reason, "message": message,
                "lastTransitionTime": seconds(now),
            }),
        ),
        None => condition::remove(&mut status, REPLICA_FAILURE),
    }
    let patch = merge_patch(&set["status"], &status)?;
    Some(change_status(target(REPLICA_SETS, set), patch))
}
