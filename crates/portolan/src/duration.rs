//! Durations as users write them: `150ms`, `30s`, `2m`, `1h`, or a number of seconds.

use std::time::Duration;

/// Reads a duration.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(unreadable()),
    };
    let number: u32 = number.parse().map_err(|_| unreadable())?;
    Ok(Duration::from_millis(u64::from(number) * milliseconds))
}

fn unreadable() -> String {
    "write 150ms, 30s, 2m, 1h or a number of seconds".to_owned()
}

/// `0.4 s`, `12 s`, `3 min`: for people.
pub(crate) fn shown(duration: Duration) -> String {
    match duration.as_secs() {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        seconds @ 10..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(duration("20ms"), Ok(Duration::from_millis(20)));
        for bad in ["soon", "", "1.5s", "s", "-1", "5d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn people_see_no_more_places_than_they_need() {
        assert_eq!(shown(Duration::from_millis(420)), "0.4 s");
        assert_eq!(shown(Duration::from_secs(61)), "61 s");
        assert_eq!(shown(Duration::from_secs(300)), "5 min");
    }
}
