//! A deployment and its replica sets as they will be when the steps so far are carried out.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{fence, template};
use crate::common::diff::merge_patch;
use crate::common::kind::{DEPLOYMENTS, REPLICA_SETS};
use crate::common::object::{given_number, is_deleting, name, number, text};
use crate::common::owner::OwningController;
use crate::common::step::{change, delete, event, target};
use crate::{Endpoint, EventType, Plan, Step, View};

pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// What a plan is made on.
pub(super) struct Rollout<'a> {
    pub(super) view: &'a dyn View,
    before: &'a Value,
    /// With the annotations and the status that it shall have.
    pub(super) deployment: Value,
    /// The oldest first.
    pub(super) sets: Vec<Arc<Value>>,
    /// The one of the deployment's template.
    pub(super) new: Option<usize>,
    pub(super) steps: Vec<Step>,
}

impl<'a> Rollout<'a> {
    pub(super) fn gather(view: &'a dyn View, deployment: &'a Value, owner: &OwningController<'_>) -> Self {
        let mut steps = Vec::new();
        let mut sets = owner.claim(REPLICA_SETS, owner.candidates(view, REPLICA_SETS), &|_| true, &mut steps);
        sets.sort_by_cached_key(|set| (text(set, "/metadata/creationTimestamp").to_owned(), name(set).to_owned()));
        let wanted = &deployment["spec"]["template"];
        let new = sets.iter().position(|set| template::same(&set["spec"]["template"], wanted));
        Self { view, before: deployment, deployment: deployment.clone(), sets, new, steps }
    }

    /// Decides what is to be done, and what the status says then.
    pub(super) fn run(&mut self) {
        if is_deleting(&self.deployment) {
            self.sync_new();
            self.deployment["status"] = self.counted_status();
            return;
        }
        self.note_pause();
        self.sync_new();
        if self.is_paused() || self.is_scaled() {
            self.scale();
            if self.is_paused() {
                self.clean_up();
            }
            self.deployment["status"] = self.counted_status();
        } else if fence::is_rolling(&self.deployment) {
            self.roll();
        } else {
            self.recreate();
        }
    }

    /// The plan: the steps, and the write of the status where it differs.
    pub(super) fn finish(self) -> Plan {
        let again_after = self.next_check();
        let Self { before, deployment, mut steps, .. } = self;
        let annotations = merge_patch(&before["metadata"]["annotations"], &deployment["metadata"]["annotations"]);
        let status = merge_patch(&before["status"], &deployment["status"]);
        if annotations.is_some() || status.is_some() {
            let mut patch = json!({"status": status.unwrap_or_else(|| json!({}))});
            if let Some(annotations) = annotations {
                patch["metadata"] = json!({"annotations": annotations});
            }
            steps.push(Step::Patch { target: target(DEPLOYMENTS, before), part: Endpoint::Status, patch });
        }
        Plan { steps, again_after }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.deployment["spec"]["paused"] == true
    }

    pub(super) fn replicas(&self) -> i64 {
        number(&self.deployment, "/spec/replicas")
    }

    pub(super) fn new_set(&self) -> Option<&Value> {
        self.new.map(|index| &*self.sets[index])
    }

    /// The others, oldest first.
    pub(super) fn old(&self) -> Vec<usize> {
        (0..self.sets.len()).filter(|index| Some(*index) != self.new).collect()
    }

    pub(super) fn size(&self, index: usize) -> i64 {
        number(&self.sets[index], "/spec/replicas")
    }

    /// A sum over all sets, of a number at a pointer.
    pub(super) fn sum(&self, pointer: &str) -> i64 {
        self.sets.iter().map(|set| number(set, pointer)).sum()
    }

    /// Sets a set's size where it has another one; tells whether it had.
    pub(super) fn scale_to(&mut self, index: usize, replicas: i64) -> bool {
        self.size(index) != replicas && self.resize(index, replicas)
    }

    /// Sets a set's size, and notes on it the size that the deployment has.
    pub(super) fn resize(&mut self, index: usize, replicas: i64) -> bool {
        let set = self.sets[index].clone();
        let mut resized = (*set).clone();
        resized["spec"]["replicas"] = json!(replicas);
        note_sizes(&self.deployment, &mut resized);
        self.change(index, resized);
        let size = number(&set, "/spec/replicas");
        if size == replicas {
            return false;
        }
        let direction = if size < replicas { "up" } else { "down" };
        self.tell_scaling(format!("Scaled {direction} replica set {} from {size} to {replicas}", name(&set)));
        true
    }

    /// Makes a set what it shall be.
    pub(super) fn change(&mut self, index: usize, changed: Value) {
        if let Some(patch) = merge_patch(&self.sets[index], &changed) {
            self.steps.push(change(target(REPLICA_SETS, &changed), patch));
            self.sets[index] = Arc::new(changed);
        }
    }

    pub(super) fn tell_scaling(&mut self, message: String) {
        self.steps.push(event(self.before, EventType::Normal, "ScalingReplicaSet", message));
    }

    /// Deletes old sets beyond the limit of the history that nothing runs in.
    pub(super) fn clean_up(&mut self) {
        let limit = given_number(&self.deployment, "/spec/revisionHistoryLimit");
        let Some(limit) = limit.filter(|limit| *limit != i64::from(i32::MAX)) else {
            return;
        };
        let mut old: Vec<usize> = self.old().into_iter().filter(|index| !is_deleting(&self.sets[*index])).collect();
        // Those of one revision stay in the order of their creation.
        old.sort_by_key(|index| super::revision::of(&self.sets[*index]).unwrap_or(0));
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for index in old.into_iter().take(surplus).filter(|index| is_idle(&self.sets[*index])) {
            self.steps.push(delete(target(REPLICA_SETS, &self.sets[index])));
        }
    }
}

/// Whether nothing runs in a set, and it has seen that nothing shall.
fn is_idle(set: &Value) -> bool {
    let seen = number(set, "/metadata/generation") <= number(set, "/status/observedGeneration");
    number(set, "/status/replicas") == 0 && number(set, "/spec/replicas") == 0 && seen
}

/// Notes on a set the deployment's size, by which it is seen later that this was changed.
pub(super) fn note_sizes(deployment: &Value, set: &mut Value) {
    let annotations = &mut set["metadata"]["annotations"];
    annotations[DESIRED_REPLICAS] = json!(number(deployment, "/spec/replicas").to_string());
    annotations[MAX_REPLICAS] = json!(fence::most_replicas(deployment).to_string());
}
