//! Two values → what differs, in a stable order.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One field on which two JSON values differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldDiff {
    /// Where, as `data.priority` or `ingress[2].service`; empty for the value itself.
    pub path: String,
    /// What is there; none where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What comes; none where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// The fields on which two JSON values differ, in the order of their paths. Objects are compared name by name, lists
/// place by place; a value that exists on one side only is one difference, however deep it is.
pub fn field_diff(before: &Value, after: &Value) -> Vec<FieldDiff> {
    let mut differences = Vec::new();
    collect("", Some(before), Some(after), &mut differences);
    differences
}

fn collect(path: &str, before: Option<&Value>, after: Option<&Value>, into: &mut Vec<FieldDiff>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                collect(&field_path(path, name), before.get(name), after.get(name), into);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for place in 0..before.len().max(after.len()) {
                collect(&format!("{path}[{place}]"), before.get(place), after.get(place), into);
            }
        }
        (before, after) => {
            into.push(FieldDiff { path: path.to_owned(), before: before.cloned(), after: after.cloned() });
        }
    }
}

/// The path of a field of the object at `path`.
pub(crate) fn field_path(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    match (plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, _) => format!("{path}[{name:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::btree_map, prelude::*};
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_named_by_their_path() {
        let before = json!({ "content": "1.2.3.4", "data": { "priority": 1, "target": "a" }, "tags": ["x"] });
        let after =
            json!({ "content": "5.6.7.8", "data": { "priority": 2, "target": "a" }, "tags": ["x", "y"], "ttl": 1 });
        let show = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);

        let lines: Vec<String> = field_diff(&before, &after)
            .iter()
            .map(|field| format!("{} {} {}", field.path, show(&field.before), show(&field.after)))
            .collect();

        assert_eq!(lines, [r#"content "1.2.3.4" "5.6.7.8""#, "data.priority 1 2", r#"tags[1] - "y""#, "ttl - 1"]);
    }

    #[test]
    fn names_that_would_be_misread_are_quoted() {
        assert_eq!(field_diff(&json!({}), &json!({ "a.b": 1 }))[0].path, r#"["a.b"]"#);
        assert_eq!(field_diff(&json!({ "x": {} }), &json!({ "x": { "": 1 } }))[0].path, r#"x[""]"#);
    }

    #[test]
    fn a_null_is_not_the_same_as_nothing() {
        assert_eq!(field_diff(&json!({ "a": null }), &json!({})).len(), 1);
    }

    proptest! {
        #[test]
        fn values_differ_exactly_when_a_field_does(
            a in btree_map("[ab.]{1,2}", 0u8..2, 0..4),
            b in btree_map("[ab.]{1,2}", 0u8..2, 0..4),
        ) {
            let (a, b) = (json!({ "x": a }), json!({ "x": b }));

            prop_assert_eq!(field_diff(&a, &b).is_empty(), a == b);
        }
    }
}
