//! `Endpoints` that someone wrote for a service without a selector → `EndpointSlice`s that say the same.
//!
//! As the endpointslicemirroring controller of kube-controller-manager makes them: one slice for every address family and
//! set of ports. A label of the `Endpoints` keeps them from being mirrored, and so does a lock that they hold.

mod desired;
mod mirrored;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use crate::common::kind::{ENDPOINTS, SERVICES};
use crate::common::object::{annotation, is_deleting, name_of, namespace};
use crate::common::step::{delete, event, exact_target};
use crate::endpoint_slices::{MANAGED_BY, SERVICE_NAME, SLICES, slices_by};
use crate::{Controller, EventType, ObjectName, Plan, View};
use desired::{Desired, MOST};

const CONTROLLER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// The slices of `Endpoints`.
pub(crate) struct Mirroring;

impl Controller for Mirroring {
    fn component(&self) -> &'static str {
        "endpoint-slice-mirroring-controller"
    }

    fn collection(&self) -> &'static str {
        ENDPOINTS
    }

    fn watches(&self) -> &'static [&'static str] {
        &[SERVICES, SLICES]
    }

    fn concerned(&self, _view: &dyn View, collection: &str, object: &Value) -> Vec<ObjectName> {
        match collection {
            SERVICES => vec![name_of(object)],
            _ => endpoints_of(object).into_iter().collect(),
        }
    }

    fn plan(&self, view: &dyn View, endpoints: &Value) -> Plan {
        let there = slices_by(view, CONTROLLER, &name_of(endpoints));
        if !is_mirrored(view, endpoints) {
            return deleting(&there);
        }
        let desired = Desired::of(endpoints);
        let mut steps = mirrored::steps(endpoints, &desired, there);
        if desired.skipped > 0 && !steps.is_empty() {
            let message = format!(
                "A max of {MOST} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
                desired.skipped
            );
            steps.push(event(endpoints, EventType::Warning, "TooManyAddressesToMirror", message));
        }
        steps.into_iter().collect()
    }

    fn gone(&self, view: &dyn View, name: &ObjectName) -> Plan {
        deleting(&slices_by(view, CONTROLLER, name))
    }
}

/// Whether slices shall say what the endpoints say.
fn is_mirrored(view: &dyn View, endpoints: &Value) -> bool {
    let ObjectName { namespace, name } = name_of(endpoints);
    let skipped = endpoints["metadata"]["labels"][SKIP] == "true" || annotation(endpoints, LEADER).is_some();
    let bare = |service: Arc<Value>| service["spec"]["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    !skipped && view.get(SERVICES, &namespace, &name).is_some_and(bare)
}

/// The endpoints that a slice mirrors.
fn endpoints_of(slice: &Value) -> Option<ObjectName> {
    let labels = &slice["metadata"]["labels"];
    let name = labels[SERVICE_NAME].as_str().filter(|_| labels[MANAGED_BY] == CONTROLLER)?;
    Some(ObjectName { namespace: namespace(slice).to_owned(), name: name.to_owned() })
}

fn deleting(slices: &[Arc<Value>]) -> Plan {
    let going = slices.iter().filter(|slice| !is_deleting(slice));
    going.map(|slice| delete(exact_target(SLICES, slice))).collect()
}
