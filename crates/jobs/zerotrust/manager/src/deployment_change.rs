//! The own Deployment as it stands, and a configuration → the Deployment as it should stand, and the writes that take it
//! there.
//!
//! A configuration's fields are applied under our own name as a field manager. Where that would leave something of
//! what stood there before, or where something is to be put back, one plain write goes first: so the pods roll once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use portolan_core::{Change, Problem, Target, rfc3339};
use portolan_zerotrust_model::CloudflareZeroTrustOperatorConfig as Config;
use serde_json::{Map, Value, json};

use crate::asked_fields::asked_fields;
use crate::config_states::ConfigVersion;
use crate::field::{ConfigField, containers};
use crate::json_equivalence;
use crate::managed_fields::{Keep, Owned, disowned};
use crate::previous_values::{ANNOTATION, HeldField, PreviousValues};

/// The container that is the operator, by its usual name or else by its place.
pub(crate) const CONTAINER: &str = "operator";

/// What is to be done to the own Deployment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeploymentChange {
    /// The Deployment as it should stand.
    pub(crate) wanted: Value,
    /// Written over the Deployment first.
    pub(crate) replace: Option<Value>,
    /// Applied under our name then.
    pub(crate) apply: Option<Value>,
    /// Which of our entries among the owners stay in the end, where others are to go.
    pub(crate) disown: Option<Keep>,
    /// What changes, as everyone sees it.
    pub(crate) change: Option<Change>,
}

impl DeploymentChange {
    /// Whether nothing is to be done.
    pub(crate) fn is_settled(&self) -> bool {
        self.replace.is_none() && self.apply.is_none() && self.disown.is_none()
    }

    /// The Deployment is left as it stands.
    pub(crate) fn untouched(live: &Value) -> Self {
        Self { wanted: live.clone(), replace: None, apply: None, disown: None, change: None }
    }
}

/// The name of the operator's container in a Deployment.
pub(crate) fn container_of(deployment: &Value) -> String {
    let pod = &deployment["spec"]["template"]["spec"];
    let own = containers(pod).find(|one| one["name"] == CONTAINER).or_else(|| containers(pod).next());
    own.and_then(|one| one["name"].as_str()).unwrap_or(CONTAINER).to_owned()
}

/// What is to be done to the own Deployment so that it stands as a configuration, or none, asks.
pub(crate) fn change_for(live: &Value, config: Option<&Config>, now: Timestamp) -> Result<DeploymentChange, Problem> {
    let asked = config.map(|config| asked_fields(&config.spec, live)).transpose()?.unwrap_or_default();
    let sketch = Sketch::of(live, &asked);
    let record = sketch.record(config, now);
    let mut wanted = live.clone();
    sketch.lay_over(&mut wanted);
    annotate(&mut wanted, record.as_ref());
    let dirty = !sketch.turns.is_empty() || record != sketch.old;
    let replaces = sketch.must_replace(live, &asked) || (sketch.old.is_some() && record.is_none());
    let owned = Owned::of(live);
    let keep = if record.is_some() { Keep::Applied } else { Keep::Nothing };
    let disowns = replaces || owned.updated || (record.is_none() && owned.applied);
    let applies = dirty || replaces || owned.updated || !owned.applied;
    Ok(DeploymentChange {
        replace: replaces.then(|| disowned(&wanted, Keep::Nothing).unwrap_or_else(|| wanted.clone())),
        apply: record.as_ref().filter(|_| applies).map(|record| overlay(live, &sketch.container, &asked, record)),
        disown: disowns.then_some(keep),
        change: dirty.then(|| sketch.change(live, config)),
        wanted,
    })
}

/// A field that changes.
#[derive(Clone, Debug, PartialEq)]
struct FieldTurn {
    before: Option<Value>,
    after: Option<Value>,
}

/// What differs between what stands and what is asked for.
struct Sketch {
    container: String,
    old: Option<PreviousValues>,
    /// What will be held.
    held: BTreeMap<ConfigField, HeldField>,
    /// Fields that are held no longer.
    released: Vec<ConfigField>,
    /// What changes.
    turns: BTreeMap<ConfigField, FieldTurn>,
}

impl Sketch {
    fn of(live: &Value, asked: &BTreeMap<ConfigField, Value>) -> Self {
        let (container, old) = (container_of(live), PreviousValues::read(live));
        let before = old.as_ref().map(PreviousValues::held).unwrap_or_default();
        let released = before.keys().filter(|field| !asked.contains_key(field)).cloned().collect();
        let mut sketch = Self { container, old, held: BTreeMap::new(), released, turns: BTreeMap::new() };
        for (field, asked) in asked {
            sketch.hold(live, field, asked, before.get(field));
        }
        for (field, held) in before.iter().filter(|(field, _)| !asked.contains_key(field)) {
            sketch.release(live, field, held);
        }
        sketch
    }

    /// A field becomes what is asked for. What stands there and is not from us is what was deployed.
    fn hold(&mut self, live: &Value, field: &ConfigField, asked: &Value, held: Option<&HeldField>) {
        let there = field.read(live, &self.container);
        let ours = held
            .filter(|held| field.same(there.as_ref(), Some(&held.asked)) || field.same(there.as_ref(), Some(asked)));
        let before = ours.map_or_else(|| there.clone(), |held| held.before.clone());
        self.held.insert(field.clone(), HeldField { before, asked: asked.clone() });
        if !field.same(there.as_ref(), Some(asked)) {
            self.turns.insert(field.clone(), FieldTurn { before: there, after: Some(asked.clone()) });
        }
    }

    /// A field becomes what it was, unless somebody has given it another value since.
    fn release(&mut self, live: &Value, field: &ConfigField, held: &HeldField) {
        let there = field.read(live, &self.container);
        let ours = field.same(there.as_ref(), Some(&held.asked));
        if ours && !field.same(there.as_ref(), held.before.as_ref()) {
            self.turns.insert(field.clone(), FieldTurn { before: there, after: held.before.clone() });
        }
    }

    /// The record that will stand on the Deployment.
    fn record(&self, config: Option<&Config>, now: Timestamp) -> Option<PreviousValues> {
        let config = config?;
        let same = self.old.as_ref().map_or(self.held.is_empty(), |old| old.held() == self.held);
        if same && self.turns.is_empty() {
            return self.old.clone();
        }
        Some(PreviousValues::new(ConfigVersion::of(config), rfc3339(now), &self.held))
    }

    fn lay_over(&self, deployment: &mut Value) {
        for (field, turn) in &self.turns {
            field.write(deployment, &self.container, turn.after.as_ref());
        }
    }

    /// Whether applying is not enough: something is put back, or would be merged with what stands there.
    fn must_replace(&self, live: &Value, asked: &BTreeMap<ConfigField, Value>) -> bool {
        let turns = || self.turns.keys().filter_map(|field| Some((field, asked.get(field)?)));
        !self.released.is_empty()
            || turns().any(|(field, value)| !field.is_replaced_by_applying(live, &self.container, value))
    }

    fn change(&self, live: &Value, config: Option<&Config>) -> Change {
        let side = |value: fn(&FieldTurn) -> &Option<Value>| -> Value {
            let fields = self.turns.iter().filter_map(|(field, turn)| Some((field.to_string(), value(turn).clone()?)));
            Value::Object(fields.collect::<Map<_, _>>())
        };
        let why = match config.and_then(|config| config.metadata.name.as_deref()) {
            Some(name) => format!("OperatorConfig {name}"),
            None => "no OperatorConfig holds it any more".to_owned(),
        };
        Change::update(target(live), side(|turn| &turn.before), side(|turn| &turn.after), why)
    }
}

/// A Deployment as plans name it.
pub(crate) fn target(deployment: &Value) -> Target {
    let text = |name: &str| deployment["metadata"][name].as_str().unwrap_or_default();
    Target::new("Deployment", text("namespace"), text("name"))
}

fn annotate(deployment: &mut Value, record: Option<&PreviousValues>) {
    let annotations = json_equivalence::at(deployment, &["metadata", "annotations"]);
    match record {
        Some(record) => drop(annotations.insert(ANNOTATION.to_owned(), json!(record.text()))),
        None => drop(annotations.remove(ANNOTATION)),
    }
}

/// What is applied: the fields of the configuration and the record, and nothing else.
fn overlay(live: &Value, container: &str, asked: &BTreeMap<ConfigField, Value>, record: &PreviousValues) -> Value {
    let mut body = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": live["metadata"]["name"], "namespace": live["metadata"]["namespace"],
            "annotations": { ANNOTATION: record.text() },
        },
    });
    for (field, value) in asked {
        field.write(&mut body, container, Some(value));
    }
    body
}

#[cfg(test)]
mod tests;
