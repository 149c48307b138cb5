//! `'%s'.format([…])`: lists and maps are shown with their texts quoted. And `int` of a duration.

use cel::common::ast::{CallExpr, Expr};
use cel::common::types::{
    CelBool, CelDouble, CelDuration, CelInt, CelList, CelMap, CelNull, CelString, CelUInt, LIST_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::parser::Macro;
use cel::{DeclarationError, Env, ExecutionError, add_overload};

use super::lists::items;
use crate::go;
use crate::rules::environment;

/// Makes texts of what `%s` shows in CEL's own way.
pub(in crate::rules) const SHOWN: &str = "@shown";

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn nanoseconds: (CelDuration) -> CelInt, name = "int")?;
    env.add_overload(SHOWN, "shown_list", vec![LIST_TYPE], shown)?;
    env.add_macro(Macro::receiver("format", 1, |helper, target, args| {
        let Some(target) = target.take() else { return Ok(None) };
        let shown = CallExpr { func_name: SHOWN.to_owned(), target: None, args: std::mem::take(args) };
        let args = vec![helper.next_expr(Expr::Call(shown))];
        let call = CallExpr { func_name: "format".to_owned(), target: Some(Box::new(target)), args };
        Ok(Some(helper.next_expr(Expr::Call(call))))
    }))
}

/// `int(duration('1s'))`.
fn nanoseconds(duration: &CelDuration) -> CelInt {
    duration.inner().num_nanoseconds().unwrap_or(i64::MAX).into()
}

fn shown<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut arguments = items(args[0].as_ref())?;
    for argument in &mut arguments {
        let composite = argument.as_iterable().is_some();
        if composite {
            *argument = Box::new(CelString::from(nested(argument.as_ref())?));
        }
    }
    Ok(CowVal::owned(CelList::from(arguments)))
}

fn nested(value: &dyn Val) -> Result<String, ExecutionError> {
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let entries: Result<Vec<String>, ExecutionError> = map
            .inner()
            .iter()
            .map(|(key, value)| Ok(format!("{}:{}", nested(key.inner())?, nested(value.as_ref())?)))
            .collect();
        let mut entries = entries?;
        entries.sort();
        return Ok(format!("{{{}}}", entries.join(", ")));
    }
    if value.as_iterable().is_some() {
        let parts: Result<Vec<String>, ExecutionError> =
            items(value)?.iter().map(|item| nested(item.as_ref())).collect();
        return Ok(format!("[{}]", parts?.join(", ")));
    }
    Ok(scalar(value))
}

fn scalar(value: &dyn Val) -> String {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        return go::quote(text.inner());
    }
    if let Some(number) = value.downcast_ref::<CelInt>() {
        return number.inner().to_string();
    }
    if let Some(number) = value.downcast_ref::<CelUInt>() {
        return number.inner().to_string();
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        return go::float(*number.inner());
    }
    if let Some(flag) = value.downcast_ref::<CelBool>() {
        return flag.inner().to_string();
    }
    if value.downcast_ref::<CelNull>().is_some() {
        return "null".to_owned();
    }
    environment::text_of(value).unwrap_or_else(|| format!("{value:?}"))
}
