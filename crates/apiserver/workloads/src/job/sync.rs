//! A Job that is not over, and its pods, in; the next steps out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::backoff;
use super::indexes::Indexes;
use super::judge::{Ending, JobEnd};
use super::pods::{FINALIZER, failures_of_index, ignored_failures_of_index, index_of, is_failed, is_tracked};
use super::policies::{Meaning, meaning};
use super::status::{Status, condition};
use crate::common::kind::PODS;
use crate::common::object::{given_number, has, is_deleting, text, uid};
use crate::common::owner::OwningController;
use crate::common::pod::{is_active, is_ready, is_terminating, phase};
use crate::common::step::event;
use crate::{EventType, Plan, Step, View};

/// The indexes of an indexed Job.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) succeeded_before: Indexes,
    pub(super) succeeded: Indexes,
    /// Where an index may fail for itself.
    pub(super) failed: Option<Indexes>,
    /// By index, the pod that failed last: it stays until its replacement is there.
    pub(super) kept: BTreeMap<i64, Arc<Value>>,
}

pub(super) struct Sync<'a> {
    pub(super) job: &'a Value,
    pub(super) now: Timestamp,
    pub(super) pods: Vec<Arc<Value>>,
    pub(super) active: Vec<Arc<Value>>,
    pub(super) before: Status,
    pub(super) status: Status,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    pub(super) progress: Progress,
    pub(super) verdict: Option<JobEnd>,
    /// Uids of pods that lose their finalizer before the counting.
    pub(super) released: BTreeSet<String>,
    pub(super) steps: Vec<Step>,
    pub(super) again_after: Option<Duration>,
}

/// What to do about a Job.
pub(super) fn plan(view: &dyn View, job: &Value, owner: OwningController<'_>) -> Plan {
    let mut sync = Sync::start(view, job, owner);
    sync.verdict = sync.judge();
    if sync.verdict.is_some() {
        sync.delete_active();
    } else if !is_deleting(job) {
        sync.manage();
    }
    sync.finish()
}

/// The same, but for pods to make or to delete.
pub(super) fn count(view: &dyn View, job: &Value, owner: OwningController<'_>) -> Plan {
    Sync::start(view, job, owner).finish()
}

fn length(pods: usize) -> i64 {
    i64::try_from(pods).unwrap_or(i64::MAX)
}

impl<'a> Sync<'a> {
    /// Claims the pods and counts them. A Job that is not suspended has started.
    fn start(view: &dyn View, job: &'a Value, owner: OwningController<'_>) -> Self {
        let mut steps = Vec::new();
        let owner = owner.holding(FINALIZER);
        let pods = owner.claim(PODS, owner.candidates(view, PODS), &|_| true, &mut steps);
        let before = Status::read(job);
        let active: Vec<Arc<Value>> = pods.iter().filter(|pod| is_active(pod)).cloned().collect();
        let mut status = before.clone();
        status.active = length(active.len());
        status.ready = Some(length(active.iter().filter(|pod| is_ready(pod)).count()));
        status.terminating = Some(length(pods.iter().filter(|pod| is_terminating(pod)).count()));
        let mut sync = Self {
            job,
            now: view.now(),
            pods,
            active,
            before,
            status,
            succeeded: 0,
            failed: 0,
            progress: Progress::default(),
            verdict: None,
            released: BTreeSet::new(),
            steps,
            again_after: None,
        };
        if sync.status.start.is_none() && !sync.is_suspended() {
            sync.status.start = Some(sync.now);
        }
        sync.tally();
        sync
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.job["spec"]["suspend"] == true
    }

    pub(super) fn is_indexed(&self) -> bool {
        text(self.job, "/spec/completionMode") == "Indexed"
    }

    pub(super) fn completions(&self) -> Option<i64> {
        given_number(self.job, "/spec/completions")
    }

    /// Whether an index may fail for itself.
    pub(super) fn has_limit_per_index(&self) -> bool {
        has(self.job, "/spec/backoffLimitPerIndex")
    }

    /// The index of a pod, where it is one that the Job has.
    pub(super) fn valid_index(&self, pod: &Value) -> Option<i64> {
        index_of(pod).filter(|index| self.completions().is_some_and(|completions| *index < completions))
    }

    /// Whether a pod can count for the Job.
    fn can_count(&self, pod: &Value) -> bool {
        is_tracked(pod) && (!self.is_indexed() || self.valid_index(pod).is_some())
    }

    /// All that have succeeded and failed, counted or not yet.
    fn tally(&mut self) {
        let uncounted = &self.before.uncounted;
        let is_new =
            |pod: &&Arc<Value>, known: &[String]| self.can_count(pod) && !known.iter().any(|one| one == uid(pod));
        let succeeded = self.pods.iter().filter(|pod| is_new(pod, &uncounted.succeeded) && phase(pod) == "Succeeded");
        let failed = self.pods.iter().filter(|pod| is_new(pod, &uncounted.failed) && is_failed(self.job, pod));
        let failed = failed.filter(|pod| meaning(self.job, pod) != Meaning::Ignore);
        let (succeeded, failed) = (length(succeeded.count()), length(failed.count()));
        self.succeeded = self.before.succeeded + succeeded + length(uncounted.succeeded.len());
        self.failed = self.before.failed + failed + length(uncounted.failed.len());
        if self.is_indexed() {
            self.progress = self.progress();
            self.succeeded = self.progress.succeeded.total();
        }
    }

    fn progress(&self) -> Progress {
        let completions = self.completions().unwrap_or(0);
        let indexes = |belongs: &dyn Fn(&Value) -> bool| -> Vec<i64> {
            let pods = self.pods.iter().filter(|pod| is_tracked(pod) && belongs(pod));
            pods.filter_map(|pod| self.valid_index(pod)).collect()
        };
        let succeeded_before = Indexes::parse(&self.before.completed_indexes, completions);
        let succeeded = succeeded_before.with(indexes(&|pod| phase(pod) == "Succeeded"));
        let failed = self.has_limit_per_index().then(|| {
            let before = self.before.failed_indexes.as_deref().unwrap_or_default();
            Indexes::parse(before, completions).with(indexes(&|pod| self.fails_index(pod)))
        });
        let kept = failed.as_ref().map(|failed| self.kept(&succeeded, failed)).unwrap_or_default();
        Progress { succeeded_before, succeeded, failed, kept }
    }

    fn fails_index(&self, pod: &Value) -> bool {
        let limit = given_number(self.job, "/spec/backoffLimitPerIndex").unwrap_or(i64::MAX);
        is_failed(self.job, pod)
            && match meaning(self.job, pod) {
                Meaning::FailIndex => true,
                Meaning::Ignore => false,
                Meaning::Count | Meaning::FailJob(_) => failures_of_index(pod) >= limit,
            }
    }

    /// The last failed pod of each index that is to be tried again.
    fn kept(&self, succeeded: &Indexes, failed: &Indexes) -> BTreeMap<i64, Arc<Value>> {
        let active: BTreeSet<i64> = self.active.iter().filter_map(|pod| index_of(pod)).collect();
        let open = |index: i64| !succeeded.has(index) && !failed.has(index) && !active.contains(&index);
        let tries = |pod: &Value| failures_of_index(pod) + ignored_failures_of_index(pod);
        let mut kept: BTreeMap<i64, Arc<Value>> = BTreeMap::new();
        for pod in self.pods.iter().filter(|pod| is_tracked(pod) && is_failed(self.job, pod)) {
            let Some(index) = self.valid_index(pod).filter(|index| open(*index)) else { continue };
            let later = |last: &Arc<Value>| {
                tries(last) <= tries(pod) && backoff::finished_at(pod) >= backoff::finished_at(last)
            };
            if kept.get(&index).is_none_or(later) {
                kept.insert(index, pod.clone());
            }
        }
        kept
    }

    /// Deletes what is left of a Job that ends.
    fn delete_active(&mut self) {
        for pod in std::mem::take(&mut self.active) {
            self.delete(&pod);
        }
    }

    /// Says what became of the Job and its pods.
    fn finish(mut self) -> Plan {
        let mut changed = false;
        let enough = match self.completions() {
            Some(completions) => self.succeeded >= completions,
            None => self.succeeded > 0,
        };
        if self.verdict.is_none() && enough && self.status.active == 0 {
            let message = "Reached expected number of succeeded pods";
            self.verdict = Some(JobEnd::new(Ending::Success, "CompletionsReached", message));
        } else if self.verdict.is_none() && !is_deleting(self.job) {
            changed = self.tell_suspension();
        }
        let (old, new) = (&self.before, &self.status);
        changed |= old.active != new.active || old.ready != new.ready || old.terminating != new.terminating;
        self.track(changed);
        Plan { steps: self.steps, again_after: self.again_after }
    }

    /// The condition that says whether the Job is suspended. A suspended Job has not started.
    fn tell_suspension(&mut self) -> bool {
        let (state, reason, message, told, start) = if self.is_suspended() {
            ("True", "JobSuspended", "Job suspended", "Suspended", None)
        } else {
            ("False", "JobResumed", "Job resumed", "Resumed", Some(self.now))
        };
        let changed = self.status.ensure(condition("Suspended", state, reason, message, self.now));
        if changed {
            self.status.start = start;
            self.tell(EventType::Normal, told, message);
        }
        changed
    }

    pub(super) fn look_again(&mut self, after: Duration) {
        self.again_after = Some(self.again_after.map_or(after, |before| before.min(after)));
    }

    pub(super) fn tell(&mut self, event_type: EventType, reason: &'static str, message: &str) {
        self.steps.push(event(self.job, event_type, reason, message.to_owned()));
    }
}
