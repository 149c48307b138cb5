//! Which pods go first: those that are least of use.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::View;
use crate::common::kind::{PODS, REPLICA_SETS};
use crate::common::object::{annotation, controller_of, namespace, text, time, uid};
use crate::common::pod;
use crate::common::pod_order::PodRank;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Puts those first that are to be deleted first.
pub(super) fn sort(pods: &mut [Arc<Value>], view: &dyn View, set: &Value) {
    let neighbours = neighbours(view, set);
    let now = view.now();
    pods.sort_by_cached_key(|pod| Usefulness::of(pod, &neighbours, now));
}

/// How many active pods of the same deployment each node has.
fn neighbours(view: &dyn View, set: &Value) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let Some(owner) = controller_of(set) else { return counts };
    for sibling in view.controlled_by(REPLICA_SETS, namespace(set), text(owner, "/uid")) {
        for pod in view.controlled_by(PODS, namespace(set), uid(&sibling)) {
            if pod::is_active(&pod) {
                *counts.entry(text(&pod, "/spec/nodeName").to_owned()).or_default() += 1;
            }
        }
    }
    counts
}

/// What pods are compared by, the most important first; the smaller one goes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Usefulness {
    standing: PodRank,
    deletion_cost: i32,
    neighbours: Reverse<usize>,
    ready: Age,
    restarts: Reverse<(i64, i64)>,
    created: Age,
}

impl Usefulness {
    fn of(pod: &Value, neighbours: &HashMap<String, usize>, now: Timestamp) -> Self {
        let node = text(pod, "/spec/nodeName");
        let age = |since: Option<Timestamp>| Age { rank: Age::rank(since, now), since, uid: uid(pod).to_owned() };
        Self {
            standing: PodRank::of(pod),
            deletion_cost: annotation(pod, DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or(0),
            neighbours: Reverse(neighbours.get(node).copied().unwrap_or(0)),
            ready: age(pod::ready_since(pod)),
            restarts: Reverse(pod::restarts(pod)),
            created: age(time(pod, "/metadata/creationTimestamp")),
        }
    }
}

/// A time seen from now. Ages of the same order of magnitude are as good as equal: then the uid decides, so that not
/// always the newest goes.
struct Age {
    rank: i64,
    since: Option<Timestamp>,
    uid: String,
}

impl Age {
    /// The logarithm of the age in nanoseconds, as a whole number; none for no time at all.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "nanoseconds of a time are far below 2^127, its logarithm is 62"
    )]
    fn rank(since: Option<Timestamp>, now: Timestamp) -> i64 {
        let Some(since) = since else { return i64::MIN };
        let nanoseconds = now.duration_since(since).as_nanos();
        if nanoseconds > 0 { i64::from(127 - nanoseconds.leading_zeros() as u8) } else { -1 }
    }
}

impl Ord for Age {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.since == other.since {
            return Ordering::Equal;
        }
        self.rank.cmp(&other.rank).then_with(|| self.uid.cmp(&other.uid))
    }
}

impl PartialOrd for Age {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Age {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Age {}
