//! Durations as Go writes and reads them: `1h30m`, `1.5s`, `300ms`; kept in nanoseconds.

use std::sync::LazyLock;

use regex::Regex;

const SECOND: i64 = 1_000_000_000;

const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
];

/// Reads `1h30m` and the like.
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (part, left) = term(rest)?;
        total += part;
        rest = left;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

fn term(text: &str) -> Option<(i128, &str)> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let whole = digits(text);
    let rest = &text[whole..];
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(digits(after)),
        None => ("", rest),
    };
    if whole == 0 && fraction.is_empty() {
        return None;
    }
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let scale = i128::from(UNITS.iter().find(|(name, _)| *name == unit)?.1);
    let whole: i128 = if whole == 0 { 0 } else { text[..whole].parse().ok()? };
    let mut part = whole.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        part += i128::from(digit - b'0') * place;
    }
    Some((part, rest))
}

/// [`parse`], or one of the wordier forms that the format `duration` takes: `22 ns`, `3 weeks`.
pub fn parse_lenient(text: &str) -> Option<i64> {
    static WORDS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("([0-9]+)[\\t\\n\\f\\r ]*([A-Za-zµ]+)").expect("the pattern compiles"));
    if let Some(duration) = parse(text) {
        return Some(duration);
    }
    let mut total = 0i64;
    let mut found = false;
    for term in WORDS.captures_iter(text) {
        let count: i64 = term[1].parse().ok()?;
        if let Some(unit) = wordy_unit(&term[2].to_lowercase()) {
            found = true;
            total = total.wrapping_add(count.wrapping_mul(unit));
        }
    }
    found.then_some(total)
}

fn wordy_unit(word: &str) -> Option<i64> {
    let units: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], SECOND),
        (&["m", "min"], 60 * SECOND),
        (&["h", "hr", "hour"], 3_600 * SECOND),
        (&["d", "day"], 86_400 * SECOND),
        (&["w", "wk", "week"], 7 * 86_400 * SECOND),
    ];
    let matches = |names: &[&str]| names.contains(&word) || names.last().is_some_and(|long| word.starts_with(long));
    units.iter().find(|(names, _)| matches(names)).map(|(_, scale)| *scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        assert_eq!(parse("1h30m"), Some(5_400 * SECOND));
        assert_eq!(parse("-1.5s"), Some(-SECOND - SECOND / 2));
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse(".5s"), Some(SECOND / 2));
        assert_eq!((parse(""), parse("1"), parse("1x"), parse("s")), (None, None, None, None));
    }

    #[test]
    fn wordy_durations_are_read_by_the_format_only() {
        assert_eq!(parse("2 weeks"), None);
        assert_eq!(parse_lenient("2 weeks"), Some(14 * 86_400 * SECOND));
        assert_eq!(parse_lenient("22 ns"), Some(22));
        assert_eq!(parse_lenient("soon"), None);
    }
}
