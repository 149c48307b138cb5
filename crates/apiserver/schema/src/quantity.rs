//! Resource quantities (`100m`, `1.5Gi`, `2e3`), kept in billionths.

use std::cmp::Ordering;
use std::ops::{Add, Sub};

/// Billionths in one.
const NANO: i128 = 1_000_000_000;
/// Larger quantities are cut to this.
const LARGEST: i128 = (i64::MAX as i128) * NANO;

/// An amount of some resource.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nano: i128,
    /// Whether it was written without a fraction; the server takes no other for an integer, `1.0` neither.
    whole: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Quantity {
    /// Reads a quantity; the error is the server's sentence.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str =
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        if text.is_empty() {
            return Err("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
        }
        let (negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        if number.is_empty() || number.matches('.').count() > 1 || number == "." {
            return Err(FORM);
        }
        let scale = Scale::parse(suffix).ok_or("unable to parse quantity's suffix")?;
        let nano = scale.nano(number).ok_or("unable to parse numeric part of quantity")?.min(LARGEST);
        let whole = scale.keeps_whole() && !number.trim_end_matches('.').contains('.');
        Ok(Self { nano: if negative { -nano } else { nano }, whole })
    }

    /// A whole number of something.
    pub fn from_integer(value: i64) -> Self {
        Self { nano: i128::from(value) * NANO, whole: true }
    }

    /// The whole number, where it is one.
    pub fn as_integer(self) -> Option<i64> {
        i64::try_from(self.nano / NANO).ok().filter(|_| self.whole && self.nano % NANO == 0)
    }

    /// The nearest float.
    #[expect(clippy::cast_precision_loss, reason = "the function is an approximation by its name")]
    pub fn approximate(self) -> f64 {
        self.nano as f64 / NANO as f64
    }

    /// -1, 0 or 1.
    pub fn sign(self) -> i64 {
        match self.nano.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { nano: self.nano + other.nano, whole: self.whole && other.whole }
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { nano: self.nano - other.nano, whole: self.whole && other.whole }
    }
}

enum Scale {
    Binary(u32),
    Decimal(i32),
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "" => Self::Decimal(0),
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            exponent => Self::Decimal(exponent.strip_prefix(['e', 'E']).filter(|e| !e.is_empty())?.parse().ok()?),
        })
    }

    /// Whether an integer at this scale is one.
    fn keeps_whole(&self) -> bool {
        match self {
            Self::Binary(_) => true,
            Self::Decimal(exponent) => *exponent >= 0,
        }
    }

    /// The billionths of `number` at this scale; fractions of one are rounded up.
    fn nano(&self, number: &str) -> Option<i128> {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        if significant.is_empty() {
            return Some(0);
        }
        if significant.len() > 30 {
            return Some(LARGEST);
        }
        let value: i128 = significant.parse().ok()?;
        let places = i32::try_from(fraction.len()).ok()?;
        let (value, exponent) = match self {
            Self::Binary(bits) => (value.checked_mul(1i128 << bits)?, 9 - places),
            Self::Decimal(exponent) => (value, exponent.saturating_add(9 - places)),
        };
        Some(shift(value, exponent))
    }
}

fn shift(value: i128, exponent: i32) -> i128 {
    let power = 10i128.checked_pow(exponent.unsigned_abs());
    match (power, exponent >= 0) {
        (Some(power), true) => value.checked_mul(power).unwrap_or(LARGEST),
        (None, true) => LARGEST,
        (Some(power), false) => value / power + i128::from(value % power != 0),
        (None, false) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn quantities_of_different_suffixes_compare() {
        assert_eq!(quantity("1Gi"), quantity("1024Mi"));
        assert_eq!(quantity("1500m"), quantity("1.5"));
        assert_eq!(quantity("2e3"), quantity("2k"));
        assert!(quantity("100m") < quantity("1") && quantity("-1") < quantity("0"));
        assert_eq!(quantity("1") + quantity("500m"), quantity("1.5"));
        assert_eq!((quantity("3").as_integer(), quantity("1.0").as_integer()), (Some(3), None));
    }

    #[test]
    fn malformed_quantities_are_refused() {
        for text in ["", "a", "1Zi", "1..2", ".", "1e", "1 Gi"] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }
}
