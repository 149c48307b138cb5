//! An object and its schema → the object without the fields that the schema does not know, and their paths.
//!
//! `additionalProperties: true` keeps scalars only, and a preserved object's known properties are pruned again: both
//! are what kube-apiserver does. Definitions of built-in kinds know their `metadata`; a CRD's schema does not, so
//! [`object_meta`] stands in.

use serde_json::{Map, Value};

use crate::field::Path;
use crate::node::{Cursor, Node};
use crate::object_meta;

/// What the pruned value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// A whole object: `apiVersion`, `kind` and `metadata` stay.
    Resource,
    /// Any other value.
    Value,
}

/// Drops unknown fields and returns their paths (`spec.list[0].x`): those of the metadata first, then the object's,
/// then those of embedded resources' metadata; each group sorted.
pub fn prune(value: &mut Value, schema: Cursor<'_>, root: Root) -> Vec<String> {
    let mut unknown = Vec::new();
    if root == Root::Resource
        && schema.is_custom()
        && let Some(metadata) = value.get_mut("metadata")
    {
        object_meta::coerce(metadata, &Path::root().field("metadata"), &mut unknown);
        unknown.sort_unstable();
    }
    let mut pruned = Vec::new();
    Pruner { unknown: &mut pruned }.object_or_list(value, Some(schema), root == Root::Resource, &Path::root());
    pruned.sort_unstable();
    unknown.append(&mut pruned);
    if schema.is_custom() {
        object_meta::coerce_embedded(value, schema, &Path::root(), &mut pruned);
        pruned.sort_unstable();
        unknown.append(&mut pruned);
    }
    unknown
}

/// The fields that every object has.
pub(crate) fn is_meta_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

struct Pruner<'o> {
    unknown: &'o mut Vec<String>,
}

impl Pruner<'_> {
    fn object_or_list(&mut self, value: &mut Value, schema: Option<Cursor<'_>>, resource: bool, path: &Path<'_>) {
        match value {
            Value::Object(object) => match schema {
                Some(schema) => self.object(object, schema, resource, path),
                None => self.drop_all(object, path),
            },
            Value::Array(items) => self.items(items, schema, path),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&mut self, object: &mut Map<String, Value>, schema: Cursor<'_>, resource: bool, path: &Path<'_>) {
        let node = schema.node();
        let keeps_unknown = node.preserve_unknown || is_opaque(schema);
        let keeps_meta = (resource || node.embedded_resource) && schema.is_custom();
        let mut dropped = Vec::new();
        for (name, value) in object.iter_mut() {
            if keeps_meta && is_meta_field(name) {
                continue;
            }
            if let Some(child) = schema.property(name) {
                self.object_or_list(value, Some(child), false, &path.field(name));
            } else if node.has_additional() {
                self.object_or_list(value, schema.values(), false, &path.field(name));
            } else if !keeps_unknown {
                dropped.push(name.clone());
            }
        }
        for name in dropped {
            self.drop_field(object, &name, path);
        }
    }

    fn drop_field(&mut self, object: &mut Map<String, Value>, name: &str, path: &Path<'_>) {
        if !is_meta_field(name) || !path.is_root() {
            self.unknown.push(path.field(name).to_string());
        }
        object.remove(name);
    }

    fn drop_all(&mut self, object: &mut Map<String, Value>, path: &Path<'_>) {
        self.unknown.extend(object.keys().map(|name| path.field(name).to_string()));
        object.clear();
    }

    fn items(&mut self, items: &mut [Value], schema: Option<Cursor<'_>>, path: &Path<'_>) {
        let preserved = schema.is_some_and(|s| s.node().preserve_unknown || is_opaque(s));
        let item_schema = schema.and_then(Cursor::items);
        for (index, item) in items.iter_mut().enumerate() {
            let path = path.index(index);
            match (preserved, item_schema) {
                (false, _) => self.object_or_list(item, item_schema, false, &path),
                (true, Some(schema)) => self.preserved_item(item, schema, &path),
                (true, None) => {}
            }
        }
    }

    /// An item of a preserved list: unknown fields stay, known ones are pruned.
    fn preserved_item(&mut self, item: &mut Value, schema: Cursor<'_>, path: &Path<'_>) {
        match item {
            Value::Object(object) => {
                for (name, value) in object.iter_mut() {
                    if schema.node().embedded_resource && is_meta_field(name) {
                        continue;
                    }
                    if let Some(child) = schema.property(name) {
                        self.object_or_list(value, Some(child), false, &path.field(name));
                    } else if schema.node().has_additional() {
                        self.object_or_list(value, schema.values(), false, &path.field(name));
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.items() else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.preserved_item(item, schema, &path.index(index));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// A built-in object without any described field holds free JSON, such as a raw extension.
fn is_opaque(schema: Cursor<'_>) -> bool {
    let Node { properties, items, .. } = schema.node();
    !schema.is_custom() && properties.is_empty() && !schema.node().has_additional() && items.is_none()
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "tests read better with literals")]
mod tests;
