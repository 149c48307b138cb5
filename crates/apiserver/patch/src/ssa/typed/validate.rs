//! A value → what is wrong with it by its shape, in the words of the real server.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::shape::{Relation, Scalar, Shape, ViewedAs};
use crate::ssa::path::PathElement;
use crate::ssa::scalar;

/// Whether two items of a list may have one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    Allowed,
    Refused,
}

/// Everything that is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    words: String,
}

/// Checks a value against its shape.
pub(crate) fn validate(value: &Value, shape: Shape<'_>, duplicates: Duplicates) -> Result<(), Problems> {
    let mut problems = Vec::new();
    Checker { duplicates }.check(value, shape, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

#[derive(Clone, Copy)]
struct Checker {
    duplicates: Duplicates,
}

impl Checker {
    fn check(self, value: &Value, shape: Shape<'_>, problems: &mut Vec<Problem>) {
        match (shape.form_of(value), value) {
            (_, Value::Null) => {}
            (ViewedAs::Scalar, _) => problems.extend(scalar_problem(value, shape.scalar())),
            (ViewedAs::Map, Value::Object(fields)) => self.fields(fields, shape, problems),
            (ViewedAs::List, Value::Array(items)) => self.items(items, shape, problems),
            (ViewedAs::Map, _) => problems.push(here(format!("expected map, got &{{{}}}", scalar::plain(value)))),
            (ViewedAs::List, _) => problems.push(here(format!("expected list, got &{{{}}}", scalar::plain(value)))),
        }
    }

    fn fields(self, fields: &Map<String, Value>, shape: Shape<'_>, problems: &mut Vec<Problem>) {
        for (name, value) in fields {
            let Some(below) = shape.value(name) else {
                problems.push(Problem { path: format!(".{name}"), words: "field not declared in schema".to_owned() });
                return;
            };
            self.below(value, below, &mut || PathElement::field(name), problems);
        }
    }

    fn items(self, items: &[Value], shape: Shape<'_>, problems: &mut Vec<Problem>) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if matches!(shape.relation(), Relation::Atomic) {
                let place = i64::try_from(index).unwrap_or(i64::MAX);
                self.below(item, shape.items(), &mut || PathElement::Index(place), problems);
                continue;
            }
            let element = match shape.element_of(item) {
                Ok(element) => element,
                Err(reason) => {
                    problems.push(here(format!("element {index}: {reason}")));
                    return;
                }
            };
            if self.duplicates == Duplicates::Refused && seen.contains(&element) {
                problems.push(here(format!("duplicate entries for key {element}")));
            }
            self.below(item, shape.items(), &mut || element.clone(), problems);
            seen.insert(element);
        }
    }

    fn below(
        self,
        value: &Value,
        shape: Shape<'_>,
        element: &mut dyn FnMut() -> PathElement,
        problems: &mut Vec<Problem>,
    ) {
        let before = problems.len();
        self.check(value, shape, problems);
        if problems.len() > before {
            let prefix = element().to_string();
            problems[before..].iter_mut().for_each(|problem| problem.path.insert_str(0, &prefix));
        }
    }
}

fn here(words: String) -> Problem {
    Problem { path: String::new(), words }
}

fn scalar_problem(value: &Value, wanted: Scalar) -> Option<Problem> {
    let words = match (wanted, value) {
        (Scalar::Numeric, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_))
        | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return None,
        (Scalar::Numeric, _) => format!("expected numeric (int or float), got {}", scalar::type_name(value)),
        (Scalar::Text, _) => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", scalar::syntax(value))
        }
        (Scalar::Boolean, _) => format!("expected boolean, got &{{{}}}", scalar::plain(value)),
        (Scalar::Any, _) => format!("expected any scalar, got &{{{}}}", scalar::plain(value)),
    };
    Some(here(words))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.words) } else { write!(f, "{}: {}", self.path, self.words) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return only.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}
