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

use crate::common::object::{event, name};
use crate::objects::{list, selects};
use crate::ownership::concerned;
use crate::{Controller, EventType, Failure, Name, Plan, Step, View};

const COLLECTION: &str = "statefulsets.apps";

/// The controller of `StatefulSets`.
pub(crate) struct StatefulSets;

impl Controller for StatefulSets {
    fn component(&self) -> &'static str {
        "statefulset-controller"
    }

    fn collection(&self) -> &'static str {
        COLLECTION
    }

    fn watches(&self) -> &'static [&'static str] {
        &["pods", "controllerrevisions.apps", claims::COLLECTION]
    }

    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<Name> {
        let wants = |set: &Value| match collection {
            claims::COLLECTION => has_claim(set, name(object)),
            _ => selects(set, object),
        };
        concerned(view, COLLECTION, "StatefulSet", object, wants)
    }

    fn plan(&self, view: &dyn View, set: &Value) -> Plan {
        sync::plan(view, set)
    }

    fn failed(&self, _view: &dyn View, set: &Value, step: &Step, failure: &Failure) -> Plan {
        let message = &failure.message;
        let steps = match step {
            Step::Create { collection: claims::COLLECTION, object } => refused_claim(set, object, message),
            Step::Create { collection: "pods", object } => {
                vec![refused(set, "FailedCreate", "Create", object, message)]
            }
            Step::Delete { target } if target.collection == "pods" => {
                let pod = json!({"metadata": {"name": target.name}});
                vec![refused(set, "FailedDelete", "Delete", &pod, message)]
            }
            _ => Vec::new(),
        };
        Plan { steps, again_after: None }
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
