//! `Recreate`: every old pod is gone before the first new one is made.

use super::progress::is_complete;
use super::rollout::Rollout;
use crate::common::kind::PODS;
use crate::common::object::{namespace, number, uid};
use crate::common::pod;

impl Rollout<'_> {
    pub(super) fn recreate(&mut self) {
        let mut shrunk = false;
        for index in self.old() {
            shrunk |= self.scale_to(index, 0);
        }
        if !shrunk && !self.old_pods_run() && !self.start_new() {
            return;
        }
        self.deployment["status"] = self.rollout_status();
    }

    /// Gives the new set its whole size; false where it could not be made.
    fn start_new(&mut self) -> bool {
        if self.new.is_none() && !self.create_new() {
            return false;
        }
        if let Some(index) = self.new {
            self.scale_to(index, self.replicas());
        }
        if is_complete(&self.deployment, &self.deployment["status"]) {
            self.clean_up();
        }
        true
    }

    /// Whether an old set counts pods or has some that have not ended.
    fn old_pods_run(&self) -> bool {
        self.old().into_iter().map(|index| &self.sets[index]).any(|set| {
            let pods = || self.view.controlled_by(PODS, namespace(set), uid(set));
            number(set, "/status/replicas") > 0 || pods().iter().any(|pod| !pod::is_finished(pod))
        })
    }
}
