//! Quantities of Kubernetes, as `100m` or `1.5Gi` → whether two are the same amount, however they are written.

use serde_json::Value;

/// Whether two amounts are the same. What is no quantity is compared as it is written.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (nanos(a), nanos(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// Whether a value is a quantity.
pub(crate) fn is_quantity(value: &Value) -> bool {
    nanos(value).is_some()
}

/// The amount in billionths; finer ones are cut, as Kubernetes has none.
fn nanos(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => parse(&number.to_string()),
        Value::String(text) => parse(text.trim()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn parse(text: &str) -> Option<i128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{part}").parse().ok()?;
    let (times, shift) = scale(suffix)?;
    // Billionths are nine decimal places; the places after the point and the suffix move them.
    let places = 9 + shift - i32::try_from(part.len()).ok()?;
    let amount = digits.checked_mul(times)?;
    let power = 10_i128.checked_pow(places.unsigned_abs())?;
    if places < 0 { Some(amount / power) } else { amount.checked_mul(power) }
}

/// A suffix as a factor and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| Some((1024_i128.pow(power), 0));
    match suffix {
        "" => Some((1, 0)),
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => Some((1, exponent.strip_prefix(['e', 'E'])?.parse().ok().filter(|power: &i32| power.abs() <= 18)?)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_amount_is_the_same_however_it_is_written() {
        for (a, b) in
            [("1000m", "1"), ("0.5", "500m"), ("1Gi", "1024Mi"), ("1e3", "1k"), ("1.5Ki", "1536"), ("+2", "2")]
        {
            assert!(same(&json!(a), &json!(b)), "{a} and {b}");
        }
        assert!(same(&json!(2), &json!("2")));
    }

    #[test]
    fn other_amounts_differ_and_what_is_none_is_told() {
        assert!(!same(&json!("1G"), &json!("1Gi")));
        for none in ["", "much", "1 Gi", "1Q", "--1", "1e99", "."] {
            assert!(!is_quantity(&json!(none)), "{none}");
        }
        assert!(!is_quantity(&json!({})));
    }
}
