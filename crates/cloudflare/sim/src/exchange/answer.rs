//! From a request to its answer: credential, limit, faults, route, record.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::HeaderName};
use tokio::time::{Instant, sleep};

use crate::{
    Simulator,
    auth::RegisteredCredentials,
    call::{PREFIX, RoutedCall, parse_query},
    fault::{Effect, FaultMoment, Strike},
    limit::{WindowRest, whole_seconds},
    record::RequestRecord,
    reply::{Refusal, Reply},
    routes,
    state::State,
};

/// A request that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// The simulator stayed silent.
    #[error("no answer in time")]
    Timeout,
    /// The connection was closed after the request was sent.
    #[error("connection closed before an answer")]
    Reset,
    /// The connection was never made: the request was not sent.
    #[error("connection refused")]
    Refused,
}

/// What was decided while the state was held.
enum Decided {
    Answer(Response<Bytes>),
    Drop(Dropped),
}

impl Simulator {
    /// Answers one request to `/client/v4/…`. Half of the latency passes before its effect, half after.
    pub async fn answer(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Dropped> {
        let half = self.latency() / 2;
        pause(half).await;
        let (outcome, silence) = {
            let mut state = self.lock();
            (decide(&mut state, request), state.options.silence)
        };
        match outcome {
            Decided::Answer(response) => {
                pause(half).await;
                Ok(response)
            }
            Decided::Drop(Dropped::Timeout) => {
                sleep(silence).await;
                Err(Dropped::Timeout)
            }
            Decided::Drop(dropped) => Err(dropped),
        }
    }
}

async fn pause(length: Duration) {
    if !length.is_zero() {
        sleep(length).await;
    }
}

fn decide(state: &mut State, request: Request<Bytes>) -> Decided {
    let (parts, body) = request.into_parts();
    let query = parse_query(parts.uri.query().unwrap_or_default());
    let at_ms = (state.options.clock)().as_millisecond();
    let path = parts.uri.path().to_owned();
    let credential = RegisteredCredentials::identify(&parts.headers).map(|presented| presented.id).unwrap_or_default();
    let method = parts.method.as_str();
    let asked = RequestRecord { at_ms, method, path: &path, query: &query, body: &body, credential: &credential };
    let (outcome, left) = handle(state, &parts, &asked);
    let outcome = with_headers(state, outcome, left);
    match &outcome {
        Decided::Answer(response) => state.log.add(&asked, response.status().as_u16(), response.body()),
        Decided::Drop(Dropped::Timeout | Dropped::Reset) => state.log.add(&asked, 0, &Bytes::new()),
        // It never came here.
        Decided::Drop(Dropped::Refused) => {}
    }
    outcome
}

fn handle(state: &mut State, parts: &http::request::Parts, asked: &RequestRecord<'_>) -> (Decided, Option<WindowRest>) {
    let Some(path) = asked.path.strip_prefix(PREFIX).filter(|path| path.starts_with('/')) else {
        return (refused(&Refusal::new(404, 7000, "No route for that URI")), None);
    };
    // It never comes here, so nobody counts it.
    if let Some(strike) = state.faults.strike(FaultMoment::Connecting, &parts.method, path, &mut state.ids) {
        return (struck(&strike), None);
    }
    let presented = match RegisteredCredentials::identify(&parts.headers) {
        Ok(presented) => presented,
        Err(refusal) => return (refused(&refusal), None),
    };
    let user = state.credentials.user_of(&presented);
    let left = state.options.limits().map(|policy| state.limits.take(&user, policy, Instant::now()));
    if let Some(left) = left.filter(|left| left.exceeded) {
        return (refused(&too_many(state, left)), Some(left));
    }
    let actor = match state.credentials.admit(presented, path, (state.options.clock)()) {
        Ok(actor) => actor,
        Err(refusal) => return (refused(&refusal), left),
    };
    if let Some(strike) = state.faults.strike(FaultMoment::Before, &parts.method, path, &mut state.ids) {
        return (struck(&strike), left);
    }
    if parts.method != Method::GET {
        state.remember();
    }
    let routed = routes::find(&parts.method, path);
    let reply = routed.and_then(|(route, params)| {
        let (path, query, body) = (path.to_owned(), asked.query.to_vec(), asked.body.clone());
        let call = RoutedCall { path, params, query, body, actor };
        routes::run(state, route, &call)
    });
    let written = reply.is_ok() && parts.method != Method::GET;
    if written && let Some(strike) = state.faults.strike(FaultMoment::AfterWrite, &parts.method, path, &mut state.ids) {
        return (struck(&strike), left);
    }
    (replied(reply), left)
}

fn too_many(state: &State, left: WindowRest) -> Refusal {
    let (limit, window) = state.options.rate_limit.unwrap_or_default();
    let message = format!(
        "More than {limit} requests per {} seconds reached. Please wait and consider throttling your request speed",
        window.as_secs()
    );
    Refusal { retry_after_seconds: Some(left.seconds.max(1)), ..Refusal::new(429, 971, message) }
}

fn replied(reply: Reply) -> Decided {
    match reply {
        Ok(success) if success.status == 204 => Decided::Answer(json_response(204, Bytes::new())),
        Ok(success) => Decided::Answer(json_response(success.status, success.envelope())),
        Err(refusal) => refused(&refusal),
    }
}

fn refused(refusal: &Refusal) -> Decided {
    let mut response = json_response(refusal.status, refusal.envelope());
    if let Some(seconds) = refusal.retry_after_seconds {
        response.headers_mut().insert("retry-after", seconds.into());
    }
    Decided::Answer(response)
}

fn struck(strike: &Strike) -> Decided {
    match &strike.effect {
        Effect::Timeout => Decided::Drop(Dropped::Timeout),
        Effect::Reset => Decided::Drop(Dropped::Reset),
        Effect::Refused => Decided::Drop(Dropped::Refused),
        Effect::Status { status, code, message } => {
            let mut response = match status {
                502..=504 | 520..=530 => gateway_page(*status),
                _ => json_response(*status, Refusal::new(*status, *code, message.as_str()).envelope()),
            };
            if let Some(wait) = strike.retry_after {
                let seconds = whole_seconds(wait);
                response.headers_mut().insert("retry-after", seconds.into());
            }
            Decided::Answer(response)
        }
    }
}

/// What stands before the API answers in HTML.
fn gateway_page(status: u16) -> Response<Bytes> {
    let page = format!("<html><head><title>{status}</title></head><body><h1>Error {status}</h1></body></html>");
    let mut response = json_response(status, Bytes::from(page));
    let html = "text/html; charset=UTF-8".parse().expect("a fixed header value is valid");
    response.headers_mut().insert(http::header::CONTENT_TYPE, html);
    response
}

pub(crate) fn json_response(status: u16, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = "application/json".parse().expect("a fixed header value is valid");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

fn with_headers(state: &State, mut outcome: Decided, left: Option<WindowRest>) -> Decided {
    if let Decided::Answer(response) = &mut outcome {
        // As every HTTP server does, by its own clock.
        let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&(state.options.clock)());
        if let Some(date) = date.ok().and_then(|date| date.parse().ok()) {
            response.headers_mut().insert(http::header::DATE, date);
        }
    }
    if let (Decided::Answer(response), Some(left), Some(limit)) = (&mut outcome, left, state.options.rate_limit) {
        for (name, value) in left.headers(limit) {
            let value = value.parse().expect("limits are written in ASCII");
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    outcome
}
