//! Zones that are being seeded → the responder that servers fetch them from, for as long as the job runs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portolan_bind9_wire::{ResponderLimits, SeedResponder, SeedTable};
use portolan_engine::{CancellationToken, Task};

/// Between two tries to listen at an address that somebody else has.
const PAUSE: Duration = Duration::from_secs(5);

/// The zones that servers fetch from us, and where.
#[derive(Clone, Default)]
pub(crate) struct ZoneSeeds {
    pub(crate) zones: SeedTable,
    address: Arc<Mutex<Option<SocketAddr>>>,
}

impl ZoneSeeds {
    /// Where servers reach us, once we listen.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers until the job ends.
    pub(crate) fn task(&self, listen: SocketAddr, shutdown: CancellationToken) -> Task {
        let seeds = self.clone();
        Task::new("zone seeding", || 0, async move {
            let _ended = shutdown.run_until_cancelled(seeds.serve(listen)).await;
        })
    }

    async fn serve(&self, listen: SocketAddr) {
        loop {
            match SeedResponder::bind(listen, self.zones.clone(), ResponderLimits::default()).await {
                Ok(responder) => {
                    let address = responder.address().ok();
                    *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
                    responder.serve().await;
                }
                Err(error) => tracing::warn!(%listen, %error, "Servers cannot fetch zones from here"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
