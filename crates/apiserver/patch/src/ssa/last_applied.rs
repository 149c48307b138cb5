//! Objects that `kubectl apply` wrote on the client's side: their annotation says what it applied last, so that
//! `kubectl apply --server-side` takes these fields over without a conflict.

use serde_json::{Map, Value};

use crate::ssa::Context;
use crate::ssa::error::Conflict;
use crate::ssa::scalar;
use crate::ssa::set::FieldSet;
use crate::ssa::typed::{self, Duplicates, Shape, ValueSide};
use crate::ssa::update;

/// The only manager that is looked after so.
pub(crate) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// The conflicts that are not about fields which the client applied last and which are still as it left them.
pub(crate) fn unresolved(conflicts: Vec<Conflict>, live: &Value, context: &Context<'_>) -> Vec<Conflict> {
    match own_fields(live, context) {
        Some(own) => conflicts.into_iter().filter(|conflict| !own.contains(&conflict.path)).collect(),
        None => conflicts,
    }
}

fn own_fields(live: &Value, context: &Context<'_>) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion")?.as_str()? != context.api_version {
        return None;
    }
    let shape = Shape::resource(context.schema);
    let live = update::bare(live, context.schema);
    typed::validate(&live, shape, Duplicates::Refused).ok()?;
    typed::validate(&last, shape, Duplicates::Refused).ok()?;
    let changes = typed::compare(&last, &live, shape, ValueSide::Json);
    let changed = changes.modified.union(&changes.added).union(&changes.removed);
    Some(typed::field_set(&last, shape).difference(&changed))
}

/// Keeps the annotation in step with what was applied now, where the object has one.
pub(crate) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let text = configuration_text(config);
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    if bytes(annotations) > MAX_ANNOTATIONS_BYTES {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

fn configuration_text(config: &Value) -> String {
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let mut text = String::new();
    scalar::write_json(&config, &mut text);
    text.push('\n');
    text
}

fn bytes(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum()
}
