//! Objects → the rows that `kubectl get` prints.

use jiff::Timestamp;
use portolan_schema::crd::Column;
use serde_json::{Value, json};

use crate::jsonpath::JsonPath;
use crate::object;
use crate::registry::{Resource, RuleSource};
use crate::request::Query;
use crate::status::ApiError;

const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, although \
    some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily \
    intended for creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// What each row carries beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    pub(crate) fn of(query: &Query) -> Self {
        match query.get("includeObject") {
            "None" => Self::None,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }

    /// Refuses what it does not know.
    pub(crate) fn check(query: &Query) -> Result<(), ApiError> {
        match query.get("includeObject") {
            "" | "None" | "Object" | "Metadata" => Ok(()),
            other => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', \
                 'Object', 'None', or empty"
            ))),
        }
    }
}

/// A `Table` of objects.
pub(crate) fn table(
    resource: &Resource,
    objects: &[Value],
    metadata: Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let rows: Vec<Value> = objects.iter().map(|object| row(resource, object, include, now)).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns(resource), "rows": rows,
    })
}

fn row(resource: &Resource, object: &Value, include: Include, now: Timestamp) -> Value {
    let mut row = json!({"cells": cells(resource, object, now)});
    match include {
        Include::None => {}
        Include::Metadata => row["object"] = crate::answer::partial(object),
        Include::Object => row["object"] = object.clone(),
    }
    if include == Include::None {
        row["object"] = Value::Null;
    }
    if let Some(conditions) = resource.builtin_kind().and_then(|kind| portolan_builtin::row_conditions(kind, object)) {
        row["conditions"] = conditions;
    }
    row
}

fn columns(resource: &Resource) -> Vec<Value> {
    match &resource.source {
        RuleSource::Builtin(kind) => portolan_builtin::columns(kind)
            .iter()
            .map(|c| json!({"name": c.name, "type": c.type_, "format": c.format, "description": c.description, "priority": c.priority}))
            .collect(),
        RuleSource::Custom(custom) => {
            let name = json!({
                "name": "Name", "type": "string", "format": "name", "priority": 0,
                "description": NAME_DESCRIPTION,
            });
            let own = custom.columns.iter().map(|c| {
                json!({"name": c.name, "type": c.type_, "format": c.format, "description": c.description, "priority": c.priority})
            });
            std::iter::once(name).chain(own).collect()
        }
    }
}

fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    match &resource.source {
        RuleSource::Builtin(kind) => portolan_builtin::cells(kind, object, now),
        RuleSource::Custom(custom) => {
            let own = custom.columns.iter().map(|column| custom_cell(column, object, now));
            std::iter::once(json!(object::name(object))).chain(own).collect()
        }
    }
}

/// A CRD's column of one object; null where the path finds nothing or another type.
fn custom_cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let Some(path) = JsonPath::parse(&column.json_path) else {
        return Value::Null;
    };
    let found = path.find(object);
    let Some(first) = found.first().filter(|v| !v.is_null()) else {
        return Value::Null;
    };
    match (column.type_.as_str(), first) {
        ("integer", Value::Number(number)) => {
            number.as_i64().map_or_else(|| number.as_f64().map_or(Value::Null, |n| json!(n.trunc())), |n| json!(n))
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => (*first).clone(),
        ("date", Value::String(time)) => match time.parse::<Timestamp>() {
            Ok(time) => json!(portolan_builtin::human_duration(now.as_second() - time.as_second())),
            Err(_) => json!("<invalid>"),
        },
        ("string", _) => {
            let texts: Vec<String> = found.iter().map(|v| shown(v)).collect();
            json!(texts.join(" "))
        }
        _ => Value::Null,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
