//! Selectors in access reviews: what is wrong with them, and what is ignored because it cannot be read.
//!
//! Roles do not look at selectors, so that these are the only effects they have.

use portolan_schema::names::{label_value, qualified_name};
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::selector::{FieldSelector, LabelSelector};

/// What is wrong with the selectors of `resourceAttributes`.
pub(super) fn wrong(attributes: &Value) -> Vec<FieldError> {
    let root = Path::root();
    let spec = root.field("spec");
    let path = spec.field("resourceAttributes");
    let mut errors = Vec::new();
    for kind in ["fieldSelector", "labelSelector"] {
        if attributes[kind].is_object() {
            wrong_selector(&attributes[kind], kind, &path.field(kind), &mut errors);
        }
    }
    errors
}

fn wrong_selector(selector: &Value, kind: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let requirements = list(selector, "requirements");
    if !raw.is_empty() && !requirements.is_empty() {
        let detail = "may not specified at the same time as requirements";
        errors.push(FieldError::invalid(&path.field("rawSelector"), &json!(raw), detail));
    }
    if raw.is_empty() && requirements.is_empty() {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(FieldError::required(&path.field("requirements"), detail));
    }
    let items = path.field("requirements");
    for (index, requirement) in requirements.iter().enumerate() {
        wrong_requirement(requirement, kind, &items.index(index), errors);
    }
}

fn wrong_requirement(requirement: &Value, kind: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let key = requirement["key"].as_str().unwrap_or_default();
    let values = list(requirement, "values");
    if kind == "fieldSelector" && key.is_empty() {
        errors.push(FieldError::required(&path.field("key"), "must be specified"));
    }
    match requirement["operator"].as_str().unwrap_or_default() {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&path.field("values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&path.field("values"), detail));
        }
        _ => {}
    }
    if kind == "labelSelector" {
        let wrong_key = qualified_name(key);
        errors
            .extend(wrong_key.iter().map(|error| FieldError::invalid(&path.field("key"), &json!(key), error.as_str())));
        for (index, value) in values.iter().enumerate() {
            let (items, text) = (path.field("values"), value.as_str().unwrap_or_default());
            let wrong = label_value(text);
            errors.extend(wrong.iter().map(|error| FieldError::invalid(&items.index(index), value, error.as_str())));
        }
    }
}

/// The sentence about selectors that could not be read; empty where all could.
pub(super) fn ignored(attributes: &Value) -> String {
    let raw = |kind: &str| attributes[kind]["rawSelector"].as_str().unwrap_or_default();
    let field =
        unread(&attributes["fieldSelector"], FieldSelector::parse(raw("fieldSelector")).is_ok(), field_readable);
    let label =
        unread(&attributes["labelSelector"], LabelSelector::parse(raw("labelSelector")).is_ok(), |requirement| {
            matches!(requirement["operator"].as_str(), Some("In" | "NotIn" | "Exists" | "DoesNotExist"))
        });
    let sentence = |kind: &str, how: &str| format!("spec.resourceAttributes.{kind} {how} due to parse error");
    let sentences = [field.map(|how| sentence("fieldSelector", how)), label.map(|how| sentence("labelSelector", how))];
    sentences.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn unread(selector: &Value, raw_is_read: bool, readable: impl Fn(&Value) -> bool) -> Option<&'static str> {
    let requirements = list(selector, "requirements");
    if requirements.is_empty() {
        return (!raw_is_read).then_some("ignored");
    }
    let read = requirements.iter().filter(|requirement| readable(requirement)).count();
    match read {
        all if all == requirements.len() => None,
        0 => Some("ignored"),
        _ => Some("partially ignored"),
    }
}

fn field_readable(requirement: &Value) -> bool {
    matches!(requirement["operator"].as_str(), Some("In" | "NotIn")) && list(requirement, "values").len() == 1
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_said() {
        let attributes = json!({
            "fieldSelector": {"rawSelector": "a=b,,c"},
            "labelSelector": {"requirements": [{"key": "a", "operator": "Foo"}, {"key": "b", "operator": "Exists"}]},
        });

        assert_eq!(
            ignored(&attributes),
            "spec.resourceAttributes.fieldSelector ignored due to parse error; \
             spec.resourceAttributes.labelSelector partially ignored due to parse error"
        );
        assert_eq!(ignored(&json!({})), "");
    }

    #[test]
    fn a_selector_needs_exactly_one_form() {
        assert_eq!(wrong(&json!({"fieldSelector": {}})).len(), 1);
        assert_eq!(wrong(&json!({"fieldSelector": {"rawSelector": "a=b"}})).len(), 0);
        let both = json!({"labelSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "In"}]}});
        assert_eq!(wrong(&both).len(), 2);
    }
}
