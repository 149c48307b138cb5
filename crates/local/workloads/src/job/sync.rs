//! A Job that is not over, and its pods, in; the next steps out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::indexes::Indexes;
use super::pods::{FINALIZER, failures_of_index, ignored_failures_of_index, index_of, is_failed, is_tracked};
use super::policies::{Meaning, meaning, success};
use super::status::{Status, condition};
use super::{PODS, backoff};
use crate::common::object::{event, is_deleting, text, uid};
use crate::common::pod::{is_active, is_ready, is_terminating};
use crate::objects::{has, list, number};
use crate::ownership::Owner;
use crate::pod_facts::phase;
use crate::{EventType, Plan, Step, View};

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Success,
    Failure,
}

/// That a Job ends, and why.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) ending: Ending,
    pub(super) reason: String,
    pub(super) message: String,
    /// Whether the status says it already.
    pub(super) recorded: bool,
}

impl Verdict {
    fn new(ending: Ending, reason: &str, message: &str) -> Self {
        Self { ending, reason: reason.to_owned(), message: message.to_owned(), recorded: false }
    }

    fn recorded(ending: Ending, condition: &Value) -> Self {
        let recorded = Self::new(ending, text(condition, "/reason"), text(condition, "/message"));
        Self { recorded: true, ..recorded }
    }
}

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
    pub(super) verdict: Option<Verdict>,
    /// Uids of pods that lose their finalizer before the counting.
    pub(super) released: BTreeSet<String>,
    pub(super) steps: Vec<Step>,
    pub(super) again_after: Option<Duration>,
}

/// What to do about a Job.
pub(super) fn plan(view: &dyn View, job: &Value) -> Plan {
    let mut steps = Vec::new();
    let owner = Owner { object: job, api_version: "batch/v1", kind: "Job", finalizer: Some(FINALIZER) };
    let pods = owner.claim(view, PODS, &|_| true, &mut steps);
    let mut sync = Sync::new(view, job, pods, steps);
    sync.start();
    sync.verdict = sync.judge();
    let flush = sync.act();
    sync.track(flush);
    Plan { steps: sync.steps, again_after: sync.again_after }
}

fn count(pods: usize) -> i64 {
    i64::try_from(pods).unwrap_or(i64::MAX)
}

impl<'a> Sync<'a> {
    fn new(view: &'a dyn View, job: &'a Value, pods: Vec<Arc<Value>>, steps: Vec<Step>) -> Self {
        let before = Status::read(job);
        let active: Vec<Arc<Value>> = pods.iter().filter(|pod| is_active(pod)).cloned().collect();
        let mut status = before.clone();
        status.active = count(active.len());
        status.ready = Some(count(active.iter().filter(|pod| is_ready(pod)).count()));
        status.terminating = Some(count(pods.iter().filter(|pod| is_terminating(pod)).count()));
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
        number(self.job, "/spec/completions")
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
        let (succeeded, failed) = (count(succeeded.count()), count(failed.count()));
        self.succeeded = self.before.succeeded + succeeded + count(uncounted.succeeded.len());
        self.failed = self.before.failed + failed + count(uncounted.failed.len());
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
        let limit = number(self.job, "/spec/backoffLimitPerIndex").unwrap_or(i64::MAX);
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

    fn start(&mut self) {
        if self.status.start.is_none() && !self.is_suspended() {
            self.status.start = Some(self.now);
        }
    }

    /// Whether the Job ends, by what its status says, its limits and its policies.
    fn judge(&mut self) -> Option<Verdict> {
        let recorded = |kind: &str, ending: Ending| self.status.is(kind).map(|found| Verdict::recorded(ending, found));
        recorded("SuccessCriteriaMet", Ending::Success)
            .or_else(|| recorded("FailureTarget", Ending::Failure))
            .or_else(|| self.failed_by_policy())
            .or_else(|| self.failed_by_limit())
            .or_else(|| self.failed_by_index())
            .or_else(|| self.succeeded_by_policy())
    }

    fn failed_by_policy(&self) -> Option<Verdict> {
        let failed = self.pods.iter().filter(|pod| is_failed(self.job, pod));
        let message = failed.map(|pod| meaning(self.job, pod)).find_map(|meaning| match meaning {
            Meaning::FailJob(message) => Some(message),
            Meaning::Count | Meaning::Ignore | Meaning::FailIndex => None,
        })?;
        Some(Verdict::new(Ending::Failure, "PodFailurePolicy", &message))
    }

    fn failed_by_limit(&mut self) -> Option<Verdict> {
        let limit = number(self.job, "/spec/backoffLimit").unwrap_or(6);
        if self.failed > limit || self.restarted_too_often(limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(Verdict::new(Ending::Failure, "BackoffLimitExceeded", message));
        }
        let deadline = number(self.job, "/spec/activeDeadlineSeconds").filter(|_| !self.is_suspended())?;
        let left = (self.status.start? + SignedDuration::from_secs(deadline)).duration_since(self.now);
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        if left.is_zero() {
            let message = "Job was active longer than specified deadline";
            return Some(Verdict::new(Ending::Failure, "DeadlineExceeded", message));
        }
        self.look_again(left);
        None
    }

    /// Where containers are restarted in place, their restarts count.
    fn restarted_too_often(&self, limit: i64) -> bool {
        if text(self.job, "/spec/template/spec/restartPolicy") != "OnFailure" {
            return false;
        }
        let running = self.pods.iter().filter(|pod| matches!(phase(pod), "Running" | "Pending"));
        let statuses = running.flat_map(|pod| {
            list(pod, "/status/initContainerStatuses").iter().chain(list(pod, "/status/containerStatuses"))
        });
        let restarts: i64 = statuses.filter_map(|status| number(status, "/restartCount")).sum();
        if limit == 0 { restarts > 0 } else { restarts >= limit }
    }

    fn failed_by_index(&self) -> Option<Verdict> {
        let failed = self.progress.failed.as_ref()?.total();
        let most = number(self.job, "/spec/maxFailedIndexes");
        if most.is_some_and(|most| failed > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Verdict::new(Ending::Failure, "MaxFailedIndexesExceeded", message));
        }
        let all = failed + self.progress.succeeded.total() >= self.completions()?;
        (failed > 0 && all).then(|| Verdict::new(Ending::Failure, "FailedIndexes", "Job has failed indexes"))
    }

    fn succeeded_by_policy(&self) -> Option<Verdict> {
        let completions = self.completions().filter(|_| self.is_indexed())?;
        let message = success(self.job, completions, &self.progress.succeeded)?;
        Some(Verdict::new(Ending::Success, "SuccessPolicy", &message))
    }

    /// Deletes what is left of a Job that ends, else makes or deletes pods. True if the status has to be written.
    fn act(&mut self) -> bool {
        let mut changed = false;
        if self.verdict.is_some() {
            for pod in std::mem::take(&mut self.active) {
                self.delete(&pod);
            }
        } else {
            if !is_deleting(self.job) {
                self.manage();
            }
            let enough = match self.completions() {
                Some(completions) => self.succeeded >= completions,
                None => self.succeeded > 0,
            };
            if enough && self.status.active == 0 {
                let message = "Reached expected number of succeeded pods";
                self.verdict = Some(Verdict::new(Ending::Success, "CompletionsReached", message));
            } else if !is_deleting(self.job) {
                changed = self.tell_suspension();
            }
        }
        let (old, new) = (&self.before, &self.status);
        changed || old.active != new.active || old.ready != new.ready || old.terminating != new.terminating
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
