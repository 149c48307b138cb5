//! `Deployment` → replica sets: one for each template, sizes that move from the old ones to the new one.

mod fence;
mod progress;
mod recreate;
mod revision;
mod rolling;
mod rollout;
mod scale;
mod template;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::common::kind::{DEPLOYMENT, DEPLOYMENTS, PODS, REPLICA_SET, REPLICA_SETS};
use crate::common::object::{name, name_of, number};
use crate::common::owner::{OwningController, concerned, owner_of};
use crate::common::selector::selects;
use crate::common::step::{change_status, event, target};
use crate::{Controller, EventType, ObjectName, Plan, Step, StepFailure, View};
use rollout::Rollout;

/// The controller.
pub(crate) struct Deployments;

impl Controller for Deployments {
    fn component(&self) -> &'static str {
        "deployment-controller"
    }

    fn collection(&self) -> &'static str {
        DEPLOYMENTS
    }

    fn watches(&self) -> &'static [&'static str] {
        &[REPLICA_SETS, PODS]
    }

    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<ObjectName> {
        if collection == PODS {
            return recreated(view, object).into_iter().collect();
        }
        concerned(view, &DEPLOYMENT, object, |deployment| selects(deployment, object))
    }

    fn plan(&self, view: &dyn View, deployment: &Value) -> Plan {
        let Some(owner) = OwningController::of(deployment, &DEPLOYMENT) else {
            return Plan::default();
        };
        if owner.selects_all() {
            return selecting_all(deployment);
        }
        let mut rollout = Rollout::gather(view, deployment, &owner);
        rollout.run();
        rollout.finish()
    }

    fn failed(&self, view: &dyn View, deployment: &Value, step: &Step, failure: &StepFailure) -> Plan {
        match step {
            // A name that was taken meanwhile is found by the next plan.
            Step::Create { object, .. } if failure.reason != "AlreadyExists" => {
                let message = format!("Failed to create new replica set {:?}: {}", name(object), failure.message);
                progress::not_created(deployment, message, view.now())
            }
            Step::Create { .. } | Step::Patch { .. } | Step::Delete { .. } | Step::Event(_) => Plan::default(),
        }
    }
}

/// The deployment that waits for a pod of its old templates to be gone.
fn recreated(view: &dyn View, pod: &Value) -> Option<ObjectName> {
    let set = owner_of(view, &REPLICA_SET, pod)?;
    let deployment = owner_of(view, &DEPLOYMENT, &set)?;
    (deployment["spec"]["strategy"]["type"] == "Recreate").then(|| name_of(&deployment))
}

/// A deployment without a selector is told so, once for each generation.
fn selecting_all(deployment: &Value) -> Plan {
    let generation = number(deployment, "/metadata/generation");
    if number(deployment, "/status/observedGeneration") >= generation {
        return Plan::default();
    }
    let message = "This deployment is selecting all pods. A non-empty selector is required.".to_owned();
    let told = event(deployment, EventType::Warning, "SelectingAll", message);
    let seen = change_status(target(DEPLOYMENTS, deployment), json!({"observedGeneration": generation}));
    [told, seen].into_iter().collect()
}
