//! The zones that are being seeded, by name.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

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
    /// Who has this key may fetch it.
    pub key: HmacKey,
    records: Arc<Records>,
    fetched: Arc<AtomicU64>,
}

impl ZoneSeed {
    /// A zone whose records come from an iterator that is made for each transfer. SOA records in it are left out: the zone's own goes
    /// first and last.
    pub fn new<I>(soa: Soa, soa_ttl: u32, key: HmacKey, records: impl Fn() -> I + Send + Sync + 'static) -> Self
    where
        I: Iterator<Item = ResourceRecord> + Send + 'static,
    {
        Self { soa, soa_ttl, key, records: Arc::new(move || Box::new(records())), fetched: Arc::default() }
    }

    /// How often all of it was sent.
    pub fn fetched(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }

    pub(super) fn note_fetched(&self) {
        self.fetched.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn records(&self) -> Box<dyn Iterator<Item = ResourceRecord> + Send> {
        (self.records)()
    }
}

impl fmt::Debug for ZoneSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneSeed").field("serial", &self.soa.serial).field("key", &self.key).finish_non_exhaustive()
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
