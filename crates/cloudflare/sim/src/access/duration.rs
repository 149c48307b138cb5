//! Lengths of time as the service reads them: `300ms`, `2h45m`.

use std::time::Duration;

const UNITS: [(&str, f64); 7] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// The length, if the text is one. `0` needs no unit.
pub(super) fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut total) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let (_, size) = UNITS.iter().find(|(unit, _)| *unit == &rest[..end])?;
        total += number * size;
        rest = &rest[end..];
    }
    if text.is_empty() { None } else { Duration::try_from_secs_f64(total).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_need_units_and_add_up() {
        assert_eq!(parse("24h"), Some(Duration::from_secs(86_400)));
        assert_eq!(parse("2h45m"), Some(Duration::from_secs(9_900)));
        assert_eq!(parse("1.5s"), Some(Duration::from_millis(1_500)));
        assert_eq!(parse("0"), Some(Duration::ZERO));
        for wrong in ["", "24", "h", "1d", "24h ", "-1h", "forever", "1h2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
