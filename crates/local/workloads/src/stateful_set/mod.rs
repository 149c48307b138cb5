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

use serde_json::{Value, json};

use crate::common::kind::{PODS, STATEFUL_SET, STATEFUL_SETS};
use crate::common::object::{list, name};
use crate::common::owner::{Owner, concerned};
use crate::common::selector::selects;
use crate::common::step::event;
use crate::{Controller, EventType, Failure, Name, Plan, Step, View};

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

    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<Name> {
        let wants = |set: &Value| match collection {
            claims::CLAIMS => has_claim(set, name(object)),
            _ => selects(set, object),
        };
        concerned(view, &STATEFUL_SET, object, wants)
    }

    fn plan(&self, view: &dyn View, set: &Value) -> Plan {
        Owner::of(set, &STATEFUL_SET).map_or_else(Plan::default, |owner| sync::plan(view, set, &owner))
    }

    fn failed(&self, _view: &dyn View, set: &Value, step: &Step, failure: &Failure) -> Plan {
        let message = &failure.message;
        let steps = match step {
            Step::Create { collection: claims::CLAIMS, object } => refused_claim(set, object, message),
            Step::Create { collection: PODS, object } => {
                vec![refused(set, "FailedCreate", "Create", object, message)]
            }
            Step::Delete { target } if target.collection == PODS => {
                let pod = json!({"metadata": {"name": target.name}});
                vec![refused(set, "FailedDelete", "Delete", &pod, message)]
            }
            _ => Vec::new(),
        };
        steps.into_iter().collect()
    }
}

/// Whether a claim of this name can belong to a place of the set.
fn has_claim(set: &Value, claim: &str) -> bool {
    let Some((claim, _)) = identity::parent_and_ordinal(claim) else { return false };
    let templates = list(set, "/spec/volumeClaimTemplates");
    templates.iter().any(|template| claim == format!("{}-{}", name(template), name(set)))
}

fn refused(set: &Value, reason: &'static str, verb: &str, pod: &Value, error: &str) -> Step {
    let message = format!("{verb} Pod {} in StatefulSet {} failed error: {error}", name(pod), name(set));
    event(set, EventType::Warning, reason, message)
}

/// A claim that is refused is one for its pod, which is not made either.
fn refused_claim(set: &Value, claim: &Value, error: &str) -> Vec<Step> {
    let claim = name(claim);
    let Some((_, ordinal)) = identity::parent_and_ordinal(claim) else { return Vec::new() };
    let pod = json!({"metadata": {"name": format!("{}-{ordinal}", name(set))}});
    let (pod_name, set_name) = (name(&pod), name(set));
    let message = format!("Create Claim {claim} for Pod {pod_name} in StatefulSet {set_name} failed error: {error}");
    let error = format!("failed to create PVC {claim}: {error}");
    vec![event(set, EventType::Warning, "FailedCreate", message), refused(set, "FailedCreate", "Create", &pod, &error)]
}
