//! One client per credential: its governor, its snapshots and its connections are shared by the whole process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portolan_core::Clock;

use crate::client::Client;
use crate::credential::{Credential, Identity};
use crate::governor::Budget;
use crate::metrics::Metrics;
use crate::reader::Reader;
use crate::retry::RetryPolicy;
use crate::sender::Sender;
use crate::settings::Settings;
use crate::transport::Transport;

/// All clients of a process.
pub struct Clients {
    shared: Arc<Shared>,
    retry: RetryPolicy,
}

struct Shared {
    settings: Arc<Settings>,
    transport: Arc<dyn Transport>,
    clock: Clock,
    metrics: Metrics,
    known: Mutex<BTreeMap<Identity, Client>>,
}

impl Clients {
    /// No clients yet; they all send over `transport`.
    pub fn new(settings: Settings, transport: Arc<dyn Transport>, clock: Clock) -> Self {
        let retry = settings.retry;
        let (settings, metrics, known) = (Arc::new(settings), Metrics::default(), Mutex::default());
        Self { shared: Arc::new(Shared { settings, transport, clock, metrics, known }), retry }
    }

    /// The same clients (budgets, snapshots, handles) for callers who repeat failed requests by another policy.
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { shared: Arc::clone(&self.shared), retry }
    }

    /// The client of a credential: the same one for an equal credential.
    pub fn client(&self, credential: &Credential) -> Client {
        let make = || {
            Client::new(Sender::new(
                credential.clone(),
                self.shared.settings.clone(),
                self.shared.transport.clone(),
                self.shared.clock.clone(),
                self.shared.metrics.clone(),
            ))
        };
        let client = self.clients().entry(credential.identity()).or_insert_with(make).clone();
        client.with_retry(self.retry)
    }

    /// The part of a credential's client that cannot write.
    pub fn reader(&self, credential: &Credential) -> Reader {
        self.client(credential).reader()
    }

    /// Lets go of a credential that is no longer used, such as a rotated token.
    pub fn forget(&self, identity: &Identity) {
        self.clients().remove(identity);
    }

    /// The budgets of all credentials, for status.
    pub fn budgets(&self) -> Vec<(Identity, Budget)> {
        self.clients().iter().map(|(identity, client)| (identity.clone(), client.budget())).collect()
    }

    /// What all clients count.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// How they talk to the API.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<Identity, Client>> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients")
            .field("settings", &self.shared.settings)
            .field("clients", &self.clients().len())
            .finish_non_exhaustive()
    }
}
