//! When an object was made, by the API's clock.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// When an object was made, where the API says so. Nobody wants it, so it makes no difference between two objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct MadeAt(pub Option<Timestamp>);

impl<'de> Deserialize<'de> for MadeAt {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        Ok(Self(text.and_then(|text| text.parse().ok())))
    }
}

impl PartialEq for MadeAt {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for MadeAt {}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_time_is_read_and_makes_no_difference() {
        let [told, untold, strange]: [MadeAt; 3] = from_value(json!(["2026-11-16T05:00:00Z", null, "soon"])).unwrap();

        assert_eq!(told.0.map(|time| time.to_string()).as_deref(), Some("2026-11-16T05:00:00Z"));
        assert!(untold.0.is_none() && strange.0.is_none());
        assert_eq!(told, untold);
    }
}
