//! `metadata` → what is wrong with it, for built-in kinds and custom resources alike.

use std::collections::BTreeSet;

use portolan_schema::{ErrorKind, FieldError, Path};
use serde_json::{Value, json};

use crate::check::ordered;
use crate::names;
use crate::value::{entries, list, number, text, texts};

const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// What a kind's names look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, as most kinds have it.
    Subdomain,
    /// RFC 1123 label.
    Label,
    /// Anything that can stand in a URL path, as for RBAC.
    PathSegment,
}

impl NameRule {
    /// What is wrong with a name.
    pub fn problems(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => names::dns_subdomain(name),
            Self::Label => names::dns_label(name),
            Self::PathSegment => names::path_segment(name),
        }
    }

    /// What is wrong with the beginning of a generated name.
    pub fn prefix_problems(self, prefix: &str) -> Vec<String> {
        match self {
            Self::Subdomain => names::dns_subdomain(&mask_trailing_dash(prefix)),
            Self::Label => names::dns_label(&mask_trailing_dash(prefix)),
            Self::PathSegment => names::path_segment_prefix(prefix),
        }
    }
}

/// A prefix may end with a dash, since more follows. The last *two* characters make room for a harmless one, so that
/// a dash before the last is forgiven as well, as it is by the real server.
fn mask_trailing_dash(prefix: &str) -> String {
    let characters = prefix.len();
    match prefix.strip_suffix('-') {
        Some(_) if characters > 1 && prefix.is_char_boundary(characters - 2) => {
            format!("{}a", &prefix[..characters - 2])
        }
        _ => prefix.to_owned(),
    }
}

/// Checks `metadata` of a new object whose name has been generated already.
pub fn validate_metadata(meta: &Value, namespaced: bool, rule: NameRule, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let generate_name = text(meta, "generateName");
    if !generate_name.is_empty() {
        invalid(&mut errors, &path.field("generateName"), generate_name, rule.prefix_problems(generate_name));
    }
    let name = text(meta, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.field("name"), "name or generateName is required"));
    } else {
        invalid(&mut errors, &path.field("name"), name, rule.problems(name));
    }
    errors.extend(namespace_errors(text(meta, "namespace"), namespaced, &path.field("namespace")));
    if number(meta, "generation").is_some_and(|generation| generation < 0) {
        let generation = &meta["generation"];
        errors.push(FieldError::invalid(&path.field("generation"), generation, "must be greater than or equal to 0"));
    }
    errors.extend(validate_labels(&meta["labels"], &path.field("labels")));
    errors.extend(validate_annotations(&meta["annotations"], &path.field("annotations")));
    errors.extend(owner_errors(meta, &path.field("ownerReferences")));
    errors.extend(finalizer_errors(meta, &path.field("finalizers")));
    errors.extend(managed_field_errors(meta, &path.field("managedFields")));
    errors
}

/// Checks `metadata` of an update against what is stored.
pub fn validate_metadata_update(new: &Value, old: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !old["deletionTimestamp"].is_null() {
        errors.extend(new_finalizers(new, old, &path.field("finalizers")));
    }
    if text(new, "resourceVersion").is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(&path.field("resourceVersion"), &json!(""), detail));
    }
    let generation = number(new, "generation").unwrap_or(0);
    if generation < number(old, "generation").unwrap_or(0) {
        let detail = "must not be decremented";
        errors.push(FieldError::invalid(&path.field("generation"), &json!(generation), detail));
    }
    for field in ["name", "namespace", "uid"] {
        errors.extend(immutable(&json!(text(new, field)), &json!(text(old, field)), &path.field(field)));
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        errors.extend(immutable(&new[field], &old[field], &path.field(field)));
    }
    errors.extend(validate_labels(&new["labels"], &path.field("labels")));
    errors.extend(validate_annotations(&new["annotations"], &path.field("annotations")));
    errors.extend(owner_errors(new, &path.field("ownerReferences")));
    errors.extend(managed_field_errors(new, &path.field("managedFields")));
    errors
}

/// `field is immutable` where two values differ.
pub fn immutable(new: &Value, old: &Value, path: &Path<'_>) -> Option<FieldError> {
    (new != old).then(|| FieldError::invalid(path, new, "field is immutable"))
}

/// Checks keys and values of labels.
pub fn validate_labels(labels: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in entries(labels) {
        let value = value.as_str().unwrap_or_default();
        invalid(&mut errors, path, key, names::qualified_name(key));
        invalid(&mut errors, path, value, names::label_value(value));
    }
    errors
}

/// Checks keys of annotations, and their size together.
pub fn validate_annotations(annotations: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in entries(annotations) {
        invalid(&mut errors, path, key, names::qualified_name(&key.to_lowercase()));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(too_long(path, ANNOTATIONS_LIMIT));
    }
    errors
}

/// `Too long: may not be more than N bytes`.
pub fn too_long(path: &Path<'_>, limit: usize) -> FieldError {
    let detail = format!("may not be more than {limit} bytes");
    FieldError { kind: ErrorKind::TooLong, field: path.to_string(), value: None, detail }
}

/// One `Invalid value` for each problem.
pub(crate) fn invalid(errors: &mut Vec<FieldError>, path: &Path<'_>, value: &str, problems: Vec<String>) {
    errors.extend(problems.into_iter().map(|problem| FieldError::invalid(path, &json!(value), problem)));
}

fn namespace_errors(namespace: &str, namespaced: bool, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(path, "")),
        (true, false) => invalid(&mut errors, path, namespace, names::dns_label(namespace)),
        (false, false) => errors.push(FieldError::forbidden(path, "not allowed on this type")),
        (false, true) => {}
    }
    errors
}

fn owner_errors(meta: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut first_controller: Option<String> = None;
    for owner in list(meta, "ownerReferences") {
        errors.extend(one_owner(owner, path));
        if owner["controller"] != json!(true) {
            continue;
        }
        let controller = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        match &first_controller {
            None => first_controller = Some(controller),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                     {controller}"
                );
                let mut error = FieldError::invalid(path, &Value::Null, detail);
                let owners: Vec<String> = list(meta, "ownerReferences").iter().map(shown_owner).collect();
                error.value = Some(format!("[{}]", owners.join(",")));
                errors.push(error);
            }
        }
    }
    errors
}

fn one_owner(owner: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let api_version = text(owner, "apiVersion");
    let version = api_version.rsplit('/').next().unwrap_or_default();
    if version.is_empty() || api_version.matches('/').count() > 1 {
        let detail = "version must not be empty";
        errors.push(FieldError::invalid(&path.field("apiVersion"), &json!(api_version), detail));
    }
    for field in ["kind", "name", "uid"] {
        if text(owner, field).is_empty() {
            errors.push(FieldError::invalid(&path.field(field), &json!(""), "must not be empty"));
        }
    }
    if api_version == "v1" && text(owner, "kind") == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        let mut error = FieldError::invalid(path, owner, detail);
        error.value = Some(shown_owner(owner));
        errors.push(error);
    }
    errors
}

/// An owner as messages show it: fields in the order of the Go type.
fn shown_owner(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let there: Vec<(&str, &Value)> = fields.into_iter().filter_map(|name| Some((name, owner.get(name)?))).collect();
    ordered(&there)
}

fn finalizer_errors(meta: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let finalizers = texts(meta, "finalizers");
    for finalizer in &finalizers {
        invalid(&mut errors, path, finalizer, names::qualified_name(finalizer));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, &meta["finalizers"], detail));
    }
    errors
}

fn new_finalizers(new: &Value, old: &Value, path: &Path<'_>) -> Option<FieldError> {
    let there: BTreeSet<&str> = texts(old, "finalizers").into_iter().collect();
    let added: BTreeSet<&str> = texts(new, "finalizers").into_iter().filter(|f| !there.contains(f)).collect();
    if added.is_empty() {
        return None;
    }
    let quoted: Vec<String> = added.iter().map(|finalizer| format!("{finalizer:?}")).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        quoted.join(", ")
    );
    Some(FieldError::forbidden(path, detail))
}

fn managed_field_errors(meta: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, entry) in list(meta, "managedFields").iter().enumerate() {
        let path = path.index(index);
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&path.field("operation"), &json!(operation), detail));
        }
        let fields_type = text(entry, "fieldsType");
        if !fields_type.is_empty() && fields_type != "FieldsV1" {
            errors.push(FieldError::invalid(&path.field("fieldsType"), &json!(fields_type), "must be `FieldsV1`"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(meta: &Value) -> Vec<String> {
        let root = Path::root();
        let errors = validate_metadata(meta, true, NameRule::Subdomain, &root.field("metadata"));
        errors.iter().map(ToString::to_string).collect()
    }

    fn check_update(new: &Value, old: &Value) -> Vec<String> {
        let root = Path::root();
        validate_metadata_update(new, old, &root.field("metadata")).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_object_needs_a_name_and_a_namespace() {
        assert_eq!(
            check(&json!({})),
            ["metadata.name: Required value: name or generateName is required", "metadata.namespace: Required value"]
        );
    }

    #[test]
    fn a_cluster_scoped_object_may_not_have_a_namespace() {
        let root = Path::root();
        let meta = json!({"name": "a", "namespace": "b"});

        let errors = validate_metadata(&meta, false, NameRule::Subdomain, &root.field("metadata"));

        assert_eq!(errors[0].to_string(), "metadata.namespace: Forbidden: not allowed on this type");
    }

    #[test]
    fn a_generated_name_may_begin_with_a_prefix_that_ends_with_a_dash() {
        assert!(check(&json!({"name": "a-x", "generateName": "a-", "namespace": "b"})).is_empty());
        assert_eq!(check(&json!({"name": "a-x", "generateName": "A-", "namespace": "b"})).len(), 0);
        assert_eq!(check(&json!({"name": "a-x", "generateName": "Ab-", "namespace": "b"})).len(), 1);
    }

    #[test]
    fn annotations_over_the_limit_are_too_long() {
        let meta = json!({"name": "a", "namespace": "b", "annotations": {"k": "x".repeat(256 * 1024)}});

        assert_eq!(check(&meta), ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
    }

    #[test]
    fn only_one_owner_may_be_the_controller() {
        let owner =
            |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true});
        let errors = check(&json!({"name": "a", "namespace": "b", "ownerReferences": [owner("x"), owner("y")]}));

        assert_eq!(errors.len(), 1);
        assert!(errors[0].ends_with("Found \"true\" in references for Pod/x and Pod/y"), "{}", errors[0]);
    }

    #[test]
    fn owners_name_version_kind_name_and_uid() {
        let errors = check(&json!({"name": "a", "namespace": "b", "ownerReferences": [{}]}));

        assert_eq!(
            errors,
            [
                "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ]
        );
    }

    #[test]
    fn a_deleted_object_takes_no_new_finalizers() {
        let old = json!({"resourceVersion": "1", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]});
        let mut new = old.clone();
        new["finalizers"] = json!(["a/b", "c/d"]);

        assert_eq!(
            check_update(&new, &old),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
              finalizers []string{\"c/d\"}"
            ]
        );
    }

    #[test]
    fn identity_is_immutable() {
        let old = json!({"resourceVersion": "1", "name": "a", "uid": "x"});
        let new = json!({"resourceVersion": "1", "name": "a", "uid": "y"});

        assert_eq!(check_update(&new, &old), ["metadata.uid: Invalid value: \"y\": field is immutable"]);
    }
}
