//! The zones that are being seeded, by name.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use tokio::sync::watch;

use crate::{
    message::{DomainName, ResourceRecord},
    tsig::HmacKey,
    values::Soa,
};

/// Makes a zone's records anew for each transfer; several may run at once.
type Records = dyn Fn() -> Box<dyn Iterator<Item = ResourceRecord> + Send> + Send + Sync;

/// A zone that servers may fetch.
#[derive(Clone)]
pub struct ZoneSeed {
    /// Its SOA record.
    pub soa: Soa,
    /// The TTL of that.
    pub soa_ttl: u32,
    keys: Vec<HmacKey>,
    records: Arc<Records>,
    fetched: watch::Sender<u64>,
}

impl ZoneSeed {
    /// A zone that who has the key may fetch. Its records come from an iterator that is made for each transfer. SOA records in it are left out: the zone's own goes
    /// first and last.
    pub fn new<I>(soa: Soa, soa_ttl: u32, key: HmacKey, records: impl Fn() -> I + Send + Sync + 'static) -> Self
    where
        I: Iterator<Item = ResourceRecord> + Send + 'static,
    {
        Self {
            soa,
            soa_ttl,
            keys: vec![key],
            records: Arc::new(move || Box::new(records())),
            fetched: watch::Sender::new(0),
        }
    }

    /// Who has this key may fetch it too: while keys are replaced, the old one and the new one are valid.
    pub fn with_key(mut self, key: HmacKey) -> Self {
        self.keys.push(key);
        self
    }

    /// How often all of it was sent.
    pub fn fetched(&self) -> u64 {
        *self.fetched.borrow()
    }

    /// Waits until all of it was sent at least once.
    pub async fn until_fetched(&self) {
        let sent = self.fetched.subscribe().wait_for(|fetched| *fetched > 0).await.is_ok();
        debug_assert!(sent, "who waits holds a sender");
    }

    pub(super) fn key(&self, name: &DomainName) -> Option<&HmacKey> {
        self.keys.iter().find(|key| key.name() == name)
    }

    pub(super) fn note_fetched(&self) {
        self.fetched.send_modify(|fetched| *fetched += 1);
    }

    pub(super) fn records(&self) -> Box<dyn Iterator<Item = ResourceRecord> + Send> {
        (self.records)()
    }
}

impl fmt::Debug for ZoneSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneSeed").field("serial", &self.soa.serial).field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// The zones that are being seeded. Clones are one table.
#[derive(Clone, Debug, Default)]
pub struct SeedTable(Arc<RwLock<HashMap<DomainName, ZoneSeed>>>);

impl SeedTable {
    /// A table without zones.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has a zone be answered for from now on; one that is there already is replaced. Returns what counts its transfers.
    pub fn insert(&self, zone: DomainName, seed: ZoneSeed) -> ZoneSeed {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(zone, seed.clone());
        seed
    }

    /// Has a zone no longer be answered for; transfers under way go on.
    pub fn remove(&self, zone: &DomainName) -> Option<ZoneSeed> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(zone)
    }

    /// How many zones there are.
    pub fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get(&self, zone: &DomainName) -> Option<ZoneSeed> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(zone).cloned()
    }
}
