//! Printer columns.

use serde_json::{Value, json};

use super::text;
use crate::field::{FieldError, Path};

const TYPES: &str = "boolean,date,integer,number,string";
const FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";

pub(super) fn validate(columns: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for (index, column) in columns.iter().enumerate() {
        one(column, &path.index(index), errors);
    }
}

fn one(column: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if text(column.get("name")).is_empty() {
        errors.push(FieldError::required(&path.field("name"), ""));
    }
    let type_ = text(column.get("type"));
    if type_.is_empty() {
        errors.push(FieldError::required(&path.field("type"), format!("must be one of {TYPES}")));
    } else if !TYPES.split(',').any(|known| known == type_) {
        errors.push(FieldError::invalid(&path.field("type"), &json!(type_), format!("must be one of {TYPES}")));
    }
    let format = text(column.get("format"));
    if !format.is_empty() && !FORMATS.split(',').any(|known| known == format) {
        errors.push(FieldError::invalid(&path.field("format"), &json!(format), format!("must be one of {FORMATS}")));
    }
    let json_path = text(column.get("jsonPath"));
    if json_path.is_empty() {
        errors.push(FieldError::required(&path.field("JSONPath"), ""));
    } else {
        simple_path(json_path, &path.field("JSONPath"), errors);
    }
}

/// A path begins with a dot; tells whether it does.
pub(super) fn simple_path(json_path: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) -> bool {
    let good = json_path.starts_with('.');
    if !good {
        errors.push(FieldError::invalid(path, &json!(json_path), "must be a simple json path starting with ."));
    }
    good
}
