//! A pod → how little it is missed: where there are too many, the smallest goes first.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde_json::Value;

use super::object::{text, time};
use super::pod::{is_ready, phase, ready_since, restarts};

/// What decides before everything else: whether it has a node, how far it has come, whether it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodRank {
    is_assigned: bool,
    progress: u8,
    is_ready: bool,
}

impl PodRank {
    pub(crate) fn of(pod: &Value) -> Self {
        let progress = match phase(pod) {
            "Running" => 2,
            "Unknown" => 1,
            _ => 0,
        };
        Self { is_assigned: !text(pod, "/spec/nodeName").is_empty(), progress, is_ready: is_ready(pod) }
    }
}

/// By its standing; then those go first that were ready for a shorter time, restarted more often, or are younger.
pub(crate) fn worth(pod: &Value) -> impl Ord + use<> {
    // No time at all comes before every time.
    let age = |since: Option<Timestamp>| since.map(Reverse);
    let born = time(pod, "/metadata/creationTimestamp");
    (PodRank::of(pod), age(ready_since(pod)), Reverse(restarts(pod)), age(born))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ready(since: &str) -> Value {
        json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": since},
        ]}})
    }

    #[test]
    fn the_pod_that_did_least_is_worth_least() {
        let pending = json!({"status": {"phase": "Pending"}});
        let (old, young) = (ready("2026-01-01T00:00:00Z"), ready("2026-01-01T00:01:00Z"));
        let mut restless = young.clone();
        restless["status"]["containerStatuses"] = json!([{"name": "c", "restartCount": 3}]);
        let mut pods = [&old, &young, &pending, &restless];

        pods.sort_by_cached_key(|pod| worth(pod));

        assert_eq!(pods, [&pending, &restless, &young, &old]);
    }
}
