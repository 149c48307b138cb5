//! A Job and its pods, counted, in; whether it ends, and why, out.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;

use super::pods::is_failed;
use super::policies::{Meaning, meaning, success};
use super::sync::Sync;
use crate::common::object::{given_number, list, number, text};
use crate::common::pod::phase;

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Success,
    Failure,
}

/// That a Job ends, and why.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JobEnd {
    pub(super) ending: Ending,
    pub(super) reason: String,
    pub(super) message: String,
    /// Whether the status says it already.
    pub(super) recorded: bool,
}

impl JobEnd {
    pub(super) fn new(ending: Ending, reason: &str, message: &str) -> Self {
        Self { ending, reason: reason.to_owned(), message: message.to_owned(), recorded: false }
    }

    fn recorded(ending: Ending, condition: &Value) -> Self {
        let recorded = Self::new(ending, text(condition, "/reason"), text(condition, "/message"));
        Self { recorded: true, ..recorded }
    }
}

impl Sync<'_> {
    /// Whether the Job ends, by what its status says, its limits and its policies.
    pub(super) fn judge(&mut self) -> Option<JobEnd> {
        let recorded = |kind: &str, ending: Ending| self.status.is(kind).map(|found| JobEnd::recorded(ending, found));
        recorded("SuccessCriteriaMet", Ending::Success)
            .or_else(|| recorded("FailureTarget", Ending::Failure))
            .or_else(|| self.failed_by_policy())
            .or_else(|| self.failed_by_limit())
            .or_else(|| self.failed_by_index())
            .or_else(|| self.succeeded_by_policy())
    }

    fn failed_by_policy(&self) -> Option<JobEnd> {
        let failed = self.pods.iter().filter(|pod| is_failed(self.job, pod));
        let message = failed.map(|pod| meaning(self.job, pod)).find_map(|meaning| match meaning {
            Meaning::FailJob(message) => Some(message),
            Meaning::Count | Meaning::Ignore | Meaning::FailIndex => None,
        })?;
        Some(JobEnd::new(Ending::Failure, "PodFailurePolicy", &message))
    }

    fn failed_by_limit(&mut self) -> Option<JobEnd> {
        let limit = given_number(self.job, "/spec/backoffLimit").unwrap_or(6);
        if self.failed > limit || self.restarted_too_often(limit) {
            let message = "Job has reached the specified backoff limit";
            return Some(JobEnd::new(Ending::Failure, "BackoffLimitExceeded", message));
        }
        let deadline = given_number(self.job, "/spec/activeDeadlineSeconds").filter(|_| !self.is_suspended())?;
        let left = (self.status.start? + SignedDuration::from_secs(deadline)).duration_since(self.now);
        let left = Duration::try_from(left).unwrap_or(Duration::ZERO);
        if left.is_zero() {
            let message = "Job was active longer than specified deadline";
            return Some(JobEnd::new(Ending::Failure, "DeadlineExceeded", message));
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
        let restarts: i64 = statuses.map(|status| number(status, "/restartCount")).sum();
        if limit == 0 { restarts > 0 } else { restarts >= limit }
    }

    fn failed_by_index(&self) -> Option<JobEnd> {
        let failed = self.progress.failed.as_ref()?.total();
        let most = given_number(self.job, "/spec/maxFailedIndexes");
        if most.is_some_and(|most| failed > most) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(JobEnd::new(Ending::Failure, "MaxFailedIndexesExceeded", message));
        }
        let all = failed + self.progress.succeeded.total() >= self.completions()?;
        (failed > 0 && all).then(|| JobEnd::new(Ending::Failure, "FailedIndexes", "Job has failed indexes"))
    }

    fn succeeded_by_policy(&self) -> Option<JobEnd> {
        let completions = self.completions().filter(|_| self.is_indexed())?;
        let message = success(self.job, completions, &self.progress.succeeded)?;
        Some(JobEnd::new(Ending::Success, "SuccessPolicy", &message))
    }
}
