//! Resource quantities: `"1.5Gi"`, `"100m"`, `1000` → a number, and the form that the server writes.
//!
//! A number that is written in its shortest form, or nearly so (`01`, `+1`, `1.500`), is kept as it was written; others
//! take their shortest form. Numbers of any length are kept; they are compared as far as 128 bits hold them.

use std::cmp::Ordering;

use serde_json::Value;

/// The message for text that is no quantity.
const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// The message for a number with something behind it that is no unit.
const SUFFIX: &str = "unable to parse quantity's suffix";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuantityFormat {
    Decimal,
    Exponent,
    Binary,
}

/// A parsed quantity, in billionths.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    format: QuantityFormat,
}

const NANO: i128 = 1_000_000_000;
/// The most whole ones that there is room for.
const MOST: i128 = i128::MAX / NANO * NANO;
/// The exponent of ten of the finest part of any quantity, and of an amount of a resource.
const FINEST: i32 = -9;
const FINEST_RESOURCE: i32 = -3;
const DECIMAL: &[(&str, i32)] =
    &[("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: &[(&str, u32)] = &[("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Why a value is no quantity, in the server's words.
pub(crate) fn problem(value: &Value) -> Option<&'static str> {
    source(value).map_or(Some(FORM), |text| QuantityParts::read(text.trim()).err())
}

/// The form in which the server writes a value that was given to it.
pub(crate) fn written(value: &Value) -> Option<String> {
    Some(QuantityParts::read(source(value)?.trim()).ok()?.written(FINEST))
}

/// The same for an amount of a resource, which is never finer than a thousandth.
pub(crate) fn written_resource(value: &Value) -> Option<String> {
    Some(QuantityParts::read(source(value)?.trim()).ok()?.written(FINEST_RESOURCE))
}

fn source(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

impl Quantity {
    /// Reads a quantity; `None` where it has no such form.
    pub fn parse(text: &str) -> Option<Self> {
        let parts = QuantityParts::read(text).ok()?;
        let number = parts.number(FINEST);
        let nanos = number.nanos();
        Some(Self { nanos: if parts.negative { -nanos } else { nanos }, format: parts.format })
    }

    /// Reads a quantity from a JSON string or number.
    pub fn from_value(value: &Value) -> Option<Self> {
        Self::parse(source(value)?.trim())
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

    /// How many of the other it takes to hold this, rounded up; none where the other is zero.
    pub fn parts_of(&self, part: &Self) -> Option<i128> {
        let whole = self.nanos.checked_div_euclid(part.nanos)?;
        Some(whole + i128::from(self.nanos.rem_euclid(part.nanos) != 0))
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

    /// The shortest form.
    pub fn canonical(&self) -> String {
        let number = Number::new(self.nanos.unsigned_abs().to_string(), FINEST);
        number.canonical(self.format, self.nanos < 0)
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

/// A quantity's text, taken apart.
struct QuantityParts<'a> {
    text: &'a str,
    negative: bool,
    /// Digits before the point without leading zeros, `0` where there are none.
    whole: &'a str,
    fraction: &'a str,
    format: QuantityFormat,
    /// A power of ten, or of two where the format is binary.
    exponent: i32,
}

impl<'a> QuantityParts<'a> {
    /// Leading zeros, a point alone and even no digits at all are read as the server reads them.
    fn read(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(FORM);
        }
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches('0');
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        if !is_suffix(suffix) {
            return Err(FORM);
        }
        let (format, exponent) = scale(suffix).ok_or(SUFFIX)?;
        let whole = if whole.is_empty() { "0" } else { whole };
        Ok(Self { text, negative: text.starts_with('-'), whole, fraction, format, exponent })
    }

    /// The amount without its sign: parts finer than `finest` count as a whole one, and what is counted in powers of two
    /// ends where 63 bits do.
    fn number(&self, finest: i32) -> Number {
        let digits = format!("{}{}", self.whole, self.fraction);
        let places = i32::try_from(self.fraction.len()).unwrap_or(i32::MAX);
        if self.format != QuantityFormat::Binary {
            return Number::new(digits, self.exponent.saturating_sub(places)).rounded(finest);
        }
        let number = Number::new(times(&digits, 1 << self.exponent), -places).rounded(finest);
        let most = i128::from(i64::MAX);
        if number.nanos() > most * NANO { Number::new(most.to_string(), 0) } else { number }
    }

    /// The power of ten of the last digit, where the server keeps the text as it is.
    fn kept(&self) -> Option<i32> {
        let shifted = format!("{}{}", self.whole, self.fraction);
        if self.format == QuantityFormat::Binary {
            let places = usize::try_from(self.exponent * 3 / 10 + 1).unwrap_or(usize::MAX);
            let short = self.fraction.is_empty() && self.whole.len() + places <= 15;
            let odd = self.whole.parse::<u64>().is_ok_and(|value| value % 8 != 0);
            return (short && odd).then_some(0);
        }
        let last = self.exponent.checked_sub(i32::try_from(self.fraction.len()).ok()?)?;
        let plain = shifted.len() <= 18 && !shifted.starts_with('0') && !shifted.ends_with("000");
        (plain && last >= FINEST && last % 3 == 0).then_some(last)
    }

    fn written(&self, finest: i32) -> String {
        match self.kept() {
            Some(last) if last >= finest => self.text.to_owned(),
            _ => {
                // First as any quantity is read, then as this one is kept.
                let number = self.number(FINEST).rounded(finest);
                let fraction = number.nanos() > 0 && number.nanos() < NANO;
                let format = if self.format == QuantityFormat::Binary && fraction {
                    QuantityFormat::Decimal
                } else {
                    self.format
                };
                number.canonical(format, self.negative)
            }
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Whether letters of units, a sign and digits follow each other.
fn is_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// A suffix → format and exponent.
fn scale(suffix: &str) -> Option<(QuantityFormat, i32)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((QuantityFormat::Decimal, *exponent));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((QuantityFormat::Binary, i32::try_from(*exponent).ok()?));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((QuantityFormat::Exponent, exponent))
}

/// A number times a factor, in decimal digits.
fn times(digits: &str, factor: u64) -> String {
    let mut carry: u128 = 0;
    let mut reversed = Vec::new();
    for digit in digits.bytes().rev() {
        carry += u128::from(digit - b'0') * u128::from(factor);
        reversed.push(char::from(b'0' + u8::try_from(carry % 10).unwrap_or(0)));
        carry /= 10;
    }
    let high = if carry == 0 { String::new() } else { carry.to_string() };
    high + &reversed.into_iter().rev().collect::<String>()
}

/// Decimal digits without leading or trailing zeros, times a power of ten. No digits are zero.
struct Number {
    digits: String,
    exponent: i32,
}

impl Number {
    fn new(digits: String, exponent: i32) -> Self {
        let stripped = digits.trim_end_matches('0');
        let zeros = i32::try_from(digits.len() - stripped.len()).unwrap_or(i32::MAX);
        Self { digits: stripped.trim_start_matches('0').to_owned(), exponent: exponent.saturating_add(zeros) }
    }

    /// Away from zero to a multiple of ten to the power of `finest`.
    fn rounded(self, finest: i32) -> Self {
        if self.exponent >= finest || self.digits.is_empty() {
            return self;
        }
        let cut = usize::try_from(finest.saturating_sub(self.exponent)).unwrap_or(usize::MAX);
        let kept = self.digits.len().saturating_sub(cut);
        // The last digit is not zero, so that something was cut off.
        Self::new(plus_one(&self.digits[..kept]), finest)
    }

    /// The amount in billionths, or the most that there is room for.
    fn nanos(&self) -> i128 {
        let digits: i128 = if self.digits.is_empty() { 0 } else { self.digits.parse().unwrap_or(i128::MAX) };
        let power = u32::try_from(self.exponent.saturating_sub(FINEST)).unwrap_or(0);
        digits.saturating_mul(10_i128.checked_pow(power).unwrap_or(i128::MAX)).min(MOST)
    }

    /// The shortest form: a unit for every three zeros. Beyond the largest unit the server leaves the unit out.
    fn canonical(&self, format: QuantityFormat, negative: bool) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        let sign = if negative { "-" } else { "" };
        if format == QuantityFormat::Binary && self.exponent >= 0 && self.nanos() >= 1024 * NANO {
            return format!("{sign}{}", binary(self.nanos() / NANO));
        }
        let zeros = self.exponent.rem_euclid(3);
        let exponent = self.exponent - zeros;
        let suffix = match format {
            QuantityFormat::Exponent if exponent == 0 => String::new(),
            QuantityFormat::Exponent => format!("e{exponent}"),
            QuantityFormat::Decimal | QuantityFormat::Binary => {
                DECIMAL.iter().find(|(_, e)| *e == exponent).map_or(String::new(), |(suffix, _)| (*suffix).to_owned())
            }
        };
        let zeros = "0".repeat(usize::try_from(zeros).unwrap_or(0));
        format!("{sign}{}{zeros}{suffix}", self.digits)
    }
}

fn binary(mut amount: i128) -> String {
    let mut suffix = "";
    for (name, _) in BINARY {
        if amount % 1024 != 0 {
            break;
        }
        amount /= 1024;
        suffix = name;
    }
    format!("{amount}{suffix}")
}

fn plus_one(digits: &str) -> String {
    let nines = digits.len() - digits.trim_end_matches('9').len();
    let (head, tail) = digits.split_at(digits.len() - nines);
    let zeros = "0".repeat(tail.len());
    match head.as_bytes().last() {
        Some(last) => format!("{}{}{zeros}", &head[..head.len() - 1], char::from(last + 1)),
        None => format!("1{zeros}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written_form(text: &str) -> String {
        written(&json!(text)).unwrap()
    }

    #[test]
    fn parts_of_a_quantity_are_rounded_up() {
        let parts = |of: &str, part: &str| Quantity::parse(of).unwrap().parts_of(&Quantity::parse(part).unwrap());

        assert_eq!(parts("1500m", "1"), Some(2));
        assert_eq!(parts("1500m", "1m"), Some(1500));
        assert_eq!(parts("64Mi", "1Mi"), Some(64));
        assert_eq!(parts("0", "1Gi"), Some(0));
        assert_eq!(parts("1", "0"), None);
    }

    #[test]
    fn quantities_take_their_shortest_form() {
        let cases = [
            ("1000", "1k"),
            ("1000m", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Ki", "1Mi"),
            ("1024", "1024"),
            ("100Mi", "100Mi"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1Ki", "1Ki"),
            ("-2", "-2"),
            ("1e3", "1e3"),
            ("1e4", "10e3"),
            ("12e6", "12e6"),
            ("1500m", "1500m"),
            ("0.1", "100m"),
            ("0.5Ki", "512"),
            ("1.1Ki", "1126400m"),
            ("0.0000000001", "1n"),
            ("-0.0000000001", "-1n"),
            ("99999999999999999999999999999999999999999", "99999999999999999999999999999999999999999"),
            ("1e100", "10e99"),
            ("100Ei", "9223372036854775807"),
            ("-100Ei", "-9223372036854775807"),
            ("8Ki", "8Ki"),
        ];
        for (given, wanted) in cases {
            assert_eq!(written_form(given), wanted, "{given}");
        }
    }

    #[test]
    fn nearly_short_forms_stay_as_they_were_written() {
        for text in ["01", "+1", "1.500", "5.", "1E", "1E3", "1e03", "+01Ki", "1.Ki"] {
            assert_eq!(written_form(text), text);
        }
        for text in [".", "+", "-", "k", "Ki", "e3", "-0", "00"] {
            assert_eq!(written_form(text), "0", "{text}");
        }
    }

    #[test]
    fn a_shortest_form_is_written_as_itself() {
        for text in ["1.5Gi", "1e4", "1.1Ki", "0.123456789123", "100Ei", "1e-12", "-1.5", "00100000"] {
            let once = written_form(text);
            assert_eq!(written_form(&once), once, "{text}");
        }
    }

    #[test]
    fn amounts_of_resources_are_rounded_away_from_zero() {
        for (given, wanted) in
            [("0.0001", "1m"), ("-0.0001", "-1m"), ("1.0001", "1001m"), ("100u", "1m"), ("1e-6", "1e-3")]
        {
            assert_eq!(written_resource(&json!(given)).unwrap(), wanted, "{given}");
        }
    }

    #[test]
    fn other_text_is_refused_for_its_form_or_its_suffix() {
        for text in ["", "abc", "1.2.3", "1x", "1 Gi", "0x1", "1,5"] {
            assert_eq!(problem(&json!(text)), Some(FORM), "{text}");
        }
        for text in ["1Ki1", "1e", "1EE", "--1", "1ki", "1mm"] {
            assert_eq!(problem(&json!(text)), Some(SUFFIX), "{text}");
        }
        assert_eq!(problem(&json!(true)), Some(FORM));
        assert_eq!(problem(&json!(" 1 ")), None);
    }

    #[test]
    fn quantities_compare_across_suffixes() {
        assert!(Quantity::parse("1Gi") > Quantity::parse("1G"));
        assert!(Quantity::parse("1000m") == Quantity::parse("1"));
        assert!(Quantity::parse("1e100") > Quantity::parse("1Ei"));
        assert!(Quantity::parse("1e100").unwrap().is_integer());
    }
}
