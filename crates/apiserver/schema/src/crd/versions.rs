//! The versions of a definition, each with its schema, subresources, columns and selectable fields.

use serde_json::{Value, json};

use super::layout::Layout;
use super::{columns, flag, internal, openapi, selectable, subresources, text};
use crate::field::{ErrorKind, FieldError, Path};
use crate::{go, names};

pub(super) fn validate(layout: &Layout<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let versions_path = path.field("versions");
    if layout.shared_schema().is_none() {
        for (index, _) in layout.versions.iter().enumerate().filter(|(_, v)| layout.own_schema(v).is_none()) {
            let version = versions_path.index(index);
            errors.push(FieldError::required(&version.field("schema").field("openAPIV3Schema"), ""));
        }
    }
    for (index, version) in layout.versions.iter().enumerate() {
        let path = versions_path.index(index);
        let wrong = names::dns1035_label(text(version.get("name")));
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path.field("name"), &json!(text(version.get("name"))), wrong.join(",")));
        }
        one(version, layout, &path, errors);
    }
    together(layout, &versions_path, errors);
}

fn one(version: &Value, layout: &Layout<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    deprecation(version, &path.field("deprecationWarning"), errors);
    if let Some(schema) = layout.own_schema(version) {
        openapi::validate(schema, &path.field("schema"), Layout::has_status(version), errors);
    }
    subresources::validate(layout.own_subresources(version), &path.field("subresources"), errors);
    columns::validate(layout.own_columns(version), &path.field("additionalPrinterColumns"), errors);
    let fields = layout.own_selectable(version);
    if !fields.is_empty() {
        let path = path.field("selectableFields");
        if let Some(schema) = layout.own_schema(version) {
            selectable::validate(fields, schema, &path, errors);
        } else {
            let detail = "may only be set when `version.schema.openAPIV3Schema` is not included";
            errors.push(FieldError::invalid(&path, &json!(""), detail));
        }
    }
}

fn deprecation(version: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let mut wrong = |why: String| errors.push(FieldError::invalid(path, &json!(warning), why));
    if !flag(version.get("deprecated")) {
        wrong("can only be set for deprecated versions".to_owned());
        return;
    }
    if warning.len() > 256 {
        wrong("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        wrong("must not be an empty string".to_owned());
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        wrong(format!("must only contain printable UTF-8 characters; non-printable character found at index {at}"));
    }
}

fn together(layout: &Layout<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let names: Vec<&str> = layout.versions.iter().map(|v| text(v.get("name"))).collect();
    let mut wrong = |detail: &str| {
        let value = Some(shown(layout));
        errors.push(FieldError { kind: ErrorKind::Invalid, field: path.to_string(), value, detail: detail.to_owned() });
    };
    if names.iter().enumerate().any(|(at, name)| names[..at].contains(name)) {
        wrong("must contain unique version names");
    }
    if layout.versions.iter().filter(|v| flag(v.get("storage"))).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
}

/// The versions as the server's own types print, without what the versions share.
fn shown(layout: &Layout<'_>) -> String {
    if layout.versions.is_empty() {
        return "null".to_owned();
    }
    let one = |version: &Value| {
        let part = |value: Option<&Value>| value.map_or_else(|| "null".to_owned(), go::json);
        let warning = version.get("deprecationWarning").filter(|w| w.is_string());
        format!(
            r#"{{"Name":{},"Served":{},"Storage":{},"Deprecated":{},"DeprecationWarning":{},"Schema":{},"Subresources":{},"AdditionalPrinterColumns":null,"SelectableFields":null}}"#,
            go::json(&json!(text(version.get("name")))),
            flag(version.get("served")),
            flag(version.get("storage")),
            flag(version.get("deprecated")),
            part(warning),
            layout
                .own_schema(version)
                .map_or_else(|| "null".to_owned(), |s| format!("{{\"OpenAPIV3Schema\":{}}}", internal::schema(s))),
            part(layout.own_subresources(version)),
        )
    };
    format!("[{}]", layout.versions.iter().map(one).collect::<Vec<_>>().join(","))
}
