//! A toy kind whose remote side is a map in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, CustomResource, Resource as _, ResourceExt as _};
use portolan_core::{Change, Condition, NewCondition, ObjectKey, Plan, Problem, Target, reasons};
use portolan_engine::{Notice, Outcome, Profile, Projected, Reconcile, Report, key_of, refuse_pure_step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub(crate) const FINALIZER: &str = "test.portolan.dev/gadget";
pub(crate) const OLDER: &str = "older.example.com/gadget";
/// An annotation that says which promise is to be broken.
pub(crate) const BREACH: &str = "test.portolan.dev/breach";
/// An annotation that counts more than the spec.
pub(crate) const VALUE: &str = "test.portolan.dev/value";

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "test.portolan.dev", version = "v1", kind = "Gadget", namespaced, status = "GadgetStatus")]
pub(crate) struct GadgetSpec {
    pub(crate) value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GadgetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) creating: Option<String>,
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Vec<Condition>,
}

/// The definition, with a schema that lets malformed specs through as those of older releases may be.
pub(crate) fn definition() -> CustomResourceDefinition {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let condition = json!({"type": "object", "required": ["type", "status"],
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"type": {"type": "string"}, "status": {"type": "string"}}});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"conditions": {
        "type": "array", "items": condition, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}}});
    let schema = json!({"type": "object", "properties": {"spec": open, "status": status}});
    let definition = json!({
        "metadata": {"name": "gadgets.test.portolan.dev"},
        "spec": {
            "group": "test.portolan.dev", "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                          "schema": {"openAPIV3Schema": schema}}],
        },
    });
    serde_json::from_value(definition).unwrap()
}

/// The remote side, and what is to go wrong with it.
#[derive(Default)]
pub(crate) struct Remote {
    values: Mutex<BTreeMap<String, String>>,
    log: Mutex<Vec<Call>>,
    /// What was news of the objects' values.
    pub(crate) seen: Mutex<Vec<String>>,
    troubles: Mutex<BTreeMap<String, VecDeque<Trouble>>>,
    /// Passes wait here while it is closed.
    pub(crate) gate: Mutex<Option<Arc<Semaphore>>>,
    /// How many calls and looks there were.
    pub(crate) noted: tokio::sync::watch::Sender<usize>,
    /// Whether to write an intent first.
    pub(crate) careful: std::sync::atomic::AtomicBool,
}

/// A call to the remote side, or a look at it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) at: Instant,
    pub(crate) what: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Trouble {
    Problem(Problem),
    Panic,
}

impl Remote {
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        refuse_pure_step("the remote side");
        self.values.lock().unwrap().get(name).cloned()
    }

    pub(crate) fn set(&self, name: &str, value: &str) {
        self.values.lock().unwrap().insert(name.to_owned(), value.to_owned());
    }

    /// The next looks at this object end in trouble.
    pub(crate) fn trouble(&self, name: &str, troubles: impl IntoIterator<Item = Trouble>) {
        self.troubles.lock().unwrap().entry(name.to_owned()).or_default().extend(troubles);
    }

    pub(crate) fn problems(&self, name: &str, problem: &Problem, times: usize) {
        self.trouble(name, std::iter::repeat_n(Trouble::Problem(problem.clone()), times));
    }

    pub(crate) fn close_gate(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *self.gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    /// What was called since the last time, without the looks.
    pub(crate) fn take_writes(&self) -> Vec<String> {
        self.take_log().into_iter().map(|call| call.what).filter(|what| !what.starts_with("look")).collect()
    }

    pub(crate) fn take_log(&self) -> Vec<Call> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    fn note(&self, what: String) {
        self.log.lock().unwrap().push(Call { at: Instant::now(), what });
        self.noted.send_modify(|count| *count += 1);
    }

    async fn pass_gate(&self) {
        let gate = self.gate.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
    }
}

pub(crate) struct Gadgets {
    pub(crate) client: Client,
    pub(crate) remote: Arc<Remote>,
}

pub(crate) enum Step {
    Nothing,
    Create(String),
    Update { old: String, new: String },
    Delete(String),
}

impl Gadgets {
    /// Does in a pure step what no pure step does, where the object asks for it: `plan: starts a task`.
    fn breach(&self, step: &str, gadget: &Gadget) {
        let asked = gadget.annotations().get(BREACH).and_then(|text| text.strip_prefix(step)?.strip_prefix(": "));
        match asked {
            Some("starts a task") => drop(tokio::spawn(async {})),
            Some("asks the cluster") => {
                let asked = futures::executor::block_on(self.client.apiserver_version());
                asked.expect("nobody gets so far");
            }
            Some("asks the remote side") => drop(self.remote.value("a")),
            Some(other) => panic!("{other} is no breach"),
            None => {}
        }
    }
}

impl Reconcile for Gadgets {
    type Object = Gadget;
    type Inputs = Option<String>;
    type Plan = (String, Step);
    type Applied = &'static str;
    type Projection = String;

    fn profile(&self) -> Profile {
        Profile { finalizer: Some(FINALIZER), older_finalizers: &[OLDER], ..Profile::of("Gadget") }
    }

    fn needs_finalizer(&self, gadget: &Gadget, _: &Option<String>, _: &(String, Step)) -> bool {
        !gadget.annotations().contains_key("test.portolan.dev/free")
    }

    fn reacts_to_annotation(&self, annotation: &str) -> bool {
        annotation != "test.portolan.dev/noise"
    }

    fn project(&self, gadget: &Gadget) -> String {
        self.breach("project", gadget);
        gadget.spec.value.clone()
    }

    fn seen(&self, key: &ObjectKey, before: Option<&Projected<String>>, after: Option<&Projected<String>>) {
        let value = |one: Option<&Projected<String>>| one.and_then(|one| one.projection.clone()).unwrap_or_default();
        self.remote.seen.lock().unwrap().push(format!("{} {:?} → {:?}", key.name, value(before), value(after)));
        if after.is_none() {
            self.remote.note(format!("look forgotten {}", key.name));
        }
    }

    async fn gather(&self, gadget: &Gadget) -> Result<Option<String>, Problem> {
        let name = gadget.name_any();
        self.remote.note(format!("look {name}"));
        let trouble = self.remote.troubles.lock().unwrap().get_mut(&name).and_then(VecDeque::pop_front);
        match trouble {
            Some(Trouble::Panic) => panic!("planned"),
            Some(Trouble::Problem(problem)) => Err(problem),
            None => Ok(self.remote.value(&name)),
        }
    }

    fn plan(&self, gadget: &Gadget, have: &Option<String>) -> Result<(String, Step), Problem> {
        self.breach("plan", gadget);
        let (name, want) = (gadget.name_any(), gadget.annotations().get(VALUE).unwrap_or(&gadget.spec.value).clone());
        if want == "invalid" {
            return Err(Problem::invalid(reasons::INVALID_CONFIG, "choose another value"));
        }
        let step = match (have, gadget.meta().deletion_timestamp.is_some()) {
            (None, true) => Step::Nothing,
            (Some(old), true) => Step::Delete(old.clone()),
            (None, false) => Step::Create(want),
            (Some(old), false) if *old == want => Step::Nothing,
            (Some(old), false) => Step::Update { old: old.clone(), new: want },
        };
        Ok((name, step))
    }

    fn changes(&self, (name, step): &(String, Step)) -> Plan {
        let target = Target::new("gadget", "toys", name);
        let change = match step {
            Step::Nothing => None,
            Step::Create(new) => Some(Change::create(target, json!(new), "missing")),
            Step::Update { old, new } => Some(Change::update(target, json!(old), json!(new), "differs")),
            Step::Delete(old) => Some(Change::delete(target, json!(old), "deleted")),
        };
        change.into_iter().collect()
    }

    fn has_work(&self, plan: &(String, Step)) -> bool {
        !matches!(plan.1, Step::Nothing) || plan.0.starts_with("busy")
    }

    fn intent(&self, _: &Gadget, _: &Option<String>, (name, _): &(String, Step)) -> Option<Value> {
        let careful = self.remote.careful.load(std::sync::atomic::Ordering::Relaxed);
        careful.then(|| json!({"creating": name}))
    }

    async fn apply(
        &self,
        gadget: &Gadget,
        _: &Option<String>,
        (name, step): &(String, Step),
    ) -> Result<&'static str, Problem> {
        self.remote.pass_gate().await;
        let stored: Gadget =
            kube::Api::namespaced(self.client.clone(), &gadget.namespace().unwrap()).get(name).await.unwrap();
        assert!(stored.finalizers().iter().any(|there| there == FINALIZER || there == OLDER), "unprotected");
        if let Some(creating) = stored.status.and_then(|status| status.creating) {
            self.remote.note(format!("intent {creating}"));
        }
        let mut values = self.remote.values.lock().unwrap();
        let (what, done) = match step {
            Step::Nothing => ("nothing", "Unchanged"),
            Step::Create(new) | Step::Update { new, .. } => {
                let before = values.insert(name.clone(), new.clone());
                if before.is_none() { ("create", reasons::CREATED) } else { ("update", reasons::UPDATED) }
            }
            Step::Delete(_) => {
                values.remove(name);
                ("delete", reasons::DELETED)
            }
        };
        drop(values);
        self.remote.note(format!("{what} {name}"));
        Ok(done)
    }

    fn report(&self, gadget: &Gadget, outcome: Outcome<'_, Self>) -> Report {
        self.breach("report", gadget);
        let id = format!("id-{}", gadget.name_any());
        let synced = |events| Report {
            status: json!({"id": id, "state": "active"}),
            conditions: vec![NewCondition::ready(reasons::SYNCED, "in sync")],
            events,
            again: gadget.annotations().get("again").map(|seconds| Duration::from_secs(seconds.parse().unwrap())),
            problem: None,
        };
        match outcome {
            Outcome::Unchanged { .. } => synced(Vec::new()),
            Outcome::Applied { applied, .. } => synced(vec![Notice::normal(applied, "done")]),
            Outcome::Failed(failure) => Report { status: json!({"state": "error"}), ..Report::failed(failure.problem) },
        }
    }
}

pub(crate) fn gadget(name: &str, value: &str) -> Gadget {
    let mut gadget = Gadget::new(name, GadgetSpec { value: value.to_owned() });
    gadget.metadata.namespace = Some("default".to_owned());
    gadget
}

pub(crate) fn key(name: &str) -> ObjectKey {
    key_of(gadget(name, "").meta())
}
