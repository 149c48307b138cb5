//! What a pod's status says, and a new pod of a template.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::condition;
use super::kind::ObjectKind;
use super::object::{is_deleting, list, name, namespace, number, text, time};
use super::owner::controller_reference;

/// As `Running`; empty for a pod that is not made yet.
pub(crate) fn phase(pod: &Value) -> &str {
    text(pod, "/status/phase")
}

/// Whether it has run to its end.
pub(crate) fn is_finished(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether it counts: neither finished nor told to go.
pub(crate) fn is_active(pod: &Value) -> bool {
    !is_finished(pod) && !is_deleting(pod)
}

/// Whether it was told to go and has not ended yet.
pub(crate) fn is_terminating(pod: &Value) -> bool {
    !is_finished(pod) && is_deleting(pod)
}

/// Its `Ready` condition, whatever that says.
pub(crate) fn ready_condition(pod: &Value) -> Option<&Value> {
    condition::find(&pod["status"], "Ready")
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

/// Whether a status of an init container is about one that runs all the time.
fn is_sidecar(pod: &Value, status: &Value) -> bool {
    let mut containers = list(pod, "/spec/initContainers").iter();
    containers.any(|container| container["name"] == status["name"] && container["restartPolicy"] == "Always")
}

/// The statuses of its sidecars.
pub(crate) fn sidecars(pod: &Value) -> impl Iterator<Item = &Value> {
    list(pod, "/status/initContainerStatuses").iter().filter(|status| is_sidecar(pod, status))
}

/// The most restarts of its containers, and of its sidecars.
pub(crate) fn restarts(pod: &Value) -> (i64, i64) {
    let count = |status: &Value| number(status, "/restartCount");
    let containers = list(pod, "/status/containerStatuses").iter().map(count).max();
    (containers.unwrap_or(0), sidecars(pod).map(count).max().unwrap_or(0))
}

/// A pod of a template, with a name drawn for the owner that controls it.
pub(crate) fn from_template(template: &Value, owner: &Value, kind: &ObjectKind) -> Value {
    let mut metadata = json!({
        "namespace": namespace(owner), "generateName": format!("{}-", name(owner)),
        "ownerReferences": [controller_reference(owner, kind)],
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = &template["metadata"][field];
        if !value.is_null() {
            metadata[field] = value.clone();
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}
