//! `matches`, `find` and `findAll` with Go's syntax; a pattern is compiled once.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use cel::common::ast::{CallExpr, Expr};
use cel::common::types::{CelBool, CelInt, CelList, CelString};
use cel::common::value::Val;
use cel::parser::Macro;
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};
use regex::Regex;

use super::failure;
use crate::re2;

/// The name that `matches` is given, as CEL's own cannot be replaced.
const MATCHES: &str = "@matches";
/// More patterns than this are made by data, not by rules, and are not kept.
const KEPT: usize = 2_000;

static PATTERNS: LazyLock<RwLock<HashMap<String, Regex>>> = LazyLock::new(RwLock::default);

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn matches: (CelString<'_>, CelString<'_>) -> Result<CelBool>, name = "@matches")?;
    add_member_overload!(env, fn find: (CelString<'_>, CelString<'_>) -> Result<CelString<'_>>)?;
    add_member_overload!(env, fn find_all: (CelString<'_>, CelString<'_>) -> Result<CelList<'_>>)?;
    add_member_overload!(env, fn find_some: (CelString<'_>, CelString<'_>, CelInt) -> Result<CelList<'_>>, name = "findAll")?;
    env.add_macro(Macro::receiver("matches", 1, |helper, target, args| {
        let Some(target) = target.take() else { return Ok(None) };
        let args = vec![target, args.remove(0)];
        let call = CallExpr { func_name: MATCHES.to_owned(), target: None, args };
        Ok(Some(helper.next_expr(Expr::Call(call))))
    }))?;
    env.add_macro(Macro::global("matches", 2, |helper, _, args| {
        let call = CallExpr { func_name: MATCHES.to_owned(), target: None, args: std::mem::take(args) };
        Ok(Some(helper.next_expr(Expr::Call(call))))
    }))
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    if let Some(regex) = PATTERNS.read().unwrap_or_else(PoisonError::into_inner).get(pattern) {
        return Ok(regex.clone());
    }
    let regex = re2::compile(pattern)?;
    let mut patterns = PATTERNS.write().unwrap_or_else(PoisonError::into_inner);
    if patterns.len() < KEPT {
        patterns.insert(pattern.to_owned(), regex.clone());
    }
    Ok(regex)
}

fn matches(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(compiled(pattern.inner()).map_err(failure)?.is_match(text.inner()).into())
}

fn illegal(why: &str) -> ExecutionError {
    failure(format!("Illegal regex: {why}"))
}

fn find(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelString<'static>, ExecutionError> {
    let regex = compiled(pattern.inner()).map_err(|why| illegal(&why))?;
    Ok(regex.find(text.inner()).map_or("", |found| found.as_str()).to_owned().into())
}

fn find_all(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelList<'static>, ExecutionError> {
    find_some(text, pattern, &CelInt::from(-1))
}

fn find_some(text: &CelString<'_>, pattern: &CelString<'_>, most: &CelInt) -> Result<CelList<'static>, ExecutionError> {
    let regex = compiled(pattern.inner()).map_err(|why| illegal(&why))?;
    let most = usize::try_from(*most.inner()).unwrap_or(usize::MAX);
    let found = regex.find_iter(text.inner()).take(most);
    let found: Vec<Box<dyn Val>> =
        found.map(|m| Box::new(CelString::from(m.as_str().to_owned())) as Box<dyn Val>).collect();
    Ok(CelList::from(found))
}
