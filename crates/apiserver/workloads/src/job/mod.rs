//! `Job` → pods until enough of them have succeeded, or too many have failed.
//!
//! A pod that ended is counted once: its uid goes into the status, then its finalizer goes, then the count grows.

mod backoff;
mod indexes;
mod judge;
mod manage;
mod pods;
mod policies;
mod status;
mod sync;
#[cfg(test)]
mod tests;
mod track;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::common::kind::{JOB, JOBS, PODS};
use crate::common::object::{controller_of, given_number, is_deleting, label, namespace, text, time, uid};
use crate::common::owner::{OwningController, concerned, owner_of, without_finalizer};
use crate::common::selector::selects;
use crate::common::step::{change, event, target};
use crate::{Controller, Dependents, EventType, ObjectName, Plan, Step, StepFailure, View};
use pods::{FINALIZER, is_tracked};
use status::Status;

/// The controller that a Job may name as its own.
const MANAGER: &str = "kubernetes.io/job-controller";

/// The controller of Jobs.
pub(crate) struct Jobs;

impl Controller for Jobs {
    fn component(&self) -> &'static str {
        "job-controller"
    }

    fn collection(&self) -> &'static str {
        JOBS
    }

    fn watches(&self) -> &'static [&'static str] {
        &[PODS]
    }

    fn concerned(&self, view: &dyn View, _collection: &str, object: &Value) -> Vec<ObjectName> {
        concerned(view, &JOB, object, |job| selects(job, object))
    }

    fn plan(&self, view: &dyn View, job: &Value) -> Plan {
        let manager = text(job, "/spec/managedBy");
        let foreign = !manager.is_empty() && manager != MANAGER;
        match Status::read(job).finished() {
            Some(end) => {
                let pods = if foreign { Vec::new() } else { view.controlled_by(PODS, namespace(job), uid(job)) };
                after_the_end(job, end, released(&pods), view.now())
            }
            None if foreign => Plan::default(),
            None => OwningController::of(job, &JOB).map_or_else(Plan::default, |owner| sync::plan(view, job, owner)),
        }
    }

    /// The status does not wait for pods that are refused.
    fn failed(&self, view: &dyn View, job: &Value, step: &Step, failure: &StepFailure) -> Plan {
        let (reason, told) = match step {
            Step::Create { .. } => ("FailedCreate", "Error creating"),
            Step::Delete { target, .. } if target.collection == PODS => ("FailedDelete", "Error deleting"),
            Step::Delete { .. } | Step::Patch { .. } | Step::Event(_) => return Plan::default(),
        };
        let told = event(job, EventType::Warning, reason, format!("{told}: {}", failure.message));
        let counted = OwningController::of(job, &JOB).map(|owner| sync::count(view, job, owner)).unwrap_or_default();
        [told].into_iter().chain(counted.steps).collect()
    }

    fn gone(&self, view: &dyn View, name: &ObjectName) -> Plan {
        let orphaned = |pod: &Arc<Value>| match controller_of(pod) {
            Some(owner) => {
                let named = owner["kind"] == JOB.name && text(owner, "/name") == name.name;
                named && owner_of(view, &JOB, pod).is_none()
            }
            None => label(pod, "batch.kubernetes.io/job-name") == Some(&name.name),
        };
        let pods: Vec<Arc<Value>> = view.list(PODS, &name.namespace).into_iter().filter(orphaned).collect();
        released(&pods).into_iter().collect()
    }
}

/// Lets pods go that nobody counts any more.
fn released(pods: &[Arc<Value>]) -> Vec<Step> {
    pods.iter().filter(|pod| is_tracked(pod)).map(|pod| release(pod)).collect()
}

/// Takes the finalizer of a pod.
fn release(pod: &Value) -> Step {
    let patch = json!({"metadata": {"finalizers": without_finalizer(pod, FINALIZER)}});
    change(target(PODS, pod), patch)
}

/// A Job that has ended is deleted some time later, where it says so.
fn after_the_end(job: &Value, end: &Value, mut steps: Vec<Step>, now: Timestamp) -> Plan {
    let ended = time(end, "/lastTransitionTime").unwrap_or(now);
    let Some(seconds) = given_number(job, "/spec/ttlSecondsAfterFinished").filter(|_| !is_deleting(job)) else {
        return Plan { steps, again_after: None };
    };
    let left = (ended + SignedDuration::from_secs(seconds)).duration_since(now);
    let again_after = Duration::try_from(left).ok().filter(|left| !left.is_zero());
    if again_after.is_none() {
        steps.push(Step::Delete { target: target(JOBS, job), dependents: Dependents::Before });
    }
    Plan { steps, again_after }
}
