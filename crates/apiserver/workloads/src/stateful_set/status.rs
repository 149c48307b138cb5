//! The pods of a `StatefulSet` in, its status out.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::identity::{revision_of, wanted};
use super::revisions::RevisionHistory;
use crate::common::object::{is_deleting, number, text};
use crate::common::pod::{is_available, is_ready, phase};

/// How many pods there are, and of which sort.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SetCounts {
    replicas: i64,
    pub(super) ready: i64,
    pub(super) available: i64,
    pub(super) current: i64,
    updated: i64,
}

impl SetCounts {
    pub(super) fn of<'a>(
        pods: impl Iterator<Item = &'a Value>,
        min_ready_seconds: i64,
        history: &RevisionHistory,
        now: Timestamp,
    ) -> Self {
        let mut counts = Self::default();
        for pod in pods.filter(|pod| !phase(pod).is_empty()) {
            counts.replicas += 1;
            if phase(pod) == "Running" && is_ready(pod) {
                counts.ready += 1;
                counts.available += i64::from(is_available(pod, min_ready_seconds, now));
            }
            if !is_deleting(pod) {
                counts.current += i64::from(revision_of(pod) == history.current.name);
                counts.updated += i64::from(revision_of(pod) == history.update.name);
            }
        }
        counts
    }
}

/// The status that these pods make, or none where the one that is there says the same.
pub(super) fn status(set: &Value, history: &RevisionHistory, mut counts: SetCounts) -> Option<Value> {
    let mut current = history.current.name.as_str();
    let wanted = wanted(set);
    let rolling = text(set, "/spec/updateStrategy/type") == "RollingUpdate";
    if rolling && [counts.updated, counts.ready, counts.replicas].iter().all(|count| *count == wanted) {
        counts.current = counts.updated;
        current = &history.update.name;
    }
    let status = written(set, history, &counts, current);
    differs(&set["status"], &status).then_some(status)
}

fn written(set: &Value, history: &RevisionHistory, counts: &SetCounts, current: &str) -> Value {
    let mut status = json!({
        "observedGeneration": number(set, "/metadata/generation"),
        "replicas": counts.replicas,
        "availableReplicas": counts.available,
        "currentRevision": current,
        "updateRevision": history.update.name,
        "collisionCount": history.collisions,
    });
    let counts =
        [("readyReplicas", counts.ready), ("currentReplicas", counts.current), ("updatedReplicas", counts.updated)];
    for (field, count) in counts.iter().filter(|(_, count)| *count != 0) {
        status[field] = json!(count);
    }
    status
}

/// What makes a status worth writing.
fn differs(old: &Value, new: &Value) -> bool {
    let counted = ["/replicas", "/currentReplicas", "/readyReplicas", "/updatedReplicas", "/availableReplicas"];
    number(new, "/observedGeneration") > number(old, "/observedGeneration")
        || counted.iter().any(|count| number(old, count) != number(new, count))
        || ["currentRevision", "updateRevision"].iter().any(|field| old[field] != new[field])
}
