//! A lifetime as `named` writes it → seconds. `365d`, `52w` and `P1Y` are lifetimes, `1y` is none (checked with 9.18.49).

/// How long a signing key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// As many seconds.
    Seconds(u64),
    /// For good.
    Unlimited,
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
/// Months and years of ISO 8601 durations, as `lib/isc/iso8601`… of BIND counts them.
const MONTH: u64 = 31 * DAY;
const YEAR: u64 = 365 * DAY;

/// Reads a lifetime.
pub fn lifetime_seconds(text: &str) -> Option<Lifetime> {
    if text.eq_ignore_ascii_case("unlimited") {
        return Some(Lifetime::Unlimited);
    }
    let seconds = match text.strip_prefix(['P', 'p']) {
        Some(rest) => iso(rest),
        None => units(text),
    };
    seconds.map(|seconds| if seconds == 0 { Lifetime::Unlimited } else { Lifetime::Seconds(seconds) })
}

/// `1w2d3h`, or seconds alone.
fn units(text: &str) -> Option<u64> {
    if let Some(seconds) = digits(text) {
        return Some(seconds);
    }
    counted(text, |unit| match unit.to_ascii_lowercase() {
        'w' => Some(WEEK),
        'd' => Some(DAY),
        'h' => Some(HOUR),
        'm' => Some(MINUTE),
        's' => Some(1),
        _ => None,
    })
}

/// What follows the `P`.
fn iso(rest: &str) -> Option<u64> {
    let upper = rest.to_ascii_uppercase();
    let (date, time) = upper.split_once('T').map_or((upper.as_str(), None), |(date, time)| (date, Some(time)));
    let days = counted(date, |unit| match unit {
        'Y' => Some(YEAR),
        'M' => Some(MONTH),
        'W' => Some(WEEK),
        'D' => Some(DAY),
        _ => None,
    });
    let seconds = time.map(|time| {
        counted(time, |unit| match unit {
            'H' => Some(HOUR),
            'M' => Some(MINUTE),
            'S' => Some(1),
            _ => None,
        })
    });
    match (date.is_empty(), days, seconds) {
        (true, _, Some(seconds)) => seconds,
        (false, days, None) => days,
        (false, Some(days), Some(seconds)) => days.checked_add(seconds?),
        (true, _, None) | (false, None, Some(_)) => None,
    }
}

/// Numbers, each with its unit.
fn counted(text: &str, unit: impl Fn(char) -> Option<u64>) -> Option<u64> {
    let mut rest = text;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let letter = rest[end..].chars().next()?;
        sum = sum.checked_add(digits(&rest[..end])?.checked_mul(unit(letter)?)?)?;
        rest = &rest[end + letter.len_utf8()..];
    }
    (!text.is_empty()).then_some(sum)
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_those_of_named() {
        for (text, days) in
            [("365d", 365), ("52w", 364), ("P1Y", 365), ("p30d", 30), ("P1W", 7), ("2592000", 30), ("720h", 30)]
        {
            assert_eq!(lifetime_seconds(text), Some(Lifetime::Seconds(days * DAY)), "{text}");
        }
        assert_eq!(lifetime_seconds("P1DT1H"), Some(Lifetime::Seconds(DAY + HOUR)));
        assert_eq!(
            (lifetime_seconds("unlimited"), lifetime_seconds("0")),
            (Some(Lifetime::Unlimited), Some(Lifetime::Unlimited))
        );
    }

    #[test]
    fn scenario_63_a_year_is_no_unit() {
        for text in ["1y", "", "P", "d", "1", "1x", "-1d", "99999999999999999999d", "P1YT", "1d2"] {
            assert!(!matches!(lifetime_seconds(text), Some(Lifetime::Seconds(seconds)) if seconds > 1), "{text}");
        }
        assert_eq!(lifetime_seconds("1y"), None);
    }
}
