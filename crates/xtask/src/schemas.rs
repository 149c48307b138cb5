//! `OpenAPI` v3 documents → one JSON object of reduced definitions, sorted, one definition a line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use portolan_builtin::kinds::{KINDS, OTHER_DEFINITIONS};
use serde_json::{Map, Value, json};

/// Reads every document of the folder and reduces what the built-in kinds reach.
pub(crate) fn generate(folder: &Path) -> Result<String> {
    let all = definitions(folder)?;
    let mut open: Vec<&str> =
        KINDS.iter().map(|kind| kind.definition).chain(OTHER_DEFINITIONS.iter().copied()).collect();
    let mut reduced = BTreeMap::new();
    let mut names = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !names.insert(name) {
            continue;
        }
        let (name, definition) = all.get_key_value(name).ok_or_else(|| anyhow!("no document defines {name}"))?;
        references(definition, &mut open);
        reduced.insert(name, special(name).unwrap_or_else(|| reduce(definition)));
    }
    Ok(print(&reduced))
}

/// Definitions whose Go types read and write their own JSON: `OpenAPI` says less about them than decoding needs.
fn special(name: &str) -> Option<Value> {
    match name.rsplit('.').next()? {
        "Quantity" => Some(json!({"format": "quantity"})),
        "FieldsV1" | "RawExtension" => Some(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            Some(json!({"x-kubernetes-preserve-unknown-fields": true}))
        }
        _ => None,
    }
}

/// The schemas of all documents by name.
fn definitions(folder: &Path) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut document: Value =
            serde_json::from_slice(&text).with_context(|| format!("parsing {}", path.display()))?;
        if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas").map(Value::take) {
            all.extend(schemas);
        }
    }
    Ok(all)
}

/// Adds the names behind every `$ref` below a schema.
pub(crate) fn references<'a>(schema: &'a Value, names: &mut Vec<&'a str>) {
    match schema {
        Value::Object(object) => {
            if let Some(name) = object.get("$ref").and_then(Value::as_str) {
                names.push(last_segment(name));
            }
            object.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

fn last_segment(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

/// Keeps what validation, merging and ownership need. `allOf` of one reference becomes the reference.
fn reduce(schema: &Value) -> Value {
    let Some(object) = schema.as_object() else {
        return schema.clone();
    };
    let mut reduced = Map::new();
    for (key, value) in object {
        match key.as_str() {
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields: Map<String, Value> = fields.map(|(name, field)| (name.clone(), reduce(field))).collect();
                reduced.insert(key.clone(), Value::Object(fields));
            }
            "items" | "additionalProperties" => {
                reduced.insert(key.clone(), reduce(value));
            }
            "allOf" => {
                if let Some(reference) = value.pointer("/0/$ref").and_then(Value::as_str) {
                    reduced.insert("$ref".to_owned(), last_segment(reference).into());
                }
            }
            "$ref" => {
                reduced.insert(key.clone(), last_segment(value.as_str().unwrap_or_default()).into());
            }
            "type" | "format" | "required" | "default" => {
                reduced.insert(key.clone(), value.clone());
            }
            "x-kubernetes-group-version-kind" | "x-kubernetes-unions" => {}
            extension if extension.starts_with("x-kubernetes-") => {
                reduced.insert(key.clone(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(reduced)
}

/// One definition a line, so that a new Kubernetes version reads well in a diff.
fn print(definitions: &BTreeMap<&String, Value>) -> String {
    let lines: Vec<String> = definitions.iter().map(|(name, schema)| format!("{:?}:{schema}", name.as_str())).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_keeps_its_structure_and_loses_its_words() {
        let schema = json!({
            "description": "long text", "type": "object", "required": ["a"],
            "x-kubernetes-group-version-kind": [{"kind": "A"}],
            "properties": {
                "a": {"description": "more", "default": {}, "allOf": [{"$ref": "#/components/schemas/x.B"}]},
                "l": {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "set"},
            },
        });

        assert_eq!(
            reduce(&schema),
            json!({
                "type": "object", "required": ["a"],
                "properties": {
                    "a": {"$ref": "x.B", "default": {}},
                    "l": {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "set"},
                },
            })
        );
    }
}
