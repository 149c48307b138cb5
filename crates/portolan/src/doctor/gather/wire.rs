//! The way to Cloudflare, which notes what its clock says.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::DATE;
use jiff::{SignedDuration, Timestamp};
use portolan_cloudflare_api::{Transport, TransportError};

/// Any other way, overheard.
pub(super) struct OverheardTransport {
    inner: Arc<dyn Transport>,
    ahead: Mutex<Option<SignedDuration>>,
}

impl OverheardTransport {
    pub(super) fn over(inner: Arc<dyn Transport>) -> Self {
        Self { inner, ahead: Mutex::default() }
    }

    /// How far the API's clock is ahead of ours, by its last answer.
    pub(super) fn ahead(&self) -> Option<SignedDuration> {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, answer: &http::Response<Bytes>, sent: Timestamp, came: Timestamp) {
        let date = answer.headers().get(DATE).and_then(|value| value.to_str().ok());
        let date = date.and_then(|text| jiff::fmt::rfc2822::parse(text).ok());
        if let Some(date) = date {
            let ahead = ahead(date.timestamp(), sent, came);
            *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
        }
    }
}

/// The answer was dated somewhen between the request and its arrival; only what lies outside counts.
fn ahead(date: Timestamp, sent: Timestamp, came: Timestamp) -> SignedDuration {
    if date < sent {
        // Dates are whole seconds, cut off.
        (date.duration_since(sent) + SignedDuration::from_secs(1)).min(SignedDuration::ZERO)
    } else {
        date.duration_since(came).max(SignedDuration::ZERO)
    }
}

impl Transport for OverheardTransport {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let sent = Timestamp::now();
            let answer = self.inner.send(request).await?;
            self.hear(&answer, sent, Timestamp::now());
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead_of(date: &str, sent: &str, came: &str) -> i64 {
        ahead(date.parse().unwrap(), sent.parse().unwrap(), came.parse().unwrap()).as_secs()
    }

    #[test]
    fn a_slow_answer_is_no_wrong_clock() {
        assert_eq!(ahead_of("2026-11-16T12:00:05Z", "2026-11-16T12:00:00Z", "2026-11-16T12:00:09Z"), 0);
        assert_eq!(ahead_of("2026-11-16T12:00:00Z", "2026-11-16T12:00:00.7Z", "2026-11-16T12:00:00.9Z"), 0);
        assert_eq!(ahead_of("2026-11-16T12:10:00Z", "2026-11-16T12:00:00Z", "2026-11-16T12:00:09Z"), 591);
        assert_eq!(ahead_of("2026-11-16T11:59:00Z", "2026-11-16T12:00:00Z", "2026-11-16T12:00:09Z"), -59);
    }
}
