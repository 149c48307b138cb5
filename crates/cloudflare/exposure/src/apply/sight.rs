//! When the application was last seen in a run, and how long a name may be published behind that.
//!
//! A rule or record that waits in a writer's line (for the budget, for a document that cannot be read) may leave minutes after the
//! application was written. By then somebody may have deleted it, so what waited that long is not sent: the application is looked at
//! once more, and made again where it is gone.

use std::time::Duration;

use portolan_core::{Class, Problem, WriteGate, reasons};
use tokio::time::Instant;

use super::Fault;

/// Longer than the longest pause between two attempts of one request, so that a name is only looked at again where it really waits.
const HOLDS: Duration = Duration::from_secs(60);

/// When the application of a name was last seen or written; none where the run did not need to look.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AppSight(Option<Instant>);

impl AppSight {
    /// Seen just now, in an answer of the API.
    pub(super) fn now() -> Self {
        Self(Some(Instant::now()))
    }

    fn holds(self) -> bool {
        self.0.is_none_or(|at| at.elapsed() < HOLDS)
    }

    /// Open as long as the name may be published behind it.
    pub(super) fn gate(self) -> WriteGate {
        WriteGate::new(move || self.holds())
    }

    /// What a write that failed means where it may have been kept back for an old sight: another look, at once.
    pub(super) fn fault_of(self, fault: Fault, hostname: &str) -> Fault {
        if self.holds() || fault.problem.class != Class::Transient {
            return fault;
        }
        let message = format!(
            "publishing {hostname}: the write waited for more than {} s, so its Access application is looked at again first ({})",
            HOLDS.as_secs(),
            fault.problem.message
        );
        Fault { problem: Problem::transient(reasons::API_ERROR, message), stale: true }
    }
}
