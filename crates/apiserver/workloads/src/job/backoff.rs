//! The finished pods of a Job in, how long to wait before the next one out.
//!
//! Kubernetes' own controller keeps the number of failures in memory; here it is read from the pods that are left.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::pods::{failures_of_index, ignored_failures_of_index};
use crate::common::object::{list, number, time};
use crate::common::pod::{ready_condition, sidecars};

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(600);

/// When a pod ended: by its containers, else by its conditions, else by its deletion.
pub(super) fn finished_at(pod: &Value) -> Timestamp {
    let not_ready = || {
        let ready = ready_condition(pod).filter(|ready| ready["status"] == "False")?;
        time(ready, "/lastTransitionTime")
    };
    let deleted = || {
        let grace = number(pod, "/metadata/deletionGracePeriodSeconds");
        time(pod, "/metadata/deletionTimestamp").map(|at| at - SignedDuration::from_secs(grace))
    };
    let born = || time(pod, "/metadata/creationTimestamp").unwrap_or(Timestamp::UNIX_EPOCH);
    by_containers(pod).or_else(not_ready).or_else(deleted).unwrap_or_else(born)
}

/// The end of the last container, once all of them have ended.
fn by_containers(pod: &Value) -> Option<Timestamp> {
    let end = |status: &Value| time(status, "/state/terminated/finishedAt");
    let all = list(pod, "/status/containerStatuses").iter().chain(sidecars(pod));
    let ends: Option<Vec<Timestamp>> = all.map(end).collect();
    ends?.into_iter().max()
}

/// How long to wait after the failures since the last success.
pub(super) fn remaining(succeeded: &[Arc<Value>], failed: &[Arc<Value>], now: Timestamp) -> Duration {
    let last_success = succeeded.iter().map(|pod| finished_at(pod)).max();
    let since = |at: &Timestamp| last_success.is_none_or(|success| *at > success);
    let failures: Vec<Timestamp> = failed.iter().map(|pod| finished_at(pod)).filter(since).collect();
    failures.iter().max().map_or(Duration::ZERO, |last| after(failures.len(), *last, now))
}

/// How long to wait before an index is tried again.
pub(super) fn remaining_for_index(last_failed: Option<&Value>, now: Timestamp) -> Duration {
    last_failed.map_or(Duration::ZERO, |pod| {
        let failures = failures_of_index(pod) + ignored_failures_of_index(pod) + 1;
        after(usize::try_from(failures).unwrap_or(1), finished_at(pod), now)
    })
}

/// Ten seconds, doubled with each failure, at most ten minutes.
fn after(failures: usize, last: Timestamp, now: Timestamp) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    let wait = LONGEST.min(FIRST * 2_u32.pow(doublings));
    let elapsed = Duration::try_from(now.duration_since(last)).unwrap_or(Duration::ZERO);
    wait.saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ended(at: &str) -> Arc<Value> {
        let ended = json!({"name": "main", "state": {"terminated": {"exitCode": 1, "finishedAt": at}}});
        Arc::new(json!({"status": {"containerStatuses": [ended]}}))
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn each_failure_doubles_the_wait() {
        let failed: Vec<_> = (0..3).map(|minute| ended(&format!("2026-01-01T00:0{minute}:00Z"))).collect();
        let now = at("2026-01-01T00:02:05Z");

        assert_eq!(remaining(&[], &failed[2..], now).as_secs(), 5);
        assert_eq!(remaining(&[], &failed, now).as_secs(), 35);
        assert_eq!(remaining(&[], &failed, at("2026-01-01T00:03:00Z")).as_secs(), 0);
        assert_eq!(remaining(&[], &vec![ended("2026-01-01T00:02:05Z"); 40], now).as_secs(), 600);
    }

    #[test]
    fn a_success_forgives_the_failures_before_it() {
        let failed = [ended("2026-01-01T00:00:00Z"), ended("2026-01-01T00:02:00Z")];
        let now = at("2026-01-01T00:02:00Z");

        assert_eq!(remaining(&[ended("2026-01-01T00:01:00Z")], &failed, now).as_secs(), 10);
        assert_eq!(remaining(&[ended("2026-01-01T00:02:00Z")], &failed, now).as_secs(), 0);
    }
}
