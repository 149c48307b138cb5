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

use crate::common::object::{self, controller_of, event, name_of, number};
use crate::common::pod::PODS;
use crate::common::selector::Selector;
use crate::replicaset::{self, REPLICA_SETS, adopters};
use crate::{Controller, EventType, Failure, Name, Part, Plan, Step, View};
use rollout::Rollout;

const DEPLOYMENTS: &str = "deployments.apps";
const API_VERSION: &str = "apps/v1";
const KIND: &str = "Deployment";

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

    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<Name> {
        if collection == PODS {
            return recreated(view, object).into_iter().collect();
        }
        if controller_of(object).is_none() {
            return adopters(view, DEPLOYMENTS, object);
        }
        owner(view, DEPLOYMENTS, KIND, object).iter().map(|owner| name_of(owner)).collect()
    }

    fn plan(&self, view: &dyn View, deployment: &Value) -> Plan {
        let Some(selector) = Selector::parse(&deployment["spec"]["selector"]) else {
            return Plan::default();
        };
        if selector.is_empty() {
            return selecting_all(deployment);
        }
        let mut rollout = Rollout::gather(view, deployment, &selector);
        rollout.run();
        rollout.finish()
    }

    fn failed(&self, view: &dyn View, deployment: &Value, step: &Step, failure: &Failure) -> Plan {
        match step {
            // A name that was taken meanwhile is found by the next plan.
            Step::Create { object, .. } if failure.reason != "AlreadyExists" => {
                let message =
                    format!("Failed to create new replica set {:?}: {}", object::name(object), failure.message);
                progress::not_created(deployment, message, view.now())
            }
            Step::Create { .. } | Step::Patch { .. } | Step::Delete { .. } | Step::Event(_) => Plan::default(),
        }
    }
}

/// The object that controls another one, if it is of this kind and still the same.
fn owner(view: &dyn View, collection: &str, kind: &str, object: &Value) -> Option<std::sync::Arc<Value>> {
    let reference = controller_of(object).filter(|reference| reference["kind"] == kind)?;
    let owner = view.get(collection, object::namespace(object), reference["name"].as_str()?)?;
    (reference["uid"] == *object::uid(&owner)).then_some(owner)
}

/// The deployment that waits for a pod of its old templates to be gone.
fn recreated(view: &dyn View, pod: &Value) -> Option<Name> {
    let set = owner(view, REPLICA_SETS, replicaset::KIND, pod)?;
    let deployment = owner(view, DEPLOYMENTS, KIND, &set)?;
    (deployment["spec"]["strategy"]["type"] == "Recreate").then(|| name_of(&deployment))
}

/// A deployment without a selector is told so, once for each generation.
fn selecting_all(deployment: &Value) -> Plan {
    let generation = number(deployment, "/metadata/generation");
    if number(deployment, "/status/observedGeneration") >= generation {
        return Plan::default();
    }
    let message = "This deployment is selecting all pods. A non-empty selector is required.".to_owned();
    let target = object::target(DEPLOYMENTS, deployment);
    let patch = json!({"status": {"observedGeneration": generation}});
    let told = event(deployment, EventType::Warning, "SelectingAll", message);
    Plan { steps: vec![told, Step::Patch { target, part: Part::Status, patch }], again_after: None }
}
