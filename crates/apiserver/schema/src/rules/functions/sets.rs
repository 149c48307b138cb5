//! `sets.contains`, `sets.equivalent` and `sets.intersects` of lists.

use cel::common::types::{CelBool, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

use super::lists::items;

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let lists = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "list_sets_contains_list", lists(), |args| on(&args, contains))?;
    env.add_overload("sets.equivalent", "list_sets_equivalent_list", lists(), |args| {
        on(&args, |left, right| contains(left, right) && contains(right, left))
    })?;
    env.add_overload("sets.intersects", "list_sets_intersects_list", lists(), |args| {
        on(&args, |left, right| right.iter().any(|item| has(left, item.as_ref())))
    })
}

type Items<'v> = [Box<dyn Val + 'v>];

fn on<'b, 'v>(
    args: &[CowVal<'b, 'v>],
    test: fn(&Items<'v>, &Items<'v>) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (left, right) = (items(args[0].as_ref())?, items(args[1].as_ref())?);
    Ok(CowVal::owned(CelBool::from(test(&left, &right))))
}

fn has(items: &Items<'_>, item: &dyn Val) -> bool {
    items.iter().any(|other| other.equals(item))
}

fn contains(left: &Items<'_>, right: &Items<'_>) -> bool {
    right.iter().all(|item| has(left, item.as_ref()))
}
