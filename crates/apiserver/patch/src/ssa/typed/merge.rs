//! A live value and an applied one → the value with both, where the applied one wins.
//!
//! Nothing is removed here. Lists keep the live order, except that the applied items stand in the applied order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::compare::zip;
use super::shape::{Relation, Shape, ViewedAs};
use crate::ssa::path::PathElement;

/// Merges an applied value into a live one.
pub(crate) fn merge(live: &Value, applied: &Value, shape: Shape<'_>) -> Value {
    let (live_forms, applied_forms) = (shape.forms_of(Some(live)), shape.forms_of(Some(applied)));
    let forms = if live_forms == applied_forms { live_forms } else { applied_forms };
    match forms.first() {
        ViewedAs::Map if !shape.map_is_atomic() => {
            let (lefts, rights) = (live.as_object(), applied.as_object());
            if lefts.is_some_and(|map| !map.is_empty()) || rights.is_some_and(|map| !map.is_empty()) {
                return Value::Object(maps(lefts, rights, shape));
            }
        }
        ViewedAs::List if !matches!(shape.relation(), Relation::Atomic) => {
            let lefts = live.as_array().map_or(&[][..], Vec::as_slice);
            let rights = applied.as_array().map_or(&[][..], Vec::as_slice);
            if !lefts.is_empty() || !rights.is_empty() {
                return Value::Array(lists(lefts, rights, shape));
            }
        }
        ViewedAs::Scalar | ViewedAs::Map | ViewedAs::List => {}
    }
    applied.clone()
}

fn either(live: Option<&Value>, applied: Option<&Value>, shape: Shape<'_>) -> Value {
    match (live, applied) {
        (Some(live), Some(applied)) => merge(live, applied, shape),
        (Some(value), None) | (None, Some(value)) => value.clone(),
        (None, None) => Value::Null,
    }
}

fn maps(
    lefts: Option<&Map<String, Value>>,
    rights: Option<&Map<String, Value>>,
    shape: Shape<'_>,
) -> Map<String, Value> {
    let merged = zip(lefts, rights).map(|(name, left, right)| {
        let below = shape.value(name).unwrap_or(Shape::Deduced);
        (name.to_owned(), either(left, right, below))
    });
    merged.collect()
}

/// The items of one side by their element.
struct Indexed<'a> {
    order: Vec<(PathElement, &'a Value)>,
    /// `None` where several items share an element: these are not merged with anything.
    by_element: BTreeMap<PathElement, Option<&'a Value>>,
}

impl<'a> Indexed<'a> {
    fn new(items: &'a [Value], shape: Shape<'_>) -> Self {
        let mut by_element = BTreeMap::new();
        let mut order = Vec::with_capacity(items.len());
        for item in items {
            let Ok(element) = shape.element_of(item) else { continue };
            by_element.entry(element.clone()).and_modify(|known| *known = None).or_insert(Some(item));
            order.push((element, item));
        }
        Self { order, by_element }
    }

    fn has(&self, element: &PathElement) -> bool {
        self.by_element.contains_key(element)
    }

    fn item(&self, element: &PathElement) -> Option<&'a Value> {
        self.by_element.get(element).copied().flatten()
    }
}

/// Walks both lists at once. Items of one side keep their place among their neighbours; shared items come in the
/// applied order, so a live item that is shared but not next is passed over until its turn.
fn lists(lefts: &[Value], rights: &[Value], shape: Shape<'_>) -> Vec<Value> {
    let (live, applied) = (Indexed::new(lefts, shape), Indexed::new(rights, shape));
    let mut shared = applied.order.iter().map(|(element, _)| element).filter(|element| live.has(element)).peekable();
    let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(lefts.len().max(rights.len()));
    let (mut left, mut right) = (0, 0);
    let together = |element: &PathElement| either(live.item(element), applied.item(element), shape.items());
    while left < live.order.len() || right < applied.order.len() {
        if let (Some((here, _)), Some((there, _))) = (live.order.get(left), applied.order.get(right)) {
            if here == there {
                merged.insert(there);
                out.push(together(there));
                (left, right) = (left + 1, right + 1);
                shared.next();
                continue;
            }
            if applied.has(here) && shared.peek().is_some_and(|next| *next != here) {
                left += 1;
                continue;
            }
        }
        if let Some((here, item)) = live.order.get(left) {
            if !applied.has(here) {
                out.push((*item).clone());
                left += 1;
                continue;
            }
            if merged.contains(here) {
                left += 1;
            }
        }
        if let Some((there, _)) = applied.order.get(right) {
            merged.insert(there);
            out.push(together(there));
            right += 1;
            if shared.peek().is_some_and(|next| *next == there) {
                shared.next();
            }
        }
    }
    out
}
