//! What a deployment says of itself: counts, whether it is available, and whether it comes along.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::fence;
use super::rollout::Rollout;
use crate::common::condition;
use crate::common::diff::merge_patch;
use crate::common::kind::DEPLOYMENTS;
use crate::common::object::{given_number, name, number, seconds, time};
use crate::common::step::{change_status, event, target};
use crate::{EventType, Plan};

pub(super) const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const DONE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// How long a rollout may stand still; none where it may for ever.
fn deadline(deployment: &Value) -> Option<SignedDuration> {
    let seconds = given_number(deployment, "/spec/progressDeadlineSeconds");
    seconds.filter(|seconds| *seconds != i64::from(i32::MAX)).map(SignedDuration::from_secs)
}

fn new_condition(kind: &str, status: &str, reason: &str, message: String, now: Timestamp) -> Value {
    let now = seconds(now);
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": now, "lastTransitionTime": now,
    })
}

/// Whether everything runs the new template and is available.
pub(super) fn is_complete(deployment: &Value, status: &Value) -> bool {
    let wanted = number(deployment, "/spec/replicas");
    let counts = ["/updatedReplicas", "/replicas", "/availableReplicas"];
    let seen = number(status, "/observedGeneration") >= number(deployment, "/metadata/generation");
    seen && counts.iter().all(|count| number(status, count) == wanted)
}

/// Whether a status shows more new pods, fewer old ones, or more that work, than the one before.
fn is_progress(before: &Value, after: &Value) -> bool {
    let old = |status: &Value| number(status, "/replicas") - number(status, "/updatedReplicas");
    let grew = |count: &str| number(after, count) > number(before, count);
    old(after) < old(before) || ["/updatedReplicas", "/readyReplicas", "/availableReplicas"].into_iter().any(grew)
}

/// The plan after a new set was refused.
pub(super) fn not_created(deployment: &Value, message: String, now: Timestamp) -> Plan {
    let reason = "ReplicaSetCreateError";
    let mut steps = vec![event(deployment, EventType::Warning, reason, message.clone())];
    if deadline(deployment).is_some() {
        let mut status = deployment["status"].clone();
        condition::set(&mut status, new_condition(PROGRESSING, "False", reason, message, now));
        let patch = merge_patch(&deployment["status"], &status);
        steps.extend(patch.map(|patch| change_status(target(DEPLOYMENTS, deployment), patch)));
    }
    steps.into_iter().collect()
}

impl Rollout<'_> {
    /// Sets the condition of progress, where someone wants to know.
    pub(super) fn note_progress(&mut self, status: &str, reason: &str, message: String) {
        if deadline(&self.deployment).is_some() {
            let noted = new_condition(PROGRESSING, status, reason, message, self.view.now());
            condition::set(&mut self.deployment["status"], noted);
        }
    }

    /// Says that the rollout is paused or goes on, so that the time in between does not count.
    pub(super) fn note_pause(&mut self) {
        let reason = condition::find(&self.deployment["status"], PROGRESSING).map(|c| c["reason"].clone());
        if reason.as_ref().is_some_and(|reason| reason == TIMED_OUT) {
            return;
        }
        let was_paused = reason.is_some_and(|reason| reason == PAUSED);
        match (was_paused, self.is_paused()) {
            (false, true) => self.note_progress("Unknown", PAUSED, "Deployment is paused".to_owned()),
            (true, false) => self.note_progress("Unknown", "DeploymentResumed", "Deployment is resumed".to_owned()),
            (true, true) | (false, false) => {}
        }
    }

    /// The status by counting, with the conditions that there are and whether enough is available.
    pub(super) fn counted_status(&self) -> Value {
        let available = self.sum("/status/availableReplicas");
        let counts = [
            ("observedGeneration", number(&self.deployment, "/metadata/generation")),
            ("replicas", self.sum("/status/replicas")),
            ("updatedReplicas", self.new_set().map_or(0, |set| number(set, "/status/replicas"))),
            ("readyReplicas", self.sum("/status/readyReplicas")),
            ("availableReplicas", available),
            ("unavailableReplicas", self.sum("/spec/replicas") - available),
        ];
        let mut status = json!({});
        for (field, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            status[field] = json!(count);
        }
        if let Some(terminating) = self.terminating() {
            status["terminatingReplicas"] = json!(terminating);
        }
        for field in ["collisionCount", "conditions"] {
            if let Some(value) = self.deployment["status"].get(field).filter(|value| !value.is_null()) {
                status[field] = value.clone();
            }
        }
        let (holds, reason, message) = if available >= fence::min_available(&self.deployment) {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        let noted = new_condition("Available", holds, reason, message.to_owned(), self.view.now());
        condition::set(&mut status, noted);
        status
    }

    /// Pods on their way out; unknown while a set that was seen does not say.
    fn terminating(&self) -> Option<i64> {
        let counts = self.sets.iter().filter_map(|set| {
            let said = given_number(set, "/status/terminatingReplicas");
            let unseen = number(set, "/status/observedGeneration") == 0 && said.is_none();
            (!unseen).then_some(said)
        });
        counts.sum()
    }

    /// The status of a rollout: counted, and whether it comes along.
    pub(super) fn rollout_status(&self) -> Value {
        let mut status = self.counted_status();
        match deadline(&self.deployment) {
            None => condition::remove(&mut status, PROGRESSING),
            Some(_) => self.judge_progress(&mut status),
        }
        match self.replica_failure() {
            Some(failure) => condition::set(&mut status, failure),
            None => condition::remove(&mut status, REPLICA_FAILURE),
        }
        status
    }

    fn judge_progress(&self, status: &mut Value) {
        let current = condition::find(&self.deployment["status"], PROGRESSING).cloned();
        let done = current.as_ref().is_some_and(|current| current["reason"] == DONE);
        if done && number(status, "/replicas") == number(status, "/updatedReplicas") {
            return;
        }
        let subject = self.new_set().map_or_else(
            || format!("Deployment {:?}", name(&self.deployment)),
            |set| format!("ReplicaSet {:?}", name(set)),
        );
        let noted = |holds: &str, reason: &str, what: &str| {
            new_condition(PROGRESSING, holds, reason, format!("{subject} {what}."), self.view.now())
        };
        if is_complete(&self.deployment, status) {
            condition::set(status, noted("True", DONE, "has successfully progressed"));
        } else if is_progress(&self.deployment["status"], status) {
            let mut progressing = noted("True", "ReplicaSetUpdated", "is progressing");
            if let Some(current) = current.filter(|current| current["status"] == "True") {
                progressing["lastTransitionTime"] = current["lastTransitionTime"].clone();
            }
            // The time of the update moves with every step that is seen, though the reason stays.
            condition::replace(status, PROGRESSING, Some(progressing));
        } else if self.is_timed_out(status) {
            condition::set(status, noted("False", TIMED_OUT, "has timed out progressing"));
        }
    }

    fn is_timed_out(&self, status: &Value) -> bool {
        let Some(current) = condition::find(status, PROGRESSING) else { return false };
        if current["reason"] == DONE || current["reason"] == TIMED_OUT {
            return current["reason"] == TIMED_OUT;
        }
        self.due(current).is_some_and(|due| due < self.view.now())
    }

    /// When a rollout that shows no progress has had its time.
    fn due(&self, progressing: &Value) -> Option<Timestamp> {
        time(progressing, "/lastUpdateTime")?.checked_add(deadline(&self.deployment)?).ok()
    }

    /// How long until the rollout has to be looked at although nothing happened.
    pub(super) fn next_check(&self) -> Option<Duration> {
        let status = &self.deployment["status"];
        let progressing = condition::find(status, PROGRESSING)?;
        let over = [DONE, TIMED_OUT].iter().any(|reason| progressing["reason"] == *reason);
        if over || self.is_paused() || is_complete(&self.deployment, status) {
            return None;
        }
        let left = self.due(progressing)?.duration_since(self.view.now());
        // Times of conditions are whole seconds.
        Some(Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1))
    }

    /// What keeps a set from its pods: the new one's, or the first that is found.
    fn replica_failure(&self) -> Option<Value> {
        let failure = |set: &Value| condition::find(&set["status"], REPLICA_FAILURE).cloned();
        let found = self.new_set().and_then(failure).or_else(|| self.sets.iter().find_map(|set| failure(set)));
        found.map(|mut failure| {
            failure["lastUpdateTime"] = failure["lastTransitionTime"].clone();
            failure
        })
    }
}
