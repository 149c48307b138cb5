//! One client per credential: its governor, its snapshots and its connections are shared by the whole process. It goes a while
//! after the last Secret that held the credential holds another one, or is asked for no more.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portolan_core::{Clock, WriteGate};
use tokio::time::Instant;

use crate::budget::governor::Budget;
use crate::call::retry::RetryPolicy;
use crate::call::sender::Sender;
use crate::call::transport::Transport;
use crate::client::{Client, Common};
use crate::credential::{Credential, Identity};
use crate::metrics::Metrics;
use crate::reader::Reader;
use crate::settings::Settings;

/// So long the client of a credential stays that no Secret holds any more: whoever read the Secret a moment ago still uses it.
const GRACE: Duration = Duration::from_secs(600);

/// A Secret that nobody asked for as long as this is gone, or nobody's: what uses a credential asks every few minutes.
const UNASKED: Duration = Duration::from_secs(3600);

/// All clients of a process.
pub struct Clients {
    shared: Arc<ClientsInner>,
    retry: RetryPolicy,
    gate: Option<WriteGate>,
}

struct ClientsInner {
    settings: Arc<Settings>,
    transport: Arc<dyn Transport>,
    clock: Clock,
    metrics: Metrics,
    common: Arc<Common>,
    known: Mutex<KnownClients>,
}

/// The clients that there are, and where their credentials come from.
#[derive(Default)]
struct KnownClients {
    clients: BTreeMap<Identity, Client>,
    /// Which credential a Secret held when it was last read.
    sources: BTreeMap<String, HeldCredential>,
    /// Credentials that no Secret holds any more, and since when.
    left: BTreeMap<Identity, Instant>,
}

/// What a source holds, and when somebody last asked for it.
struct HeldCredential {
    identity: Identity,
    asked: Instant,
}

impl Clients {
    /// No clients yet; they all send over `transport`.
    pub fn new(settings: Settings, transport: Arc<dyn Transport>, clock: Clock) -> Self {
        let retry = settings.retry;
        let (settings, metrics, common) = (Arc::new(settings), Metrics::default(), Arc::default());
        let shared = ClientsInner { settings, transport, clock, metrics, common, known: Mutex::default() };
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

    /// The client of a credential: the same one for an equal credential. It stays.
    pub fn client(&self, credential: &Credential) -> Client {
        portolan_core::waypoint!();
        let identity = credential.identity();
        let mut known = self.known();
        known.left.remove(&identity);
        let client = known.clients.entry(identity).or_insert_with(|| self.make(credential)).clone();
        drop(known);
        let client = client.with_retry(self.retry);
        self.gate.as_ref().map_or_else(|| client.clone(), |gate| client.within(gate))
    }

    /// The client of the credential that `source` (a Secret and its key) holds now. The client of what it held before goes after
    /// a while, unless another source holds the same.
    pub fn client_of(&self, source: &str, credential: &Credential) -> Client {
        let client = self.client(credential);
        let (mut known, now) = (self.known(), Instant::now());
        known.asked(source, &credential.identity(), now);
        known.forget_unasked(now);
        let gone = known.sweep(now);
        drop(known);
        // What they hold is taken apart without the lock.
        drop(gone);
        client
    }

    fn make(&self, credential: &Credential) -> Client {
        let ClientsInner { settings, transport, clock, metrics, common, .. } = self.shared.as_ref();
        let sender =
            Sender::new(credential.clone(), settings.clone(), transport.clone(), clock.clone(), metrics.clone());
        Client::new(sender, Arc::clone(common))
    }

    /// The part of a credential's client that cannot write.
    pub fn reader(&self, credential: &Credential) -> Reader {
        self.client(credential).reader()
    }

    /// The budgets of all credentials, for status.
    pub fn budgets(&self) -> Vec<(Identity, Budget)> {
        self.known().clients.iter().map(|(identity, client)| (identity.clone(), client.budget())).collect()
    }

    /// What all clients count.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// How they talk to the API.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    fn known(&self) -> MutexGuard<'_, KnownClients> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same clients for whoever may only read: there is no way from here to one that writes.
#[derive(Clone, Debug)]
pub struct Readers(Arc<Clients>);

impl Readers {
    /// The reading part of these clients, whose budgets and snapshots it shares.
    pub fn of(clients: Arc<Clients>) -> Self {
        Self(clients)
    }

    /// As [`Clients::client_of`], without the part that writes.
    pub fn reader_of(&self, source: &str, credential: &Credential) -> Reader {
        self.0.client_of(source, credential).reader()
    }
}

impl KnownClients {
    /// A source holds a credential now, whatever it held before.
    fn asked(&mut self, source: &str, identity: &Identity, now: Instant) {
        if let Some(held) = self.sources.get_mut(source).filter(|held| held.identity == *identity) {
            held.asked = now;
            return;
        }
        let before = self.sources.insert(source.to_owned(), HeldCredential { identity: identity.clone(), asked: now });
        if let Some(before) = before {
            self.leave(before.identity, now);
        }
    }

    /// Lets go of sources that nobody has asked for in a long time.
    fn forget_unasked(&mut self, now: Instant) {
        let unasked = |held: &mut HeldCredential| now.saturating_duration_since(held.asked) >= UNASKED;
        let gone: Vec<HeldCredential> =
            self.sources.extract_if(.., |_, held| unasked(held)).map(|(_, held)| held).collect();
        for held in gone {
            self.leave(held.identity, now);
        }
    }

    /// A source no longer holds a credential.
    fn leave(&mut self, identity: Identity, now: Instant) {
        if !self.sources.values().any(|held| held.identity == identity) {
            self.left.insert(identity, now);
        }
    }

    /// Takes out the clients of credentials that were left a while ago, and that nobody uses.
    fn sweep(&mut self, now: Instant) -> Vec<Client> {
        let over = |since: &Instant| now.saturating_duration_since(*since) >= GRACE;
        let unused = |identity: &Identity| self.clients.get(identity).is_none_or(Client::is_unused);
        let left = self.left.iter().filter(|(identity, since)| over(since) && unused(identity));
        let gone: Vec<Identity> = left.map(|(identity, _)| identity.clone()).collect();
        self.left.retain(|identity, _| !gone.contains(identity));
        gone.iter().filter_map(|identity| self.clients.remove(identity)).collect()
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients")
            .field("settings", &self.shared.settings)
            .field("clients", &self.known().clients.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::budget::governor::Lane;
    use crate::call::request::Request;
    use crate::testing::{Scripted, clients, good};

    fn some() -> Clients {
        clients(Settings::default(), Scripted::new(Duration::ZERO, |_| good(json!({}))))
    }

    fn token(number: u32) -> Credential {
        Credential::token(&format!("token-{number}"))
    }

    fn series(clients: &Clients) -> usize {
        let mut registry = prometheus_client::registry::Registry::default();
        clients.metrics().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text can be written");
        text.lines().filter(|line| line.starts_with("portolan_cloudflare_budget_left{")).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_hundred_rotations_leave_the_clients_and_series_of_the_last_minutes() {
        let clients = some();
        let mut most = 0;

        for number in 0..100 {
            let client = clients.client_of("shop/cf#token", &token(number));
            client.send(Lane::Change, &Request::get("/zones", &[])).await.expect("it is answered");
            drop(client);
            tokio::time::advance(Duration::from_secs(60)).await;
            most = most.max(clients.budgets().len());
        }

        assert!(most <= 12, "{most}");
        assert!(series(&clients) <= 12, "{}", series(&clients));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_stays_while_another_secret_holds_its_token_or_somebody_uses_it() {
        let clients = some();
        clients.client_of("a", &token(1));
        clients.client_of("b", &token(1));
        let used = clients.client_of("c", &token(2));

        clients.client_of("a", &token(3));
        clients.client_of("c", &token(3));
        tokio::time::advance(GRACE).await;
        clients.client_of("a", &token(3));
        assert_eq!(clients.budgets().len(), 3);

        drop(used);
        clients.client_of("b", &token(3));
        tokio::time::advance(GRACE).await;
        clients.client_of("a", &token(3));
        assert_eq!(clients.budgets().len(), 1);
    }

    /// A Secret that was deleted is never read again, and nobody tells the clients.
    #[tokio::test(start_paused = true)]
    async fn finding_33_the_clients_of_secrets_that_went_go_too() {
        let clients = some();
        for number in 0..100 {
            clients.client_of(&format!("tenant-{number}"), &token(number));
        }

        for _ in 0..8 {
            tokio::time::advance(GRACE).await;
            clients.client_of("tenant-0", &token(0));
        }

        let identities: Vec<_> = clients.budgets().into_iter().map(|(identity, _)| identity).collect();
        assert_eq!(identities, [token(0).identity()]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_comes_back_is_not_left() {
        let clients = some();
        clients.client_of("a", &token(1));
        clients.client_of("a", &token(2));
        clients.client_of("a", &token(1));

        tokio::time::advance(GRACE).await;
        clients.client_of("a", &token(1));

        let identities: Vec<_> = clients.budgets().into_iter().map(|(identity, _)| identity).collect();
        assert_eq!(identities, [token(1).identity()]);
    }
}
