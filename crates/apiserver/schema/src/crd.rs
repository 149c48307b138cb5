//! `CustomResourceDefinition` objects: defaults, validation, and what a server keeps of one.
//!
//! The real server holds what all versions have in common once, at the top of `spec`, and its errors name those places:
//! `spec.validation.openAPIV3Schema…` rather than `spec.versions[0].schema.openAPIV3Schema…`.

mod approval;
mod columns;
mod conversion;
mod defaults;
mod definition;
mod internal;
mod judge;
mod layout;
mod openapi;
mod resource_names;
mod scale;
mod selectable;
mod structural;
mod subresources;
mod versions;

pub use definition::{Column, Definition, KindNames, ObjectScope, Scale, Subresources, Version};
pub use judge::Judge;

use serde_json::{Map, Value, json};

use crate::field::{ErrorKind, FieldError, Path};
use crate::names;
use layout::Layout;

/// Fills in what a definition leaves out: names, conversion and stored versions.
pub fn default_definition(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    default_names(spec);
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    if let Some(Value::Object(service)) =
        spec.get_mut("conversion").and_then(|c| c.pointer_mut("/webhook/clientConfig/service"))
    {
        service.entry("port").or_insert(json!(443));
    }
}

fn default_names(spec: &mut Map<String, Value>) {
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let absent = |names: &Map<String, Value>, key: &str| text(names.get(key)).is_empty();
    if absent(names, "singular") {
        names.insert("singular".to_owned(), json!(kind.to_lowercase()));
    }
    if absent(names, "listKind") && !kind.is_empty() {
        names.insert("listKind".to_owned(), json!(format!("{kind}List")));
    }
}

/// The stored versions after a write: those of before, and the storage version.
pub fn stored_versions(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.and_then(|old| old.pointer("/status/storedVersions")).and_then(Value::as_array);
    let mut stored: Vec<String> = before.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let versions = new.pointer("/spec/versions").and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|v| flag(v.get("storage")));
    if let Some(name) = storage.and_then(|v| v.get("name")).and_then(Value::as_str)
        && !stored.iter().any(|known| known == name)
    {
        stored.push(name.to_owned());
    }
    stored
}

/// Checks a definition with its defaults filled in. What holds for every object's `metadata` is not checked here.
pub fn validate_definition(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let root = Path::root();
    if old.is_none() {
        name(new, spec, &mut errors);
    }
    check_spec(spec, &root.field("spec"), &mut errors);
    if let Some(old) = old {
        immutable(spec, old, &root.field("spec"), &mut errors);
    }
    let accepted = new.pointer("/status/acceptedNames").unwrap_or(&Value::Null);
    resource_names::validate(accepted, &root.field("status").field("acceptedNames"), &mut errors);
    stored(&stored_versions(new, old), spec, &mut errors);
    errors.extend(approval::validate(new, old));
    preserve_unknown_fields(spec, old, &mut errors);
    errors
}

/// What the server warns of when a definition is written: formats that it does not check and that are new.
pub fn definition_warnings(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let formats = |definition: &Value| -> Vec<String> {
        let spec = definition.get("spec").unwrap_or(&Value::Null);
        Layout::of(spec).schemas().into_iter().flat_map(openapi::unrecognised_formats).collect()
    };
    let known = old.map(formats).unwrap_or_default();
    formats(definition).into_iter().filter(|format| !known.contains(format)).collect()
}

fn name(new: &Value, spec: &Value, errors: &mut Vec<FieldError>) {
    let wanted = format!("{}.{}", text(spec.pointer("/names/plural")), text(spec.get("group")));
    let name = text(new.pointer("/metadata/name"));
    if !name.is_empty() && name != wanted {
        let root = Path::root();
        let path = root.field("metadata");
        errors.push(FieldError::invalid(
            &path.field("name"),
            &json!(name),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
}

fn check_spec(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    group(text(spec.get("group")), &path.field("group"), errors);
    one_of(text(spec.get("scope")), &["Cluster", "Namespaced"], &path.field("scope"), errors);
    let layout = Layout::of(spec);
    versions::validate(&layout, path, errors);
    first_version(&layout, &path.field("version"), errors);
    names_present(spec, &path.field("names"), errors);
    resource_names::validate(spec.get("names").unwrap_or(&Value::Null), &path.field("names"), errors);
    if let Some(schema) = layout.shared_schema() {
        let path = path.field("validation");
        openapi::validate(schema, &path, layout.any_status(), errors);
    }
    subresources::validate(layout.shared_subresources(), &path.field("subresources"), errors);
    columns::validate(layout.shared_columns(), &path.field("additionalPrinterColumns"), errors);
    shared_selectable(&layout, path, errors);
    conversion::validate(spec, &path.field("conversion"), errors);
}

/// The server keeps the first version's name once more.
fn first_version(layout: &Layout<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let name = layout.versions.first().map_or("", |version| text(version.get("name")));
    let wrong = names::dns1035_label(name);
    if !name.is_empty() && !wrong.is_empty() {
        errors.push(FieldError::invalid(path, &json!(name), wrong.join(",")));
    }
}

fn shared_selectable(layout: &Layout<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let fields = layout.shared_selectable();
    if fields.is_empty() {
        return;
    }
    let path = path.field("selectableFields");
    match layout.shared_schema() {
        Some(schema) => selectable::validate(fields, schema, &path, errors),
        None => {
            errors.push(FieldError::invalid(&path, &json!(""), "may only be set when validations.schema is included"));
        }
    }
}

fn group(group: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !wrong.is_empty() {
        errors.push(FieldError::invalid(path, &json!(group), wrong.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(path, &json!(group), "should be a domain with at least one dot"));
    }
}

/// A required text out of a few.
fn one_of(value: &str, allowed: &[&str], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !allowed.contains(&value) {
        errors.push(FieldError::not_supported(path, &json!(value), allowed));
    }
}

fn names_present(spec: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(spec.get("names").and_then(|names| names.get(name))).is_empty() {
            errors.push(FieldError::required(&path.field(name), ""));
        }
    }
}

fn immutable(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let established =
        old.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some("Established")
                && condition.get("status").and_then(Value::as_str) == Some("True")
        });
    let always: [(&str, bool); 4] =
        [("/scope", established), ("/names/kind", established), ("/group", true), ("/names/plural", true)];
    for (pointer, fixed) in always {
        let (now, before) = (spec.pointer(pointer), old.get("spec").and_then(|spec| spec.pointer(pointer)));
        if fixed && now != before {
            let field = format!("{path}{}", pointer.replace('/', "."));
            let value = now.cloned().unwrap_or_else(|| json!(""));
            errors.push(FieldError {
                kind: ErrorKind::Invalid,
                field,
                value: Some(crate::field::show(&value)),
                detail: "field is immutable".to_owned(),
            });
        }
    }
}

fn stored(stored: &[String], spec: &Value, errors: &mut Vec<FieldError>) {
    let root = Path::root();
    let status = root.field("status");
    let path = status.field("storedVersions");
    if stored.is_empty() {
        errors.push(FieldError::invalid(&path, &Value::Null, "must have at least one stored version"));
        return;
    }
    let versions = spec.get("versions").and_then(Value::as_array);
    let names: Vec<&str> = versions.into_iter().flatten().map(|v| text(v.get("name"))).collect();
    for version in versions.into_iter().flatten().filter(|version| flag(version.get("storage"))) {
        let name = text(version.get("name"));
        if !stored.iter().any(|known| known == name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(&path, &json!(stored), detail));
        }
    }
    for (index, version) in stored.iter().enumerate().filter(|(_, version)| !names.contains(&version.as_str())) {
        let detail = format!(
            "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
        );
        errors.push(FieldError::invalid(&path.index(index), &json!(version), detail));
    }
}

fn preserve_unknown_fields(spec: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let set = |spec: Option<&Value>| flag(spec.and_then(|spec| spec.get("preserveUnknownFields")));
    if set(Some(spec)) && !set(old.and_then(|old| old.get("spec"))) {
        let root = Path::root();
        let path = root.field("spec");
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&path.field("preserveUnknownFields"), &json!(true), detail));
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool).unwrap_or(false)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "tests read better with literals")]
mod tests;
