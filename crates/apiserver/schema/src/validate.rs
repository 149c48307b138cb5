//! A custom resource and its schema → what is wrong with it, in the words of kube-openapi's validator.
//!
//! Fields of the resource are named twice: by the error's field and inside its sentence ("spec.x in body …"). What a
//! junctor or a number's range has to say stands under no field, as on the real server.

mod embedded;
mod lists;
mod numbers;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::constraints::{Constraints, FormatKind};
use crate::correlate;
use crate::field::{ErrorKind, FieldError, Path, show};
use crate::go;
use crate::node::{Additional, Cursor, Node, Type};

/// What a schema without value keywords asks for.
static NONE: LazyLock<Constraints> = LazyLock::new(Constraints::default);

/// How an error without a field names it.
const NO_FIELD: &str = "<nil>";

/// Checks a new object: its schema, its embedded resources, its sets and maps.
pub fn validate(value: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
    let mut errors = Validator { base: "" }.create(value, schema);
    errors.extend(embedded::validate(value, schema));
    errors.extend(lists::validate(value, schema));
    errors
}

/// Checks a changed object; what was wrong before and did not change is tolerated.
pub fn validate_update(new: &Value, old: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
    let mut errors = Validator { base: "" }.update(new, Some(old), schema);
    errors.extend(embedded::validate(new, schema));
    errors.extend(changed_lists(new, old, schema));
    errors
}

/// Checks an object whose status was written: only `status` counts, and its sentences leave out `status.`.
pub fn validate_status_update(new: &Value, old: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
    let mut errors = match (new.get("status"), schema.property("status")) {
        (Some(status), Some(schema)) => Validator { base: "status" }.update(status, old.get("status"), schema),
        _ => Vec::new(),
    };
    errors.extend(changed_lists(new, old, schema));
    errors
}

/// Checks a value that stands at `base` against its schema alone.
pub(crate) fn validate_at(base: &str, value: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
    Validator { base }.create(value, schema)
}

/// Checks the embedded resources of a value that stands at `base`.
pub(crate) fn embedded_at(base: &str, value: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
    let mut errors = embedded::validate(value, schema);
    for error in &mut errors {
        error.move_under(base);
    }
    errors
}

fn changed_lists(new: &Value, old: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
    let errors = lists::validate(new, schema);
    if errors.is_empty() || !lists::validate(old, schema).is_empty() {
        return Vec::new();
    }
    errors
}

/// The error that stands for all CEL rules when the object is too wrong to run them.
pub fn blocks_rules(errors: &[FieldError]) -> Option<FieldError> {
    let blocking = |kind| {
        matches!(
            kind,
            ErrorKind::NotSupported
                | ErrorKind::Required
                | ErrorKind::TooLong
                | ErrorKind::TooMany
                | ErrorKind::TypeInvalid
        )
    };
    errors.iter().any(|error| blocking(error.kind)).then(|| FieldError {
        kind: ErrorKind::Invalid,
        field: NO_FIELD.to_owned(),
        value: Some("null".to_owned()),
        detail: "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation".to_owned(),
    })
}

/// An error and the sentence that tells it from others.
#[derive(Clone)]
struct Issue {
    error: FieldError,
    sentence: String,
}

/// What came of one schema: issues, and how many checks were made, by which the closest alternative is found.
#[derive(Default)]
struct Validated {
    issues: Vec<Issue>,
    checks: usize,
}

impl Validated {
    fn is_valid(&self) -> bool {
        self.issues.is_empty()
    }

    fn add(&mut self, issue: Issue) {
        if self.issues.iter().all(|known| known.sentence != issue.sentence) {
            self.issues.push(issue);
        }
    }

    fn merge(&mut self, other: Validated) {
        self.checks += other.checks;
        for issue in other.issues {
            self.add(issue);
        }
    }
}

/// Whether old values are followed on the way down.
#[derive(Clone, Copy)]
enum Against<'o> {
    /// Everything counts.
    Nothing,
    /// What equals this does not count.
    Old(&'o Value),
}

impl<'o> Against<'o> {
    fn from(old: Option<&'o Value>) -> Self {
        old.map_or(Self::Nothing, Self::Old)
    }

    fn value(self) -> Option<&'o Value> {
        match self {
            Self::Nothing => None,
            Self::Old(old) => Some(old),
        }
    }
}

struct Validator<'b> {
    /// The field above the validated value.
    base: &'b str,
}

impl Validator<'_> {
    fn create(&self, value: &Value, schema: Cursor<'_>) -> Vec<FieldError> {
        self.errors(self.place(value, schema, &Path::root(), Against::Nothing))
    }

    fn update(&self, new: &Value, old: Option<&Value>, schema: Cursor<'_>) -> Vec<FieldError> {
        let errors = self.create(new, schema);
        if errors.is_empty() {
            return errors;
        }
        self.errors(self.place(new, schema, &Path::root(), Against::from(old)))
    }

    fn errors(&self, outcome: Validated) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = outcome.issues.into_iter().map(|issue| issue.error).collect();
        if !self.base.is_empty() {
            for error in &mut errors {
                error.move_under(self.base);
            }
        }
        errors
    }

    fn place(&self, value: &Value, schema: Cursor<'_>, path: &Path<'_>, against: Against<'_>) -> Validated {
        let mut outcome = self.value(value, schema, path, against);
        if let Against::Old(old) = against
            && !outcome.is_valid()
            && correlate::is_unchanged(schema, value, old)
        {
            outcome.issues.clear();
        }
        outcome
    }

    fn value(&self, value: &Value, schema: Cursor<'_>, path: &Path<'_>, against: Against<'_>) -> Validated {
        let node = schema.node();
        let constraints = node.constraints.as_deref().unwrap_or(&NONE);
        let mut outcome = Validated::default();
        if value.is_null() {
            outcome.merge(null_type(node, path));
            allowed(constraints, value, path, &mut outcome);
            return outcome;
        }
        if !types(node).is_empty() || constraints.format.is_some() {
            outcome.merge(type_of(value, node, path));
            outcome.checks += 1;
        }
        outcome.merge(self.junctors(value, constraints, schema, path));
        match value {
            Value::String(text) => string(text, constraints, path, &mut outcome),
            Value::Number(number) => {
                numbers::validate(number, constraints, node, path, &mut outcome);
                outcome.checks += 2;
            }
            Value::Array(items) => self.items(items, schema, path, against, &mut outcome),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        allowed(constraints, value, path, &mut outcome);
        if let Value::Object(fields) = value {
            self.fields(fields, schema, path, against, &mut outcome);
            outcome.checks += 1;
        }
        outcome.checks += 2;
        outcome
    }

    fn junctors(&self, value: &Value, constraints: &Constraints, schema: Cursor<'_>, path: &Path<'_>) -> Validated {
        let mut outcome = Validated { issues: Vec::new(), checks: 2 };
        let run = |id| self.value(value, schema.sibling(id), path, Against::Nothing);
        if !constraints.any_of.is_empty() {
            any_of(constraints.any_of.iter().map(|&id| run(id)), path, &mut outcome);
        }
        if !constraints.one_of.is_empty() {
            one_of(constraints.one_of.iter().map(|&id| run(id)), path, &mut outcome);
        }
        if !constraints.all_of.is_empty() {
            all_of(constraints.all_of.iter().map(|&id| run(id)), path, &mut outcome);
        }
        if constraints.not.is_some_and(|id| run(id).is_valid()) {
            outcome.add(loose(format!("{} must not validate the schema (not)", quoted(path))));
        }
        outcome
    }

    fn items(
        &self,
        items: &[Value],
        schema: Cursor<'_>,
        path: &Path<'_>,
        against: Against<'_>,
        outcome: &mut Validated,
    ) {
        if let Some(item_schema) = schema.items() {
            for (index, item) in items.iter().enumerate() {
                let old = correlate::old_item(schema, item, against.value());
                outcome.merge(self.place(item, item_schema, &path.index(index), Against::from(old)));
            }
        }
        outcome.checks += 2;
        let Some(constraints) = schema.node().constraints.as_deref() else {
            return;
        };
        let count = items.len() as u64;
        if let Some(least) = constraints.min_items.filter(|least| count < *least) {
            let sentence = format!("{path} in body should have at least {least} items");
            outcome.add(invalid(path, &Value::from(count), sentence));
        }
        if let Some(most) = constraints.max_items.filter(|most| count > *most) {
            let sentence = format!("{path} in body should have at most {most} items");
            outcome.add(issue(FieldError::too_many(&here(path), items.len(), most), path, sentence));
        }
        if constraints.unique_items && items.iter().enumerate().any(|(at, item)| items[..at].contains(item)) {
            outcome.add(invalid(path, &Value::from(""), format!("{path} in body shouldn't contain duplicates")));
        }
    }

    fn fields(
        &self,
        fields: &Map<String, Value>,
        schema: Cursor<'_>,
        path: &Path<'_>,
        against: Against<'_>,
        outcome: &mut Validated,
    ) {
        let node = schema.node();
        field_count(fields.len(), node.constraints.as_deref().unwrap_or(&NONE), path, outcome);
        for (name, value) in fields {
            if node.properties.contains_key(name) {
                continue;
            }
            match node.additional {
                Additional::Closed => {
                    let sentence = format!("{path}.{name} in body is a forbidden property");
                    outcome.add(invalid(path, &Value::from(name.as_str()), sentence));
                }
                Additional::Values(id) => {
                    outcome.merge(self.field(name, value, schema.sibling(id), schema, path, against));
                }
                Additional::Unset | Additional::Open => {}
            }
        }
        for (name, &id) in &node.properties {
            if let Some(value) = fields.get(name) {
                outcome.merge(self.field(name, value, schema.sibling(id), schema, path, against));
            }
        }
        for name in node.required.iter().filter(|name| !fields.contains_key(*name)) {
            let path = path.field(name);
            outcome.add(issue(FieldError::required(&path, ""), &path, format!("{path} in body is required")));
        }
    }

    fn field(
        &self,
        name: &str,
        value: &Value,
        schema: Cursor<'_>,
        parent: Cursor<'_>,
        path: &Path<'_>,
        against: Against<'_>,
    ) -> Validated {
        let own_version = path.is_root() && self.base.is_empty() && matches!(name, "apiVersion" | "kind");
        let old = correlate::old_field(parent, name, against.value()).filter(|_| !own_version);
        self.place(value, schema, &path.field(name), Against::from(old))
    }
}

/// The types that a node allows.
fn types(node: &Node) -> &'static [Type] {
    match node.type_ {
        Some(Type::Object) => &[Type::Object],
        Some(Type::Array) => &[Type::Array],
        Some(Type::String) => &[Type::String],
        Some(Type::Integer) => &[Type::Integer],
        Some(Type::Number) => &[Type::Number],
        Some(Type::Boolean) => &[Type::Boolean],
        None if node.int_or_string => &[Type::Integer, Type::String],
        None => &[],
    }
}

fn type_names(node: &Node) -> String {
    types(node).iter().map(|t| t.name()).collect::<Vec<_>>().join(",")
}

fn null_type(node: &Node, path: &Path<'_>) -> Validated {
    if types(node).is_empty() || node.nullable {
        return Validated { issues: Vec::new(), checks: 1 };
    }
    Validated { issues: vec![wrong_type(path, &type_names(node), "null")], checks: 0 }
}

fn type_of(value: &Value, node: &Node, path: &Path<'_>) -> Validated {
    let passed = Validated { issues: Vec::new(), checks: 1 };
    let failed = |wanted: &str, got: &str| Validated { issues: vec![wrong_type(path, wanted, got)], checks: 0 };
    let wanted = types(node);
    let actual = Type::of(value);
    let whole = actual == Type::Number && wanted.contains(&Type::Integer) && numbers::is_whole(value);
    let fits = wanted.contains(&actual) || whole || (actual == Type::Integer && wanted.contains(&Type::Number));
    let format = node.constraints.as_deref().and_then(|c| c.format.as_ref());
    let textual = matches!(value, Value::String(_) | Value::Array(_));
    if let Some(format) = format {
        let actual_format = match actual {
            Type::Integer => "int64",
            Type::Number => "float64",
            Type::Object | Type::Array | Type::String | Type::Boolean => "",
        };
        if !textual && !fits && actual_format != format.name {
            return failed(&format.name, actual_format);
        }
        if textual && !wanted.contains(&Type::Number) && !wanted.contains(&Type::Integer) {
            return passed;
        }
    }
    if fits { passed } else { failed(&type_names(node), actual.name()) }
}

fn wrong_type(path: &Path<'_>, wanted: &str, got: &str) -> Issue {
    let sentence = format!("{path} in body must be of type {wanted}: {}", go::quote(got));
    type_issue(path, got, sentence)
}

fn type_issue(path: &Path<'_>, value: &str, sentence: String) -> Issue {
    let error = FieldError::with_value(ErrorKind::TypeInvalid, path, &Value::from(value), sentence.clone());
    issue(error, path, sentence)
}

fn string(text: &str, constraints: &Constraints, path: &Path<'_>, outcome: &mut Validated) {
    outcome.checks += 1;
    if let Some(found) = string_issue(text, constraints, path) {
        outcome.add(found);
    }
    if let Some(format) = &constraints.format
        && let FormatKind::String(kind) = format.kind
    {
        outcome.checks += 1;
        if !kind.accepts(text) {
            let sentence = format!("{path} in body must be of type {}: {}", format.name, go::quote(text));
            outcome.add(type_issue(path, text, sentence));
        }
    }
}

/// The first of length and pattern that a text fails.
fn string_issue(text: &str, constraints: &Constraints, path: &Path<'_>) -> Option<Issue> {
    let bounded = constraints.max_length.is_some() || constraints.min_length.is_some();
    let length = if bounded { text.chars().count() as u64 } else { 0 };
    if let Some(most) = constraints.max_length.filter(|most| length > *most) {
        let sentence = format!("{path} in body should be at most {most} chars long");
        return Some(issue(FieldError::too_long(path, most), path, sentence));
    }
    if let Some(least) = constraints.min_length.filter(|least| length < *least) {
        let sentence = format!("{path} in body should be at least {least} chars long");
        return Some(invalid(path, &Value::from(text), sentence));
    }
    let pattern = constraints.pattern.as_ref()?;
    let shown = match &pattern.regex {
        Ok(regex) if regex.is_match(text) => return None,
        Ok(_) => pattern.source.clone(),
        Err(reason) => format!("{}, but pattern is invalid: {reason}", pattern.source),
    };
    Some(invalid(path, &Value::from(text), format!("{path} in body should match '{shown}'")))
}

fn allowed(constraints: &Constraints, value: &Value, path: &Path<'_>, outcome: &mut Validated) {
    let allowed = &constraints.allowed;
    if allowed.is_empty() || allowed.iter().any(|candidate| numbers::is_same(value, candidate)) {
        return;
    }
    let names: Vec<String> = allowed.iter().map(|v| v.as_str().map_or_else(|| go::json(v), str::to_owned)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sentence = format!("{path} in body should be one of {names:?}");
    outcome.add(issue(FieldError::not_supported(path, value, &names), path, sentence));
}

fn field_count(count: usize, constraints: &Constraints, path: &Path<'_>, outcome: &mut Validated) {
    let size = count as u64;
    if let Some(least) = constraints.min_properties.filter(|least| size < *least) {
        let sentence = format!("{path} in body should have at least {least} properties");
        outcome.add(invalid(path, &Value::from(size), sentence));
    }
    if let Some(most) = constraints.max_properties.filter(|most| size > *most) {
        let sentence = format!("{path} in body should have at most {most} properties");
        outcome.add(issue(FieldError::too_many(path, count, most), path, sentence));
    }
}

/// The failure that came furthest; the first of equals.
fn closest(best: Option<Validated>, other: Validated) -> Validated {
    match best {
        Some(best) if best.checks >= other.checks => best,
        _ => other,
    }
}

fn any_of(outcomes: impl Iterator<Item = Validated>, path: &Path<'_>, outcome: &mut Validated) {
    let mut best = None;
    for found in outcomes {
        if found.is_valid() {
            outcome.merge(found);
            return;
        }
        best = Some(closest(best, found));
    }
    outcome.add(loose(format!("{} must validate at least one schema (anyOf)", quoted(path))));
    if let Some(best) = best {
        outcome.merge(best);
    }
}

fn one_of(outcomes: impl Iterator<Item = Validated>, path: &Path<'_>, outcome: &mut Validated) {
    let (mut best, mut first, mut valid) = (None, None, 0);
    for found in outcomes {
        if found.is_valid() {
            valid += 1;
            first = first.or(Some(found));
        } else if valid == 0 {
            best = Some(closest(best, found));
        }
    }
    let remark = match valid {
        1 => {
            if let Some(first) = first {
                outcome.merge(first);
            }
            return;
        }
        0 => "Found none valid".to_owned(),
        count => format!("Found {count} valid alternatives"),
    };
    outcome.add(loose(format!("{} must validate one and only one schema (oneOf). {remark}", quoted(path))));
    if let Some(best) = best.filter(|_| valid == 0) {
        outcome.merge(best);
    }
}

fn all_of(outcomes: impl ExactSizeIterator<Item = Validated>, path: &Path<'_>, outcome: &mut Validated) {
    let (mut valid, count) = (0, outcomes.len());
    for found in outcomes {
        valid += usize::from(found.is_valid());
        outcome.merge(found);
    }
    if valid != count {
        let remark = if valid == 0 { ". None validated" } else { "" };
        outcome.add(loose(format!("{} must validate all the schemas (allOf){remark}", quoted(path))));
    }
}

fn quoted(path: &Path<'_>) -> String {
    go::quote(&path.to_string())
}

fn here<'a>(path: &Path<'a>) -> Path<'a> {
    *path
}

/// An error that names its field.
fn issue(mut error: FieldError, path: &Path<'_>, sentence: String) -> Issue {
    if path.is_root() {
        NO_FIELD.clone_into(&mut error.field);
    }
    Issue { error, sentence }
}

fn invalid(path: &Path<'_>, value: &Value, sentence: String) -> Issue {
    issue(FieldError::invalid(path, value, sentence.clone()), path, sentence)
}

/// An error about no field.
fn loose(sentence: String) -> Issue {
    let error = FieldError {
        kind: ErrorKind::Invalid,
        field: NO_FIELD.to_owned(),
        value: Some(show(&Value::from(""))),
        detail: sentence.clone(),
    };
    Issue { error, sentence }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "tests read better with literals")]
mod tests;
