//! More that controllers ask about a pod: its phase, and which of two is missed less.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use crate::common::object::{text, time};
use crate::common::pod::{is_ready, ready_since, restarts};
use crate::objects::list;

pub(crate) fn phase(pod: &Value) -> &str {
    text(pod, "/status/phase")
}

/// Who is deleted first: those without a node, not yet running, not ready, ready for a short time, often restarted, young.
pub(crate) fn by_loss(a: &Value, b: &Value) -> Ordering {
    let placed = |pod: &Value| !text(pod, "/spec/nodeName").is_empty();
    let later_first = |a: Option<Timestamp>, b: Option<Timestamp>| match (a, b) {
        (Some(a), Some(b)) => b.cmp(&a),
        (a, b) => a.is_some().cmp(&b.is_some()),
    };
    let born = |pod: &Value| time(pod, "/metadata/creationTimestamp");
    (placed(a).cmp(&placed(b)))
        .then_with(|| progress(a).cmp(&progress(b)))
        .then_with(|| is_ready(a).cmp(&is_ready(b)))
        .then_with(|| later_first(ready_since(a), ready_since(b)))
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| later_first(born(a), born(b)))
}

fn progress(pod: &Value) -> u8 {
    match phase(pod) {
        "Unknown" => 1,
        "Running" => 2,
        _ => 0,
    }
}

/// Whether a status of an init container is about one that runs all the time.
pub(crate) fn is_sidecar(pod: &Value, status: &Value) -> bool {
    let same = |container: &&Value| container["name"] == status["name"];
    list(pod, "/spec/initContainers").iter().find(same).is_some_and(|found| found["restartPolicy"] == "Always")
}

/// Letters and digits that make no words, as Kubernetes draws names from.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Bytes as letters that are safe in names.
pub(crate) fn safe_letters(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ready(since: &str) -> Value {
        json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": since},
        ]}})
    }

    #[test]
    fn the_pod_that_did_least_is_lost_first() {
        let pending = json!({"status": {"phase": "Pending"}});
        let (old, young) = (ready("2026-01-01T00:00:00Z"), ready("2026-01-01T00:01:00Z"));
        let mut pods = [&old, &young, &pending];

        pods.sort_by(|a, b| by_loss(a, b));

        assert_eq!(pods, [&pending, &young, &old]);
    }
}
