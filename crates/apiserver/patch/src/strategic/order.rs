//! A merged list → the same in order: as the patch has it, as the live object had it, and live items stay where they
//! stood before those that the patch names. What is new comes as early as that allows.

use serde_json::Value;

use crate::strategic::error::StrategicError;

/// What a list holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Items {
    /// Told apart by the merge key.
    Maps,
    /// Told apart by themselves.
    Scalars,
}

impl Items {
    /// Where a list has the item, or the one with its key.
    fn index(self, list: &[Value], item: &Value, key: &str) -> Option<usize> {
        let identity = |item: &Value| match self {
            Self::Maps => item.get(key).cloned().unwrap_or_default(),
            Self::Scalars => item.clone(),
        };
        let wanted = identity(item);
        list.iter().position(|other| identity(other) == wanted)
    }
}

/// The merged list in order.
pub(crate) fn arrange(
    merged: Vec<Value>,
    patch_order: &[Value],
    live_order: &[Value],
    key: &str,
    items: Items,
) -> Result<Vec<Value>, StrategicError> {
    let (named, others) = partition(merged, patch_order, key)?;
    interleave(named, others, patch_order, live_order, key, items)
}

/// Those that a list names, and the others.
pub(crate) fn partition(
    merged: Vec<Value>,
    by: &[Value],
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), StrategicError> {
    if key.is_empty() {
        // Go cannot look up what is no scalar.
        if merged.iter().chain(by).any(|item| item.is_object() || item.is_array()) {
            return Err(StrategicError::Incomparable);
        }
        return Ok(merged.into_iter().partition(|item| by.contains(item)));
    }
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in merged {
        let side = if names(by, key_of(&item, key)?, key)? { &mut named } else { &mut others };
        side.push(item);
    }
    Ok((named, others))
}

fn names(by: &[Value], value: &Value, key: &str) -> Result<bool, StrategicError> {
    for (index, item) in by.iter().enumerate() {
        let fields = item
            .as_object()
            .ok_or_else(|| StrategicError::Unforeseen(format!("value for key {index} is not a map")))?;
        if fields.get(key) == Some(value) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The value of an item's merge key.
pub(crate) fn key_of<'a>(item: &'a Value, key: &str) -> Result<&'a Value, StrategicError> {
    let fields = item.as_object().ok_or_else(|| StrategicError::not_a_map(item))?;
    fields.get(key).ok_or_else(|| StrategicError::no_merge_key(fields, key))
}

/// Puts each side in its order and both together.
pub(crate) fn interleave(
    named: Vec<Value>,
    others: Vec<Value>,
    patch_order: &[Value],
    live_order: &[Value],
    key: &str,
    items: Items,
) -> Result<Vec<Value>, StrategicError> {
    let named = sorted(named, patch_order, key, items)?;
    let others = sorted(others, live_order, key, items)?;
    let mut all = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        let place = items.index(live_order, &item, key);
        let stands_before = |other: &Value| items.index(live_order, other, key).zip(place).is_some_and(|(o, p)| o < p);
        while let Some(other) = others.next_if(stands_before) {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(others);
    Ok(all)
}

/// Sorts by an order. What the order does not know goes to the front of what was sorted before it, as the real
/// server's insertion sort has it. (Lists of more than twenty items it sorts in blocks: unknown items may end elsewhere.)
fn sorted(mut list: Vec<Value>, order: &[Value], key: &str, items: Items) -> Result<Vec<Value>, StrategicError> {
    if items == Items::Maps {
        list.iter().chain(order).try_for_each(|item| key_of(item, key).map(drop))?;
    }
    for end in 1..list.len() {
        for at in (1..=end).rev() {
            let [before, this] = [at - 1, at].map(|i| items.index(order, &list[i], key));
            if before.zip(this).is_some_and(|(before, this)| this >= before) {
                break;
            }
            list.swap(at - 1, at);
        }
    }
    Ok(list)
}
