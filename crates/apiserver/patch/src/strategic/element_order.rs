//! `$setElementOrder/FIELD`: the list that it is about is merged and ordered, and is then done with.

use portolan_schema::Cursor;
use serde_json::Value;

use crate::strategic::Fields;
use crate::strategic::clean::{PATCH, is_directed, without_directives};
use crate::strategic::error::StrategicError;
use crate::strategic::field::Field;
use crate::strategic::list::{self, ListRole};
use crate::strategic::order::{interleave, key_of, partition};
use crate::strategic::print::print;
use crate::strategic::slots::Slots;

/// What the directive's key begins with.
pub(crate) const PREFIX: &str = "$setElementOrder";

/// Carries out every such directive of a patch.
pub(crate) fn carry_out(live: &mut Fields, patch: &mut Fields, schema: Cursor<'_>) -> Result<(), StrategicError> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(PREFIX)).cloned().collect();
    for key in keys {
        let order = patch.remove(&key).expect("the key is one of its keys");
        let Value::Array(order) = order else { return Err(StrategicError::not_a_list(&order)) };
        match key.split_once('/') {
            Some((PREFIX, name)) => set_order(live, patch, name, &order, schema)?,
            _ => return Err(StrategicError::ELEMENT_ORDER),
        }
    }
    Ok(())
}

fn set_order(
    live: &mut Fields,
    patch: &mut Fields,
    name: &str,
    order: &[Value],
    schema: Cursor<'_>,
) -> Result<(), StrategicError> {
    let live_list = live.get(name).map(list_in).transpose()?.cloned();
    let patch_list = patch.get(name).map(list_in).transpose()?.cloned();
    let field = Field::of_list(schema, name)?;
    let key = field.merge_key;
    check_order(patch_list.as_deref().unwrap_or_default(), order, key)?;
    let mut slots = Slots::new(live_list.clone().unwrap_or_default());
    let merged = match (live_list, &patch_list) {
        (None, None) => return Ok(()),
        (Some(live), None) => live,
        (None, Some(patch)) => patch.iter().filter_map(without_directives).collect(),
        (Some(_), Some(patch)) => list::merge(&mut slots, &mut patch.clone(), &field, ListRole::Merge)?,
    };
    let (named, others) = partition(merged, order, key)?;
    let items = list::item_type(slots.first_slots(), patch_list.as_deref().unwrap_or_default())?;
    let ordered = interleave(named, others, order, slots.first_slots(), key, items)?;
    live.insert(name.to_owned(), Value::Array(ordered));
    patch.remove(name);
    Ok(())
}

fn list_in(value: &Value) -> Result<&Vec<Value>, StrategicError> {
    value.as_array().ok_or_else(|| StrategicError::not_a_list(value))
}

/// Every item that the patch sets must stand in the order, and in that order.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), StrategicError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if !key.is_empty()
        && let Some(scalar) = patch.iter().find(|item| !item.is_object())
    {
        return Err(StrategicError::not_a_map(scalar));
    }
    let is_deletion = |item: &Value| !key.is_empty() && item.get(PATCH) == Some(&Value::from("delete"));
    let mut rest = order.iter();
    for item in patch.iter().filter(|item| !is_deletion(item)) {
        // With the order used up, other directives are missed in it, too.
        if is_directed(item) && !rest.as_slice().is_empty() {
            continue;
        }
        if !seek(&mut rest, item, key)? {
            let [patch, order] = [patch, order].map(|list| print(&list.into()));
            let why = format!("The order in patch list:\n{patch}\n doesn't match {PREFIX} list:\n{order}\n");
            return Err(StrategicError::Unforeseen(why));
        }
    }
    Ok(())
}

/// Moves behind the item; false where it does not come any more.
fn seek(rest: &mut std::slice::Iter<'_, Value>, item: &Value, key: &str) -> Result<bool, StrategicError> {
    for other in rest {
        if is_same(item, other, key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_same(item: &Value, other: &Value, key: &str) -> Result<bool, StrategicError> {
    if !key.is_empty() {
        // A map that is none is told before a key that is missing.
        for value in [item, other] {
            value.as_object().ok_or_else(|| StrategicError::not_a_map(value))?;
        }
        return Ok(key_of(item, key)? == key_of(other, key)?);
    }
    match (item, other) {
        // Go cannot compare these.
        (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) => Err(StrategicError::Incomparable),
        _ => Ok(item == other),
    }
}
