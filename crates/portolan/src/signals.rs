//! Ctrl-C or SIGTERM, as one future.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, Outcome};

/// Both signals; from now on they no longer end the process by themselves.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts to listen.
    pub(crate) fn listen() -> Outcome<Self> {
        let unavailable = |error: std::io::Error| Failure::new(format!("cannot listen for signals: {error}"));
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(unavailable)?,
            interrupt: signal(SignalKind::interrupt()).map_err(unavailable)?,
        })
    }

    /// Waits for the first of them.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
