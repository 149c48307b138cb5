//! A `StatefulSet` and what there is of it in, the next steps out.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::claims::PodClaims;
use super::identity::{
    identity_labels, identity_matches, in_range, is_member, new_pod, ordinal, ordinals, revision_of,
};
use super::revisions::RevisionHistory;
use super::status::{SetCounts, status};
use crate::common::diff::merge_patch;
use crate::common::kind::{PODS, STATEFUL_SETS};
use crate::common::object::{given_number, is_deleting, name, number, text};
use crate::common::owner::OwningController;
use crate::common::pod::{available_in, is_available, is_finished, is_ready, phase};
use crate::common::step::{change, change_status, delete, event, exact_target, target};
use crate::{EventType, Plan, Step, View};

/// Places that are worked on at once where their order does not matter; each batch doubles.
const LARGEST_BATCH: usize = 500;

/// Whether the next place may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    On,
    Wait,
    Failed,
}

struct Sync<'a> {
    view: &'a dyn View,
    set: &'a Value,
    now: Timestamp,
    history: &'a RevisionHistory,
    /// By place; one that is not there yet has no phase.
    replicas: Vec<Arc<Value>>,
    /// Too many, last place first.
    condemned: Vec<Arc<Value>>,
    steps: Vec<Step>,
}

/// What to do about a set.
pub(super) fn plan(view: &dyn View, set: &Value, owner: &OwningController<'_>) -> Plan {
    let mut steps = Vec::new();
    let history = RevisionHistory::read(view, set, owner, &mut steps);
    let pods = owner.claim(PODS, owner.candidates(view, PODS), &|pod| is_member(set, pod), &mut steps);
    let mut sync = Sync::new(view, set, &history, &pods);
    let counts = sync.run(&pods);
    let again_after = sync.again_after(&pods, &counts);
    // Before the pods: a pod that is refused does not keep the set from saying what it has seen.
    if let Some(patch) = status(set, &history, counts).and_then(|status| merge_patch(&set["status"], &status)) {
        steps.push(change_status(exact_target(STATEFUL_SETS, set), patch));
    }
    steps.append(&mut sync.steps);
    history.truncate(set, &pods, &mut steps);
    Plan { steps, again_after }
}

impl<'a> Sync<'a> {
    fn new(view: &'a dyn View, set: &'a Value, history: &'a RevisionHistory, pods: &[Arc<Value>]) -> Self {
        let at = |place: i64| pods.iter().find(|pod| ordinal(pod) == Some(place)).cloned();
        let filled = |place: i64| at(place).unwrap_or_else(|| Arc::new(versioned(set, history, place)));
        let replicas = ordinals(set).map(filled).collect();
        let mut condemned: Vec<Arc<Value>> = pods.iter().filter(|pod| !in_range(set, pod)).cloned().collect();
        condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal(pod)));
        Self { view, set, now: view.now(), history, replicas, condemned, steps: Vec::new() }
    }

    fn min_ready_seconds(&self) -> i64 {
        number(self.set, "/spec/minReadySeconds")
    }

    fn is_ordered(&self) -> bool {
        text(self.set, "/spec/podManagementPolicy") != "Parallel"
    }

    fn is_available(&self, pod: &Value) -> bool {
        is_available(pod, self.min_ready_seconds(), self.now)
    }

    fn is_unavailable(&self, pod: &Value) -> bool {
        !self.is_available(pod) || is_deleting(pod)
    }

    fn counts<'b>(&self, pods: impl Iterator<Item = &'b Arc<Value>>) -> SetCounts {
        SetCounts::of(pods.map(|pod| &**pod), self.min_ready_seconds(), self.history, self.now)
    }

    /// Places are filled, then too many pods are removed, then old ones are replaced.
    fn run(&mut self, pods: &[Arc<Value>]) -> SetCounts {
        if is_deleting(self.set) {
            return self.counts(pods.iter());
        }
        let mut counts = self.counts(self.replicas.iter().chain(&self.condemned));
        let (wanted, surplus) = (self.replicas.len(), self.condemned.len());
        let done = self.each(wanted, Self::fill)
            && self.each(surplus, Self::give_claims)
            && self.each(surplus, Self::remove)
            && text(self.set, "/spec/updateStrategy/type") != "OnDelete";
        if done && self.replace_old() {
            counts.current -= 1;
        }
        counts
    }

    /// Whether all were looked at without one that had to be waited for.
    fn each(&mut self, count: usize, mut step: impl FnMut(&mut Self, usize) -> Flow) -> bool {
        if self.is_ordered() {
            return (0..count).all(|index| step(self, index) == Flow::On);
        }
        let (mut from, mut batch) = (0, 1);
        while from < count {
            let until = count.min(from + batch);
            let failed = (from..until).filter(|index| step(self, *index) == Flow::Failed).count();
            if failed > 0 {
                return false;
            }
            from = until;
            batch = LARGEST_BATCH.min(batch * 2);
        }
        true
    }

    /// One place: a pod that ended is deleted, a missing one is made, one that is there is waited for and put right.
    fn fill(&mut self, index: usize) -> Flow {
        let pod = self.replicas[index].clone();
        if is_finished(&pod) {
            if !is_deleting(&pod) {
                self.delete(&pod);
            }
            return Flow::Wait;
        }
        if phase(&pod).is_empty() {
            // What is made now is as it shall be.
            return match self.create(&pod) {
                Flow::On if self.is_ordered() => Flow::Wait,
                flow => flow,
            };
        }
        if phase(&pod) == "Pending" && self.create_claims(&pod) == Flow::Failed {
            return Flow::Failed;
        }
        let settled = !is_deleting(&pod) && phase(&pod) == "Running" && is_ready(&pod) && self.is_available(&pod);
        if self.is_ordered() && !settled {
            return Flow::Wait;
        }
        self.put_right(&pod);
        Flow::On
    }

    fn claims<'b>(&'b self, pod: &'b Value) -> PodClaims<'b> {
        PodClaims { view: self.view, set: self.set, pod }
    }

    fn create(&mut self, pod: &Value) -> Flow {
        if self.claims(pod).stale() {
            return Flow::Wait;
        }
        let mut steps = Vec::new();
        if let Err(error) = self.claims(pod).create(&mut steps) {
            self.steps.append(&mut steps);
            self.tell(EventType::Warning, "FailedCreate", &format!("Create {} failed error: {error}", self.place(pod)));
            return Flow::Failed;
        }
        steps.push(Step::Create { collection: PODS, object: pod.clone() });
        self.steps.append(&mut steps);
        self.tell(EventType::Normal, "SuccessfulCreate", &format!("Create {} successful", self.place(pod)));
        self.claims(pod).set_owners(&mut steps);
        self.steps.append(&mut steps);
        Flow::On
    }

    fn create_claims(&mut self, pod: &Value) -> Flow {
        let mut steps = Vec::new();
        let created = self.claims(pod).create(&mut steps);
        if created.is_ok() {
            self.claims(pod).set_owners(&mut steps);
        }
        self.steps.append(&mut steps);
        created.map_or(Flow::Failed, |()| Flow::On)
    }

    /// Labels and owners of claims that someone else changed.
    fn put_right(&mut self, pod: &Value) {
        let identity = identity_matches(self.set, pod);
        let mut steps = Vec::new();
        if !identity {
            let patch = json!({"metadata": {"labels": identity_labels(pod)}});
            steps.push(change(target(PODS, pod), patch));
        }
        let owners = self.claims(pod).owners_match();
        if !owners {
            self.claims(pod).set_owners(&mut steps);
        }
        self.steps.append(&mut steps);
        if !identity || !owners {
            self.tell(EventType::Normal, "SuccessfulUpdate", &format!("Update {} successful", self.place(pod)));
        }
    }

    fn give_claims(&mut self, index: usize) -> Flow {
        let pod = self.condemned[index].clone();
        let mut steps = Vec::new();
        if !self.claims(&pod).owners_match() {
            self.claims(&pod).set_owners(&mut steps);
        }
        self.steps.append(&mut steps);
        Flow::On
    }

    /// One pod too many. An ordered set removes one at a time, and stops for a sick one other than the first.
    fn remove(&mut self, index: usize) -> Flow {
        let pod = self.condemned[index].clone();
        if is_deleting(&pod) {
            return if self.is_ordered() { Flow::Wait } else { Flow::On };
        }
        let healthy = phase(&pod) == "Running" && is_ready(&pod) && self.is_available(&pod);
        if self.is_ordered() && !healthy && self.first_unavailable() != Some(name(&pod)) {
            return Flow::Wait;
        }
        self.delete(&pod);
        Flow::Wait
    }

    fn first_unavailable(&self) -> Option<&str> {
        let mut places = self.replicas.iter().chain(self.condemned.iter().rev());
        places.find(|pod| self.is_unavailable(pod)).map(|pod| name(pod))
    }

    /// Deletes the last pod that another revision made, once those after it are available. True if it did.
    fn replace_old(&mut self) -> bool {
        let partition = number(self.set, "/spec/updateStrategy/rollingUpdate/partition");
        let partition = usize::try_from(partition).unwrap_or(0);
        for index in (partition..self.replicas.len()).rev() {
            let pod = self.replicas[index].clone();
            if revision_of(&pod) != self.history.update.name && !is_deleting(&pod) {
                self.delete(&pod);
                return true;
            }
            if self.is_unavailable(&pod) {
                return false;
            }
        }
        false
    }

    fn delete(&mut self, pod: &Value) {
        self.steps.push(delete(target(PODS, pod)));
        self.tell(EventType::Normal, "SuccessfulDelete", &format!("Delete {} successful", self.place(pod)));
    }

    fn place(&self, pod: &Value) -> String {
        format!("Pod {} in StatefulSet {}", name(pod), name(self.set))
    }

    fn tell(&mut self, event_type: EventType, reason: &'static str, message: &str) {
        self.steps.push(event(self.set, event_type, reason, message.to_owned()));
    }

    /// Where only time is missing until a ready pod counts as available.
    fn again_after(&self, pods: &[Arc<Value>], counts: &SetCounts) -> Option<Duration> {
        let seconds = self.min_ready_seconds();
        let waits = seconds > 0 && counts.ready != counts.available;
        let next = || pods.iter().filter_map(|pod| available_in(pod, seconds, self.now)).min();
        waits.then(next).flatten()
    }
}

/// The pod for a place: below the partition it is made by the revision of before.
fn versioned(set: &Value, history: &RevisionHistory, place: i64) -> Value {
    let start = ordinals(set).start;
    let kept = match given_number(set, "/spec/updateStrategy/rollingUpdate/partition") {
        Some(partition) => place < start + partition,
        None if text(set, "/spec/updateStrategy/type") == "RollingUpdate" => {
            place < start + number(set, "/status/currentReplicas")
        }
        None => false,
    };
    let revision = if kept { &history.current } else { &history.update };
    new_pod(set, &revision.name, &revision.template, place)
}
