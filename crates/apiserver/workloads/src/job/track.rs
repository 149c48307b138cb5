//! Counts the pods that have ended, lets them go, and says that a Job is over once nothing is left of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::judge::{Ending, JobEnd};
use super::pods::{index_of, is_failed, is_tracked};
use super::policies::{Meaning, meaning};
use super::release;
use super::status::{Status, condition};
use super::sync::Sync;
use crate::EventType;
use crate::common::diff::merge_patch;
use crate::common::kind::JOBS;
use crate::common::object::{is_deleting, uid};
use crate::common::pod::phase;
use crate::common::step::{change_status, exact_target, target};

/// The most uids that a status names, so that it stays small.
const MOST_UNCOUNTED: usize = 500;

impl Sync<'_> {
    /// Names the pods that have ended, takes their finalizers, then counts them. `flush` where the status changed before.
    pub(super) fn track(&mut self, mut flush: bool) {
        let mut held: BTreeSet<String> =
            self.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(pod).to_owned()).collect();
        flush |= self.status.count(|uid| held.contains(uid));
        let (ended, named, all) = self.name_ended();
        flush |= named | self.tell_indexes() | self.announce();
        let first = flush && self.flush(&self.before.clone(), true);
        let written = if flush { self.status.clone() } else { self.before.clone() };
        for pod in &ended {
            self.steps.push(release(pod));
            held.remove(uid(pod));
        }
        let mut flush = self.status.count(|uid| held.contains(uid));
        let over = self.verdict.clone().filter(|verdict| all && self.end(verdict));
        flush |= over.is_some();
        if flush {
            self.flush(&written, !first);
        }
        if let Some(verdict) = over {
            self.tell_end(&verdict);
        }
    }

    /// The pods that can lose their finalizer, whether the status names one more, and whether these are all of them.
    fn name_ended(&mut self) -> (Vec<Arc<Value>>, bool, bool) {
        let mut pods = self.pods.clone();
        if self.is_indexed() {
            pods.sort_by_key(|pod| index_of(pod));
        }
        let before = self.before.uncounted.clone();
        let (mut ended, mut indexes) = (Vec::new(), Vec::new());
        let mut named = false;
        for pod in pods.into_iter().filter(|pod| is_tracked(pod) && !self.released.contains(uid(pod))) {
            if !self.can_go(&pod) {
                continue;
            }
            let known = |uids: &[String]| uids.iter().any(|one| one == uid(&pod));
            if phase(&pod) == "Succeeded" && !known(&before.failed) {
                if self.is_indexed() {
                    let new = self.valid_index(&pod).filter(|index| !self.progress.succeeded_before.has(*index));
                    named |= new.is_some();
                    indexes.extend(new);
                } else if !known(&before.succeeded) {
                    named = true;
                    self.status.uncounted.succeeded.push(uid(&pod).to_owned());
                }
            } else if self.counts_as_failed(&pod) && !known(&before.failed) {
                named = true;
                self.status.uncounted.failed.push(uid(&pod).to_owned());
            }
            ended.push(pod);
            let uncounted = &self.status.uncounted;
            if indexes.len() + uncounted.succeeded.len() + uncounted.failed.len() >= MOST_UNCOUNTED {
                return (ended, named, false);
            }
        }
        (ended, named, true)
    }

    fn can_go(&self, pod: &Value) -> bool {
        if is_deleting(self.job) || self.verdict.is_some() || phase(pod) == "Succeeded" {
            return true;
        }
        let kept = index_of(pod).and_then(|index| self.progress.kept.get(&index));
        is_failed(self.job, pod) && kept.is_none_or(|kept| uid(kept) != uid(pod))
    }

    /// Pods that are still there when a Job fails have failed with it.
    fn counts_as_failed(&self, pod: &Value) -> bool {
        let with_job = self.verdict.as_ref().is_some_and(|verdict| verdict.ending == Ending::Failure);
        (is_failed(self.job, pod) || with_job)
            && (!self.is_indexed() || self.valid_index(pod).is_some())
            && meaning(self.job, pod) != Meaning::Ignore
    }

    fn tell_indexes(&mut self) -> bool {
        if !self.is_indexed() {
            return false;
        }
        let old = (self.status.completed_indexes.clone(), self.status.failed_indexes.clone());
        self.status.succeeded = self.progress.succeeded.total();
        self.status.completed_indexes = self.progress.succeeded.to_string();
        self.status.failed_indexes = self.progress.failed.as_ref().map(ToString::to_string);
        old != (self.status.completed_indexes.clone(), self.status.failed_indexes.clone())
    }

    /// Says how the Job will end, before all its pods have.
    fn announce(&mut self) -> bool {
        let Some(verdict) = self.verdict.as_ref().filter(|verdict| !verdict.recorded) else { return false };
        let kind = match verdict.ending {
            Ending::Success => "SuccessCriteriaMet",
            Ending::Failure => "FailureTarget",
        };
        self.status.conditions.push(condition(kind, "True", &verdict.reason, &verdict.message, self.now));
        true
    }

    /// Writes the difference to a status of before. True if there was one.
    fn flush(&mut self, before: &Status, first: bool) -> bool {
        let old = if *before == self.before { self.job["status"].clone() } else { before.written() };
        let Some(patch) = merge_patch(&old, &self.status.written()) else { return false };
        let target = if first { exact_target(JOBS, self.job) } else { target(JOBS, self.job) };
        self.steps.push(change_status(target, patch));
        true
    }

    /// Ends the Job, unless pods are still to be counted or still terminate.
    fn end(&mut self, verdict: &JobEnd) -> bool {
        let uncounted = &self.status.uncounted;
        let open = !uncounted.succeeded.is_empty() || !uncounted.failed.is_empty();
        if open || self.status.terminating.is_some_and(|count| count > 0) {
            return false;
        }
        let kind = match verdict.ending {
            Ending::Success => "Complete",
            Ending::Failure => "Failed",
        };
        self.status.ensure(condition(kind, "True", &verdict.reason, &verdict.message, self.now));
        if verdict.ending == Ending::Success {
            self.status.completion = Some(self.now);
        }
        true
    }

    fn tell_end(&mut self, verdict: &JobEnd) {
        match verdict.ending {
            Ending::Success => {
                if self.completions().is_some_and(|completions| self.status.succeeded > completions) {
                    let message = "Too many succeeded pods running after completion count reached";
                    self.tell(EventType::Warning, "TooManySucceededPods", message);
                }
                self.tell(EventType::Normal, "Completed", "Job completed");
            }
            Ending::Failure => self.tell(EventType::Warning, known_reason(&verdict.reason), &verdict.message),
        }
    }
}

/// The reasons that a Job fails for. Others come from a status that someone else wrote.
fn known_reason(reason: &str) -> &'static str {
    let reasons =
        ["BackoffLimitExceeded", "DeadlineExceeded", "PodFailurePolicy", "MaxFailedIndexesExceeded", "FailedIndexes"];
    reasons.into_iter().find(|known| *known == reason).unwrap_or("Failed")
}
