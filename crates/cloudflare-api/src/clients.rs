//! One client per credential: its governor, its snapshots and its connections are shared by the whole process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portolan_core::{Clock, WriteGate};

use crate::client::{Client, Common};
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
    gate: Option<WriteGate>,
}

struct Shared {
    settings: Arc<Settings>,
    transport: Arc<dyn Transport>,
    clock: Clock,
    metrics: Metrics,
    common: Arc<Common>,
    known: Mutex<BTreeMap<Identity, Client>>,
}

impl Clients {
    /// No clients yet; they all send over `transport`.
    pub fn new(settings: Settings, transport: Arc<dyn Transport>, clock: Clock) -> Self {
        let retry = settings.retry;
        let (settings, metrics, common) = (Arc::new(settings), Metrics::default(), Arc::default());
        let shared = Shared { settings, transport, clock, metrics, common, known: Mutex::default() };
        Self { shared: Arc::new(shared), retry, gate: None }
    }

    /// The same clients (budgets, snapshots, handles) for callers who repeat failed requests by another policy.
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { shared: Arc::clone(&self.shared), retry, gate: self.gate.clone() }
    }

    /// The same clients for callers whose writes leave only while this gate is open.
    pub fn within(&self, gate: &WriteGate) -> Self {
        let gate = self.gate.as_ref().map_or_else(|| gate.clone(), |own| own.and(gate));
        Self { shared: Arc::clone(&self.shared), retry: self.retry, gate: Some(gate) }
    }

    /// The client of a credential: the same one for an equal credential.
    pub fn client(&self, credential: &Credential) -> Client {
        let make = || {
            let sender = Sender::new(
                credential.clone(),
                self.shared.settings.clone(),
                self.shared.transport.clone(),
                self.shared.clock.clone(),
                self.shared.metrics.clone(),
            );
            Client::new(sender, Arc::clone(&self.shared.common))
        };
        let client = self.clients().entry(credential.identity()).or_insert_with(make).clone();
        let client = client.with_retry(self.retry);
        self.gate.as_ref().map_or_else(|| client.clone(), |gate| client.within(gate))
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
