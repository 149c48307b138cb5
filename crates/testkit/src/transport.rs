//! The operator's way to the simulator: in process, through the gate.
//!
//! A request that was sent goes on even if the operator dies meanwhile, as at the real API.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use portolan_cloudflare_api::{Transport, TransportError};
use portolan_cloudflare_sim::{Dropped, Simulator};
use tokio_util::task::TaskTracker;

use crate::gate::{Gate, System};

/// How long the operator waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends to a simulator in this process.
pub(crate) struct InProcess {
    simulator: Simulator,
    gate: Gate,
    sent: TaskTracker,
}

impl InProcess {
    /// `sent` keeps the requests that the simulator works on.
    pub(crate) fn new(simulator: Simulator, gate: Gate, sent: TaskTracker) -> Self {
        Self { simulator, gate, sent }
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let simulator = self.simulator.clone();
        let working = self.sent.spawn(async move { simulator.answer(request).await });
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
        let text = format!("{} {}", request.method(), request.uri().path());
        Box::pin(self.gate.step(System::Cloudflare, text, self.exchange(request)))
    }
}
