//! `Job` → pods until enough of them have succeeded, or too many have failed.
//!
//! A pod that ended is counted once: its uid goes into the status, then its finalizer goes, then the count grows.

mod backoff;
mod indexes;
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

use crate::common::object::{controller_of, event, is_deleting, namespace, target, text, time, uid};
use crate::objects::{number, selects};
use crate::ownership::{concerned, without_finalizer};
use crate::{Controller, EventType, Failure, Name, Part, Plan, Step, View};
use pods::{FINALIZER, is_tracked};
use status::Status;

const COLLECTION: &str = "jobs.batch";
const PODS: &str = "pods";
/// The controller that a Job may name as its own.
const MANAGER: &str = "kubernetes.io/job-controller";

/// The controller of Jobs.
pub(crate) struct Jobs;

impl Controller for Jobs {
    fn component(&self) -> &'static str {
        "job-controller"
    }

    fn collection(&self) -> &'static str {
        COLLECTION
    }

    fn watches(&self) -> &'static [&'static str] {
        &[PODS]
    }

    fn concerned(&self, view: &dyn View, _collection: &str, object: &Value) -> Vec<Name> {
        let wants = |job: &Value| selects(job, object);
        concerned(view, COLLECTION, "Job", object, wants)
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
            None => sync::plan(view, job),
        }
    }

    fn failed(&self, _view: &dyn View, job: &Value, step: &Step, failure: &Failure) -> Plan {
        let (reason, told) = match step {
            Step::Create { .. } => ("FailedCreate", "Error creating"),
            Step::Delete { .. } => ("FailedDelete", "Error deleting"),
            Step::Patch { .. } | Step::Event(_) => return Plan::default(),
        };
        let message = format!("{told}: {}", failure.message);
        Plan { steps: vec![event(job, EventType::Warning, reason, message)], again_after: None }
    }

    fn gone(&self, view: &dyn View, name: &Name) -> Plan {
        let orphaned = |pod: &Arc<Value>| match controller_of(pod) {
            Some(owner) => {
                let job = view.get(COLLECTION, &name.namespace, &name.name);
                let lost = job.is_none_or(|job| owner["uid"] != uid(&job));
                owner["kind"] == "Job" && owner["name"] == name.name.as_str() && lost
            }
            None => pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == name.name.as_str(),
        };
        let pods: Vec<Arc<Value>> = view.list(PODS, &name.namespace).into_iter().filter(orphaned).collect();
        Plan { steps: released(&pods), again_after: None }
    }
}

/// Lets pods go that nobody counts any more.
fn released(pods: &[Arc<Value>]) -> Vec<Step> {
    pods.iter().filter(|pod| is_tracked(pod)).map(|pod| release(pod)).collect()
}

/// Takes the finalizer of a pod.
fn release(pod: &Value) -> Step {
    let patch = json!({"metadata": {"finalizers": without_finalizer(pod, FINALIZER)}});
    Step::Patch { target: target(PODS, pod), part: Part::Main, patch }
}

/// A Job that has ended is deleted some time later, where it says so.
fn after_the_end(job: &Value, end: &Value, mut steps: Vec<Step>, now: Timestamp) -> Plan {
    let ended = time(end, "/lastTransitionTime").unwrap_or(now);
    let Some(seconds) = number(job, "/spec/ttlSecondsAfterFinished").filter(|_| !is_deleting(job)) else {
        return Plan { steps, again_after: None };
    };
    let left = (ended + SignedDuration::from_secs(seconds)).duration_since(now);
    let again_after = Duration::try_from(left).ok().filter(|left| !left.is_zero());
    if again_after.is_none() {
        steps.push(Step::Delete { target: target(COLLECTION, job) });
    }
    Plan { steps, again_after }
}
