//! What a resource does to its objects: reading input, defaults, fields that are not the client's, and checks.

use portolan_builtin::{NameRule, WriteMoment, meta, strategy, types};
use portolan_schema::{Cursor, FieldError, Path, Root, crd, object_meta};
use serde_json::{Value, json};

use crate::object;
use crate::registry::{Custom, Resource, RuleSource};
use crate::status::ApiError;
use crate::warnings;

/// The part of an object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectPart {
    /// All but the status, where that has its own endpoint.
    Main,
    /// The status alone.
    Status,
    /// A namespace's `spec.finalizers`.
    Finalize,
    /// A pod's containers for debugging.
    EphemeralContainers,
    /// What a pod's containers ask of their node.
    Resize,
}

impl Resource {
    /// Checks types and drops what the schema does not know; answers the unknown fields.
    pub(crate) fn read(&self, object: &mut Value) -> Result<Vec<String>, String> {
        match &self.source {
            RuleSource::Builtin(kind) => {
                types::check_types(kind, object).map_err(|message| match message.split_once(": ") {
                    Some((opening, why)) if opening.contains("cannot be handled as") => why.to_owned(),
                    _ => message,
                })?;
                Ok(portolan_schema::prune(object, kind.cursor(), Root::Resource))
            }
            RuleSource::Custom(custom) => {
                if let Some(error) = object_meta::decode_error(object, custom.schema.root()) {
                    return Err(error);
                }
                Ok(portolan_schema::prune(object, custom.schema.root(), Root::Resource))
            }
        }
    }

    /// Fills in defaults.
    pub(crate) fn default(&self, object: &mut Value) {
        match &self.source {
            RuleSource::Builtin(kind) => {
                strategy::set_defaults(kind, object);
                if self.is_definition() {
                    crd::default_definition(object);
                }
            }
            RuleSource::Custom(custom) => portolan_schema::default(object, custom.schema.root()),
        }
    }

    /// Fills in defaults after an apply, which keeps the nulls that it was given.
    pub(crate) fn default_applied(&self, object: &mut Value) {
        match &self.source {
            RuleSource::Builtin(_) => self.default(object),
            RuleSource::Custom(custom) => portolan_schema::fill_defaults(object, custom.schema.root()),
        }
    }

    /// What to warn of although a new object is accepted.
    pub(crate) fn warnings_of_new(&self, object: &Value) -> Vec<String> {
        match &self.source {
            RuleSource::Builtin(_) if self.is_definition() => crd::definition_warnings(object, None),
            RuleSource::Builtin(_) => portolan_builtin::warnings(&self.kind, object, WriteMoment::Create),
            RuleSource::Custom(_) => warnings::of_finalizers(object, None),
        }
    }

    /// What to warn of although a change is accepted.
    pub(crate) fn warnings(&self, object: &Value, old: &Value, part: ObjectPart) -> Vec<String> {
        match (&self.source, part) {
            (RuleSource::Builtin(_), ObjectPart::Main) if self.is_definition() => {
                crd::definition_warnings(object, Some(old))
            }
            (RuleSource::Builtin(_), ObjectPart::Main) => {
                portolan_builtin::warnings(&self.kind, object, WriteMoment::Update(old))
            }
            (RuleSource::Builtin(_), ObjectPart::Status) => {
                portolan_builtin::warnings(&self.kind, object, WriteMoment::Status)
            }
            (RuleSource::Custom(_), ObjectPart::Main) => warnings::of_finalizers(object, Some(old)),
            _ => Vec::new(),
        }
    }

    /// What admission adds to a new object.
    pub(crate) fn admit_create(&self, object: &mut Value) {
        if let RuleSource::Builtin(kind) = &self.source {
            strategy::admit_create(kind, object);
        }
    }

    /// What admission adds to a changed object.
    pub(crate) fn admit_update(&self, new: &mut Value, old: &Value) {
        if let RuleSource::Builtin(kind) = &self.source {
            strategy::admit_update(kind, new, old);
        }
    }

    /// A stored object under this version and schema.
    pub(crate) fn show(&self, mut object: Value) -> Value {
        match &self.source {
            RuleSource::Builtin(_) => {
                let mut shown = portolan_builtin::to_events_v1(object);
                shown["kind"] = json!(self.kind);
                shown["apiVersion"] = json!(self.api_version());
                shown
            }
            RuleSource::Custom(custom) => {
                as_stored(&mut object, custom);
                object
            }
        }
    }

    /// The form that is stored.
    pub(crate) fn store_form(&self, object: Value) -> Value {
        match &self.source {
            RuleSource::Builtin(kind) if kind.kind == "Event" && kind.group == "events.k8s.io" => {
                portolan_builtin::to_core_v1(object)
            }
            RuleSource::Builtin(_) => object,
            RuleSource::Custom(custom) => {
                let mut object = object;
                if !std::sync::Arc::ptr_eq(&custom.schema, &custom.stored) {
                    as_stored(&mut object, custom);
                }
                object
            }
        }
    }

    /// Sets what a new object must have and takes away what a client may not set.
    pub(crate) fn prepare_create(&self, object: &mut Value) {
        match &self.source {
            RuleSource::Builtin(kind) => {
                strategy::prepare_create(kind, object);
                if self.is_definition() {
                    object["status"] = json!({
                        "acceptedNames": {"kind": "", "plural": ""}, "conditions": null,
                        "storedVersions": crd::stored_versions(object, None),
                    });
                }
            }
            RuleSource::Custom(custom) => {
                if custom.status
                    && let Some(fields) = object.as_object_mut()
                {
                    fields.remove("status");
                }
                // A status may have defaults, which come back when the object is read.
                portolan_schema::fill_defaults(object, custom.schema.root());
                object::set_meta(object, "generation", Some(json!(1)));
            }
        }
    }

    /// Puts back what this part of an update may not touch, and counts generations.
    pub(crate) fn prepare_update(&self, new: &mut Value, old: &Value, part: ObjectPart) {
        match part {
            ObjectPart::Main => self.prepare_main_update(new, old),
            ObjectPart::Status => self.prepare_status_update(new, old),
            ObjectPart::EphemeralContainers => portolan_builtin::prepare_ephemeral_containers(new, old),
            ObjectPart::Resize => portolan_builtin::prepare_resize(new, old),
            ObjectPart::Finalize => {
                let finalizers = new["spec"]["finalizers"].clone();
                let keep = new["metadata"]["managedFields"].clone();
                *new = old.clone();
                object::set_meta(new, "managedFields", (!keep.is_null()).then_some(keep));
                new["spec"] = if finalizers.is_null() { json!({}) } else { json!({"finalizers": finalizers}) };
            }
        }
    }

    fn prepare_main_update(&self, new: &mut Value, old: &Value) {
        match &self.source {
            RuleSource::Builtin(kind) => {
                strategy::prepare_update(kind, new, old);
                if self.is_definition() {
                    new["status"]["storedVersions"] = json!(crd::stored_versions(new, Some(old)));
                }
            }
            RuleSource::Custom(custom) => {
                if custom.status {
                    copy_field(new, old, "status");
                }
                let changed = custom.counted(new).ne(custom.counted(old));
                let generation = object::generation(old) + i64::from(changed);
                object::set_meta(new, "generation", (generation > 0).then(|| json!(generation)));
            }
        }
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        match &self.source {
            RuleSource::Builtin(kind) => strategy::prepare_status_update(kind, new, old),
            RuleSource::Custom(_) => {
                let status = new.get("status").cloned();
                let managed = new["metadata"]["managedFields"].clone();
                *new = old.clone();
                object::set_meta(new, "managedFields", (!managed.is_null()).then_some(managed));
                if let Some(fields) = new.as_object_mut() {
                    match status {
                        Some(status) => fields.insert("status".to_owned(), status),
                        None => fields.remove("status"),
                    };
                }
            }
        }
    }

    /// The answer to an object that is wrong. Events of both groups are checked as the core's.
    pub(crate) fn invalid(&self, name: &str, errors: &[FieldError]) -> ApiError {
        let group = if self.kind == "Event" && self.custom().is_none() { "" } else { &self.group };
        ApiError::invalid(group, &self.kind, name, errors)
    }

    /// What is wrong with a new object.
    pub(crate) fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        match &self.source {
            RuleSource::Builtin(kind) => {
                let mut errors = portolan_builtin::validate_create(kind, object);
                if self.is_definition() {
                    errors.extend(crd::validate_definition(object, None));
                }
                errors
            }
            RuleSource::Custom(custom) => {
                let root = Path::root();
                let path = root.field("metadata");
                let mut errors =
                    meta::validate_metadata(&object["metadata"], self.namespaced, NameRule::Subdomain, &path);
                errors.extend(portolan_schema::validate(object, custom.schema.root()));
                errors.extend(scale_errors(custom, object));
                let schema = custom.schema.root();
                errors.extend(rule_errors(schema, &errors, || portolan_schema::check_rules(object, None, schema)));
                errors
            }
        }
    }

    /// What is wrong with an update. The real server looks at metadata twice, and says twice what it finds.
    pub(crate) fn validate_update(&self, new: &Value, old: &Value, part: ObjectPart) -> Vec<FieldError> {
        match &self.source {
            RuleSource::Builtin(kind) if part == ObjectPart::Main => {
                let mut errors = portolan_builtin::validate_update(kind, new, old);
                if self.is_definition() {
                    errors.extend(crd::validate_definition(new, Some(old)));
                }
                errors
            }
            RuleSource::Builtin(_) if part == ObjectPart::EphemeralContainers => {
                portolan_builtin::validate_ephemeral_containers(new, old)
            }
            RuleSource::Builtin(_) if part == ObjectPart::Resize => portolan_builtin::validate_resize(new, old),
            RuleSource::Builtin(kind) => portolan_builtin::validate_status_update(kind, new, old),
            RuleSource::Custom(custom) => {
                let root = Path::root();
                let path = root.field("metadata");
                let (meta_new, meta_old) = (&new["metadata"], &old["metadata"]);
                let mut errors = meta::validate_metadata(meta_new, self.namespaced, NameRule::PathSegment, &path);
                errors.extend(meta::validate_metadata_update(meta_new, meta_old, &path));
                errors.extend(meta::validate_metadata_update(meta_new, meta_old, &path));
                let schema = custom.schema.root();
                errors.extend(if part == ObjectPart::Status {
                    portolan_schema::validate_status_update(new, old, schema)
                } else {
                    portolan_schema::validate_update(new, old, schema)
                });
                errors.extend(scale_errors(custom, new));
                errors.extend(rule_errors(schema, &errors, || portolan_schema::check_rules(new, Some(old), schema)));
                errors
            }
        }
    }
}

/// What the stored version's schema makes of an object.
fn as_stored(object: &mut Value, custom: &Custom) {
    portolan_schema::prune(object, custom.stored.root(), Root::Resource);
    portolan_schema::default(object, custom.stored.root());
}

/// `new.field = old.field`, absent where it was absent.
fn copy_field(new: &mut Value, old: &Value, field: &str) {
    let Some(fields) = new.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

/// Numbers of replicas are not negative, whatever the schema says.
fn scale_errors(custom: &Custom, object: &Value) -> Vec<FieldError> {
    let Some(scale) = &custom.scale else { return Vec::new() };
    let paths = [&scale.spec_replicas, &scale.status_replicas];
    let negative = paths.into_iter().filter_map(|path| {
        let value = object::at_path(object, path).filter(|v| v.as_i64().is_some_and(|n| n < 0))?;
        let root = Path::root();
        Some(FieldError::invalid(&root.field(path), value, "should be a non-negative integer"))
    });
    negative.collect()
}

/// What the CEL rules say, or that they were not run.
fn rule_errors(schema: Cursor<'_>, errors: &[FieldError], check: impl FnOnce() -> Vec<FieldError>) -> Vec<FieldError> {
    if !schema.node().rules_below {
        return Vec::new();
    }
    portolan_schema::blocks_rules(errors).map_or_else(check, |blocked| vec![blocked])
}
