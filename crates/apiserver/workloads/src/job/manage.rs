//! Makes the pods that a Job lacks and deletes those that it has too many.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::pods::{index_of, is_failed, new_pod, replaces_only_failed};
use super::sync::Sync;
use super::{backoff, release};
use crate::common::kind::PODS;
use crate::common::object::{given_number, name, uid};
use crate::common::pod::{is_ready, is_terminating, phase};
use crate::common::pod_order::worth;
use crate::common::step::{delete, target};
use crate::{CREATED, EventType, Step};

/// The most pods that one plan makes or deletes.
const AT_ONCE: usize = 500;

impl Sync<'_> {
    pub(super) fn manage(&mut self) {
        let active = self.active.len();
        let wanted = if self.is_suspended() { 0 } else { self.wanted() };
        let surplus = self.surplus(active.saturating_sub(wanted));
        if self.is_suspended() || !surplus.is_empty() {
            for pod in surplus {
                self.steps.push(release(&pod));
                self.released.insert(uid(&pod).to_owned());
                self.delete(&pod);
            }
            return;
        }
        let leaving = self.pods.iter().filter(|pod| is_terminating(pod)).count();
        let leaving = if replaces_only_failed(self.job) { leaving } else { 0 };
        let missing = wanted.saturating_sub(leaving + active);
        if missing > 0 {
            self.fill(missing.min(AT_ONCE));
        }
    }

    /// How many pods there should be.
    fn wanted(&self) -> usize {
        let parallelism = given_number(self.job, "/spec/parallelism").unwrap_or(1);
        let wanted = match self.completions() {
            None if self.succeeded > 0 => return self.active.len(),
            None => parallelism,
            Some(completions) => parallelism.min(completions - self.succeeded),
        };
        usize::try_from(wanted).unwrap_or(0)
    }

    /// Which pods go: those of an index that another has or that the Job does not have, and then the least worth.
    fn surplus(&self, at_least: usize) -> Vec<Arc<Value>> {
        let (mut surplus, mut left) = (Vec::new(), self.active.clone());
        left.sort_by_cached_key(|pod| worth(pod));
        if self.is_indexed() {
            let twice = |place: usize| left[place + 1..].iter().any(|other| index_of(other) == index_of(&left[place]));
            let bad = |place: &usize| self.valid_index(&left[*place]).is_none() || twice(*place);
            let places: Vec<usize> = (0..left.len()).filter(bad).collect();
            surplus.extend(places.into_iter().rev().map(|place| left.remove(place)));
        }
        let more = at_least.saturating_sub(surplus.len());
        surplus.extend(left.into_iter().take(more));
        surplus.truncate(if self.is_suspended() { usize::MAX } else { AT_ONCE });
        surplus
    }

    /// Makes pods, unless failures ask for patience.
    fn fill(&mut self, missing: usize) {
        let indexes: Vec<Option<i64>> = if self.is_indexed() {
            self.open_indexes(missing).into_iter().map(Some).collect()
        } else {
            vec![None; missing]
        };
        let wait = self.patience(&indexes);
        let ready: Vec<Option<i64>> =
            indexes.into_iter().zip(&wait).filter(|(_, wait)| wait.is_zero()).map(|(index, _)| index).collect();
        // Those that have to wait are looked at again when the others are there.
        if let Some(shortest) = wait.iter().min().filter(|_| ready.is_empty()) {
            self.look_again(*shortest);
        }
        for index in ready {
            self.create(index);
        }
    }

    /// How long each of these pods has to wait.
    fn patience(&self, indexes: &[Option<i64>]) -> Vec<Duration> {
        let for_index = |index: &Option<i64>| {
            let last = index.and_then(|index| self.progress.kept.get(&index));
            backoff::remaining_for_index(last.map(|pod| &**pod), self.now)
        };
        if self.has_limit_per_index() {
            return indexes.iter().map(for_index).collect();
        }
        let of_job = |pod: &&Arc<Value>| !self.is_indexed() || self.valid_index(pod).is_some();
        let ended = |has_ended: &dyn Fn(&Value) -> bool| -> Vec<Arc<Value>> {
            self.pods.iter().filter(of_job).filter(|pod| has_ended(pod)).cloned().collect()
        };
        let succeeded = ended(&|pod| phase(pod) == "Succeeded");
        let failed = ended(&|pod| is_failed(self.job, pod));
        vec![backoff::remaining(&succeeded, &failed, self.now); indexes.len()]
    }

    /// The first indexes that nobody works on and that have not ended.
    fn open_indexes(&self, count: usize) -> Vec<i64> {
        let mut busy = self.progress.succeeded.with(self.active.iter().filter_map(|pod| index_of(pod)));
        if replaces_only_failed(self.job) {
            let leaving = self.pods.iter().filter(|pod| is_terminating(pod));
            busy = busy.with(leaving.filter_map(|pod| index_of(pod)));
        }
        if let Some(failed) = &self.progress.failed {
            busy = busy.merge(failed);
        }
        let all = 0..self.completions().unwrap_or(0);
        all.filter(|index| !busy.has(*index)).take(count).collect()
    }

    fn create(&mut self, index: Option<i64>) {
        let replaces = index.and_then(|index| self.progress.kept.get(&index));
        let object = new_pod(self.job, index, replaces.map(|pod| &**pod));
        self.steps.push(Step::Create { collection: PODS, object });
        self.tell(EventType::Normal, "SuccessfulCreate", &format!("Created pod: {CREATED}"));
        self.status.active += 1;
    }

    pub(super) fn delete(&mut self, pod: &Value) {
        self.steps.push(delete(target(PODS, pod)));
        self.tell(EventType::Normal, "SuccessfulDelete", &format!("Deleted pod: {}", name(pod)));
        self.status.active -= 1;
        self.status.terminating = self.status.terminating.map(|count| count + 1);
        self.status.ready = self.status.ready.map(|count| count - i64::from(is_ready(pod)));
    }
}
