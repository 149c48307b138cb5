//! Sequences of requests that were recorded from kube-apiserver, replayed: the same owners, objects and errors.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking anywhere")]

use std::collections::BTreeMap;

use portolan_patch::ssa::{Context, FieldSet, Force, apply, keep_versions, reset, scale, update};
use portolan_schema::{Cursor, Schema};
use serde_json::{Value, json};

const NOW: &str = "2100-01-01T00:00:00Z";

struct Schemas {
    built_in: Schema,
    kinds: BTreeMap<String, String>,
    custom: Schema,
}

impl Schemas {
    fn read() -> Self {
        let all: Value = serde_json::from_str(include_str!("../recorded/schemas.json")).unwrap();
        let kinds = all["kinds"].as_object().unwrap();
        Self {
            built_in: Schema::parse_definitions(all["definitions"].as_object().unwrap()).unwrap(),
            kinds: kinds.iter().map(|(kind, name)| (kind.clone(), name.as_str().unwrap().to_owned())).collect(),
            custom: Schema::parse(&all["custom"]).unwrap(),
        }
    }

    fn of(&self, kind: &str) -> (Cursor<'_>, bool) {
        match self.kinds.get(kind) {
            Some(name) => (self.built_in.definition(name).unwrap(), false),
            None => (self.custom.root(), true),
        }
    }
}

fn reset_of(kind: &str, api_version: &str, subresource: &str, custom: bool) -> &'static FieldSet {
    match (custom, subresource) {
        (true, "status") => reset::custom_status(),
        (true, _) => reset::custom_main(),
        (false, _) => {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            reset::built_in(group, kind, subresource)
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// The owners of an object, with times as `now`, `kept` or absent.
fn owners(object: &Value, live: &Value) -> Vec<Value> {
    let entries = |object: &Value| {
        object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let identity = |entry: &Value| {
        let parts = ["manager", "operation", "apiVersion", "subresource"];
        parts.map(|name| text(entry, name).to_owned())
    };
    let known = entries(live);
    let mut result = entries(object);
    for entry in &mut result {
        let kept = known.iter().any(|old| identity(old) == identity(entry) && old["time"] == entry["time"]);
        if entry["time"].is_string() {
            entry["time"] = json!(if kept { "kept" } else { "now" });
        } else {
            entry.as_object_mut().unwrap().remove("time");
        }
    }
    result
}

/// The object as the server stores it: what the endpoint does not write stays, defaults are set.
fn settled(mut object: Value, live: &Value, subresource: &str) -> Value {
    if subresource == "status" {
        let status = object["status"].take();
        object = live.clone();
        object["status"] = status;
    } else {
        object["status"] = live["status"].clone();
    }
    if object["status"].is_null() {
        object.as_object_mut().unwrap().remove("status");
    }
    if object["kind"] != json!("Widget") {
        return object;
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("defaulted").or_insert(json!("dflt"));
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.as_object_mut().unwrap().entry("protocol").or_insert(json!("TCP"));
        }
        // Nulls where the schema allows none are dropped before defaults are set.
        spec.retain(|name, value| !value.is_null() || name.starts_with("nul"));
    }
    object
}

/// The object without what the server sets.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for name in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "namespace"] {
            metadata.remove(name);
        }
    }
    object
}

fn replay_apply(step: &Value, context: &Context<'_>, whole: bool) -> Result<(), String> {
    let config = &step["config"];
    let fresh = json!({"apiVersion": context.api_version, "kind": step["kind"]});
    let live = if step["live"].is_null() { &fresh } else { &step["live"] };
    let force = if step["force"].as_bool() == Some(true) { Force::Yes } else { Force::No };
    let real = &step["result"];
    match apply(live, config, context, force) {
        Ok(object) if step["code"].as_u64().unwrap() < 300 => {
            same("owners", &json!(owners(&object, live)), &json!(owners(real, live)))?;
            if whole { same("object", &bare(&settled(object, live, context.subresource)), &bare(real)) } else { Ok(()) }
        }
        Ok(_) if step["code"] == json!(422) => Ok(()),
        Ok(_) => Err(format!("applied, but the server said {}", real["message"])),
        Err(error) => {
            let causes: Vec<Value> = error
                .causes()
                .iter()
                .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
                .collect();
            same("code", &json!(error.code()), &step["code"])?;
            same("reason", &json!(error.reason()), &json!(text(real, "reason")))?;
            same("message", &json!(lines(&error.message())), &json!(lines(text(real, "message"))))?;
            let mut real_causes =
                real.pointer("/details/causes").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut causes = causes;
            real_causes.sort_by_key(ToString::to_string);
            causes.sort_by_key(ToString::to_string);
            same("causes", &json!(causes), &json!(real_causes))
        }
    }
}

/// The lines of a message in one order; the real server's is that of the day.
fn lines(message: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = message.lines().collect();
    lines.sort_unstable();
    lines
}

fn replay_update(step: &Value, context: &Context<'_>) -> Result<(), String> {
    if step["code"].as_u64().unwrap() >= 300 {
        return Ok(());
    }
    let object = update(&step["live"], step["new"].clone(), context);
    same("owners", &json!(owners(&object, &step["live"])), &json!(owners(&step["result"], &step["live"])))
}

/// A `Scale` carries its owners while it is written, and gives them back to its object.
fn replay_scale(step: &Value, context: &Context<'_>) -> Result<(), String> {
    let replicas = scale::Replicas { api_version: context.api_version, path: &["spec", "replicas"] };
    let (live, real) = (&step["live"], &step["result"]);
    let mut old = step["scale"].clone();
    old["metadata"]["managedFields"] = json!(scale::to_scale(live, replicas));
    let schema = Schema::parse(&scale_schema()).unwrap();
    let context = Context { api_version: "autoscaling/v1", schema: schema.root(), reset: reset::nothing(), ..*context };
    let new = if step["apply"] == json!(true) {
        if step["code"] != json!(200) {
            return Ok(());
        }
        let config =
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": real["spec"]["replicas"]}});
        apply(&old, &config, &context, Force::Yes).map_err(|error| error.message())?
    } else {
        update(&old, real.clone(), &context)
    };
    let entries = new.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    let object = json!({"metadata": {"managedFields": scale::to_object(live, &entries, replicas)}});
    same("owners", &json!(owners(&object, live)), &json!(owners(&step["after"], live)))
}

fn scale_schema() -> Value {
    let replicas = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    let status =
        json!({"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}});
    json!({"type": "object", "properties": {"spec": replicas, "status": status}})
}

fn same(what: &str, ours: &Value, real: &Value) -> Result<(), String> {
    if ours == real { Ok(()) } else { Err(format!("{what}\n    ours: {ours}\n    real: {real}")) }
}

#[test]
fn recorded_requests_end_as_they_did_on_the_real_server() {
    let schemas = Schemas::read();
    let cases: Vec<Value> = serde_json::from_str(include_str!("../recorded/cases.json")).unwrap();
    let mut failures = Vec::new();
    let mut steps = 0;

    for case in &cases {
        let kind = text(case, "kind");
        let (schema, custom) = schemas.of(kind);
        for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let (api_version, subresource) = (text(step, "apiVersion"), text(step, "subresource"));
            let mut step = step.clone();
            step["kind"] = json!(kind);
            let served = if custom { &["example.com/v1", "example.com/v1beta1"][..] } else { &[api_version][..] };
            for name in ["live", "new"] {
                step.get_mut(name).into_iter().for_each(|object| keep_versions(object, served));
            }
            let reset = reset_of(kind, api_version, subresource, custom);
            let context =
                Context { manager: text(&step, "manager"), api_version, subresource, now: NOW, schema, reset };
            let outcome = match text(&step, "verb") {
                "apply" => replay_apply(&step, &context, custom || kind == "ConfigMap"),
                "scale" => replay_scale(&step, &context),
                _ => replay_update(&step, &context),
            };
            steps += 1;
            if let Err(difference) = outcome {
                failures.push(format!(
                    "{} step {index} ({} by {}): {difference}",
                    text(case, "name"),
                    step["verb"],
                    step["manager"]
                ));
            }
        }
    }

    assert!(failures.is_empty(), "{} of {steps} steps differ:\n{}", failures.len(), failures.join("\n"));
}
