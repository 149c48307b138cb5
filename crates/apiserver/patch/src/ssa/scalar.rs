//! Order, equality and text of JSON values as field ownership needs them: `80` and `80.0` are one value, and texts are
//! those that Go's `fmt` and `encoding/json` would write, because they stand in stored keys and in messages.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Whether two values are the same, numbers by what they count.
pub(crate) fn equals(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right) == Ordering::Equal,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equals(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|((name, left), (other, right))| name == other && equals(left, right))
        }
        _ => left == right,
    }
}

/// A total order over values: numbers, strings, booleans, lists, maps, null.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let differing = left.iter().zip(right).map(|(left, right)| compare(left, right)).find(|o| o.is_ne());
            differing.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let pairs = left.iter().zip(right);
            let differing = pairs.map(|((a, x), (b, y))| a.cmp(b).then_with(|| compare(x, y))).find(|o| o.is_ne());
            differing.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => float(left).total_cmp(&float(right)),
    }
}

/// As a float, with one zero only.
fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default() + 0.0
}

/// A value as a path shows it: `name="a"`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>().concat()
        }
    }
}

/// `%v` of the value.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// `%#v` of the value.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number_text(number),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}:{}", quoted(name), syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// `%T` of the value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `80` for `80.0`, so that one number has one text.
pub(crate) fn number_text(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    let float = float(number);
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        return exponent(float);
    }
    format!("{float}")
}

/// `1e+21`, `2.5e-07`: the sign always, two digits at least.
fn exponent(float: f64) -> String {
    let text = format!("{float:e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
    format!("{digits}e{sign}{power:0>2}")
}

/// `%q` of a text.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) < 0x80 => write!(out, "\\x{:02x}", u32::from(c)).expect("a String takes any text"),
            c if u32::from(c) < 0x1_0000 => write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes any text"),
            c => write!(out, "\\U{:08x}", u32::from(c)).expect("a String takes any text"),
        }
    }
    out.push('"');
    out
}

/// Whether a character shows ink or is the plain space.
pub(crate) fn is_printable(c: char) -> bool {
    if c == ' ' {
        return true;
    }
    // What `escape_debug` writes as itself is printable; whitespace is not, and neither are quotes escaped for syntax.
    let shown_as_itself = matches!(c, '"' | '\'' | '\\') || {
        let mut escaped = c.escape_debug();
        escaped.next() == Some(c) && escaped.next().is_none()
    };
    // Combining marks are printable although `escape_debug` escapes them.
    let combining = !shown_as_itself && !c.is_control() && c.is_alphanumeric();
    (shown_as_itself || combining) && !c.is_whitespace()
}

/// Compact JSON with `<`, `>`, `&` and the line separators escaped, as stored keys and annotations carry it.
pub(crate) fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => write_json_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => write_json_object(fields.iter().map(|(name, value)| (name.as_str(), value)), out),
    }
}

/// One JSON object of the given fields, in their order.
pub(crate) fn write_json_object<'a>(fields: impl Iterator<Item = (&'a str, &'a Value)>, out: &mut String) {
    out.push('{');
    for (index, (name, value)) in fields.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_json_text(name, out);
        out.push(':');
        write_json(value, out);
    }
    out.push('}');
}

fn write_json_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes any text");
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_what_they_count() {
        assert!(equals(&json!({"port": [80]}), &json!({"port": [80.0]})));
        assert!(!equals(&json!(80), &json!("80")));
        assert_eq!(compare(&json!(9), &json!(10.5)), Ordering::Less);
        assert_eq!(compare(&json!(10), &json!("1")), Ordering::Less);
        assert_eq!(compare(&json!([1, 2]), &json!([1])), Ordering::Greater);
    }

    #[test]
    fn numbers_have_one_text() {
        assert_eq!(shown(&json!(80.0)), "80");
        assert_eq!(shown(&json!(1.5)), "1.5");
        assert_eq!(shown(&json!(1e30)), "1e+30");
        assert_eq!(shown(&json!(2.5e-7)), "2.5e-07");
    }

    #[test]
    fn values_are_worded_as_go_would() {
        let value = json!({"a": [1, "x", null], "b": true});

        assert_eq!(plain(&value), "map[a:[1 x <nil>] b:true]");
        assert_eq!(
            syntax(&value),
            r#"map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}, "b":true}"#
        );
    }

    #[test]
    fn stored_json_escapes_markup() {
        let mut out = String::new();

        write_json(&json!({"a": "<b>&\u{2028}\u{1}\n"}), &mut out);

        assert_eq!(out, r#"{"a":"\u003cb\u003e\u0026\u2028\u0001\n"}"#);
    }

    #[test]
    fn control_and_space_characters_are_not_printable() {
        assert!(is_printable('a') && is_printable(' ') && is_printable('é') && is_printable('"') && is_printable('世'));
        assert!(!is_printable('\n') && !is_printable('\u{a0}') && !is_printable('\u{7f}') && !is_printable('\u{200b}'));
    }
}
