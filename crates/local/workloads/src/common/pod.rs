//! What a pod's status says, and a new pod of a template.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::object::{is_deleting, number, text, time};

/// Where pods are.
pub(crate) const PODS: &str = "pods";

/// Whether it has run to its end.
pub(crate) fn is_finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// Whether it counts: neither finished nor told to go.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_finished(pod) && !is_deleting(pod)
}

/// Whether it was told to go and has not ended yet.
pub(crate) fn is_terminating(pod: &Value) -> bool {
    !is_finished(pod) && is_deleting(pod)
}

fn ready_condition(pod: &Value) -> Option<&Value> {
    super::condition::find(&pod["status"], "Ready")
}

/// Whether its `Ready` condition is true.
pub(crate) fn is_ready(pod: &Value) -> bool {
    ready_condition(pod).is_some_and(|condition| condition["status"] == "True")
}

/// Since when it is ready.
pub(crate) fn ready_since(pod: &Value) -> Option<Timestamp> {
    let condition = ready_condition(pod).filter(|condition| condition["status"] == "True")?;
    time(condition, "/lastTransitionTime")
}

/// Whether it has been ready for long enough.
pub(crate) fn is_available(pod: &Value, min_ready_seconds: i64, now: Timestamp) -> bool {
    if min_ready_seconds == 0 {
        return is_ready(pod);
    }
    available_at(pod, min_ready_seconds).is_some_and(|at| at <= now)
}

fn available_at(pod: &Value, min_ready_seconds: i64) -> Option<Timestamp> {
    ready_since(pod)?.checked_add(SignedDuration::from_secs(min_ready_seconds)).ok()
}

/// How long until it has been ready for long enough; `None` where time alone does not help.
pub(crate) fn available_in(pod: &Value, min_ready_seconds: i64, now: Timestamp) -> Option<Duration> {
    let at = available_at(pod, min_ready_seconds)?;
    Duration::try_from(at.duration_since(now)).ok().filter(|wait| !wait.is_zero())
}

/// The most restarts of its containers, and of its sidecars.
pub(crate) fn restarts(pod: &Value) -> (i64, i64) {
    let statuses = |field: &str| pod["status"][field].as_array().into_iter().flatten();
    let containers = statuses("containerStatuses").map(|status| number(status, "/restartCount")).max();
    let is_sidecar = |name: &Value| {
        let containers = pod["spec"]["initContainers"].as_array().into_iter().flatten();
        containers.into_iter().any(|c| c["name"] == *name && c["restartPolicy"] == "Always")
    };
    let sidecars = statuses("initContainerStatuses").filter(|status| is_sidecar(&status["name"]));
    (containers.unwrap_or(0), sidecars.map(|status| number(status, "/restartCount")).max().unwrap_or(0))
}

/// A pod of a template, with a name drawn for its owner, controlled by `reference`.
pub(crate) fn from_template(template: &Value, namespace: &str, owner: &str, reference: Value) -> Value {
    let mut metadata = json!({
        "namespace": namespace, "generateName": format!("{owner}-"), "ownerReferences": [reference],
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = &template["metadata"][field];
        if !value.is_null() {
            metadata[field] = value.clone();
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}
