//! The paths of the scale subresource.

use serde_json::{Value, json};

use super::columns::simple_path;
use super::text;
use crate::field::{FieldError, Path};

pub(super) fn validate(subresources: Option<&Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.and_then(|s| s.get("scale")).filter(|scale| !scale.is_null()) else {
        return;
    };
    required(scale, "specReplicasPath", ".spec", path, errors);
    required(scale, "statusReplicasPath", ".status", path, errors);
    let selector = text(scale.get("labelSelectorPath"));
    let path = path.field("scale");
    let path = path.field("labelSelectorPath");
    if !selector.is_empty()
        && simple_path(selector, &path, errors)
        && !selector.starts_with(".spec.")
        && !selector.starts_with(".status.")
    {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid(&path, &json!(selector), detail));
    }
}

fn required(scale: &Value, name: &str, under: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let (scale_path, json_path) = (path.field("scale"), text(scale.get(name)));
    let path = scale_path.field(name);
    if json_path.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else if simple_path(json_path, &path, errors) && !json_path.starts_with(&format!("{under}.")) {
        errors.push(FieldError::invalid(&path, &json!(json_path), format!("should be a json path under {under}")));
    }
}
