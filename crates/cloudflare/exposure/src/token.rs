//! Service tokens as they are kept, and when they need a new life.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portolan_cloudflare_api::{Item, TypedCollection, collections};
use serde::{Deserialize, Serialize};

/// A token that ends within this is given a new life.
const RENEWED_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How far our clock and the API's may differ, and times are cut to seconds.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// What is kept of a service token; never its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceToken {
    /// Its name; not unique.
    #[serde(default)]
    pub name: String,
    /// What a client sends as `CF-Access-Client-Id`.
    #[serde(default)]
    pub client_id: Option<String>,
    /// How long it lives, as `8760h`.
    #[serde(default)]
    pub duration: Option<String>,
    /// When it was made.
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// When it ends.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// An account's service tokens.
pub(crate) static TOKENS: TypedCollection<ServiceToken> = TypedCollection::of(collections::SERVICE_TOKENS);

impl Item for ServiceToken {
    fn natural_key(&self) -> String {
        self.name.clone()
    }
}

impl ServiceToken {
    /// Whether it was made at or after a time, as far as can be told.
    pub(crate) fn is_made_since(&self, since: Timestamp) -> bool {
        let lives = self.duration.as_deref().and_then(span).and_then(|lives| SignedDuration::try_from(lives).ok());
        let by_expiry = || self.expires_at?.checked_sub(lives?).ok();
        self.created_at.or_else(by_expiry).is_some_and(|made| is_since(made, since))
    }

    /// Whether it ends soon: within 30 days, or the last third of a shorter life.
    pub(crate) fn ends_soon(&self, now: Timestamp) -> bool {
        let Some(end) = self.expires_at else { return false };
        let third = self.duration.as_deref().and_then(span).and_then(|lives| SignedDuration::try_from(lives / 3).ok());
        let before = third.map_or(RENEWED_BEFORE, |third| third.min(RENEWED_BEFORE));
        end.duration_since(now) < before
    }

    /// Whether it lives as long as wanted; durations may be written in several ways.
    pub(crate) fn has_duration(&self, wanted: &str) -> bool {
        match &self.duration {
            Some(found) => found == wanted || span(found).is_some_and(|found| Some(found) == span(wanted)),
            None => true,
        }
    }
}

/// Whether something was made at or after `since`, with some room for clocks that differ.
pub(crate) fn is_since(made: Timestamp, since: Timestamp) -> bool {
    made.duration_since(since) >= -CLOCK_TOLERANCE
}

/// A duration as the API writes it: `2h45m`, `300ms`; none for `forever` and for what is not one.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
        let number: u32 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ns" => Duration::from_nanos(1),
            "us" | "µs" => Duration::from_micros(1),
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3_600),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(number)?)?;
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn token(duration: &str, created: Option<&str>, expires: Option<&str>) -> ServiceToken {
        ServiceToken {
            name: "t".to_owned(),
            client_id: None,
            duration: Some(duration.to_owned()),
            created_at: created.map(at),
            expires_at: expires.map(at),
        }
    }

    #[test]
    fn durations_are_compared_by_their_length() {
        assert!(token("8760h", None, None).has_duration("8760h0m0s"));
        assert!(token("2h45m", None, None).has_duration("165m"));
        assert!(!token("8760h", None, None).has_duration("forever"));
        assert!(token("forever", None, None).has_duration("forever"));
    }

    #[test]
    fn a_token_is_renewed_in_its_last_month_or_the_last_third_of_a_short_life() {
        let ends = Some("2026-12-16T00:00:00Z");

        assert!(token("8760h", None, ends).ends_soon(at("2026-11-17T00:00:00Z")));
        assert!(!token("8760h", None, ends).ends_soon(at("2026-11-15T00:00:00Z")));
        assert!(!token("720h", None, ends).ends_soon(at("2026-12-01T00:00:00Z")));
        assert!(token("720h", None, ends).ends_soon(at("2026-12-07T00:00:00Z")));
        assert!(!token("forever", None, None).ends_soon(at("2026-12-07T00:00:00Z")));
    }

    #[test]
    fn the_time_of_making_follows_from_the_end_where_it_is_not_told() {
        let since = at("2026-11-16T05:00:00.9Z");

        assert!(token("1h", Some("2026-11-16T05:00:00Z"), None).is_made_since(since));
        assert!(token("1h", None, Some("2026-11-16T06:00:01Z")).is_made_since(since));
        assert!(!token("1h", None, Some("2026-11-16T05:59:00Z")).is_made_since(since));
        assert!(!token("1h", None, None).is_made_since(since));
    }
}
