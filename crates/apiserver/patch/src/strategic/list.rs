//! A live list and a patch of it → the merged list.

use std::mem;

use serde_json::Value;

use crate::strategic::clean::{PATCH, is_directed};
use crate::strategic::error::StrategicError;
use crate::strategic::field::{Field, Strategy};
use crate::strategic::map;
use crate::strategic::order::{Items, arrange};
use crate::strategic::print::{print, type_name};
use crate::strategic::slots::Slots;

/// What a list in a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListRole {
    /// Its items are wanted.
    Merge,
    /// Its items are unwanted.
    Delete,
}

/// Merges a patch into a list, or takes the patch for the list where its items are not merged.
pub(crate) fn merge(
    live: &mut Slots,
    patch: &mut [Value],
    field: &Field<'_>,
    role: ListRole,
) -> Result<Vec<Value>, StrategicError> {
    if field.strategy != Strategy::Merge && role == ListRole::Merge {
        return Ok(patch.to_vec());
    }
    if live.items().is_empty() && patch.is_empty() {
        return Ok(Vec::new());
    }
    match (item_type(live.items(), patch)?, role) {
        (Items::Maps, _) => merge_maps(live, patch, field),
        (Items::Scalars, ListRole::Delete) => {
            Ok(live.items().iter().filter(|item| !patch.contains(item)).cloned().collect())
        }
        (Items::Scalars, ListRole::Merge) => {
            let mut both: Vec<Value> = Vec::new();
            for item in live.items().iter().chain(patch.iter()) {
                if !both.contains(item) {
                    both.push(item.clone());
                }
            }
            arrange(both, patch, live.items(), field.merge_key, Items::Scalars)
        }
    }
}

/// What two lists hold: all of one type, but no lists.
pub(crate) fn item_type(live: &[Value], patch: &[Value]) -> Result<Items, StrategicError> {
    let mut all = live.iter().chain(patch);
    let first = match all.next() {
        None => {
            return Err(StrategicError::Unforeseen("no elements in any of the given slices".to_owned()));
        }
        Some(Value::Null) => return Err(StrategicError::Incomparable),
        Some(Value::Array(_)) => return Err(StrategicError::ListOfLists),
        Some(first) => first,
    };
    if all.any(|item| type_name(item) != type_name(first)) {
        let lists = print(&Value::Array(vec![live.into(), patch.into()]));
        return Err(StrategicError::Unforeseen(format!("list element types are not identical: {lists}")));
    }
    Ok(if first.is_object() { Items::Maps } else { Items::Scalars })
}

fn merge_maps(live: &mut Slots, patch: &mut [Value], field: &Field<'_>) -> Result<Vec<Value>, StrategicError> {
    let key = field.merge_key;
    if key.is_empty() {
        let kind = field.item_kind();
        return Err(StrategicError::Unforeseen(format!("cannot merge lists without merge key for {kind}")));
    }
    let plain = |patch: &[Value]| -> Vec<Value> { patch.iter().filter(|item| !is_directed(item)).cloned().collect() };
    if carry_out_directives(live, patch, key)? == Rest::Replaces {
        let items = plain(patch);
        return arrange(items.clone(), &[], &items, key, Items::Maps);
    }
    let live_order = live.items().to_vec();
    for item in patch.iter_mut().filter(|item| !is_directed(item)) {
        merge_item(live, item, field)?;
    }
    arrange(live.items().to_vec(), &plain(patch), &live_order, key, Items::Maps)
}

/// What the items without directives are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Changes and additions.
    Merges,
    /// The whole list.
    Replaces,
}

/// Carries out the items with `$patch`.
fn carry_out_directives(live: &mut Slots, patch: &[Value], key: &str) -> Result<Rest, StrategicError> {
    let mut rest = Rest::Merges;
    for item in patch.iter().filter_map(Value::as_object) {
        let Some(directive) = item.get(PATCH) else { continue };
        match directive.as_str() {
            Some("delete") => {
                let value = item.get(key).ok_or_else(|| StrategicError::no_merge_key(item, key))?;
                while let Some(at) = position(live, key, value) {
                    live.remove(at);
                }
            }
            Some("replace") => rest = Rest::Replaces,
            Some("merge") => {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Unforeseen(why.to_owned()));
            }
            _ => return Err(StrategicError::unknown_directive(directive, item)),
        }
    }
    Ok(rest)
}

fn merge_item(live: &mut Slots, item: &mut Value, field: &Field<'_>) -> Result<(), StrategicError> {
    let Some(patch) = item.as_object_mut() else { return Err(StrategicError::not_a_map(item)) };
    let key = field.merge_key;
    let value = patch.get(key).ok_or_else(|| StrategicError::no_merge_key(patch, key))?;
    match position(live, key, value).map(|at| live.item_mut(at)) {
        Some(Value::Object(found)) => *found = map::merge(mem::take(found), patch, field.schema)?,
        _ => live.push(item.clone()),
    }
    Ok(())
}

fn position(live: &Slots, key: &str, value: &Value) -> Option<usize> {
    live.items().iter().position(|item| item.get(key) == Some(value))
}
