//! `LimitRange` and `ResourceQuota`.

use serde_json::{Map, Value};

use crate::value::{existing, list_mut, text};

/// Defaults of container limits follow from maximum and minimum.
pub(crate) fn limit_range_defaults(range: &mut Value) {
    let Some(spec) = existing(range, "spec") else { return };
    for item in list_mut(spec, "limits") {
        if text(item, "type") != "Container" {
            continue;
        }
        fill(item, "default", "max");
        fill(item, "defaultRequest", "default");
        fill(item, "defaultRequest", "min");
    }
}

fn fill(item: &mut Value, to: &str, from: &str) {
    let Some(values) = item.get(from).and_then(Value::as_object).cloned() else {
        return;
    };
    let slot = &mut item[to];
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    let Some(target) = slot.as_object_mut() else { return };
    for (name, value) in values {
        target.entry(name).or_insert(value);
    }
}
