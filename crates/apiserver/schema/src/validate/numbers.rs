//! Bounds and multiples of numbers. Integers are compared as integers, and so are the bounds printed.

use serde_json::{Number, Value};

use super::{Validated, invalid, loose};
use crate::constraints::{Bound, Constraints, FormatKind};
use crate::field::{Path, show};
use crate::go;
use crate::node::{Node, Type};

/// The largest difference between a float and an integer that still makes it one.
const EPSILON: f64 = 1e-9;

/// The first float above the 64-bit integers.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// Whether a float stands for an integer.
pub(super) fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(is_integral)
}

fn is_integral(value: f64) -> bool {
    if !value.is_finite() || value.abs() > 9_007_199_254_740_991.0 {
        return false;
    }
    let distance = (value - value.trunc()).abs();
    distance < EPSILON || 1.0 - distance < EPSILON
}

/// Whether a value is that of an enumeration; numbers are compared in the enumeration's type.
pub(super) fn is_same(value: &Value, candidate: &Value) -> bool {
    match (value, candidate) {
        (Value::Null, _) => false,
        (Value::Number(value), Value::Number(candidate)) => match (candidate.as_i64(), value.as_i64()) {
            (Some(candidate), Some(value)) => candidate == value,
            (Some(candidate), None) => value.as_f64().is_some_and(|value| truncated(value) == candidate),
            (None, _) => candidate.as_f64() == value.as_f64(),
        },
        (value, candidate) => value == candidate,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the server drops the fraction as well")]
fn truncated(value: f64) -> i64 {
    value as i64
}

#[expect(clippy::cast_precision_loss, reason = "bounds are floats on the server as well")]
fn widened(value: i64) -> f64 {
    value as f64
}

/// A number in the server's eyes.
#[derive(Clone, Copy)]
enum Native {
    Integer(i64),
    Float(f64),
}

impl Native {
    fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(integer) => Self::Integer(integer),
            None => Self::Float(number.as_f64().unwrap_or(0.0)),
        }
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Integer(integer) => widened(integer),
            Self::Float(float) => float,
        }
    }

    fn show(self) -> Value {
        match self {
            Self::Integer(integer) => Value::from(integer),
            Self::Float(float) => Value::from(float),
        }
    }
}

/// Checks range, multiple, minimum and maximum, in this order.
pub(super) fn validate(
    number: &Number,
    constraints: &Constraints,
    node: &Node,
    path: &Path<'_>,
    outcome: &mut Validated,
) {
    let value = Native::of(number);
    let range = Range { type_: node.type_, format: constraints.format.as_ref().map(|f| f.kind), path };
    range.check(value, "Checked", outcome);
    if let Some(factor) = constraints.multiple_of {
        multiple(value, factor, &range, path, outcome);
    }
    if let Some(minimum) = constraints.minimum {
        bound(value, minimum, LimitSide::Minimum, &range, path, outcome);
    }
    if let Some(maximum) = constraints.maximum {
        bound(value, maximum, LimitSide::Maximum, &range, path, outcome);
    }
}

struct Range<'a> {
    type_: Option<Type>,
    format: Option<FormatKind>,
    path: &'a Path<'a>,
}

impl Range<'_> {
    /// Adds an issue where a number does not fit the type and format; tells whether it does.
    fn check(&self, value: Native, what: &str, outcome: &mut Validated) -> bool {
        let (fits, type_) = match self.type_ {
            Some(Type::Integer) => (self.holds_integer(value), "integer"),
            Some(Type::Number) => (self.holds_float(value.as_float()), "number"),
            Some(Type::Object | Type::Array | Type::String | Type::Boolean) | None => (true, ""),
        };
        if !fits {
            let format = match self.format {
                Some(FormatKind::Int32) => "with format int32",
                Some(FormatKind::Int64) => "with format int64",
                Some(FormatKind::Float) => "with format float",
                Some(FormatKind::Double) => "with format double",
                Some(FormatKind::String(_)) | None => "(default format)",
            };
            outcome.add(loose(format!("{what} value must be of type {type_} {format} in {}", self.path)));
        }
        fits
    }

    fn holds_integer(&self, value: Native) -> bool {
        let integer = match value {
            Native::Integer(integer) => integer,
            Native::Float(float) if float.fract() == 0.0 && (-TOO_LARGE..TOO_LARGE).contains(&float) => {
                truncated(float)
            }
            Native::Float(_) => return false,
        };
        self.format != Some(FormatKind::Int32) || i32::try_from(integer).is_ok()
    }

    fn holds_float(&self, value: f64) -> bool {
        self.format != Some(FormatKind::Float) || value.abs() <= f64::from(f32::MAX)
    }
}

#[derive(Clone, Copy)]
enum LimitSide {
    Minimum,
    Maximum,
}

impl LimitSide {
    fn fails<T: PartialOrd + Copy>(self, value: T, bound: T, exclusive: bool) -> bool {
        match (self, exclusive) {
            (Self::Minimum, false) => value < bound,
            (Self::Minimum, true) => value <= bound,
            (Self::Maximum, false) => value > bound,
            (Self::Maximum, true) => value >= bound,
        }
    }

    fn words(self, exclusive: bool) -> &'static str {
        match (self, exclusive) {
            (Self::Minimum, false) => "greater than or equal to",
            (Self::Minimum, true) => "greater than",
            (Self::Maximum, false) => "less than or equal to",
            (Self::Maximum, true) => "less than",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Minimum => "Minimum boundary",
            Self::Maximum => "Maximum boundary",
        }
    }
}

fn bound(value: Native, bound: Bound, side: LimitSide, range: &Range<'_>, path: &Path<'_>, outcome: &mut Validated) {
    let exact = range.check(Native::Float(bound.at), side.name(), outcome);
    let (fails, shown, value) = match value {
        Native::Integer(integer) if exact => {
            let at = truncated(bound.at);
            (side.fails(integer, at, bound.exclusive), at.to_string(), value)
        }
        _ => {
            let float = value.as_float();
            (side.fails(float, bound.at, bound.exclusive), go::float(bound.at), Native::Float(float))
        }
    };
    if fails {
        let sentence = format!("{path} in body should be {} {shown}", side.words(bound.exclusive));
        outcome.add(invalid(path, &value.show(), sentence));
    }
}

fn multiple(value: Native, factor: f64, range: &Range<'_>, path: &Path<'_>, outcome: &mut Validated) {
    let exact = range.check(Native::Float(factor), "MultipleOf", outcome);
    let (value, factor, fails) = match value {
        Native::Integer(integer) if exact => {
            let whole = truncated(factor);
            (value, Native::Integer(whole), whole > 0 && integer % whole != 0)
        }
        _ => {
            let float = value.as_float();
            let times = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            (Native::Float(float), Native::Float(factor), !is_integral(times))
        }
    };
    let shown = show(&factor.show());
    if factor.as_float() <= 0.0 {
        let sentence = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        outcome.add(invalid(path, &factor.show(), sentence));
    } else if fails {
        let sentence = format!("{path} in body should be a multiple of {shown}");
        outcome.add(invalid(path, &value.show(), sentence));
    }
}
