//! CEL rules (`x-kubernetes-validations`): compiled with the schema, run on an object and the one it replaces.

pub(crate) mod check;
pub(crate) mod environment;
pub(crate) mod escape;
#[expect(
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    reason = "the signatures are those that CEL asks for"
)]
mod functions;
mod keyed_list;
mod rewrite;
pub(crate) mod value;

use std::cell::OnceCell;
use std::sync::Arc;

use cel::common::types::CelOptional;
use cel::common::value::Val;
use cel::parser::Expression;
use cel::{Context, ExecutionError, Program, Value as CelValue};
use serde_json::{Map, Value};

use crate::correlate;
use crate::field::{ErrorKind, FieldError, Path, show};
use crate::node::{Cursor, Type};
use value::to_cel;

/// The longest text of a `messageExpression`.
const MESSAGE_LIMIT: usize = 5 * 1024;

/// One rule of a schema.
#[derive(Debug)]
pub struct SchemaRule {
    /// The expression.
    pub source: String,
    /// What to say instead of the expression.
    pub message: Option<String>,
    /// An expression that says it.
    pub message_expression: Option<String>,
    /// The kind of error that a failure is.
    pub reason: Reason,
    /// The field below the rule's own that a failure is about, as `.spec.x`.
    pub field_path: Option<String>,
    /// Whether `oldSelf` is optional, so that the rule runs on creation as well.
    pub optional_old_self: bool,
    /// Whether the rule speaks of `oldSelf`.
    pub uses_old_self: bool,
    program: Result<Option<Compiled>, String>,
    message_program: Option<Compiled>,
}

/// `reason` of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl SchemaRule {
    /// Reads the rules of one schema.
    pub(crate) fn parse_all(schema: &Map<String, Value>) -> Vec<Arc<Self>> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        rules.into_iter().flatten().filter_map(Value::as_object).map(|rule| Arc::new(Self::parse(rule))).collect()
    }

    fn parse(rule: &Map<String, Value>) -> Self {
        let text = |key: &str| rule.get(key).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned);
        let source = text("rule").unwrap_or_default();
        let program = compile(&source);
        let message_expression = text("messageExpression");
        let uses_old_self =
            program.as_ref().is_ok_and(|p| p.as_ref().is_some_and(|p| p.program.references().has_variable("oldSelf")));
        Self {
            message: text("message"),
            message_program: message_expression.as_deref().and_then(|m| compile(m).ok().flatten()),
            message_expression,
            reason: match rule.get("reason").and_then(Value::as_str) {
                Some("FieldValueForbidden") => Reason::Forbidden,
                Some("FieldValueRequired") => Reason::Required,
                Some("FieldValueDuplicate") => Reason::Duplicate,
                _ => Reason::Invalid,
            },
            field_path: text("fieldPath"),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or(false),
            uses_old_self,
            program,
            source,
        }
    }

    /// How errors name the rule.
    fn shown(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.source).trim()
    }

    fn default_message(&self) -> String {
        match &self.message {
            Some(message) => message.trim().to_owned(),
            None => format!("failed rule: {}", self.shown()),
        }
    }
}

/// An expression, ready to run.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) program: Program,
    /// What is run in place of the program's own expression.
    rewritten: Option<Expression>,
}

impl Compiled {
    fn new(program: Program) -> Self {
        let mut expression = program.expression().clone();
        let rewritten = rewrite::lists_on_the_right(&mut expression).then_some(expression);
        Self { program, rewritten }
    }

    fn execute(&self, context: &Context<'_, '_>) -> Result<CelValue, ExecutionError> {
        CelValue::resolve(self.rewritten.as_ref().unwrap_or(self.program.expression()), context)
    }
}

/// Compiles an expression; an empty one is none.
pub(crate) fn compile(source: &str) -> Result<Option<Compiled>, String> {
    if source.trim().is_empty() {
        return Ok(None);
    }
    let program = environment::shared().compile(source).map_err(|errors| errors.to_string())?;
    Ok(Some(Compiled::new(program)))
}

/// What the rules of a schema say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What was wrong before already and did not change; the server warns of it.
    pub tolerated: Vec<FieldError>,
}

/// Runs every rule of a schema on an object; transition rules only where there is an old value to compare with.
pub fn check_rules(new: &Value, old: Option<&Value>, schema: Cursor<'_>) -> Vec<FieldError> {
    find_rule_errors(new, old, schema).errors
}

/// [`check_rules`], with what is only worth a warning.
pub fn find_rule_errors(new: &Value, old: Option<&Value>, schema: Cursor<'_>) -> Findings {
    let ratchet = Ratchet { current: old.map(|old| (new, old, schema)), parent: None };
    find(new, old, RulePlace { rules: schema, types: schema, resource: true }, ratchet)
}

/// The errors about a value that stands at `base`, without tolerance for what it was before.
pub(crate) fn errors_at(
    base: &str,
    new: &Value,
    old: Option<&Value>,
    schema: Cursor<'_>,
    resource: bool,
) -> Vec<FieldError> {
    let place = RulePlace { rules: schema, types: schema, resource };
    let mut errors = find(new, old, place, Ratchet { current: None, parent: None }).errors;
    for error in &mut errors {
        error.move_under(base);
    }
    errors
}

fn find(new: &Value, old: Option<&Value>, place: RulePlace<'_>, ratchet: Ratchet<'_, '_>) -> Findings {
    let mut run = RuleRun { findings: Findings::default() };
    if place.rules.node().rules_below {
        run.place(new, old, place, ratchet, &Path::root());
    }
    run.findings
}

/// Where the rules come from and what types their values have; the two differ inside `allOf`.
#[derive(Clone, Copy)]
struct RulePlace<'s> {
    rules: Cursor<'s>,
    types: Cursor<'s>,
    resource: bool,
}

impl<'s> RulePlace<'s> {
    fn below(rules: Cursor<'s>, types: Cursor<'s>) -> Option<Self> {
        rules.node().rules_below.then_some(Self { rules, types, resource: types.node().embedded_resource })
    }
}

type Correlated<'v, 's> = (&'v Value, &'v Value, Cursor<'s>);

/// What decides whether an error is tolerated: the nearest value that has an old one.
#[derive(Clone, Copy)]
struct Ratchet<'v, 's> {
    current: Option<Correlated<'v, 's>>,
    parent: Option<Correlated<'v, 's>>,
}

impl<'v> Ratchet<'v, '_> {
    fn tolerates(self) -> bool {
        let nearest = self.current.or(self.parent);
        nearest.is_some_and(|(new, old, schema)| correlate::is_unchanged(schema, new, old))
    }

    fn field(self, name: &str, new: &'v Value) -> Self {
        let Some((_, old, schema)) = self.current else {
            return self;
        };
        if self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self { current: None, parent: None };
        }
        let child = schema.child(name).zip(correlate::old_field(schema, name, Some(old)));
        Self { current: child.map(|(schema, old)| (new, old, schema)), parent: self.current }
    }

    fn item(self, new: &'v Value) -> Self {
        let Some((_, old, schema)) = self.current else {
            return self;
        };
        let child = schema.items().zip(correlate::old_item(schema, new, Some(old)));
        Self { current: child.map(|(schema, old)| (new, old, schema)), parent: self.current }
    }
}

struct RuleRun {
    findings: Findings,
}

impl RuleRun {
    fn place(
        &mut self,
        new: &Value,
        old: Option<&Value>,
        place: RulePlace<'_>,
        ratchet: Ratchet<'_, '_>,
        path: &Path<'_>,
    ) {
        if new.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        if !place.rules.node().rules.is_empty() {
            self.rules(new, old, place, ratchet, path);
        }
        for &id in place.rules.node().constraints.iter().flat_map(|c| &c.all_of) {
            let rules = place.rules.sibling(id);
            if rules.node().rules_below {
                let ratchet = Ratchet { current: None, parent: ratchet.parent };
                self.place(new, old, RulePlace { rules, ..place }, ratchet, path);
            }
        }
        match new {
            Value::Object(fields) => self.fields(fields, old, place, ratchet, path),
            Value::Array(items) => self.items(items, old, place, ratchet, path),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn fields<'v>(
        &mut self,
        fields: &'v Map<String, Value>,
        old: Option<&'v Value>,
        place: RulePlace<'_>,
        ratchet: Ratchet<'v, '_>,
        path: &Path<'_>,
    ) {
        let old_of = |name: &str| old.and_then(Value::as_object).and_then(|old| old.get(name));
        let values = place.rules.values().zip(place.types.values()).and_then(|(r, t)| RulePlace::below(r, t));
        for (name, value) in values.into_iter().flat_map(|_| fields) {
            if let Some(place) = values {
                self.place(value, old_of(name), place, ratchet.field(name, value), &path.key(name));
            }
        }
        for (name, value) in fields {
            let child =
                place.rules.property(name).zip(place.types.property(name)).and_then(|(r, t)| RulePlace::below(r, t));
            if let Some(place) = child {
                self.place(value, old_of(name), place, ratchet.field(name, value), &path.field(name));
            }
        }
    }

    fn items<'v>(
        &mut self,
        items: &'v [Value],
        old: Option<&'v Value>,
        place: RulePlace<'_>,
        ratchet: Ratchet<'v, '_>,
        path: &Path<'_>,
    ) {
        let Some(child) = place.rules.items().zip(place.types.items()).and_then(|(r, t)| RulePlace::below(r, t)) else {
            return;
        };
        for (index, item) in items.iter().enumerate() {
            let old = correlate::old_item(place.types, item, old);
            self.place(item, old, child, ratchet.item(item), &path.index(index));
        }
    }

    fn rules(
        &mut self,
        new: &Value,
        old: Option<&Value>,
        place: RulePlace<'_>,
        ratchet: Ratchet<'_, '_>,
        path: &Path<'_>,
    ) {
        let activation = Activation { new, old, place, plain: OnceCell::new(), optional: OnceCell::new() };
        for rule in &place.rules.node().rules {
            if let Some((error, failed)) = evaluate(rule, &activation, path) {
                if failed && !rule.uses_old_self && ratchet.tolerates() {
                    self.findings.tolerated.push(error);
                } else {
                    self.findings.errors.push(error);
                }
            }
        }
    }
}

/// The variables of the rules at one place, made when the first rule needs them.
struct Activation<'v> {
    new: &'v Value,
    old: Option<&'v Value>,
    place: RulePlace<'v>,
    plain: OnceCell<Context<'v, 'v>>,
    optional: OnceCell<Context<'v, 'v>>,
}

impl<'v> Activation<'v> {
    fn convert(&self, value: &'v Value) -> Box<dyn Val + 'v> {
        to_cel(value, Some(self.place.types), self.place.resource)
    }

    fn context(&self, rule: &SchemaRule) -> &Context<'v, 'v> {
        if rule.optional_old_self {
            let old = || self.old.map_or_else(CelOptional::none, |old| CelOptional::of(self.convert(old)));
            self.optional.get_or_init(|| self.variables(Some(Box::new(old()))))
        } else {
            self.plain_context()
        }
    }

    /// Messages are always made with the plain `oldSelf`.
    fn plain_context(&self) -> &Context<'v, 'v> {
        self.plain.get_or_init(|| self.variables(self.old.map(|old| self.convert(old))))
    }

    fn variables(&self, old: Option<Box<dyn Val + 'v>>) -> Context<'v, 'v> {
        let mut context = Context::with_env(environment::shared());
        context.add_variable_as_val("self", self.convert(self.new));
        if let Some(old) = old {
            context.add_variable_as_val("oldSelf", old);
        }
        context
    }
}

/// Runs one rule; the flag tells a failed rule from one that could not be run.
fn evaluate(rule: &SchemaRule, activation: &Activation<'_>, path: &Path<'_>) -> Option<(FieldError, bool)> {
    let type_ = activation.place.types.node().type_;
    let program = match &rule.program {
        Ok(program) => program.as_ref()?,
        Err(why) => return Some((typed_error(path, type_, format!("rule compile error: {why}")), false)),
    };
    if rule.uses_old_self && activation.old.is_none() && !rule.optional_old_self {
        return None;
    }
    match program.execute(activation.context(rule)) {
        Ok(CelValue::Bool(true)) => None,
        Ok(_) => Some((failed(rule, activation, path), true)),
        Err(error) => Some((typed_error(path, type_, evaluation_error(&error, rule)), false)),
    }
}

/// An error that shows the type in place of the value.
fn typed_error(path: &Path<'_>, type_: Option<Type>, detail: String) -> FieldError {
    let mut error = FieldError::invalid(path, &Value::from(type_.map_or("", Type::name)), detail);
    name_root(&mut error, path);
    error
}

fn name_root(error: &mut FieldError, path: &Path<'_>) {
    if path.is_root() && error.field.is_empty() {
        "<nil>".clone_into(&mut error.field);
    }
}

fn evaluation_error(error: &ExecutionError, rule: &SchemaRule) -> String {
    let reason = match error {
        ExecutionError::NoSuchOverload(_) | ExecutionError::UnsupportedBinaryOperator(..) => {
            let rule = rule.shown();
            return format!(
                "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
            );
        }
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(_, CelValue::UInt(_), _) => "unsigned integer overflow".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    format!("{reason} evaluating rule: {}", rule.shown())
}

fn failed(rule: &SchemaRule, activation: &Activation<'_>, path: &Path<'_>) -> FieldError {
    let detail = message(rule, activation).unwrap_or_else(|| rule.default_message());
    let composite = matches!(activation.place.types.node().type_, Some(Type::Object | Type::Array));
    let value = (!composite).then(|| show(activation.new));
    let (kind, value, detail) = match rule.reason {
        Reason::Invalid => (ErrorKind::Invalid, value, detail),
        Reason::Forbidden => (ErrorKind::Forbidden, None, detail),
        Reason::Required => (ErrorKind::Required, None, detail),
        Reason::Duplicate => (ErrorKind::Duplicate, value, String::new()),
    };
    let mut error = FieldError { kind, field: path.to_string(), value, detail };
    if let Some(below) = rule.field_path.as_deref().and_then(|p| crate::json_path::normalise(p, activation.place.types))
    {
        error.field = if path.is_root() { below } else { format!("{path}.{below}") };
    }
    name_root(&mut error, path);
    error
}

fn message(rule: &SchemaRule, activation: &Activation<'_>) -> Option<String> {
    let program = rule.message_program.as_ref()?;
    let CelValue::String(text) = program.execute(activation.plain_context()).ok()? else {
        return None;
    };
    let text = text.trim();
    let usable = !text.is_empty() && text.len() <= MESSAGE_LIMIT && !text.contains('\n');
    usable.then(|| text.to_owned())
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "tests read better with literals")]
mod tests;
