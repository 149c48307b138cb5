//! Selectable fields: paths to scalars outside `metadata`, eight at most.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::text;
use crate::field::{FieldError, Path};
use crate::json_path;
use crate::node::{Schema, Type};

const LIMIT: u64 = 8;

pub(super) fn validate(fields: &[Value], schema: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Ok(schema) = Schema::parse(schema) else { return };
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let item = path.index(index);
        let path = item.field("jsonPath");
        let json_path = text(field.get("jsonPath"));
        if json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if let Some(name) = one(json_path, &schema, &path, errors)
            && !seen.insert(name)
        {
            errors.push(FieldError::duplicate(&path, &json!(json_path)));
        }
    }
    if seen.len() as u64 > LIMIT {
        errors.push(FieldError::too_many(path, seen.len(), LIMIT));
    }
}

fn one(json_path: &str, schema: &Schema, path: &Path<'_>, errors: &mut Vec<FieldError>) -> Option<String> {
    let found = if json_path.contains('[') {
        Err("array notation is not allowed".to_owned())
    } else {
        json_path::resolve(json_path, schema.root())
    };
    match found {
        Err(why) => {
            errors.push(FieldError::invalid(path, &json!(json_path), format!("is an invalid path: {why}")));
            None
        }
        Ok((name, place)) => {
            if name == "metadata" || name.starts_with("metadata.") {
                errors.push(FieldError::invalid(path, &json!(json_path), "must not point to fields in metadata"));
            }
            if !matches!(place.node().type_, Some(Type::String | Type::Boolean | Type::Integer)) {
                let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
                errors.push(FieldError::invalid(path, &json!(json_path), detail));
            }
            Some(name)
        }
    }
}
