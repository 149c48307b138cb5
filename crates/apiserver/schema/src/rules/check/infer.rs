//! The type of an expression, found from its leaves up; every mistake on the way is kept with its place in the source.

use std::collections::HashMap;

use cel::Program;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};

use super::formatting;
use super::signatures::{self, Signature};
use super::types::{SelectedField, Type};
use crate::re2;
use crate::rules::functions::texts::SHOWN;

/// Names of types, which are values as well.
const TYPE_NAMES: [&str; 12] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "timestamp", "duration"];

pub(super) struct Inference<'p, 's> {
    program: &'p Program,
    scopes: Vec<(String, Type<'s>)>,
    mistakes: Vec<(usize, String)>,
    /// Mistakes that only count where there are no others.
    remarks: Vec<(usize, String)>,
}

impl<'p, 's> Inference<'p, 's> {
    pub(super) fn new(program: &'p Program, variables: Vec<(String, Type<'s>)>) -> Self {
        Self { program, scopes: variables, mistakes: Vec::new(), remarks: Vec::new() }
    }

    /// The type, or every mistake as cel-go lists them.
    pub(super) fn finish(mut self, found: Type<'s>) -> Result<Type<'s>, String> {
        if self.mistakes.is_empty() {
            self.mistakes = std::mem::take(&mut self.remarks);
        }
        if self.mistakes.is_empty() {
            return Ok(found);
        }
        self.mistakes.sort();
        self.mistakes.dedup();
        let shown: Vec<String> = self.mistakes.iter().map(|(at, what)| self.show(*at, what)).collect();
        Err(shown.join("\n"))
    }

    fn source(&self) -> &'p str {
        &self.program.source_info().source
    }

    fn show(&self, at: usize, what: &str) -> String {
        let source = self.source();
        let before: String = source.chars().take(at).collect();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let text = source.split('\n').nth(line).unwrap_or_default();
        format!("ERROR: <input>:{}:{}: {what}\n | {text}\n | {}^", line + 1, column + 1, ".".repeat(column))
    }

    fn mistake(&mut self, at: usize, what: String) -> Type<'s> {
        self.mistakes.push((at, what));
        Type::Dyn
    }

    /// Where an expression begins, in characters.
    fn start(&self, expression: &IdedExpr) -> usize {
        match &expression.expr {
            Expr::Select(select) => self.start(&select.operand),
            Expr::Call(call) => match (&call.target, call.args.first()) {
                (Some(target), _) => self.start(target),
                (None, Some(first)) if is_infix(&call.func_name) => self.start(first),
                _ => self.offset(expression.id),
            },
            _ => self.offset(expression.id),
        }
    }

    fn offset(&self, id: u64) -> usize {
        let start = self.program.source_info().offset_for(id).map_or(0, |(start, _)| start);
        usize::try_from(start).unwrap_or(0)
    }

    fn stop(&self, id: u64) -> usize {
        let stop = self.program.source_info().offset_for(id).map_or(0, |(_, stop)| stop);
        usize::try_from(stop).unwrap_or(0)
    }

    /// Where the text stands next, from a place on.
    fn find(&self, text: &str, from: usize) -> usize {
        let rest: String = self.source().chars().skip(from).collect();
        rest.find(text).map_or(from, |at| from + rest[..at].chars().count())
    }

    pub(super) fn expression(&mut self, expression: &IdedExpr) -> Type<'s> {
        match &expression.expr {
            Expr::Unspecified | Expr::Struct(_) => Type::Dyn,
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.name(name, expression),
            Expr::Select(select) => {
                let operand = self.expression(&select.operand);
                let found = self.select(&operand, &select.field, expression);
                if select.test { Type::Bool } else { found }
            }
            Expr::Call(call) => self.call(call, expression),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map.entries.iter().map(|entry| &entry.expr)),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn name(&mut self, name: &str, expression: &IdedExpr) -> Type<'s> {
        if let Some((_, found)) = self.scopes.iter().rev().find(|(known, _)| known == name) {
            return found.clone();
        }
        if TYPE_NAMES.contains(&name) {
            return Type::OfTypes;
        }
        self.undeclared(name, self.offset(expression.id))
    }

    fn undeclared(&mut self, name: &str, at: usize) -> Type<'s> {
        self.mistake(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn select(&mut self, operand: &Type<'s>, field: &str, expression: &IdedExpr) -> Type<'s> {
        match operand.field(field) {
            SelectedField::Known(found) => found,
            SelectedField::Undefined => {
                let at = self.dot(expression);
                self.mistake(at, format!("undefined field '{field}'"))
            }
            SelectedField::Unsupported => {
                let at = self.dot(expression);
                self.mistake(at, format!("type '{operand}' does not support field selection"))
            }
        }
    }

    /// Where the dot of a selection stands; that of `has` where it is one.
    fn dot(&self, expression: &IdedExpr) -> usize {
        let (field, operand, test) = match &expression.expr {
            Expr::Select(select) => (select.field.as_str(), &*select.operand, select.test),
            Expr::Call(call) => match call.args.as_slice() {
                [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] => {
                    (field.inner(), operand, false)
                }
                _ => return self.offset(expression.id),
            },
            _ => return self.offset(expression.id),
        };
        let start = self.start(operand);
        if test {
            let before: String = self.source().chars().take(start).collect();
            return before.rfind('(').map_or(start, |at| before[..at].chars().count());
        }
        let (plain, optional) = (self.find(&format!(".{field}"), start), self.find(&format!(".?{field}"), start));
        if plain == start { optional } else { plain }
    }

    fn list(&mut self, list: &ListExpr) -> Type<'s> {
        let mut join = Join::default();
        for (index, element) in list.elements.iter().enumerate() {
            let found = self.expression(element);
            self.join(&mut join, unwrapped(found, list.optional_indices.contains(&index)), element);
        }
        Type::list(join.result())
    }

    fn map<'e>(&mut self, entries: impl Iterator<Item = &'e EntryExpr>) -> Type<'s> {
        let (mut keys, mut values) = (Join::default(), Join::default());
        for entry in entries {
            if let EntryExpr::MapEntry(entry) = entry {
                let key = self.expression(&entry.key);
                self.join(&mut keys, key, &entry.key);
                let value = self.expression(&entry.value);
                self.join(&mut values, unwrapped(value, entry.optional), &entry.value);
            }
        }
        Type::map(keys.result(), values.result())
    }

    /// Elements of a literal are all of one type; the first that is not is named.
    fn join(&mut self, join: &mut Join<'s>, found: Type<'s>, element: &IdedExpr) {
        let Some(common) = &join.common else {
            join.common = Some(found);
            return;
        };
        let same = found.fits(common, &mut HashMap::new()) && found.to_string() == common.to_string();
        if !same && !join.mixed {
            join.mixed = true;
            let at = self.named_place(element);
            self.remarks.push((at, format!("expected type '{common}' but found '{found}'")));
        }
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Type<'s> {
        let range = self.expression(&comprehension.iter_range);
        let item = match range {
            Type::List(items) => *items,
            Type::Map(keys, _) => *keys,
            Type::Dyn => Type::Dyn,
            other => {
                let at = self.named_place(&comprehension.iter_range);
                self.mistake(at, format!("expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"))
            }
        };
        let depth = self.scopes.len();
        let start = self.expression(&comprehension.accu_init);
        self.scopes.push((comprehension.accu_var.clone(), start.clone()));
        self.scopes.push((comprehension.iter_var.clone(), item));
        self.expression(&comprehension.loop_cond);
        let step = self.expression(&comprehension.loop_step);
        self.scopes.truncate(depth);
        // What is collected is known after the first step only.
        let collected = if matches!(&start, Type::List(items) if matches!(**items, Type::Dyn)) { step } else { start };
        self.scopes.push((comprehension.accu_var.clone(), collected));
        let result = self.expression(&comprehension.result);
        self.scopes.truncate(depth);
        result
    }

    fn call(&mut self, call: &CallExpr, expression: &IdedExpr) -> Type<'s> {
        match call.func_name.as_str() {
            operators::LOGICAL_AND | operators::LOGICAL_OR => return self.logical(call),
            operators::OPT_SELECT => return self.optional_select(call, expression),
            SHOWN => return self.shown(call),
            _ => {}
        }
        if let Some(name) = call.target.as_deref().and_then(|target| qualified(target, &call.func_name))
            && let Some(overloads) = signatures::of(&name)
        {
            return self.overload(&name, overloads, None, call, expression);
        }
        if let Some(overloads) = signatures::of(&call.func_name) {
            return self.overload(&call.func_name, overloads, call.target.as_deref(), call, expression);
        }
        for part in call.target.as_deref().into_iter().chain(&call.args) {
            self.expression(part);
        }
        let at = self.parenthesis(call, expression);
        self.undeclared(&call.func_name, at)
    }

    /// The arguments of `format` may be of any types; only that they are a list counts.
    fn shown(&mut self, call: &CallExpr) -> Type<'s> {
        match call.args.as_slice() {
            [IdedExpr { expr: Expr::List(list), .. }] => {
                for element in &list.elements {
                    self.expression(element);
                }
                Type::list(Type::Dyn)
            }
            [argument] => self.expression(argument),
            _ => Type::Dyn,
        }
    }

    fn logical(&mut self, call: &CallExpr) -> Type<'s> {
        for argument in &call.args {
            let found = self.expression(argument);
            if !found.fits(&Type::Bool, &mut HashMap::new()) {
                let at = self.named_place(argument);
                self.mistake(at, format!("expected type 'bool' but found '{found}'"));
            }
        }
        Type::Bool
    }

    fn optional_select(&mut self, call: &CallExpr, expression: &IdedExpr) -> Type<'s> {
        let [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] = call.args.as_slice() else {
            return Type::optional(Type::Dyn);
        };
        let operand = self.expression(operand);
        match self.select(&operand, field.inner(), expression) {
            already @ Type::Optional(_) => already,
            found => Type::optional(found),
        }
    }

    fn overload(
        &mut self,
        name: &str,
        overloads: &'static [Signature],
        target: Option<&IdedExpr>,
        call: &CallExpr,
        expression: &IdedExpr,
    ) -> Type<'s> {
        let receiver = target.map(|target| self.expression(target));
        let arguments: Vec<Type<'s>> = call.args.iter().map(|argument| self.expression(argument)).collect();
        if let Some(result) = overloads.iter().find_map(|overload| matched(overload, receiver.as_ref(), &arguments)) {
            self.literal_argument(name, call);
            if name == "format" {
                self.clauses(call, expression);
            }
            return result;
        }
        let at = self.parenthesis(call, expression);
        let (name, receiver, arguments) = self.as_written(name, receiver, arguments, at);
        let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let shown = format!("({})", shown.join(", "));
        let shown = receiver.map_or_else(|| shown.clone(), |receiver| format!("{receiver}.{shown}"));
        self.mistake(at, format!("found no matching overload for '{name}' applied to '{shown}'"))
    }

    /// `matches` has lost its receiver to a macro, and its name.
    fn as_written<'n>(
        &self,
        name: &'n str,
        receiver: Option<Type<'s>>,
        mut arguments: Vec<Type<'s>>,
        at: usize,
    ) -> (&'n str, Option<Type<'s>>, Vec<Type<'s>>) {
        let Some(plain) = name.strip_prefix("@m") else {
            return (name, receiver, arguments);
        };
        let dotted = at.checked_sub(name.len()).and_then(|before| self.source().chars().nth(before)) == Some('.');
        let receiver = (dotted && plain == "atches").then(|| arguments.remove(0));
        ("matches", receiver, arguments)
    }

    /// Literals that can only be wrong.
    fn literal_argument(&mut self, name: &str, call: &CallExpr) {
        let literal = |argument: Option<&IdedExpr>| match argument.map(|a| &a.expr) {
            Some(Expr::Literal(LiteralValue::String(text))) => Some(text.inner().to_owned()),
            _ => None,
        };
        let (argument, good) = match name {
            "@matches" => (call.args.get(1), literal(call.args.get(1)).is_none_or(|text| re2::compile(&text).is_ok())),
            "duration" => (
                call.args.first(),
                literal(call.args.first()).is_none_or(|text| crate::duration::parse(&text).is_some()),
            ),
            "timestamp" => {
                let parses = |text: String| text.parse::<jiff::Timestamp>().is_ok();
                (call.args.first(), literal(call.args.first()).is_none_or(parses))
            }
            _ => return,
        };
        if let Some(argument) = argument.filter(|_| !good) {
            let at = self.offset(argument.id);
            self.remarks.push((at, format!("invalid {} argument", name.trim_start_matches('@'))));
        }
    }

    /// The clauses of a literal format with literal arguments.
    fn clauses(&mut self, call: &CallExpr, expression: &IdedExpr) {
        let Some(Expr::Literal(LiteralValue::String(format))) = call.target.as_deref().map(|target| &target.expr)
        else {
            return;
        };
        let [IdedExpr { expr: Expr::Call(CallExpr { args, .. }), .. }] = call.args.as_slice() else { return };
        let [IdedExpr { expr: Expr::List(list), .. }] = args.as_slice() else { return };
        let types: Vec<Type<'s>> = list.elements.iter().map(|element| self.expression(element)).collect();
        if let Some(mistake) = formatting::check(format.inner(), &types) {
            let at = match mistake.argument {
                Some(index) => self.named_place(&list.elements[index]),
                None => self.parenthesis(call, expression),
            };
            self.remarks.push((at, mistake.what));
        }
    }

    /// Where cel-go says that an expression stands: at its operator, dot or parenthesis.
    fn named_place(&self, expression: &IdedExpr) -> usize {
        match &expression.expr {
            Expr::Select(_) => self.dot(expression),
            Expr::Call(call) => self.parenthesis(call, expression),
            _ => self.offset(expression.id),
        }
    }

    /// The place of a call: its operator, or the parenthesis after its name.
    fn parenthesis(&self, call: &CallExpr, expression: &IdedExpr) -> usize {
        if let Some(symbol) = infix_symbol(&call.func_name) {
            let first = call.args.first().map_or(0, |first| self.end(first));
            return self.find(symbol, first);
        }
        match call.func_name.as_str() {
            operators::LOGICAL_NOT | operators::NEGATE => self.offset(expression.id),
            operators::INDEX | operators::OPT_INDEX => {
                let first = call.args.first().map_or(0, |first| self.end(first));
                self.find("[", first)
            }
            name => {
                let name = name.trim_start_matches('@');
                let from = call.target.as_deref().map_or_else(|| self.offset(expression.id), |target| self.end(target));
                let at = self.find(&format!("{name}("), from.saturating_sub(name.len()));
                at + name.chars().count()
            }
        }
    }

    /// Just behind an expression.
    fn end(&self, expression: &IdedExpr) -> usize {
        match &expression.expr {
            Expr::Select(select) if !select.test => {
                self.find(&select.field, self.end(&select.operand)) + select.field.chars().count()
            }
            Expr::Call(call) if is_infix(&call.func_name) => {
                call.args.last().map_or_else(|| self.stop(expression.id), |last| self.end(last))
            }
            Expr::Ident(name) => self.offset(expression.id) + name.chars().count(),
            _ => self.stop(expression.id).max(self.offset(expression.id)),
        }
    }
}

/// What the elements of a literal have in common.
#[derive(Default)]
struct Join<'s> {
    common: Option<Type<'s>>,
    mixed: bool,
}

impl<'s> Join<'s> {
    fn result(self) -> Type<'s> {
        self.common.filter(|_| !self.mixed).unwrap_or(Type::Dyn)
    }
}

/// The type inside an optional, where an element is one.
fn unwrapped(found: Type<'_>, optional: bool) -> Type<'_> {
    match found {
        Type::Optional(inner) if optional => *inner,
        other => other,
    }
}

fn of_literal<'s>(literal: &LiteralValue) -> Type<'s> {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// `sets.contains` out of a name and a function.
fn qualified(target: &IdedExpr, function: &str) -> Option<String> {
    match &target.expr {
        Expr::Ident(namespace) => Some(format!("{namespace}.{function}")),
        _ => None,
    }
}

fn is_infix(function: &str) -> bool {
    infix_symbol(function).is_some()
}

fn infix_symbol(function: &str) -> Option<&str> {
    match function {
        operators::IN => Some("in"),
        operators::CONDITIONAL => Some("?"),
        _ => function
            .strip_prefix('_')
            .and_then(|rest| rest.strip_suffix('_'))
            .filter(|symbol| !symbol.is_empty() && symbol.chars().all(|c| "=!<>+-*/%&|".contains(c))),
    }
}

fn matched<'s>(overload: &'static Signature, receiver: Option<&Type<'s>>, arguments: &[Type<'s>]) -> Option<Type<'s>> {
    let mut bound = HashMap::new();
    let receiver_fits = match (receiver, &overload.receiver) {
        (Some(found), Some(wanted)) => found.fits(wanted, &mut bound),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    let fits = receiver_fits
        && arguments.len() == overload.arguments.len()
        && arguments.iter().zip(&overload.arguments).all(|(found, wanted)| found.fits(wanted, &mut bound));
    fits.then(|| overload.result.filled(&bound))
}
