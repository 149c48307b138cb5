//! Owners through sequences of writes, by their behaviour.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking anywhere")]
#![allow(clippy::needless_pass_by_value, reason = "steps read better without references")]

use portolan_patch::ssa::{ApplyError, Context, FieldSet, Force, apply, extract, reset, update};
use portolan_schema::Schema;
use serde_json::{Value, json};

/// One object and its kind, written step by step.
struct World {
    schema: Schema,
    live: Value,
    day: u32,
    version: &'static str,
}

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl World {
    fn new() -> Self {
        let text = json!({"type": "string"});
        let item = json!({"type": "object", "properties": {"name": text, "value": text}});
        let spec = json!({"type": "object", "properties": {
            "size": {"type": "integer"}, "name": text,
            "labels": {"type": "object", "additionalProperties": text},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
            "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "list": {"type": "array", "items": text},
            "items": {"type": "array", "items": item, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"]},
        }});
        let status = json!({"type": "object", "properties": {"phase": text}});
        let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
        Self { schema: Schema::parse(&schema).unwrap(), live: Value::Null, day: 0, version: "example.com/v1" }
    }

    fn object(&self, fields: &Value) -> Value {
        let mut object = json!({"apiVersion": self.version, "kind": "Widget", "metadata": {"name": "w"}});
        for (name, value) in fields.as_object().unwrap() {
            object[name] = value.clone();
        }
        object
    }

    fn with<T>(&self, manager: &str, subresource: &str, run: impl FnOnce(&Context<'_>) -> T) -> T {
        let now = format!("2026-01-{:02}T00:00:00Z", self.day);
        let reset: &FieldSet = if subresource == "status" { reset::custom_status() } else { reset::custom_main() };
        run(&Context { manager, api_version: self.version, subresource, now: &now, schema: self.schema.root(), reset })
    }

    fn try_apply(&mut self, manager: &str, fields: &Value, force: Force) -> Result<(), ApplyError> {
        self.try_apply_to("", manager, fields, force)
    }

    fn try_apply_to(&mut self, endpoint: &str, manager: &str, fields: &Value, force: Force) -> Result<(), ApplyError> {
        self.day += 1;
        let config = self.object(fields);
        let empty = json!({"apiVersion": self.version, "kind": "Widget"});
        let mut live = if self.live.is_null() { empty } else { self.live.clone() };
        live["apiVersion"] = json!(self.version);
        self.live = self.with(manager, endpoint, |context| apply(&live, &config, context, force))?;
        self.live["metadata"]["uid"] = json!("u");
        Ok(())
    }

    fn apply(&mut self, manager: &str, fields: Value) -> &mut Self {
        self.try_apply(manager, &fields, Force::No).unwrap();
        self
    }

    fn force(&mut self, manager: &str, fields: Value) -> &mut Self {
        self.try_apply(manager, &fields, Force::Yes).unwrap();
        self
    }

    fn conflict(&mut self, manager: &str, fields: Value) -> ApplyError {
        self.try_apply(manager, &fields, Force::No).unwrap_err()
    }

    fn update(&mut self, manager: &str, change: impl FnOnce(&mut Value)) -> &mut Self {
        self.day += 1;
        let mut new = if self.live.is_null() { self.object(&json!({})) } else { self.live.clone() };
        change(&mut new);
        let live = self.live.clone();
        self.live = self.with(manager, "", |context| update(&live, new, context));
        self.live["metadata"]["uid"] = json!("u");
        self
    }

    /// `manager operation`, or `manager operation subresource`, and what it owns.
    fn owners(&self) -> Vec<(String, Value)> {
        let entries = self.live["metadata"].get("managedFields").and_then(Value::as_array).cloned();
        let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let name = |entry: &Value| ["manager", "operation", "subresource"].map(|part| text(entry, part)).join(" ");
        entries
            .unwrap_or_default()
            .iter()
            .map(|entry| (name(entry).trim().to_owned(), entry["fieldsV1"].clone()))
            .collect()
    }

    fn times(&self) -> Vec<String> {
        let entries = self.live["metadata"]["managedFields"].as_array().unwrap();
        entries.iter().map(|entry| entry["time"].as_str().unwrap_or("none").to_owned()).collect()
    }
}

fn owner(name: &str, fields: Value) -> (String, Value) {
    (name.to_owned(), fields)
}

fn size(value: u32) -> Value {
    json!({"spec": {"size": value}})
}

fn f_size() -> Value {
    json!({"f:spec": {"f:size": {}}})
}

#[test]
fn an_apply_that_creates_owns_what_it_wrote() {
    let mut world = World::new();

    world.apply("a", size(1));

    assert_eq!(world.live["spec"], json!({"size": 1}));
    assert_eq!(world.owners(), [owner("a Apply", f_size())]);
}

#[test]
fn an_apply_of_a_name_alone_owns_nothing() {
    let mut world = World::new();

    world.apply("a", json!({}));

    assert_eq!(world.owners(), []);
    assert!(world.live["metadata"].get("managedFields").is_none());
}

#[test]
fn a_create_is_recorded_as_an_update() {
    let mut world = World::new();

    world.update("c", |new| new["spec"] = json!({"size": 1}));

    assert_eq!(world.owners(), [owner("c Update", json!({"f:spec": {".": {}, "f:size": {}}}))]);
}

#[test]
fn the_same_apply_again_changes_nothing() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"size": 1, "set": ["a", "b"]}}));
    let before = world.live.clone();

    world.apply("a", json!({"spec": {"size": 1, "set": ["a", "b"]}}));

    assert_eq!(world.live, before);
}

#[test]
fn equal_values_are_owned_together() {
    let mut world = World::new();

    world.apply("a", size(1)).apply("b", size(1));

    let mut owners = world.owners();
    owners.sort_by(|left, right| left.0.cmp(&right.0));
    assert_eq!(owners, [owner("a Apply", f_size()), owner("b Apply", f_size())]);
}

#[test]
fn sharing_a_value_leaves_no_time_because_nothing_was_changed() {
    let mut world = World::new();

    world.apply("a", size(1)).apply("b", size(1));

    assert_eq!(world.times(), ["none", "2026-01-01T00:00:00Z"]);
}

#[test]
fn a_value_stays_while_one_of_its_appliers_does() {
    let mut world = World::new();
    world.apply("a", size(1)).apply("b", size(1));

    world.apply("a", json!({}));

    assert_eq!(world.live["spec"], json!({"size": 1}));
    assert_eq!(world.owners(), [owner("b Apply", f_size())]);
}

#[test]
fn a_value_goes_with_its_last_applier() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"size": 1, "name": "n"}}));

    world.apply("a", json!({"spec": {"name": "n"}}));

    assert_eq!(world.live["spec"], json!({"name": "n"}));
}

#[test]
fn another_value_is_a_conflict() {
    let mut world = World::new();
    world.apply("a", size(1));

    let error = world.conflict("b", size(2));

    assert_eq!(error.message(), r#"Apply failed with 1 conflict: conflict with "a": .spec.size"#);
    assert_eq!((error.code(), error.reason()), (409, "Conflict"));
    let causes = error.causes();
    assert_eq!(causes[0].reason, "FieldManagerConflict");
    assert_eq!(causes[0].message, r#"conflict with "a""#);
    assert_eq!(causes[0].field, ".spec.size");
}

#[test]
fn conflicts_are_listed_by_owner() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"size": 1, "labels": {"x": "1"}}}));
    world.update("u", |new| new["spec"]["name"] = json!("n"));

    let error = world.conflict("b", json!({"spec": {"size": 2, "name": "m", "labels": {"x": "2"}}}));

    let expected = "Apply failed with 3 conflicts: conflicts with \"a\":\n- .spec.size\n- .spec.labels.x\n\
                    conflicts with \"u\" using example.com/v1:\n- .spec.name";
    assert_eq!(error.message(), expected);
}

#[test]
fn force_takes_the_field() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"size": 1, "name": "n"}}));

    world.force("b", size(2));

    assert_eq!(world.live["spec"]["size"], 2);
    assert_eq!(world.owners(), [owner("a Apply", json!({"f:spec": {"f:name": {}}})), owner("b Apply", f_size())]);
}

#[test]
fn an_update_steals_what_it_changes() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"size": 1, "name": "n"}}));

    world.update("u", |new| new["spec"]["size"] = json!(2));

    assert_eq!(world.owners(), [owner("a Apply", json!({"f:spec": {"f:name": {}}})), owner("u Update", f_size())]);
}

#[test]
fn an_update_that_changes_nothing_owns_nothing() {
    let mut world = World::new();
    world.apply("a", size(1));
    let before = world.live.clone();

    world.update("u", |_| ());

    assert_eq!(world.live, before);
}

#[test]
fn an_update_frees_what_it_removes() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"labels": {"x": "1", "y": "1"}}}));

    world.update("u", |new| new["spec"]["labels"] = json!({"y": "1"}));

    assert_eq!(world.owners(), [owner("a Apply", json!({"f:spec": {"f:labels": {"f:y": {}}}}))]);
}

#[test]
fn an_updaters_writes_add_up() {
    let mut world = World::new();
    world.update("u", |new| new["spec"] = json!({"size": 1}));

    world.update("u", |new| new["spec"]["name"] = json!("n"));

    assert_eq!(world.owners(), [owner("u Update", json!({"f:spec": {".": {}, "f:name": {}, "f:size": {}}}))]);
    assert_eq!(world.times(), ["2026-01-02T00:00:00Z"]);
}

#[test]
fn an_updaters_fields_are_not_removed_by_an_apply() {
    let mut world = World::new();
    world.update("u", |new| new["spec"] = json!({"labels": {"x": "1"}}));
    world.apply("a", json!({"spec": {"labels": {"x": "1", "y": "2"}}}));

    world.apply("a", json!({}));

    assert_eq!(world.live["spec"], json!({"labels": {"x": "1"}}));
}

#[test]
fn set_items_have_owners_of_their_own() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"set": ["x", "y"]}})).apply("b", json!({"spec": {"set": ["y", "z"]}}));

    world.apply("a", json!({}));

    assert_eq!(world.live["spec"], json!({"set": ["y", "z"]}));
}

#[test]
fn list_items_have_owners_of_their_own() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"items": [{"name": "x", "value": "1"}]}}));
    world.apply("b", json!({"spec": {"items": [{"name": "x"}, {"name": "y", "value": "2"}]}}));

    world.apply("a", json!({}));

    assert_eq!(world.live["spec"], json!({"items": [{"name": "x"}, {"name": "y", "value": "2"}]}));
}

#[test]
fn an_items_field_is_a_conflict_named_by_its_key() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"items": [{"name": "x", "value": "1"}]}}));

    let error = world.conflict("b", json!({"spec": {"items": [{"name": "x", "value": "2"}]}}));

    assert_eq!(error.causes()[0].field, r#".spec.items[name="x"].value"#);
}

#[test]
fn plain_lists_conflict_as_a_whole() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"list": ["x"]}}));

    let error = world.conflict("b", json!({"spec": {"list": ["x", "y"]}}));

    assert_eq!(error.causes()[0].field, ".spec.list");
}

#[test]
fn atomic_maps_conflict_as_a_whole() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"whole": {"x": "1"}}}));

    let error = world.conflict("b", json!({"spec": {"whole": {"y": "1"}}}));

    assert_eq!(error.causes()[0].field, ".spec.whole");
}

#[test]
fn the_status_is_not_owned_at_the_main_endpoint() {
    let mut world = World::new();

    world.apply("a", json!({"spec": {"size": 1}, "status": {"phase": "x"}}));

    assert_eq!(world.owners(), [owner("a Apply", f_size())]);
}

#[test]
fn the_status_endpoint_owns_the_status_only() {
    let mut world = World::new();
    world.apply("a", size(1));

    let fields = json!({"spec": {"size": 1}, "status": {"phase": "x"}});
    world.try_apply_to("status", "a", &fields, Force::No).unwrap();

    let status = owner("a Apply status", json!({"f:status": {"f:phase": {}}}));
    assert_eq!(world.owners(), [owner("a Apply", f_size()), status]);
}

#[test]
fn a_conflict_names_the_owners_endpoint() {
    let mut world = World::new();
    world.apply("a", size(1));
    world.try_apply_to("status", "a", &json!({"status": {"phase": "x"}}), Force::No).unwrap();

    let error = world.try_apply_to("status", "b", &json!({"status": {"phase": "y"}}), Force::No).unwrap_err();

    let expected = r#"Apply failed with 1 conflict: conflict with "a" with subresource "status": .status.phase"#;
    assert_eq!(error.message(), expected);
}

#[test]
fn one_applier_may_change_versions() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"size": 1, "name": "n"}}));
    world.version = "example.com/v2";

    world.apply("a", size(2));

    assert_eq!(world.live["spec"], json!({"size": 2}));
    assert_eq!(world.owners(), [owner("a Apply", f_size())]);
    assert_eq!(world.live["metadata"]["managedFields"][0]["apiVersion"], "example.com/v2");
}

#[test]
fn owners_in_another_version_conflict_all_the_same() {
    let mut world = World::new();
    world.apply("a", size(1));
    world.version = "example.com/v2";

    let error = world.conflict("b", size(2));

    assert_eq!(error.causes()[0].field, ".spec.size");
}

#[test]
fn an_object_without_owners_belongs_to_who_was_before_the_first_apply() {
    let mut world = World::new();
    world.update("u", |new| new["spec"] = json!({"size": 1, "name": "n"}));
    world.update("u", |new| new["metadata"]["managedFields"] = json!([{}]));
    assert_eq!(world.owners(), []);

    let error = world.conflict("a", size(2));
    world.force("a", size(2));

    assert_eq!(error.causes()[0].message, r#"conflict with "before-first-apply" using example.com/v1"#);
    let before = owner("before-first-apply Update", json!({"f:spec": {".": {}, "f:name": {}}}));
    assert_eq!(world.owners(), [owner("a Apply", f_size()), before]);
}

#[test]
fn an_update_of_an_object_without_owners_starts_none() {
    let mut world = World::new();
    world.update("u", |new| new["spec"] = json!({"size": 1}));
    world.update("u", |new| new["metadata"]["managedFields"] = json!([{}]));

    world.update("u", |new| new["spec"]["size"] = json!(2));

    assert_eq!(world.owners(), []);
}

#[test]
fn owners_may_be_written_by_hand() {
    let mut world = World::new();
    world.apply("a", size(1));
    let entry = json!([{
        "manager": "m", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": f_size(),
    }]);

    world.update("u", |new| new["metadata"]["managedFields"] = entry);

    assert_eq!(world.owners(), [owner("m Apply", f_size())]);
}

#[test]
fn malformed_owners_are_ignored() {
    let mut world = World::new();
    world.apply("a", size(1));

    world.update("u", |new| {
        new["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Merge"}]);
    });

    assert_eq!(world.owners(), [owner("a Apply", f_size())]);
}

#[test]
fn owners_cannot_be_applied() {
    let mut world = World::new();

    let error = world.conflict("a", json!({"metadata": {"name": "w", "managedFields": []}}));

    assert_eq!(error, ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
}

#[test]
fn another_kind_cannot_be_applied() {
    let mut world = World::new();
    world.apply("a", size(1));

    let error = world.conflict("a", json!({"kind": "Gadget"}));

    assert_eq!(error, ApplyError::BadRequest("invalid object type: example.com/v1, Kind=Gadget".to_owned()));
}

#[test]
fn unknown_fields_cannot_be_applied() {
    let mut world = World::new();

    let error = world.conflict("a", json!({"spec": {"unknown": 1}}));

    let object = "/w; example.com/v1, Kind=Widget";
    let expected =
        format!("failed to create typed patch object ({object}): .spec.unknown: field not declared in schema");
    assert_eq!((error.message(), error.code(), error.reason()), (expected, 500, ""));
}

#[test]
fn an_object_that_does_not_fit_its_schema_loses_its_owners() {
    let mut world = World::new();
    world.apply("a", size(1));

    world.update("u", |new| new["spec"]["size"] = json!("big"));

    assert_eq!(world.owners(), []);
}

/// An object that kubectl applied on the client's side, with the given last configuration.
fn client_side(last: &Value, spec: &Value) -> World {
    let mut world = World::new();
    let last = world.object(&json!({"spec": last})).to_string();
    world.update("kubectl-client-side-apply", |new| {
        new["metadata"]["annotations"] = json!({ANNOTATION: last});
        new["spec"] = spec.clone();
    });
    world
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_clients_side() {
    let mut world = client_side(&json!({"size": 1}), &json!({"size": 1}));

    world.apply("kubectl", size(2));

    assert_eq!(world.live["spec"]["size"], 2);
}

#[test]
fn kubectl_does_not_take_over_what_was_changed_since() {
    let mut world = client_side(&json!({"size": 1, "name": "n"}), &json!({"size": 9, "name": "n"}));

    let error = world.conflict("kubectl", json!({"spec": {"size": 2, "name": "m"}}));

    let fields: Vec<String> = error.causes().into_iter().map(|cause| cause.field).collect();
    assert_eq!(fields, [".spec.size"]);
}

#[test]
fn other_managers_take_over_nothing() {
    let mut world = client_side(&json!({"size": 1}), &json!({"size": 1}));

    let error = world.conflict("flux", size(2));

    let expected = r#"conflict with "kubectl-client-side-apply" using example.com/v1"#;
    assert_eq!(error.causes()[0].message, expected);
}

#[test]
fn kubectl_keeps_its_annotation_in_step() {
    let mut world = client_side(&json!({"size": 1}), &json!({"size": 1}));

    world.apply("kubectl", size(2));

    let expected =
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\"},\"spec\":{\"size\":2}}\n";
    assert_eq!(world.live["metadata"]["annotations"][ANNOTATION], expected);
}

#[test]
fn the_annotation_is_not_invented() {
    let mut world = World::new();

    world.apply("kubectl", size(2));

    assert!(world.live["metadata"].get("annotations").is_none());
}

#[test]
fn an_applier_can_read_back_its_configuration() {
    let mut world = World::new();
    world.apply("a", json!({"spec": {"size": 1, "set": ["x"]}})).apply("b", json!({"spec": {"set": ["y"]}}));

    let config = extract(&world.live, "a", "", world.schema.root());

    let expected = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1, "set": ["x"]}});
    assert_eq!(config, Some(expected));
    assert_eq!(extract(&world.live, "c", "", world.schema.root()), None);
}
