//! A live map and a patch of it → the merged map.

use std::mem;

use portolan_schema::Cursor;
use serde_json::Value;

use crate::strategic::Fields;
use crate::strategic::clean::{PATCH, discard_nulls, without_directives};
use crate::strategic::element_order;
use crate::strategic::error::StrategicError;
use crate::strategic::field::{Field, Strategy};
use crate::strategic::list::{self, ListRole};
use crate::strategic::print::type_name;
use crate::strategic::slots::Slots;

const RETAIN_KEYS: &str = "$retainKeys";
const DELETION_LIST: &str = "$deleteFromPrimitiveList";

/// Merges a patch into a map. Directives that were carried out are gone from the patch afterwards.
pub(crate) fn merge(mut live: Fields, patch: &mut Fields, schema: Cursor<'_>) -> Result<Fields, StrategicError> {
    if let Some(directive) = patch.get(PATCH).cloned() {
        return directed(&directive, patch);
    }
    retain_keys(&mut live, patch)?;
    element_order::carry_out(&mut live, patch, schema)?;
    let names: Vec<String> = patch.keys().cloned().collect();
    for name in names {
        let (target, role) = target(&name)?;
        let value = patch.get_mut(&name).expect("the name is one of its keys");
        merge_field(&mut live, target, value, role, schema)?;
    }
    Ok(live)
}

/// A map that `$patch` speaks of: it is not merged.
fn directed(directive: &Value, patch: &mut Fields) -> Result<Fields, StrategicError> {
    match directive.as_str() {
        Some("replace") => {
            patch.remove(PATCH);
            Ok(patch.clone())
        }
        Some("delete") => Ok(Fields::new()),
        _ => Err(StrategicError::unknown_directive(directive, patch)),
    }
}

/// Carries out `$retainKeys`: what it does not name goes, and the patch may set only what it names.
fn retain_keys(live: &mut Fields, patch: &mut Fields) -> Result<(), StrategicError> {
    let Some(names) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let names = names.as_array().ok_or(StrategicError::RETAIN_KEYS)?;
    // The real server panics on these, and its answer breaks off.
    if names.iter().any(|name| name.is_array() || name.is_object()) {
        return Err(StrategicError::RETAIN_KEYS);
    }
    let named = |name: &str| names.iter().any(|n| n.as_str() == Some(name));
    let is_directive = |name: &str| name.starts_with(DELETION_LIST) || name.starts_with(element_order::PREFIX);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !named(name)) {
        return Err(StrategicError::RETAIN_KEYS);
    }
    live.retain(|name, _| named(name));
    Ok(())
}

/// The field that a key of a patch is about.
fn target(key: &str) -> Result<(&str, ListRole), StrategicError> {
    if !key.starts_with(DELETION_LIST) {
        return Ok((key, ListRole::Merge));
    }
    match key.split_once('/') {
        Some((DELETION_LIST, "")) => Ok((key, ListRole::Delete)),
        Some((DELETION_LIST, name)) => Ok((name, ListRole::Delete)),
        _ => Err(StrategicError::DELETION_LIST),
    }
}

fn merge_field(
    live: &mut Fields,
    name: &str,
    patch: &mut Value,
    role: ListRole,
    schema: Cursor<'_>,
) -> Result<(), StrategicError> {
    if patch.is_null() {
        live.remove(name);
        return Ok(());
    }
    match (live.get_mut(name), patch) {
        (Some(Value::Object(live)), Value::Object(patch)) => {
            let field = Field::of_map(schema, name)?;
            *live = match field.strategy {
                Strategy::Replace => patch.clone(),
                Strategy::Merge | Strategy::Unset => merge(mem::take(live), patch, field.schema)?,
            };
        }
        (Some(Value::Array(live)), Value::Array(patch)) => {
            let field = Field::of_list(schema, name)?;
            *live = list::merge(&mut Slots::new(mem::take(live)), patch, &field, role)?;
        }
        // A deletion list that holds a scalar is taken for the scalar.
        (Some(live), patch) if type_name(live) == type_name(patch) => *live = patch.clone(),
        (_, patch) => {
            if role == ListRole::Merge {
                put(live, name, patch);
            }
        }
    }
    Ok(())
}

/// Sets what the live map does not have, or has with another type.
fn put(live: &mut Fields, name: &str, patch: &mut Value) {
    discard_nulls(patch);
    match without_directives(patch) {
        Some(value) => live.insert(name.to_owned(), value),
        None => live.remove(name),
    };
}
