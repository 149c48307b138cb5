//! Values as Go's `%q`, `%v` and `encoding/json` print them, since these stand in messages that clients compare.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Number, Value};

/// `%q` of a string.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            c if c.is_ascii_control() => write!(quoted, "\\x{:02x}", u32::from(c)).expect("a string takes any text"),
            c if is_unprintable(c) => write!(quoted, "\\u{:04x}", u32::from(c)).expect("a string takes any text"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn is_unprintable(c: char) -> bool {
    c.is_control() || (c.is_whitespace() && c != ' ') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}' | '\u{ad}')
}

/// `%v` of a number out of JSON.
pub fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(value)) => float(value),
        (None, None) => number.to_string(),
    }
}

/// `%v` of a float: an exponent from a million upwards and below 1e-4.
pub fn float(value: f64) -> String {
    with_exponent(value, 1e-4..1e6)
}

/// `encoding/json` of a float: an exponent from 1e21 upwards and below 1e-6.
fn json_float(value: f64) -> String {
    with_exponent(value, 1e-6..1e21).replace("e-0", "e-")
}

fn with_exponent(value: f64, plain: Range<f64>) -> String {
    let size = value.abs();
    if size == 0.0 || plain.contains(&size) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => text,
    }
}

/// Compact JSON as Go writes it: `<`, `>` and `&` escaped, floats without a trailing `.0`.
pub fn json(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (None, Some(value)) => json_float(value),
            _ => n.to_string(),
        },
        Value::String(_) => escape_html(&value.to_string()),
        Value::Array(items) => format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| {
                    format!("{}:{}", escape_html(&Value::from(name.as_str()).to_string()), json(value))
                })
                .collect();
            format!("{{{}}}", fields.join(","))
        }
    }
}

fn escape_html(text: &str) -> String {
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text.to_owned();
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        assert_eq!(quote("a\"b\\\n\u{1}é'"), r#""a\"b\\\n\x01é'""#);
    }

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        assert_eq!(float(1.0), "1");
        assert_eq!(float(0.5), "0.5");
        assert_eq!(float(3e9), "3e+09");
        assert_eq!(float(123_456.5), "123456.5");
        assert_eq!(float(0.00001), "1e-05");
        assert_eq!(float(1.5e300), "1.5e+300");
    }

    #[test]
    fn json_escapes_what_go_escapes() {
        assert_eq!(super::json(&json!({"a<": ["x&y", 1.0, 2, null]})), r#"{"a\u003c":["x\u0026y",1,2,null]}"#);
    }
}
