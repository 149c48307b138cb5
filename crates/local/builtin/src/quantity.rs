//! Resource quantities: `"1.5Gi"`, `"100m"`, `1000` → a number, and the form that the server writes.

use std::cmp::Ordering;

use serde_json::Value;

/// The message for text that is no quantity.
pub const FORMAT_MESSAGE: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

/// A parsed quantity, in billionths.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

const NANO: i128 = 1_000_000_000;
const DECIMAL: &[(&str, i32)] =
    &[("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: &[(&str, u32)] = &[("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Reads a quantity; `None` where it has no such form.
    pub fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (digits, suffix) = unsigned.split_at(end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (format, base, exponent) = scale(suffix)?;
        let nanos = amount(whole, fraction, base, exponent);
        Some(Self { nanos: if text.starts_with('-') { -nanos } else { nanos }, format })
    }

    /// Reads a quantity from a JSON string or number.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text.trim()),
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether it has no fraction.
    pub fn is_integer(&self) -> bool {
        self.nanos % NANO == 0
    }

    /// The next whole number up.
    pub(crate) fn rounded_up(&self) -> i128 {
        self.nanos.div_euclid(NANO) + i128::from(self.nanos.rem_euclid(NANO) != 0)
    }

    /// Both together, in the form of the first that is not zero.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format }
    }

    /// How often the other goes into this.
    #[expect(clippy::cast_precision_loss, reason = "the real server divides doubles, too")]
    pub(crate) fn ratio_to(&self, other: &Self) -> f64 {
        self.nanos as f64 / other.nanos as f64
    }

    /// The next thousandth up, as amounts of resources are kept.
    #[must_use]
    pub fn round_up_to_milli(self) -> Self {
        const MICRO: i128 = 1_000_000;
        let rest = self.nanos.rem_euclid(MICRO);
        let nanos = if rest == 0 { self.nanos } else { self.nanos - rest + MICRO };
        Self { nanos, ..self }
    }

    /// The form in which the server writes it.
    pub fn canonical(&self) -> String {
        let small = self.nanos.abs() < 1024 * NANO;
        match self.format {
            Format::Binary if !small => self.binary(),
            Format::Binary | Format::Decimal => self.decimal(|exponent| {
                DECIMAL.iter().find(|(_, e)| *e == exponent).map_or(String::new(), |(suffix, _)| (*suffix).to_owned())
            }),
            Format::Exponent => {
                self.decimal(|exponent| if exponent == 0 { String::new() } else { format!("e{exponent}") })
            }
        }
    }

    fn decimal(&self, suffix: impl Fn(i32) -> String) -> String {
        let mut mantissa = self.nanos;
        let mut exponent = -9;
        while mantissa != 0 && mantissa % 1000 == 0 && exponent < 18 {
            mantissa /= 1000;
            exponent += 3;
        }
        if mantissa == 0 {
            exponent = 0;
        }
        format!("{mantissa}{}", suffix(exponent))
    }

    fn binary(&self) -> String {
        let mut mantissa = self.rounded_up();
        let mut suffix = "";
        for (name, _) in BINARY {
            if mantissa % 1024 != 0 {
                break;
            }
            mantissa /= 1024;
            suffix = name;
        }
        format!("{mantissa}{suffix}")
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.nanos.partial_cmp(&other.nanos)
    }
}

/// A suffix → format, base and exponent.
fn scale(suffix: &str) -> Option<(Format, i128, i32)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, 10, *exponent));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Binary, 2, i32::try_from(*exponent).ok()?));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Format::Exponent, 10, exponent))
}

/// Digits × base^exponent in billionths, rounded up and kept within what 128 bits hold.
fn amount(whole: &str, fraction: &str, base: i128, exponent: i32) -> i128 {
    let mut nanos: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes().take(18)) {
        nanos = nanos.saturating_mul(10).saturating_add(i128::from(digit - b'0'));
    }
    let places = i32::try_from(fraction.len().min(18)).unwrap_or(0);
    let ten = if base == 10 { exponent + 9 - places } else { 9 - places };
    if base == 2 {
        nanos = nanos.saturating_mul(1_i128.checked_shl(exponent.unsigned_abs()).unwrap_or(i128::MAX));
    }
    let power = 10_i128.checked_pow(ten.unsigned_abs()).unwrap_or(i128::MAX);
    if ten >= 0 { nanos.saturating_mul(power) } else { nanos / power + i128::from(nanos % power != 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        Quantity::parse(text).unwrap().canonical()
    }

    #[test]
    fn quantities_take_their_shortest_form() {
        let cases = [
            ("1000", "1k"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Ki", "1Mi"),
            ("1024", "1024"),
            ("100Mi", "100Mi"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1Ki", "1Ki"),
            ("-2", "-2"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("1500m", "1500m"),
            ("0.1", "100m"),
        ];
        for (given, wanted) in cases {
            assert_eq!(canonical(given), wanted, "{given}");
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "abc", "1.2.3", "1x", ".", "1 Gi", "--1"] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn quantities_compare_across_suffixes() {
        assert!(Quantity::parse("1Gi") > Quantity::parse("1G"));
        assert!(Quantity::parse("1000m") == Quantity::parse("1"));
    }
}
