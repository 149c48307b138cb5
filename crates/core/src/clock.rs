//! Time as a value that is handed in.

use std::sync::Arc;

use jiff::Timestamp;

/// Tells the time. Tests hand in one that they move themselves.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The time in whole seconds as Kubernetes writes it: `2026-11-16T05:30:00Z`.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_a_second_are_left_out() {
        let time: Timestamp = "2026-11-16T05:30:00.987654321Z".parse().unwrap();

        assert_eq!(rfc3339(time), "2026-11-16T05:30:00Z");
    }
}
