//! The time of an entry: RFC 3339, in UTC, whole seconds.

use jiff::Timestamp;

/// A time as `managedFields` carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    seconds: i64,
    text: String,
}

impl Time {
    /// Reads RFC 3339 of any offset.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let at: Timestamp = text.parse().ok()?;
        let seconds = at.as_millisecond().div_euclid(1000);
        Some(Self { seconds, text: Timestamp::from_second(seconds).ok()?.to_string() })
    }

    /// Since 1970.
    pub(crate) fn seconds(&self) -> i64 {
        self.seconds
    }

    /// As it is written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_and_whole_seconds() {
        let time = Time::parse("2026-01-02T03:04:05.678+02:00").unwrap();

        assert_eq!(time.text(), "2026-01-02T01:04:05Z");
        assert_eq!(Time::parse("yesterday"), None);
    }
}
