//! A service with a selector → its `Endpoints`, the older form of its slices: one object, at most 1000 addresses.

pub(crate) mod packing;
mod subsets;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::common::diff::{map_patch, or_null};
use crate::common::kind::{ENDPOINTS, PODS, SERVICES};
use crate::common::object::{annotation, list, name_of};
use crate::common::step::{change, delete, exact_target};
use crate::serving::{self, TRIGGER_TIME, annotated, has_selector, services_of};
use crate::{Controller, ObjectName, Plan, Step, View};

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// The `Endpoints` of services.
pub(crate) struct Endpoints;

impl Controller for Endpoints {
    fn component(&self) -> &'static str {
        CONTROLLER
    }

    fn collection(&self) -> &'static str {
        SERVICES
    }

    fn watches(&self) -> &'static [&'static str] {
        &[PODS, ENDPOINTS]
    }

    /// Endpoints that are deleted are made again; those that someone writes are his, until the service or its pods change.
    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<ObjectName> {
        if collection != ENDPOINTS {
            return services_of(view, object);
        }
        let name = name_of(object);
        let there = view.get(ENDPOINTS, &name.namespace, &name.name).is_some();
        if there { Vec::new() } else { vec![name] }
    }

    fn plan(&self, view: &dyn View, service: &Value) -> Plan {
        if !has_selector(service) {
            return Plan::default();
        }
        let pods = serving::pods(view, service);
        let ObjectName { namespace, name } = name_of(service);
        let there = view.get(ENDPOINTS, &namespace, &name);
        let is_known = |pod: &Value| there.as_deref().is_some_and(|old| subsets::is_known(old, pod));
        let trigger_time = serving::trigger_time(service, &pods, there.is_none(), is_known);
        let wanted = WantedEndpoints { service, trigger_time, packed: subsets::of(service, &pods) };
        let step = there.as_deref().map_or_else(|| Some(wanted.create()), |old| wanted.update(old));
        step.into_iter().collect()
    }

    /// No owner reference ties them to their service.
    fn gone(&self, view: &dyn View, name: &ObjectName) -> Plan {
        let there = view.get(ENDPOINTS, &name.namespace, &name.name);
        let step = there.map(|endpoints| delete(exact_target(ENDPOINTS, &endpoints)));
        step.into_iter().collect()
    }
}

struct WantedEndpoints<'a> {
    service: &'a Value,
    trigger_time: Option<&'a str>,
    packed: subsets::Packed,
}

impl WantedEndpoints<'_> {
    fn create(&self) -> Step {
        let metadata = &self.service["metadata"];
        let object = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "name": metadata["name"], "namespace": metadata["namespace"],
                "labels": self.labels(), "annotations": self.annotations(&Value::Null),
            },
            "subsets": self.packed.subsets,
        });
        Step::Create { collection: ENDPOINTS, object }
    }

    /// Nothing where subsets, labels and the mark of capacity are right; a time alone is no reason to write.
    fn update(&self, old: &Value) -> Option<Step> {
        let labels = map_patch(&old["metadata"]["labels"], &self.labels());
        let marked = annotation(old, OVER_CAPACITY).is_some();
        let same_subsets = subsets::equal(list(old, "/subsets"), &self.packed.subsets);
        if labels.is_none() && same_subsets && marked == self.packed.truncated {
            return None;
        }
        let mut metadata = Map::new();
        metadata.extend(labels.map(|patch| ("labels".to_owned(), patch)));
        let annotations = &old["metadata"]["annotations"];
        let patch = map_patch(annotations, &self.annotations(annotations));
        metadata.extend(patch.map(|patch| ("annotations".to_owned(), patch)));
        let mut patch = json!({"metadata": metadata});
        if !same_subsets {
            patch["subsets"] = or_null(self.packed.subsets.clone());
        }
        Some(change(exact_target(ENDPOINTS, old), patch))
    }

    fn labels(&self) -> Value {
        let mut labels = serving::labels_of_endpoints(self.service);
        labels.insert(MANAGED_BY.to_owned(), json!(CONTROLLER));
        Value::Object(labels)
    }

    fn annotations(&self, old: &Value) -> Value {
        let over_capacity = self.packed.truncated.then_some("truncated");
        annotated(old, &[(TRIGGER_TIME, self.trigger_time), (OVER_CAPACITY, over_capacity)])
    }
}
