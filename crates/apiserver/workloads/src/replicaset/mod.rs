//! `ReplicaSet` → its pods: as many as it asks for, and a status that counts them.

mod preference;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::common::kind::{PODS, REPLICA_SET, REPLICA_SETS};
use crate::common::object::{is_deleting, name, namespace, number, uid};
use crate::common::owner::{OwningController, concerned};
use crate::common::pod;
use crate::common::selector::selects;
use crate::common::step::{delete, event, target};
use crate::{CREATED, Controller, EventType, ObjectName, Plan, Step, StepFailure, View};
use status::PodCounts;

/// Most pods that one plan makes or deletes.
const MOST_AT_ONCE: usize = 500;

/// The controller.
pub(crate) struct ReplicaSets;

impl Controller for ReplicaSets {
    fn component(&self) -> &'static str {
        "replicaset-controller"
    }

    fn collection(&self) -> &'static str {
        REPLICA_SETS
    }

    fn watches(&self) -> &'static [&'static str] {
        &[PODS]
    }

    fn concerned(&self, view: &dyn View, _collection: &str, object: &Value) -> Vec<ObjectName> {
        concerned(view, &REPLICA_SET, object, |set| selects(set, object))
    }

    fn plan(&self, view: &dyn View, set: &Value) -> Plan {
        let mut plan = Plan::default();
        let Some(mut pods) = Pods::gather(view, set, &mut plan.steps) else {
            return plan;
        };
        let claims = plan.steps.len();
        if !is_deleting(set) {
            plan.steps.extend(pods.manage(view, set));
        }
        if plan.steps.len() > claims {
            // What was made or deleted is counted when it is seen.
            return plan;
        }
        let counted = pods.count(view, set);
        plan.steps.extend(status::update(set, &counted, None, view.now()));
        plan.again_after = pods.next_available(view, set, &counted);
        plan
    }

    fn failed(&self, view: &dyn View, set: &Value, step: &Step, failure: &StepFailure) -> Plan {
        let (reason, told, message) = match step {
            Step::Create { .. } => ("FailedCreate", "Error creating", failure.message.clone()),
            Step::Delete { .. } => {
                ("FailedDelete", "Error deleting", format!("unable to delete pods: {}", failure.message))
            }
            Step::Patch { .. } | Step::Event(_) => return Plan::default(),
        };
        let told = format!("{told}: {}", failure.message);
        let mut steps = vec![event(set, EventType::Warning, reason, told)];
        if let Some(pods) = Pods::gather(view, set, &mut Vec::new()) {
            let counted = pods.count(view, set);
            steps.extend(status::update(set, &counted, Some((reason, &message)), view.now()));
        }
        steps.into_iter().collect()
    }
}

/// The pods of a replica set.
struct Pods {
    active: Vec<Arc<Value>>,
    terminating: usize,
}

impl Pods {
    /// `None` for a selector that cannot be read. Adoptions and releases are added to the steps.
    fn gather(view: &dyn View, set: &Value, steps: &mut Vec<Step>) -> Option<Self> {
        let owner = OwningController::of(set, &REPLICA_SET)?;
        let own = view.controlled_by(PODS, namespace(set), uid(set));
        let terminating = own.iter().filter(|pod| pod::is_terminating(pod) && owner.selects(pod)).count();
        let mut candidates = owner.candidates(view, PODS);
        candidates.retain(|pod| pod::is_active(pod));
        let active = owner.claim(PODS, candidates, &|_| true, steps);
        Some(Self { active, terminating })
    }

    /// Makes what is missing, deletes what is too much.
    fn manage(&mut self, view: &dyn View, set: &Value) -> Vec<Step> {
        let wanted = usize::try_from(number(set, "/spec/replicas")).unwrap_or(0);
        let there = self.active.len();
        if there < wanted {
            return (0..(wanted - there).min(MOST_AT_ONCE)).flat_map(|_| make(set)).collect();
        }
        let count = (there - wanted).min(MOST_AT_ONCE);
        if count > 0 && count < there {
            preference::sort(&mut self.active, view, set);
        }
        self.active[..count].iter().flat_map(|pod| remove(set, pod)).collect()
    }

    fn count(&self, view: &dyn View, set: &Value) -> PodCounts {
        PodCounts::of(set, &self.active, self.terminating, view.now())
    }

    /// When the next of the ready pods has been ready for long enough.
    fn next_available(&self, view: &dyn View, set: &Value, counted: &PodCounts) -> Option<Duration> {
        let min_ready_seconds = number(set, "/spec/minReadySeconds");
        if min_ready_seconds == 0 || counted.ready == counted.available {
            return None;
        }
        self.active.iter().filter_map(|pod| pod::available_in(pod, min_ready_seconds, view.now())).min()
    }
}

fn make(set: &Value) -> [Step; 2] {
    let object = pod::from_template(&set["spec"]["template"], set, &REPLICA_SET);
    let told = event(set, EventType::Normal, "SuccessfulCreate", format!("Created pod: {CREATED}"));
    [Step::Create { collection: PODS, object }, told]
}

fn remove(set: &Value, pod: &Value) -> [Step; 2] {
    let told = event(set, EventType::Normal, "SuccessfulDelete", format!("Deleted pod: {}", name(pod)));
    [delete(target(PODS, pod)), told]
}
