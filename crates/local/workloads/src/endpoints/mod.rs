//! A service with a selector → its `Endpoints`, the older form of its slices: one object, at most 1000 addresses.

mod subsets;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::serving::{self, has_selector, is_headless, map_patch, name_of, services_of, text};
use crate::{Controller, Name, Part, Plan, Step, Target, View};

const ENDPOINTS: &str = "endpoints";
const HEADLESS: &str = "service.kubernetes.io/headless";
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// The `Endpoints` of services.
pub(crate) struct Endpoints;

impl Controller for Endpoints {
    fn component(&self) -> &'static str {
        CONTROLLER
    }

    fn collection(&self) -> &'static str {
        "services"
    }

    fn watches(&self) -> &'static [&'static str] {
        &["pods", ENDPOINTS]
    }

    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<Name> {
        if collection == ENDPOINTS { vec![name_of(object)] } else { services_of(view, object) }
    }

    fn plan(&self, view: &dyn View, service: &Value) -> Plan {
        if !has_selector(service) {
            return Plan::default();
        }
        let pods = serving::pods(view, service);
        let Name { namespace, name } = name_of(service);
        let there = view.get(ENDPOINTS, &namespace, &name);
        let trigger_time = subsets::trigger_time(service, &pods, there.as_deref());
        let wanted = Wanted { service, trigger_time, packed: subsets::of(service, &pods) };
        let step = there.as_deref().map_or_else(|| Some(wanted.create()), |old| wanted.update(old));
        Plan { steps: step.into_iter().collect(), again_after: None }
    }

    /// No owner reference ties them to their service.
    fn gone(&self, view: &dyn View, name: &Name) -> Plan {
        let there = view.get(ENDPOINTS, &name.namespace, &name.name);
        let step = there.map(|endpoints| Step::Delete { target: target(&endpoints) });
        Plan { steps: step.into_iter().collect(), again_after: None }
    }
}

struct Wanted<'a> {
    service: &'a Value,
    trigger_time: Option<&'a str>,
    packed: subsets::Packed,
}

impl Wanted<'_> {
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
        let marked = old["metadata"]["annotations"].get(OVER_CAPACITY).is_some();
        let same_subsets = subsets::equal(serving::list(old, "/subsets"), &self.packed.subsets);
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
            patch["subsets"] = json!(self.packed.subsets);
        }
        Some(Step::Patch { target: target(old), part: Part::Main, patch })
    }

    fn labels(&self) -> Map<String, Value> {
        let mut labels = serving::labels(self.service);
        labels.remove(HEADLESS);
        if is_headless(self.service) {
            labels.insert(HEADLESS.to_owned(), json!(""));
        }
        labels.insert(MANAGED_BY.to_owned(), json!(CONTROLLER));
        labels
    }

    fn annotations(&self, old: &Value) -> Map<String, Value> {
        let mut annotations = old.as_object().cloned().unwrap_or_default();
        let over_capacity = self.packed.truncated.then_some("truncated");
        for (name, value) in [(TRIGGER_TIME, self.trigger_time), (OVER_CAPACITY, over_capacity)] {
            match value {
                Some(value) => annotations.insert(name.to_owned(), json!(value)),
                None => annotations.remove(name),
            };
        }
        annotations
    }
}

fn target(endpoints: &Value) -> Target {
    let own = |pointer: &str| text(endpoints, pointer).to_owned();
    Target {
        collection: ENDPOINTS,
        namespace: own("/metadata/namespace"),
        name: own("/metadata/name"),
        uid: own("/metadata/uid"),
        version: Some(own("/metadata/resourceVersion")),
    }
}
