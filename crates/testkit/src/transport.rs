//! The operator's way to the simulator: in process, through the failpoints.
//!
//! A request that was sent goes on even if the operator dies meanwhile, as at the real API. Half of the latency passes
//! before its effect, half after.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use portolan_cloudflare_api::{Transport, TransportError};
use portolan_cloudflare_sim::{Dropped, Simulator};
use rand::Rng as _;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::failpoints::{Failpoints, StopSide, System};
use crate::hooks::{HookedCall, Hooks};

/// How long the operator waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What all operators of a world send to. Clones share it.
#[derive(Clone)]
pub(crate) struct SharedTransport {
    pub(crate) simulator: Simulator,
    pub(crate) hooks: Hooks,
    pub(crate) latency: Duration,
    /// Where each request's own part of the latency comes from; without it all take the same time.
    pub(crate) uneven: Option<Arc<Mutex<StdRng>>>,
    /// Secrets that were ever answered.
    pub(crate) told: Arc<Mutex<BTreeSet<String>>>,
    /// Keeps the requests that the simulator works on.
    pub(crate) sent: TaskTracker,
}

impl SharedTransport {
    /// Sends to a simulator.
    pub(crate) fn to(simulator: Simulator, latency: Duration) -> Self {
        Self {
            simulator,
            latency,
            uneven: None,
            hooks: Hooks::default(),
            told: Arc::default(),
            sent: TaskTracker::new(),
        }
    }

    /// Has the request's effect, tells who looks on, and answers.
    pub(crate) async fn work_on(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Dropped> {
        let call = HookedCall::of(&request);
        self.pass_half().await;
        self.hooks.tell(StopSide::Before, &call, &self.simulator);
        let mut answering = pin!(self.simulator.answer(request));
        // The effect is there after the first poll; only silence makes the answer take longer.
        let first = futures::poll!(answering.as_mut());
        self.hooks.tell(StopSide::After, &call, &self.simulator);
        let answer = match first {
            Poll::Ready(answer) => answer,
            Poll::Pending => answering.await,
        };
        self.pass_half().await;
        answer.inspect(|answer| self.hear(answer))
    }

    async fn pass_half(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.half()).await;
        }
    }

    fn half(&self) -> Duration {
        let Some(random) = &self.uneven else { return self.latency / 2 };
        let part: f64 = random.lock().unwrap_or_else(PoisonError::into_inner).random();
        self.latency.mul_f64(part)
    }

    fn hear(&self, answer: &Response<Bytes>) {
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        if let Some(secret) = body.pointer("/result/client_secret").and_then(Value::as_str) {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(secret.to_owned());
        }
    }
}

/// One operator's end of the line.
pub(crate) struct InProcess {
    line: SharedTransport,
    failpoints: Failpoints,
}

impl InProcess {
    pub(crate) fn new(line: SharedTransport, failpoints: Failpoints) -> Self {
        Self { line, failpoints }
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let line = self.line.clone();
        let working = self.line.sent.spawn(async move { line.work_on(request).await });
        match tokio::time::timeout(PATIENCE, working).await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(dropped))) => Err(lost(dropped)),
            Ok(Err(_)) => Err(TransportError { sent: true, message: "the simulator stopped".to_owned() }),
            Err(_) => Err(lost(Dropped::Timeout)),
        }
    }
}

fn lost(dropped: Dropped) -> TransportError {
    let (sent, message) = match dropped {
        Dropped::Timeout => (true, "Cloudflare did not answer in time"),
        Dropped::Reset => (true, "the connection to Cloudflare broke"),
        Dropped::Refused => (false, "cannot connect to Cloudflare"),
    };
    TransportError { sent, message: message.to_owned() }
}

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        portolan_engine::refuse_pure_step("Cloudflare");
        let text = format!("{} {}", request.method(), request.uri().path());
        Box::pin(self.failpoints.step(System::Cloudflare, text, self.exchange(request)))
    }
}
