//! `RollingUpdate`: the new set grows as far as the surge allows, the old ones shrink as far as availability allows.

use serde_json::Value;

use super::fence;
use super::progress::is_complete;
use super::rollout::Rollout;
use crate::common::object::number;

impl Rollout<'_> {
    pub(super) fn roll(&mut self) {
        if self.new.is_none() && !self.create_new() {
            return;
        }
        let moved = self.grow_new() || self.shrink_old();
        if !moved && is_complete(&self.deployment, &self.deployment["status"]) {
            self.clean_up();
        }
        self.deployment["status"] = self.rollout_status();
    }

    fn grow_new(&mut self) -> bool {
        let Some(index) = self.new else { return false };
        let (size, wanted) = (self.size(index), self.replicas());
        let next = if size >= wanted { wanted } else { self.grown(size) };
        self.scale_to(index, next)
    }

    /// Takes unhealthy pods of the old sets first, then healthy ones that the new set has replaced.
    fn shrink_old(&mut self) -> bool {
        let old: Vec<usize> = self.old().into_iter().filter(|index| self.size(*index) > 0).collect();
        if old.is_empty() {
            return false;
        }
        // Pods of the new set that are not available are no reason to take more of the old ones.
        let missing = self.new_set().map_or(0, |set| number(set, "/spec/replicas") - available(set));
        let most = self.sum("/spec/replicas") - fence::min_available(&self.deployment) - missing;
        if most <= 0 {
            return false;
        }
        let unhealthy = self.take(&old, most, |set| number(set, "/spec/replicas") - available(set));
        let spare = self.available(&old) - fence::min_available(&self.deployment);
        let healthy = self.take(&old, spare, |set| number(set, "/spec/replicas"));
        unhealthy + healthy > 0
    }

    /// What is available in the new set and in these.
    fn available(&self, old: &[usize]) -> i64 {
        let indices = old.iter().copied().chain(self.new);
        indices.map(|index| available(&self.sets[index])).sum()
    }

    /// Takes at most so many replicas, of each set at most what `takeable` says; answers how many.
    fn take(&mut self, old: &[usize], most: i64, takeable: impl Fn(&Value) -> i64) -> i64 {
        let mut taken = 0;
        for index in old {
            let size = self.size(*index);
            let count = takeable(&self.sets[*index]).min(most - taken).min(size);
            if count > 0 && self.scale_to(*index, size - count) {
                taken += count;
            }
        }
        taken
    }
}

fn available(set: &Value) -> i64 {
    number(set, "/status/availableReplicas")
}
