//! A changed size: given to the one set that runs, or shared out among those that do.

use serde_json::Value;

use super::fence;
use super::rollout::{DESIRED_REPLICAS, MAX_REPLICAS, Rollout};
use crate::common::object::{annotation, number};

/// The number that an annotation holds.
fn noted(set: &Value, key: &str) -> Option<i64> {
    annotation(set, key)?.parse::<u32>().ok().filter(|number| i32::try_from(*number).is_ok()).map(i64::from)
}

impl Rollout<'_> {
    fn active(&self) -> Vec<usize> {
        (0..self.sets.len()).filter(|index| self.size(*index) > 0).collect()
    }

    /// Whether the deployment's size was changed since its sets were given theirs.
    pub(super) fn is_scaled(&self) -> bool {
        let desired = |index: usize| noted(&self.sets[index], DESIRED_REPLICAS);
        self.active().into_iter().filter_map(desired).any(|desired| desired != self.replicas())
    }

    pub(super) fn scale(&mut self) {
        let active = self.active();
        let only = match active.as_slice() {
            [] => self.new.or_else(|| self.sets.len().checked_sub(1)),
            [only] => Some(*only),
            _ => None,
        };
        if let Some(only) = only {
            self.scale_to(only, self.replicas());
        } else if self.is_saturated() {
            for index in self.old() {
                self.scale_to(index, 0);
            }
        } else if fence::is_rolling(&self.deployment) {
            self.share_out(active);
        }
    }

    /// Whether the new set has all the pods, and they are available.
    fn is_saturated(&self) -> bool {
        self.new_set().is_some_and(|set| {
            let counts = [number(set, "/spec/replicas"), number(set, "/status/availableReplicas")];
            noted(set, DESIRED_REPLICAS) == Some(self.replicas()) && counts.iter().all(|c| *c == self.replicas())
        })
    }

    /// Adds or takes replicas in proportion to the sets' sizes; the largest takes what rounding leaves.
    fn share_out(&mut self, mut active: Vec<usize>) {
        let allowed = if self.replicas() > 0 { fence::most_replicas(&self.deployment) } else { 0 };
        let change = allowed - self.sum("/spec/replicas");
        if change >= 0 {
            active.reverse();
        }
        // Of two of one size, the newer grows first and the older shrinks first.
        active.sort_by_key(|index| std::cmp::Reverse(self.size(*index)));
        let mut sizes = Vec::new();
        let mut shared = 0;
        for index in &active {
            let share = self.share(*index, change, shared);
            shared += share;
            sizes.push(self.size(*index) + share);
        }
        if let Some(largest) = sizes.first_mut() {
            *largest = (*largest + change - shared).max(0);
        }
        for (index, size) in active.into_iter().zip(sizes) {
            self.resize(index, size);
        }
    }

    /// A set's part of a change, of which `shared` is given out already.
    fn share(&self, index: usize, change: i64, shared: i64) -> i64 {
        let left = change - shared;
        let fair = if change == 0 || left == 0 { 0 } else { self.fair_share(index) };
        match change {
            0 => 0,
            1.. => fair.min(left),
            _ => fair.max(left),
        }
    }

    /// By how much a set's size would change if it kept its part of the whole.
    fn fair_share(&self, index: usize) -> i64 {
        let size = self.size(index);
        if self.replicas() == 0 {
            return -size;
        }
        let before = noted(&self.sets[index], MAX_REPLICAS).filter(|noted| *noted > 0);
        let before = before.unwrap_or_else(|| number(&self.deployment, "/status/replicas"));
        if before == 0 {
            return 0;
        }
        // Rounded half up, in whole numbers.
        (2 * size * fence::most_replicas(&self.deployment) + before) / (2 * before) - size
    }
}
