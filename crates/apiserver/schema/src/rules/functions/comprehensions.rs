//! Macros with two variables: `map.all(key, value, …)`, `list.exists(index, item, …)`, `transformList`, `transformMap`
//! and `transformMapEntry`. Each becomes a loop over pairs, whose parts are bound to the two names.

use std::collections::HashMap;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};
use cel::common::types::{CelInt, CelList, CelMap, CelMapKey, CelString, DYN_TYPE, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env, ExecutionError};

use super::failure;
use super::lists::items;

const PAIRS: &str = "@pairs";
const TO_MAP: &str = "@mapOfPairs";
const MERGE: &str = "@mapOfMaps";
const PAIR: &str = "@pair";
const KEY: &str = "@key";
const VALUE: &str = "@value";
const RESULT: &str = "@result";

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(PAIRS, "pairs_of", vec![DYN_TYPE], pairs)?;
    env.add_overload(PAIR, "pair_of", vec![DYN_TYPE, DYN_TYPE], |args| {
        let parts: Vec<Box<dyn Val + '_>> = args.into_iter().map(CowVal::into_owned).collect();
        Ok(CowVal::owned(CelList::from(parts)))
    })?;
    env.add_overload(KEY, "key_of_pair", vec![LIST_TYPE], |args| part(&args, 0))?;
    env.add_overload(VALUE, "value_of_pair", vec![LIST_TYPE], |args| part(&args, 1))?;
    env.add_overload(TO_MAP, "map_of_pairs", vec![LIST_TYPE], map_of_pairs)?;
    env.add_overload(MERGE, "map_of_maps", vec![LIST_TYPE], map_of_maps)?;
    env.add_macro(Macro::receiver("all", 3, |helper, target, args| {
        expand(helper, target, args, |build, body| build.fold(true, operators::LOGICAL_AND, body))
    }))?;
    env.add_macro(Macro::receiver("exists", 3, |helper, target, args| {
        expand(helper, target, args, |build, body| build.fold(false, operators::LOGICAL_OR, body))
    }))?;
    for name in ["existsOne", "exists_one"] {
        env.add_macro(Macro::receiver(name, 3, |helper, target, args| expand(helper, target, args, exists_one)))?;
    }
    for (count, name) in [(3, "transformList"), (4, "transformList")] {
        env.add_macro(Macro::receiver(name, count, |helper, target, args| {
            transform(helper, target, args, Output::List)
        }))?;
    }
    for count in [3, 4] {
        env.add_macro(Macro::receiver("transformMap", count, |helper, target, args| {
            transform(helper, target, args, Output::Map)
        }))?;
        env.add_macro(Macro::receiver("transformMapEntry", count, |helper, target, args| {
            transform(helper, target, args, Output::Entries)
        }))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Output {
    List,
    Map,
    Entries,
}

type Expansion = Result<Option<IdedExpr>, ParseError>;

fn exists_one(build: &mut Build<'_, '_>, body: IdedExpr) -> IdedExpr {
    build.exists_one(body)
}

fn identifier(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

fn expand(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    finish: fn(&mut Build<'_, '_>, IdedExpr) -> IdedExpr,
) -> Expansion {
    let Some((range, names, mut rest)) = take(helper, target, args)? else {
        return Ok(None);
    };
    let mut build = Build { helper, range: Some(range), names };
    let body = build.bound(rest.remove(0));
    Ok(Some(finish(&mut build, body)))
}

fn transform(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
    output: Output,
) -> Expansion {
    let Some((range, names, mut rest)) = take(helper, target, args)? else {
        return Ok(None);
    };
    let filter = (rest.len() == 2).then(|| rest.remove(0));
    let mut build = Build { helper, range: Some(range), names };
    let value = rest.remove(0);
    Ok(Some(build.collect(filter, value, output)))
}

type MacroParts = (IdedExpr, [String; 2], Vec<IdedExpr>);

fn take(
    helper: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Result<Option<MacroParts>, ParseError> {
    let names = match (identifier(&args[0]), identifier(&args[1])) {
        (Some(key), Some(value)) => [key, value],
        (None, _) => return Err(helper.new_error(args[0].id, "argument must be a simple name")),
        (_, None) => return Err(helper.new_error(args[1].id, "argument must be a simple name")),
    };
    let Some(range) = target.take() else { return Ok(None) };
    Ok(Some((range, names, args.drain(..).skip(2).collect())))
}

struct Build<'h, 'e> {
    helper: &'h mut MacroExprHelper<'e>,
    range: Option<IdedExpr>,
    names: [String; 2],
}

impl Build<'_, '_> {
    fn expr(&mut self, expr: Expr) -> IdedExpr {
        self.helper.next_expr(expr)
    }

    fn name(&mut self, name: &str) -> IdedExpr {
        self.expr(Expr::Ident(name.to_owned()))
    }

    fn boolean(&mut self, value: bool) -> IdedExpr {
        self.expr(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn integer(&mut self, value: i64) -> IdedExpr {
        self.expr(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn list(&mut self, elements: Vec<IdedExpr>) -> IdedExpr {
        self.expr(Expr::List(ListExpr::new(elements)))
    }

    fn call(&mut self, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.expr(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
    }

    fn part(&mut self, function: &str) -> IdedExpr {
        let pair = self.name(PAIR);
        self.call(function, vec![pair])
    }

    /// `body` with the two names bound to the parts of the pair.
    fn bound(&mut self, body: IdedExpr) -> IdedExpr {
        let [key, value] = self.names.clone();
        let part = self.part(VALUE);
        let inner = self.bind(value, part, body);
        let part = self.part(KEY);
        self.bind(key, part, inner)
    }

    fn bind(&mut self, name: String, value: IdedExpr, body: IdedExpr) -> IdedExpr {
        let nothing = self.list(Vec::new());
        let (condition, step) = (self.boolean(false), self.name(&name));
        self.expr(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: nothing,
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: name,
            accu_init: value,
            loop_cond: condition,
            loop_step: step,
            result: body,
        })))
    }

    /// A loop over the pairs.
    fn each(&mut self, init: IdedExpr, condition: IdedExpr, step: IdedExpr, result: IdedExpr) -> IdedExpr {
        let range = self.range.take().unwrap_or_default();
        let pairs = self.call(PAIRS, vec![range]);
        self.expr(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: pairs,
            iter_var: PAIR.to_owned(),
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: init,
            loop_cond: condition,
            loop_step: step,
            result,
        })))
    }

    fn fold(&mut self, start: bool, operator: &str, body: IdedExpr) -> IdedExpr {
        let so_far = self.name(RESULT);
        let open = if start { so_far } else { self.call(operators::LOGICAL_NOT, vec![so_far]) };
        let condition = self.call(operators::NOT_STRICTLY_FALSE, vec![open]);
        let so_far = self.name(RESULT);
        let step = self.call(operator, vec![so_far, body]);
        let (init, result) = (self.boolean(start), self.name(RESULT));
        self.each(init, condition, step, result)
    }

    fn exists_one(&mut self, body: IdedExpr) -> IdedExpr {
        let (so_far, one) = (self.name(RESULT), self.integer(1));
        let more = self.call(operators::ADD, vec![so_far, one]);
        let same = self.name(RESULT);
        let step = self.call(operators::CONDITIONAL, vec![body, more, same]);
        let (found, one) = (self.name(RESULT), self.integer(1));
        let result = self.call(operators::EQUALS, vec![found, one]);
        let (init, condition) = (self.integer(0), self.boolean(true));
        self.each(init, condition, step, result)
    }

    fn collect(&mut self, filter: Option<IdedExpr>, value: IdedExpr, output: Output) -> IdedExpr {
        let element = match output {
            Output::List | Output::Entries => self.bound(value),
            Output::Map => {
                let (key, value) = (self.part(KEY), self.bound(value));
                self.call(PAIR, vec![key, value])
            }
        };
        let (so_far, added) = (self.name(RESULT), self.list(vec![element]));
        let mut step = self.call(operators::ADD, vec![so_far, added]);
        if let Some(filter) = filter {
            let (filter, same) = (self.bound(filter), self.name(RESULT));
            step = self.call(operators::CONDITIONAL, vec![filter, step, same]);
        }
        let found = self.name(RESULT);
        let result = match output {
            Output::List => found,
            Output::Map => self.call(TO_MAP, vec![found]),
            Output::Entries => self.call(MERGE, vec![found]),
        };
        let (init, condition) = (self.list(Vec::new()), self.boolean(true));
        self.each(init, condition, step, result)
    }
}

fn part<'b, 'v>(args: &[CowVal<'b, 'v>], index: usize) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut parts = items(args[0].as_ref())?;
    if index >= parts.len() {
        return Err(ExecutionError::missing_argument_or_target());
    }
    Ok(CowVal::Owned(parts.swap_remove(index)))
}

fn pair<'v>(key: Box<dyn Val + 'v>, value: Box<dyn Val + 'v>) -> Box<dyn Val + 'v> {
    Box::new(CelList::from(vec![key, value]))
}

fn pairs<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let source = args[0].as_ref();
    let pairs: Vec<Box<dyn Val + 'v>> = match source.downcast_ref::<CelMap<'v>>() {
        Some(map) => {
            let mut entries: Vec<_> = map.inner().iter().collect();
            entries.sort_by_key(|(key, _)| format!("{key:?}"));
            entries.into_iter().map(|(key, value)| pair(key.inner().clone_as_boxed(), value.clone())).collect()
        }
        None => (0i64..).zip(items(source)?).map(|(at, item)| pair(Box::new(CelInt::from(at)), item)).collect(),
    };
    Ok(CowVal::owned(CelList::from(pairs)))
}

fn map_of_pairs<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut entries: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
    for entry in items(args[0].as_ref())? {
        let mut parts = items(entry.as_ref())?.into_iter();
        if let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            entries.insert(CelMapKey::try_from(key)?, value);
        }
    }
    Ok(CowVal::owned(CelMap::from(entries)))
}

fn map_of_maps<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut entries: HashMap<CelMapKey<'v>, Box<dyn Val + 'v>> = HashMap::new();
    for map in items(args[0].as_ref())? {
        let Some(map) = map.downcast_ref::<CelMap<'v>>() else {
            return Err(ExecutionError::no_such_overload("transformMapEntry", vec![map.get_type().name().to_owned()]));
        };
        for (key, value) in map.inner() {
            if entries.insert(key.clone(), value.clone()).is_some() {
                let shown = key.inner().downcast_ref::<CelString<'v>>().map_or("", |key| key.inner());
                return Err(failure(format!("insert failed: key {shown} already exists")));
            }
        }
    }
    Ok(CowVal::owned(CelMap::from(entries)))
}
