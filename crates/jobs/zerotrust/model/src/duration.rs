//! Durations as Go writes them: `24h`, `1h30m`, `90s`.

use std::time::Duration;

/// Reads a duration; none where it is not one.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut nanoseconds = 0.0f64;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let (unit, length) = unit(&rest[end..])?;
        nanoseconds += number * unit;
        rest = &rest[end + length..];
    }
    Duration::try_from_secs_f64(nanoseconds / 1e9).ok()
}

/// Nanoseconds in the unit that the text begins with, and how long its name is.
fn unit(text: &str) -> Option<(f64, usize)> {
    const UNITS: [(&str, f64); 8] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];
    UNITS.iter().find(|(name, _)| text.starts_with(name)).map(|(name, size)| (*size, name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        assert_eq!(parse("24h"), Some(Duration::from_secs(86_400)));
        assert_eq!(parse("1h30m"), Some(Duration::from_secs(5_400)));
        assert_eq!(parse("1.5s"), Some(Duration::from_millis(1_500)));
        assert_eq!(parse("300ms"), Some(Duration::from_millis(300)));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "24", "h", "1 day", "-1h", "1h 30m", "1.2.3s", "h1", "24H"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
