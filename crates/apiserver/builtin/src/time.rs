//! Text → the error of reading it as a time by one of the two layouts that Kubernetes uses.

/// The error, worded as Go words it; `None` where the text is a time.
pub(crate) fn parse_error(text: &str, layout: &str) -> Option<String> {
    let stuck = |rest: &str, element: &str| {
        Some(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}"))
    };
    let mut rest = text;
    let mut numbers = [0_u32; 6];
    let mut next = 0;
    for element in ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"] {
        if element.starts_with(|c: char| c.is_ascii_digit()) {
            let Some((number, after)) = digits(rest, element.len()) else {
                return stuck(rest, element);
            };
            numbers[next] = number;
            next += 1;
            rest = after;
        } else {
            let Some(after) = rest.strip_prefix(element) else {
                return stuck(rest, element);
            };
            rest = after;
        }
    }
    let [_, month, day, hour, minute, second] = numbers;
    let limits = [("month", (1..=12).contains(&month)), ("day", (1..=31).contains(&day)), ("hour", hour < 24)];
    let limits = limits.into_iter().chain([("minute", minute < 60), ("second", second < 60)]);
    if let Some((name, _)) = limits.into_iter().find(|(_, fits)| !fits) {
        return Some(format!("parsing time {text:?}: {name} out of range"));
    }
    if layout.contains(".000000") {
        let Some((_, after)) = rest.strip_prefix('.').and_then(|after| digits(after, 6)) else {
            return stuck(rest, ".000000");
        };
        rest = after;
    } else {
        rest = fraction(rest);
    }
    zone(rest, text, layout)
}

fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (head, tail) = text.split_at_checked(count)?;
    head.bytes().all(|b| b.is_ascii_digit()).then(|| head.parse().ok().map(|number| (number, tail)))?
}

/// Skips `.123`, which may follow the seconds whether the layout has it or not.
fn fraction(text: &str) -> &str {
    let Some(after) = text.strip_prefix('.').filter(|after| after.starts_with(|c: char| c.is_ascii_digit())) else {
        return text;
    };
    after.trim_start_matches(|c: char| c.is_ascii_digit())
}

fn zone(rest: &str, text: &str, layout: &str) -> Option<String> {
    let after = if let Some(after) = rest.strip_prefix('Z') {
        after
    } else {
        let offset = rest.get(..6).filter(|o| o.starts_with(['+', '-']) && o.as_bytes()[3] == b':');
        if offset.is_none() {
            return Some(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as \"Z07:00\""));
        }
        &rest[6..]
    };
    (!after.is_empty()).then(|| format!("parsing time {text:?}: extra text: {after:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

    #[test]
    fn times_with_zone_and_fraction_are_read() {
        for text in ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123Z", "2026-01-01T00:00:00+01:00"] {
            assert_eq!(parse_error(text, LAYOUT), None);
        }
    }

    #[test]
    fn the_error_says_where_reading_stopped() {
        let error = parse_error("yesterday", LAYOUT).unwrap();

        assert_eq!(
            error,
            r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#
        );
        assert_eq!(
            parse_error("2026-13-01T00:00:00Z", LAYOUT).unwrap(),
            r#"parsing time "2026-13-01T00:00:00Z": month out of range"#
        );
        assert!(parse_error("2026-01-01", LAYOUT).unwrap().ends_with(r#"cannot parse "" as "T""#));
    }
}
