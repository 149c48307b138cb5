//! Changes to a parsed rule that make it mean the same with our values.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, operators};

/// Puts list literals on the right of `==` and `!=`, since only the left side knows that its order does not count.
/// Tells whether there were any.
pub(super) fn lists_on_the_right(expression: &mut IdedExpr) -> bool {
    let mut changed = false;
    match &mut expression.expr {
        Expr::Call(call) => {
            changed |= swap(call);
            for part in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
                changed |= lists_on_the_right(part);
            }
        }
        Expr::Comprehension(comprehension) => {
            let comprehension = &mut **comprehension;
            for part in [
                &mut comprehension.iter_range,
                &mut comprehension.accu_init,
                &mut comprehension.loop_cond,
                &mut comprehension.loop_step,
                &mut comprehension.result,
            ] {
                changed |= lists_on_the_right(part);
            }
        }
        Expr::List(list) => {
            for element in &mut list.elements {
                changed |= lists_on_the_right(element);
            }
        }
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    changed |= lists_on_the_right(&mut entry.key) | lists_on_the_right(&mut entry.value);
                }
            }
        }
        Expr::Select(select) => changed |= lists_on_the_right(&mut select.operand),
        Expr::Struct(_) | Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
    changed
}

fn swap(call: &mut CallExpr) -> bool {
    let compares = matches!(call.func_name.as_str(), operators::EQUALS | operators::NOT_EQUALS);
    let [left, right] = call.args.as_mut_slice() else {
        return false;
    };
    let swapped = compares && matches!(left.expr, Expr::List(_)) && !matches!(right.expr, Expr::List(_));
    if swapped {
        std::mem::swap(left, right);
    }
    swapped
}
