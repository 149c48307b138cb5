//! Defaults in a schema must be values that the schema takes: nothing unknown, nothing wrong, no rule broken.

use serde_json::{Value, json};

use crate::field::{FieldError, Path};
use crate::node::{Cursor, Schema};
use crate::prune::{Root, is_meta_field, prune};
use crate::rules;
use crate::validate::{embedded_at, validate_at};

/// Checks every default of a schema.
pub(super) fn validate(schema: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match Schema::parse(schema) {
        Ok(schema) => place(schema.root(), Position { resource: true, inside_meta: false }, path, &mut errors),
        Err(error) => errors.push(FieldError::invalid(path, &json!(""), error.to_string())),
    }
    errors
}

#[derive(Clone, Copy)]
struct Position {
    /// A resource stands here: the root, or an embedded one.
    resource: bool,
    /// Below the metadata of a resource.
    inside_meta: bool,
}

fn place(schema: Cursor<'_>, position: Position, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let node = schema.node();
    let resource = position.resource || node.embedded_resource;
    if let Some(default) = node.default.as_ref().filter(|d| !d.is_null()) {
        one(default, schema, position, &path.field("default"), errors);
    }
    if let Some(items) = schema.items() {
        let position = Position { resource: false, ..position };
        place(items, position, &path.field("items"), errors);
    }
    for (name, &id) in &node.properties {
        let inside_meta = (position.inside_meta && !resource) || (resource && is_meta_field(name));
        let properties = path.field("properties");
        place(schema.sibling(id), Position { resource: false, inside_meta }, &properties.key(name), errors);
    }
}

fn one(default: &Value, schema: Cursor<'_>, position: Position, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let embedded = schema.node().embedded_resource || position.resource;
    if !position.inside_meta {
        let mut pruned = default.clone();
        let root = if embedded { Root::Resource } else { Root::Value };
        prune(&mut pruned, schema, root);
        if pruned != *default {
            errors.push(FieldError::invalid(path, default, "must not have unknown fields"));
        }
    }
    let found = checked(default, schema, position.resource, &path.to_string());
    errors.extend(found);
}

/// The first group of errors that there are any of: metadata, schema, rules.
fn checked(default: &Value, schema: Cursor<'_>, resource: bool, base: &str) -> Vec<FieldError> {
    let groups: [&dyn Fn() -> Vec<FieldError>; 4] = [
        &|| embedded_at(base, default, schema),
        &|| validate_at(base, default, schema),
        &|| rules::errors_at(base, default, Some(default), schema, resource),
        &|| rules::errors_at(base, default, None, schema, resource),
    ];
    groups.iter().map(|group| group()).find(|errors| !errors.is_empty()).unwrap_or_default()
}
