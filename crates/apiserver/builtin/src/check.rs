//! Checks that many kinds share: numbers, enumerations, addresses, percentages and label selectors.

use portolan_schema::{ErrorKind, FieldError, Path};
use serde_json::{Value, json};

use crate::meta::{invalid, validate_labels};
use crate::names;
use crate::value::{entries, is_empty, list, text, texts};

/// Errors on the way through an object.
pub(crate) type Errors = Vec<FieldError>;

const NEGATIVE: &str = "must be greater than or equal to 0";
pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// A number may not be below zero; absent is fine.
pub(crate) fn not_negative(errors: &mut Errors, object: &Value, field: &str, path: &Path<'_>) {
    if let Some(value) = object.get(field)
        && value.as_i64().is_some_and(|number| number < 0)
    {
        errors.push(FieldError::invalid(&path.field(field), value, NEGATIVE));
    }
}

/// A string field must be one of these; absent is fine.
pub(crate) fn one_of(errors: &mut Errors, object: &Value, field: &str, supported: &[&str], path: &Path<'_>) {
    if let Some(value) = object[field].as_str().filter(|value| !supported.contains(value)) {
        errors.push(FieldError::not_supported(&path.field(field), &json!(value), supported));
    }
}

/// A string or object field must be there.
pub(crate) fn required(errors: &mut Errors, object: &Value, field: &str, path: &Path<'_>) -> bool {
    let absent = is_empty(&object[field]);
    if absent {
        errors.push(FieldError::required(&path.field(field), ""));
    }
    !absent
}

/// A field may not change.
pub(crate) fn same(errors: &mut Errors, new: &Value, old: &Value, field: &str, path: &Path<'_>) {
    let (new, old) = (&new[field], &old[field]);
    if new != old && !(is_empty(new) && is_empty(old)) {
        errors.push(FieldError::invalid(&path.field(field), new, "field is immutable"));
    }
}

/// An error that shows a label selector, whose labels come first.
pub(crate) fn showing_selector(error: FieldError, selector: &Value) -> FieldError {
    let given = ["matchLabels", "matchExpressions"].into_iter().filter(|field| !is_empty(&selector[*field]));
    let fields: Vec<(&str, &Value)> = given.map(|field| (field, &selector[field])).collect();
    if selector.is_null() { error } else { showing(error, &fields) }
}

/// An error that shows a struct as Go does, its fields in the given order.
pub(crate) fn showing(mut error: FieldError, fields: &[(&str, &Value)]) -> FieldError {
    error.value = Some(ordered(fields));
    error
}

/// JSON of an object with its fields in the given order.
pub(crate) fn ordered(fields: &[(&str, &Value)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// `Not found`.
pub(crate) fn not_found(path: &Path<'_>, value: &str) -> FieldError {
    FieldError::with_value(ErrorKind::NotFound, path, &json!(value), "")
}

/// A port's number.
pub(crate) fn port(errors: &mut Errors, number: i64, path: &Path<'_>) {
    if let Some(problem) = names::port_number(number) {
        errors.push(FieldError::invalid(path, &json!(number), problem));
    }
}

/// A port's number or name.
pub(crate) fn port_or_name(errors: &mut Errors, value: &Value, path: &Path<'_>) {
    match value {
        Value::String(name) => invalid(errors, path, name, names::port_name(name)),
        value => port(errors, value.as_i64().unwrap_or(0), path),
    }
}

/// A count that is not negative, or a percentage.
pub(crate) fn count_or_percent(errors: &mut Errors, value: &Value, path: &Path<'_>) {
    match value {
        Value::String(percent) if percent_of(percent).is_none() => {
            let words = "a valid percent string must be a numeric string followed by an ending '%'";
            let detail = names::pattern(words, "[0-9]+%", &["1%", "93%"]);
            errors.push(FieldError::invalid(path, value, detail));
        }
        value if value.as_i64().is_some_and(|count| count < 0) => {
            errors.push(FieldError::invalid(path, value, NEGATIVE));
        }
        _ => {}
    }
}

/// A percentage may not be over 100.
pub(crate) fn at_most_all(errors: &mut Errors, value: &Value, path: &Path<'_>) {
    if value.as_str().and_then(percent_of).is_some_and(|percent| percent > 100) {
        errors.push(FieldError::invalid(path, value, "must not be greater than 100%"));
    }
}

fn percent_of(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// A label selector's keys, operators and values.
pub(crate) fn label_selector(errors: &mut Errors, selector: &Value, path: &Path<'_>) {
    errors.extend(validate_labels(&selector["matchLabels"], &path.field("matchLabels")));
    let path = path.field("matchExpressions");
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        requirement(errors, expression, &path.index(index));
    }
}

fn requirement(errors: &mut Errors, expression: &Value, path: &Path<'_>) {
    let values = texts(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&path.field("values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&path.field("values"), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.field("operator"), &json!(other), detail));
        }
    }
    let key = text(expression, "key");
    invalid(errors, &path.field("key"), key, names::qualified_name(key));
    for (index, value) in values.iter().enumerate() {
        invalid(errors, &path.field("values").index(index), value, names::label_value(value));
    }
}

/// Whether a label selector can be read.
pub(crate) fn selector_is_valid(selector: &Value) -> bool {
    let mut errors = Vec::new();
    label_selector(&mut errors, selector, &Path::root());
    errors.is_empty()
}

/// Whether labels match a selector. An absent selector matches nothing, an empty one everything.
pub fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let exact = entries(&selector["matchLabels"]).all(|(key, value)| labels.get(key) == Some(value));
    exact && list(selector, "matchExpressions").iter().all(|expression| holds(expression, labels))
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let label = labels.get(text(expression, "key")).and_then(Value::as_str);
    let listed = label.is_some_and(|label| texts(expression, "values").contains(&label));
    match text(expression, "operator") {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

/// Whether a selector says nothing.
pub(crate) fn selector_is_empty(selector: &Value) -> bool {
    is_empty(&selector["matchLabels"]) && is_empty(&selector["matchExpressions"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_by_labels_and_expressions() {
        let labels = json!({"app": "a"});

        assert!(selects(&json!({"matchLabels": {"app": "a"}}), &labels));
        assert!(selects(&json!({}), &labels));
        assert!(!selects(&json!(null), &labels));
        assert!(!selects(&json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), &labels));
        assert!(selects(&json!({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["y"]}]}), &labels));
    }
}
