//! Request → answer for one credential: signed, governed, repeated where that is safe, measured.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp, Unit};
use portolan_core::{Clock, rfc3339};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::budget::governor::{Budget, Lane};
use crate::budget::limiter::{Limiter, Permit};
use crate::budget::limits::Limits;
use crate::budget::rotation::DriftShare;
use crate::call::envelope::{self, Answer};
use crate::call::error::{ApiError, Effect, ErrorClass};
use crate::call::headers::{self, BudgetHeaders};
use crate::call::options::CallOptions;
use crate::call::redact::redact;
use crate::call::request::Request;
use crate::call::retry::{LONGEST_SILENCE, RetryPolicy};
use crate::call::transport::Transport;
use crate::credential::{Credential, Identity};
use crate::handle::commit::CommitLine;
use crate::metrics::Metrics;
use crate::settings::Settings;

/// What has to hold when a request leaves.
#[derive(Clone, Copy)]
pub(crate) struct Exit<'a> {
    /// Whether whoever asked for a write may still write.
    pub(crate) may_go: &'a (dyn Fn() -> bool + Send + Sync),
    /// Others who write the same.
    pub(crate) line: Option<&'a CommitLine>,
}

impl Exit<'_> {
    /// Nothing: it reads, or was asked already.
    pub(crate) const FREE: Self = Self { may_go: &|| true, line: None };
}

/// What became of one attempt.
enum AttemptResult<R> {
    Answered(Result<Answer<R>, ApiError>),
    /// It was too late to write.
    Lapsed,
}

/// One credential's line to the API. Handles hold it without holding the client that made them.
pub(crate) struct Sender {
    credential: Credential,
    identity: Identity,
    settings: Arc<Settings>,
    transport: Arc<dyn Transport>,
    limiter: Arc<Limiter>,
    clock: Clock,
    metrics: Metrics,
    random: Mutex<StdRng>,
    /// How far the API's clock is ahead of ours, in seconds.
    ahead: AtomicI64,
    /// Why the last attempt came to nothing that may pass; none where it was answered.
    trouble: Mutex<Option<ApiError>>,
}

impl Sender {
    pub(crate) fn new(
        credential: Credential,
        settings: Arc<Settings>,
        transport: Arc<dyn Transport>,
        clock: Clock,
        metrics: Metrics,
    ) -> Self {
        Self {
            identity: credential.identity(),
            credential,
            limiter: Limiter::new(settings.limit),
            random: Mutex::new(StdRng::seed_from_u64(settings.seed)),
            trouble: Mutex::default(),
            settings,
            transport,
            clock,
            metrics,
            ahead: AtomicI64::default(),
        }
    }

    /// The time by the API's clock, as far as its answers tell.
    pub(crate) fn time(&self) -> Timestamp {
        let ahead = SignedDuration::from_secs(self.ahead.load(Ordering::Relaxed));
        let now = (self.clock)();
        now.checked_add(ahead).unwrap_or(now)
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// The policy of whoever names none.
    pub(crate) fn retry(&self) -> RetryPolicy {
        self.settings.retry
    }

    /// Why the API does not answer at the moment, as far as the last attempt tells.
    pub(crate) fn trouble(&self) -> Option<ApiError> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn budget(&self) -> Budget {
        self.limiter.budget()
    }

    pub(crate) fn drift_share(&self) -> DriftShare {
        self.limiter.drift_share()
    }

    /// Waits for a turn, before it is decided what to send; not for long where the API asked for a pause.
    pub(crate) async fn permit(&self, lane: Lane) -> Result<Permit, ApiError> {
        let start = Instant::now();
        let permit = self.limiter.permit(lane).await;
        self.metrics.waited(lane, start.elapsed().as_secs_f64());
        permit.map_err(|pause| self.paused(pause))
    }

    /// The pause that the API asked for, where it is too long to be waited for in silence.
    fn long_pause(&self) -> Option<Duration> {
        Some(self.limiter.blocked_for()).filter(|pause| *pause > LONGEST_SILENCE)
    }

    /// What those are told who would have to wait for long: until when.
    fn paused(&self, pause: Duration) -> ApiError {
        let now = (self.clock)();
        let until = now.checked_add(pause).unwrap_or(now).round(Unit::Second).unwrap_or(now);
        let message = format!("Cloudflare's limit of requests is used up: nothing is asked before {}", rfc3339(until));
        ApiError {
            class: ErrorClass::RateLimit,
            retry_after: Some(pause),
            ..ApiError::transient(message, Effect::None)
        }
    }

    /// Sends a request, again where that is safe, with a turn that was waited for before. What `exit` says is asked each
    /// time that a write leaves.
    pub(crate) async fn answer<R>(
        &self,
        mut permit: Option<Permit>,
        options: CallOptions,
        exit: Exit<'_>,
        request: &Request,
    ) -> Result<Answer<R>, ApiError>
    where
        R: DeserializeOwned + Default,
    {
        portolan_core::waypoint!();
        if self.settings.read_only && !request.is_read() {
            permit.into_iter().for_each(Permit::unused);
            return Err(ApiError::read_only());
        }
        let mut attempt = 0;
        loop {
            let turn = match permit.take() {
                Some(permit) => permit,
                None => self.permit(options.lane).await?,
            };
            let error = match self.leave(turn, exit, request).await {
                AttemptResult::Answered(Ok(answer)) => return Ok(answer),
                AttemptResult::Answered(Err(error)) => error,
                AttemptResult::Lapsed => return Err(ApiError::lapsed()),
            };
            if let (ErrorClass::RateLimit, Some(pause)) = (error.class, self.long_pause()) {
                return Err(self.paused(pause));
            }
            let Some(pause) = options.retry.pause(request, &error, attempt, self.jitter()) else {
                return Err(error);
            };
            tracing::debug!(path = request.path, error = %error, pause_ms = pause.as_millis(), "Sending a request again");
            self.metrics.retried(request);
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// Waits as long as the policy asks before somebody who looks first tries again; false if they should not.
    pub(crate) async fn again(&self, retry: RetryPolicy, error: &ApiError, attempt: u32) -> bool {
        let Some(pause) = retry.look_again(error, attempt, self.jitter()) else { return false };
        tracing::debug!(error = %error, pause_ms = pause.as_millis(), "Looking before a write is sent again");
        tokio::time::sleep(pause).await;
        true
    }

    /// One attempt, in line with others who write the same. Nothing is waited for between the question and the sending.
    async fn leave<R>(&self, permit: Permit, exit: Exit<'_>, request: &Request) -> AttemptResult<R>
    where
        R: DeserializeOwned + Default,
    {
        let _turn = match exit.line {
            Some(line) => Some(line.turn().await),
            None => None,
        };
        if !request.is_read() && !(exit.may_go)() {
            permit.unused();
            return AttemptResult::Lapsed;
        }
        AttemptResult::Answered(self.attempt(permit, request).await)
    }

    async fn attempt<R>(&self, permit: Permit, request: &Request) -> Result<Answer<R>, ApiError>
    where
        R: DeserializeOwned + Default,
    {
        let http = match self.sign(request) {
            Ok(http) => http,
            Err(error) => {
                permit.unused();
                return Err(error);
            }
        };
        let start = Instant::now();
        let answer = self.exchange(request, http).await;
        let status = answer.as_ref().ok().map(|response| response.status().as_u16());
        self.metrics.answered(request, status, start.elapsed());
        let answer = match answer {
            Ok(response) => self.read(permit, request, &response),
            Err(error) => {
                drop(permit);
                Err(error)
            }
        };
        tell(request, status, start, answer.as_ref().err());
        let passes = |error: &&ApiError| matches!(error.class, ErrorClass::RateLimit | ErrorClass::Transient);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = answer.as_ref().err().filter(passes).cloned();
        answer
    }

    fn sign(&self, request: &Request) -> Result<http::Request<Bytes>, ApiError> {
        let unsendable = |error: http::Error| ApiError {
            class: ErrorClass::Validation,
            ..ApiError::transient(format!("no request can be made for {}: {error}", request.path), Effect::None)
        };
        let mut http = request.to_http(&self.settings.base_url).map_err(unsendable)?;
        self.credential.sign(http.headers_mut())?;
        Ok(http)
    }

    async fn exchange(&self, request: &Request, http: http::Request<Bytes>) -> Result<http::Response<Bytes>, ApiError> {
        let may_have = |sent: bool| if sent && !request.is_read() { Effect::Unknown } else { Effect::None };
        match tokio::time::timeout(self.settings.timeout, self.transport.send(http)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(ApiError::transient(self.masked(&error.message), may_have(error.sent))),
            Err(_) => Err(ApiError::transient("Cloudflare did not answer in time", may_have(true))),
        }
    }

    fn read<R>(
        &self,
        permit: Permit,
        request: &Request,
        response: &http::Response<Bytes>,
    ) -> Result<Answer<R>, ApiError>
    where
        R: DeserializeOwned + Default,
    {
        let status = response.status().as_u16();
        let now = (self.clock)();
        let told = BudgetHeaders::read(response.headers(), now);
        if let Some(ahead) = headers::ahead(response.headers(), now) {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
        let answer = envelope::read(&request.method, status, response.body(), &[self.credential.secret()]);
        let refused = answer.as_ref().is_err_and(|error| error.class == ErrorClass::RateLimit);
        permit.answered(&told, refused);
        self.metrics.budget_left(self.identity.as_str(), self.limiter.budget().left);
        answer.map_err(|error| ApiError { retry_after: told.retry_after, ..error })
    }

    fn masked(&self, text: &str) -> String {
        redact(text, &[self.credential.secret()])
    }

    fn jitter(&self) -> f64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).random()
    }
}

impl Drop for Sender {
    /// Nobody asks with the credential any more, so nobody is told of its budget.
    fn drop(&mut self) {
        self.metrics.budget_gone(self.identity.as_str());
    }
}

/// One line for each request, in the span of whoever asked; bodies are never shown.
fn tell(request: &Request, status: Option<u16>, start: Instant, error: Option<&ApiError>) {
    tracing::debug!(
        method = request.method.as_str(),
        path = request.url(""),
        status,
        duration_ms = start.elapsed().as_millis(),
        error = error.map(tracing::field::display),
        "Asked Cloudflare"
    );
}
