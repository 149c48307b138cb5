//! A world in memory: objects, and steps that are carried out on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::common::kind::PODS;
use crate::common::object::{controller_of, labels, list, name_of, text};
use crate::{CREATED, Controller, Endpoint, Event, ObjectName, Plan, Step, StepFailure, View};

/// Objects by collection and name. `settle` carries plans out until there is nothing more to do.
#[derive(Default)]
pub(crate) struct TestObjects {
    objects: BTreeMap<(String, ObjectName), Arc<Value>>,
    pub(crate) now: Timestamp,
    pub(crate) events: Vec<Event>,
    drawn: u64,
}

/// A name in the namespace of the tests.
pub(crate) fn in_shop(name: &str) -> ObjectName {
    ObjectName { namespace: "shop".to_owned(), name: name.to_owned() }
}

/// A refusal that says no.
pub(crate) fn refusal(reason: &str) -> StepFailure {
    StepFailure { reason: reason.to_owned(), message: "no".to_owned() }
}

fn is_held(object: &Value) -> bool {
    !list(object, "/metadata/finalizers").is_empty()
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}

impl TestObjects {
    /// Puts an object there as the server would: uid, name, creation time, generation.
    pub(crate) fn put(&mut self, collection: &str, mut object: Value) -> ObjectName {
        self.drawn += 1;
        let drawn = self.drawn;
        let metadata = &mut object["metadata"];
        if metadata["name"].is_null() {
            metadata["name"] = json!(format!("{}{drawn:05}", metadata["generateName"].as_str().unwrap_or_default()));
        }
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{drawn}"));
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = json!(self.now.to_string());
        }
        if metadata["generation"].is_null() {
            metadata["generation"] = json!(1);
        }
        metadata["resourceVersion"] = json!(drawn.to_string());
        if collection == PODS && object["status"]["phase"].is_null() {
            object["status"]["phase"] = json!("Pending");
        }
        let name = name_of(&object);
        self.objects.insert((collection.to_owned(), name.clone()), Arc::new(object));
        name
    }

    /// Changes an object by a merge patch; the generation counts where the spec changed.
    pub(crate) fn patch(&mut self, collection: &str, name: &ObjectName, patch: &Value) {
        let key = (collection.to_owned(), name.clone());
        let old = self.objects[&key].clone();
        let mut new = (*old).clone();
        merge(&mut new, patch);
        if new["spec"] != old["spec"] {
            new["metadata"]["generation"] = json!(old["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        self.drawn += 1;
        new["metadata"]["resourceVersion"] = json!(self.drawn.to_string());
        if is_held(&old) && !is_held(&new) && !new["metadata"]["deletionTimestamp"].is_null() {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, Arc::new(new));
        }
    }

    /// Lets a pod run and be ready from now on.
    pub(crate) fn make_ready(&mut self, pod: &ObjectName) {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": self.now.to_string()});
        self.patch(PODS, pod, &json!({"status": {"phase": "Running", "conditions": [ready]}}));
    }

    /// Deletes it, or marks it where finalizers hold it.
    pub(crate) fn delete(&mut self, collection: &str, name: &ObjectName) {
        let held = self.objects.get(&(collection.to_owned(), name.clone())).is_some_and(|object| is_held(object));
        if held {
            let now = json!(self.now.to_string());
            self.patch(collection, name, &json!({"metadata": {"deletionTimestamp": now}}));
        } else {
            self.remove(collection, name);
        }
    }

    pub(crate) fn remove(&mut self, collection: &str, name: &ObjectName) {
        self.objects.remove(&(collection.to_owned(), name.clone()));
    }

    /// Carries the steps of a plan out; a step for another uid or version fails the test.
    pub(crate) fn carry_out(&mut self, plan: Plan) {
        let mut created = String::new();
        for step in plan.steps {
            match step {
                Step::Create { collection, object } => created = self.put(collection, object).name,
                Step::Patch { target, part, patch } => {
                    let name = ObjectName { namespace: target.namespace, name: target.name };
                    let live = self.objects[&(target.collection.to_owned(), name.clone())].clone();
                    assert_eq!(text(&live, "/metadata/uid"), target.uid);
                    if let Some(version) = target.version {
                        assert_eq!(text(&live, "/metadata/resourceVersion"), version);
                    }
                    assert_eq!(part == Endpoint::Status, patch.get("status").is_some(), "{patch}");
                    self.patch(target.collection, &name, &patch);
                }
                Step::Delete { target, .. } => {
                    self.delete(target.collection, &ObjectName { namespace: target.namespace, name: target.name });
                }
                Step::Event(mut event) => {
                    event.message = event.message.replace(CREATED, &created);
                    self.events.push(event);
                }
            }
        }
    }

    /// Plans and carries out for every object of the controller until nothing is left to do.
    pub(crate) fn settle(&mut self, controller: &dyn Controller) {
        self.settle_all(&[controller]);
    }

    /// The same for several controllers that see each other's work.
    pub(crate) fn settle_all(&mut self, controllers: &[&dyn Controller]) {
        for _ in 0..1000 {
            let plans: Vec<Plan> = controllers.iter().flat_map(|controller| self.plans(*controller)).collect();
            if plans.iter().all(|plan| plan.steps.is_empty()) {
                return;
            }
            // One at a time: the others may be wrong after it.
            let next = plans.into_iter().find(|plan| !plan.steps.is_empty()).unwrap();
            self.carry_out(next);
        }
        panic!("{} does not come to rest", controllers[0].component());
    }

    fn plans(&self, controller: &dyn Controller) -> Vec<Plan> {
        self.list(controller.collection(), "").iter().map(|one| controller.plan(self, one)).collect()
    }
}

impl View for TestObjects {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn get(&self, collection: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let name = ObjectName { namespace: namespace.to_owned(), name: name.to_owned() };
        self.objects.get(&(collection.to_owned(), name)).cloned()
    }

    fn list(&self, collection: &str, namespace: &str) -> Vec<Arc<Value>> {
        let there = self
            .objects
            .iter()
            .filter(|((c, n), _)| c == collection && (namespace.is_empty() || n.namespace == namespace));
        there.map(|(_, object)| object.clone()).collect()
    }

    fn visit(&self, collection: &str, namespace: &str, look: &mut dyn FnMut(&Value)) {
        self.list(collection, namespace).iter().for_each(|object| look(object));
    }

    fn labelled(&self, collection: &str, namespace: &str, wanted: &Map<String, Value>) -> Vec<Arc<Value>> {
        let carries = |object: &Arc<Value>| {
            wanted.iter().all(|(key, value)| labels(object).and_then(|labels| labels.get(key)) == Some(value))
        };
        self.list(collection, namespace).into_iter().filter(carries).collect()
    }

    fn controlled_by(&self, collection: &str, namespace: &str, uid: &str) -> Vec<Arc<Value>> {
        let controlled = |object: &Arc<Value>| controller_of(object).is_some_and(|owner| text(owner, "/uid") == uid);
        self.list(collection, namespace).into_iter().filter(controlled).collect()
    }

    fn strays(&self, collection: &str, namespace: &str, labels: &Map<String, Value>) -> Vec<Arc<Value>> {
        let all = self.labelled(collection, namespace, labels);
        all.into_iter().filter(|object| controller_of(object).is_none()).collect()
    }
}
