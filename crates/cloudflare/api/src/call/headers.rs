//! The rate-limit headers of an answer, read tolerantly. Pure.
//!
//! `Ratelimit: "default";r=50;t=30` tells what is left and when it resets, `Ratelimit-Policy: "default";q=1200;w=300` the
//! quota and its window (IETF draft), `Retry-After` the pause after a refusal: seconds or an HTTP date.

use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;

/// Longest pause that is believed.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// What the API says about the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetHeaders {
    /// Requests left (`r`), and the time until the reset (`t`).
    pub left: Option<(u32, Duration)>,
    /// Quota (`q`) and window (`w`).
    pub policy: Option<(u32, Duration)>,
    /// A second limit is used up: nothing before this is over.
    pub exhausted_for: Option<Duration>,
    /// Pause that a refusal asks for.
    pub retry_after: Option<Duration>,
}

impl BudgetHeaders {
    /// Reads an answer's headers; `now` is for dates in `Retry-After`.
    pub fn read(headers: &HeaderMap, now: Timestamp) -> Self {
        let limits = items(headers, "ratelimit");
        let policies = items(headers, "ratelimit-policy");
        let main = limits.iter().find(|item| item.name == "default").or_else(|| limits.first());
        let policy = main.map_or_else(|| policies.first(), |main| policies.iter().find(|item| item.name == main.name));
        Self {
            left: main.and_then(|item| Some((item.number('r')?, seconds(item.number('t')?)))),
            policy: policy
                .or_else(|| policies.first())
                .and_then(|item| Some((item.number('q')?, seconds(item.number('w')?))))
                .filter(|(quota, window)| *quota > 0 && !window.is_zero()),
            exhausted_for: limits
                .iter()
                .filter(|item| main.is_some_and(|main| main.name != item.name) && item.number('r') == Some(0))
                .filter_map(|item| item.number('t').map(seconds))
                .max(),
            retry_after: retry_after(headers, now),
        }
    }
}

struct HeaderItem {
    name: String,
    numbers: Vec<(char, u32)>,
}

impl HeaderItem {
    fn parse(text: &str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().trim_matches('"').to_ascii_lowercase();
        let numbers = parts
            .filter_map(|part| part.split_once('='))
            .filter_map(|(key, value)| {
                let value: f64 = value.trim().trim_matches('"').parse().ok()?;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
                Some((key.trim().chars().next()?.to_ascii_lowercase(), value.ceil() as u32))
            })
            .collect();
        Self { name, numbers }
    }

    fn number(&self, key: char) -> Option<u32> {
        self.numbers.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }
}

fn items(headers: &HeaderMap, name: &str) -> Vec<HeaderItem> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(HeaderItem::parse).collect()
}

fn seconds(number: u32) -> Duration {
    Duration::from_secs(u64::from(number))
}

/// How far the API's clock is ahead of ours, in seconds: by the `Date` of an answer, which every HTTP server sends.
pub(crate) fn ahead(headers: &HeaderMap, now: Timestamp) -> Option<i64> {
    let date = headers.get(http::header::DATE)?.to_str().ok()?;
    let date = jiff::fmt::rfc2822::parse(date.trim()).ok()?.timestamp();
    Some(date.duration_since(now).as_secs())
}

fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = if let Ok(number) = text.parse::<f64>() {
        Duration::try_from_secs_f64(number.max(0.0).ceil()).ok()?
    } else {
        let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        Duration::try_from(date.duration_since(now)).unwrap_or_default()
    };
    Some(pause.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn read(pairs: &[(&'static str, &'static str)]) -> BudgetHeaders {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        BudgetHeaders::read(&headers, "2026-11-16T05:30:00Z".parse().unwrap())
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_documented_form_is_read() {
        let told = read(&[("ratelimit", r#""default";r=50;t=30"#), ("ratelimit-policy", r#""default";q=1200;w=300"#)]);

        assert_eq!((told.left, told.policy), (Some((50, s(30))), Some((1200, s(300)))));
    }

    #[test]
    fn spaces_missing_quotes_and_other_order_do_not_matter() {
        let told = read(&[("ratelimit", " Default ; t = 30 ; r = 7 ")]);

        assert_eq!(told.left, Some((7, s(30))));
    }

    #[test]
    fn the_default_limit_is_taken_and_an_exhausted_second_one_noticed() {
        let told = read(&[("ratelimit", r#""burst";r=0;t=2, "default";r=900;t=100"#)]);

        assert_eq!((told.left, told.exhausted_for), (Some((900, s(100))), Some(s(2))));
    }

    #[test]
    fn nonsense_is_as_good_as_nothing() {
        for text in ["", "???", r#""default""#, r#""default";r=x;t=1"#, r#""default";r=5"#] {
            assert_eq!(read(&[("ratelimit", text)]).left, None, "{text}");
        }
    }

    #[test]
    fn a_pause_may_be_seconds_or_a_date() {
        assert_eq!(read(&[("retry-after", "90")]).retry_after, Some(s(90)));
        assert_eq!(read(&[("retry-after", "Mon, 16 Nov 2026 05:31:00 GMT")]).retry_after, Some(s(60)));
        assert_eq!(read(&[("retry-after", "Mon, 16 Nov 2026 05:00:00 GMT")]).retry_after, Some(s(0)));
        assert_eq!(read(&[("retry-after", "soon")]).retry_after, None);
    }
}
