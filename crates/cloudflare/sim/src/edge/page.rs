//! What the edge itself says: its errors, its refusals, its test page.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use super::decision::{EdgeDecision, EdgeOutcome};

/// The answer that needs no origin; `None` where the origin answers.
pub(super) fn answer(decision: &EdgeDecision) -> Option<Response<Bytes>> {
    let (location, text) = match &decision.outcome {
        EdgeOutcome::Origin { .. } => return None,
        EdgeOutcome::Redirect { location, .. } | EdgeOutcome::Login { location } => (Some(location), String::new()),
        EdgeOutcome::Refused { reason, .. } => (None, format!("Access refuses this request: {reason}\n")),
        EdgeOutcome::Unreachable { code, reason, .. } => (None, format!("error code: {code}\n{reason}\n")),
        EdgeOutcome::Status { .. } => (None, String::new()),
        EdgeOutcome::Hello => (None, format!("Congrats! You created a tunnel!\n{} is live.\n", decision.host)),
    };
    let status = decision.status().and_then(|status| StatusCode::from_u16(status).ok());
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status.unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"));
    if let Some(Ok(location)) = location.map(|location| HeaderValue::from_str(location)) {
        headers.insert(header::LOCATION, location);
    }
    if decision.app.is_some() && !decision.is_served() {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=0, no-store"));
        if decision.status() == Some(401) {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Cloudflare-Access"));
        }
    }
    Some(response)
}

/// Says that a request names no host.
pub(super) fn nameless() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"error code: 1003\nthe request has no Host header\n"));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}
