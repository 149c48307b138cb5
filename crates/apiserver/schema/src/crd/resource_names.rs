//! The names of a resource: plural, singular, kinds, short names and categories.

use serde_json::{Value, json};

use super::{list, text};
use crate::field::{FieldError, Path};
use crate::names::dns1035_label;

pub(super) fn validate(names: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["plural", "singular"] {
        label(text(names.get(name)), &path.field(name), errors);
    }
    for name in ["kind", "listKind"] {
        mixed_case(text(names.get(name)), &path.field(name), errors);
    }
    let short_names = path.field("shortNames");
    for (index, name) in list(names.get("shortNames")).iter().enumerate() {
        required_label(text(Some(name)), &short_names.index(index), errors);
    }
    let (kind, list_kind) = (text(names.get("kind")), text(names.get("listKind")));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.field("listKind"), &json!(list_kind), detail));
    }
    let categories = path.field("categories");
    for (index, name) in list(names.get("categories")).iter().enumerate() {
        required_label(text(Some(name)), &categories.index(index), errors);
    }
}

fn label(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !name.is_empty() {
        required_label(name, path, errors);
    }
}

fn required_label(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = dns1035_label(name);
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(path, &json!(name), wrong.join(",")));
    }
}

fn mixed_case(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let wrong = dns1035_label(&name.to_lowercase());
    if !name.is_empty() && !wrong.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
        errors.push(FieldError::invalid(path, &json!(name), detail));
    }
}
