//! `isSorted`, `sum`, `min`, `max`, `indexOf` and `lastIndexOf` of lists.

use std::cmp::Ordering;

use cel::common::types::{CelBool, CelInt, DYN_TYPE, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::failure;

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], |args| extreme(&args, "min", Ordering::Greater))?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], |args| extreme(&args, "max", Ordering::Less))?;
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, vec![DYN_TYPE], |args| {
        position(&args, |items, item| items.iter().position(|other| other.equals(item)))
    })?;
    env.add_member_overload("lastIndexOf", "list_last_index_of", LIST_TYPE, vec![DYN_TYPE], |args| {
        position(&args, |items, item| items.iter().rposition(|other| other.equals(item)))
    })
}

/// The items of any list.
pub(super) fn items<'v>(list: &(dyn Val + 'v)) -> Result<Vec<Box<dyn Val + 'v>>, ExecutionError> {
    let iterable = list
        .as_iterable()
        .ok_or_else(|| ExecutionError::no_such_overload("list", vec![list.get_type().name().to_owned()]))?;
    let mut iterator = iterable.iter();
    let mut items = Vec::new();
    while let Some(item) = iterator.next() {
        items.push(item.clone_as_boxed());
    }
    Ok(items)
}

fn compare(left: &dyn Val, right: &dyn Val) -> Result<Ordering, ExecutionError> {
    let name = |value: &dyn Val| value.get_type().name().to_owned();
    let comparer =
        left.as_comparer().ok_or_else(|| ExecutionError::no_such_overload("_<_", vec![name(left), name(right)]))?;
    comparer.compare(right)
}

fn is_sorted<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let items = items(args[0].as_ref())?;
    for pair in items.windows(2) {
        if compare(pair[0].as_ref(), pair[1].as_ref())? == Ordering::Greater {
            return Ok(CowVal::owned(CelBool::from(false)));
        }
    }
    Ok(CowVal::owned(CelBool::from(true)))
}

fn sum<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut items = items(args[0].as_ref())?.into_iter();
    let mut total: Box<dyn Val + 'v> = items.next().unwrap_or_else(|| Box::new(CelInt::from(0)));
    for item in items {
        let adder = total
            .as_adder()
            .ok_or_else(|| ExecutionError::no_such_overload("sum", vec![total.get_type().name().to_owned()]))?;
        total = adder.add(item.as_ref())?.into_owned();
    }
    Ok(CowVal::Owned(total))
}

fn extreme<'b, 'v>(
    args: &[CowVal<'b, 'v>],
    name: &str,
    replaced_when: Ordering,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut items = items(args[0].as_ref())?.into_iter();
    let mut best = items.next().ok_or_else(|| failure(format!("{name} called on empty list")))?;
    for item in items {
        if compare(best.as_ref(), item.as_ref())? == replaced_when {
            best = item;
        }
    }
    Ok(CowVal::Owned(best))
}

type Search<'v> = fn(&[Box<dyn Val + 'v>], &(dyn Val + 'v)) -> Option<usize>;

fn position<'b, 'v>(args: &[CowVal<'b, 'v>], find: Search<'v>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let items = items(args[0].as_ref())?;
    let found = find(&items, args[1].as_ref()).and_then(|at| i64::try_from(at).ok());
    Ok(CowVal::owned(CelInt::from(found.unwrap_or(-1))))
}
