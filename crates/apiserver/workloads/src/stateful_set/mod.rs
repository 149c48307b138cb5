//! `StatefulSet` → pods with a place and a name of their own, their claims, and the history of the template.
//!
//! With `OrderedReady` a place is filled when the one before it is available, and emptied when the one after it is.

mod claims;
mod identity;
mod revisions;
mod status;
mod sync;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::common::kind::{PODS, STATEFUL_SET, STATEFUL_SETS};
use crate::common::object::{list, name};
use crate::common::owner::{OwningController, concerned};
use crate::common::selector::selects;
use crate::common::step::event;
use crate::{Controller, EventType, ObjectName, Plan, Step, StepFailure, View};

/// The controller of `StatefulSets`.
pub(crate) struct StatefulSets;

impl Controller for StatefulSets {
    fn component(&self) -> &'static str {
        "statefulset-controller"
    }

    fn collection(&self) -> &'static str {
        STATEFUL_SETS
    }

    fn watches(&self) -> &'static [&'static str] {
        &[PODS, revisions::REVISIONS, claims::CLAIMS]
    }

    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<ObjectName> {
        let wants = |set: &Value| match collection {
            claims::CLAIMS => has_claim(set, name(object)),
            _ => selects(set, object),
        };
        concerned(view, &STATEFUL_SET, object, wants)
    }

    fn plan(&self, view: &dyn View, set: &Value) -> Plan {
        OwningController::of(set, &STATEFUL_SET).map_or_else(Plan::default, |owner| sync::plan(view, set, &owner))
    }

    /// A name that is taken is no news: the pod or claim was made already, or the next plan fails again.
    fn failed(&self, _view: &dyn View, set: &Value, step: &Step, failure: &StepFailure) -> Plan {
        let is_taken = failure.reason == "AlreadyExists";
        let message = &failure.message;
        match step {
            Step::Create { collection: claims::CLAIMS, object } => {
                let (of_claim, of_pod) = refused_claim(set, name(object), message);
                Some(of_claim).filter(|_| !is_taken).into_iter().chain([of_pod]).collect()
            }
            Step::Create { collection: PODS, object } if !is_taken => {
                [refused(set, "FailedCreate", "Create", name(object), message)].into_iter().collect()
            }
            Step::Delete { target, .. } if target.collection == PODS => {
                [refused(set, "FailedDelete", "Delete", &target.name, message)].into_iter().collect()
            }
            _ => Plan::default(),
        }
    }
}

/// Whether a claim of this name can belong to a place of the set.
fn has_claim(set: &Value, claim: &str) -> bool {
    let Some((claim, _)) = identity::parent_and_ordinal(claim) else { return false };
    let templates = list(set, "/spec/volumeClaimTemplates");
    templates.iter().any(|template| claim == format!("{}-{}", name(template), name(set)))
}

fn refused(set: &Value, reason: &'static str, verb: &str, pod: &str, error: &str) -> Step {
    let message = format!("{verb} Pod {pod} in StatefulSet {} failed error: {error}", name(set));
    event(set, EventType::Warning, reason, message)
}

/// That a claim was refused, and with it its pod, which is not made either.
fn refused_claim(set: &Value, claim: &str, error: &str) -> (Step, Step) {
    let ordinal = identity::parent_and_ordinal(claim).map_or(0, |(_, ordinal)| ordinal);
    let (pod, set_name) = (format!("{}-{ordinal}", name(set)), name(set));
    let message = format!("Create Claim {claim} for Pod {pod} in StatefulSet {set_name} failed error: {error}");
    let of_claim = event(set, EventType::Warning, "FailedCreate", message);
    let of_pod = refused(set, "FailedCreate", "Create", &pod, &format!("failed to create PVC {claim}: {error}"));
    (of_claim, of_pod)
}
