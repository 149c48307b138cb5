//! Seconds → the short form in which ages are shown: `5m3s`, `2d4h`.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// A duration in its two largest units, as far as they say something.
pub fn human_duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / MINUTE, seconds / HOUR);
    let days = hours / 24;
    let pair = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => pair(days, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{days}d"),
        _ if hours < 24 * 365 * 8 => pair(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

/// The time since a timestamp in JSON; `<unknown>` where there is none.
pub fn age(timestamp: &Value, now: Timestamp) -> String {
    match timestamp.as_str().and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(then) => human_duration(seconds_between(then, now)),
        None => "<unknown>".to_owned(),
    }
}

/// Whole seconds from one time to another, cut towards zero.
pub(crate) fn seconds_between(then: Timestamp, now: Timestamp) -> i64 {
    now.duration_since(then).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_their_two_largest_units() {
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR, "8h"),
            (48 * HOUR, "2d"),
            (49 * HOUR, "2d1h"),
            (24 * 8 * HOUR, "8d"),
            (24 * 365 * 2 * HOUR, "2y"),
            (24 * 366 * 2 * HOUR, "2y2d"),
            (24 * 365 * 9 * HOUR, "9y"),
        ];
        for (seconds, wanted) in cases {
            assert_eq!(human_duration(seconds), wanted, "{seconds}");
        }
    }

    #[test]
    fn an_absent_time_is_unknown() {
        assert_eq!(age(&Value::Null, Timestamp::UNIX_EPOCH), "<unknown>");
    }
}
