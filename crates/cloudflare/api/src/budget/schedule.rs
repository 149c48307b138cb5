//! Which scopes of a credential are looked at for drift now: scopes in, the chosen ones out. Remembers when each was looked
//! at, and asks the audit log where not all of them fit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::budget::audit::{self, AuditChanges};
use crate::budget::rotation::{self, Candidate, ChosenScopes};
use crate::call::error::ErrorClass;
use crate::credential::Identity;
use crate::reader::Reader;

/// An entry may show in the audit log so long after the change.
const LAG: Duration = Duration::from_secs(60);
/// A refused audit log is asked for again after so long.
const REFUSED: Duration = Duration::from_secs(3600);
/// A credential that nobody asks with for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);

/// What is looked at as a whole.
#[derive(Clone, Debug)]
pub struct DriftScope<K> {
    /// What it is; unique for the credential.
    pub key: K,
    /// What is read for it, and the requests that each part takes. A part that several have is read once.
    pub parts: Vec<(Arc<str>, u32)>,
    /// Names of its zone, or in its zone.
    pub names: Vec<String>,
    /// Ids of what stands there in the account.
    pub ids: Vec<String>,
    /// Whether it is a collection of the account, in no zone.
    pub of_account: bool,
}

impl<K> DriftScope<K> {
    fn is_changed(&self, changes: &AuditChanges) -> bool {
        self.of_account && changes.account
            || self.names.iter().any(|name| changes.concern(name))
            || self.ids.iter().any(|id| changes.resources.contains(id))
    }
}

/// The schedule of one job's looks.
#[derive(Debug)]
pub struct DriftSchedule<K> {
    every: Duration,
    credentials: Mutex<BTreeMap<Identity, KnownScopes<K>>>,
}

/// What is known of a credential's scopes.
#[derive(Debug)]
struct KnownScopes<K> {
    looked: BTreeMap<K, Instant>,
    /// Known to have changed since they were looked at.
    changed: BTreeSet<K>,
    /// The last look could not take everything.
    crowded: bool,
    logs: BTreeMap<String, Log>,
    /// When the schedule was last asked for.
    asked: Option<Instant>,
}

/// What is known of an account's audit log.
#[derive(Clone, Copy, Debug)]
struct Log {
    /// Until when it was read.
    until: Timestamp,
    refused: Option<Instant>,
}

impl<K> Default for KnownScopes<K> {
    fn default() -> Self {
        Self { looked: BTreeMap::new(), changed: BTreeSet::new(), crowded: false, logs: BTreeMap::new(), asked: None }
    }
}

impl<K: Ord + Clone> DriftSchedule<K> {
    /// A schedule of looks that are so far apart.
    pub fn new(every: Duration) -> Self {
        Self { every, credentials: Mutex::default() }
    }

    /// Which of a credential's scopes to look at now. They count as looked at from here on.
    pub async fn next(&self, reader: &Reader, accounts: &BTreeSet<String>, scopes: Vec<DriftScope<K>>) -> Vec<K> {
        let crowded = self.known().get(reader.identity()).is_some_and(|known| known.crowded);
        let changes = if crowded { self.changes(reader, accounts).await } else { AuditChanges::default() };
        let now = Instant::now();
        let mut credentials = self.known();
        credentials.retain(|_, known| known.asked.is_none_or(|asked| now < asked + FORGOTTEN));
        let known = credentials.entry(reader.identity().clone()).or_default();
        known.changed.extend(scopes.iter().filter(|one| one.is_changed(&changes)).map(|one| one.key.clone()));
        let candidates = known.candidates(scopes, now.checked_sub(self.every).unwrap_or(now));
        let ChosenScopes { keys, complete } = rotation::choose(candidates, &reader.drift_share(), self.every, now);
        (known.crowded, known.asked) = (!complete, Some(now));
        known.looked(&keys, now);
        keys
    }

    /// Whether some credential has more than a look can take: then accounts are of use.
    pub fn is_crowded(&self) -> bool {
        self.known().values().any(|known| known.crowded)
    }

    /// All of a credential's scopes are looked at now.
    pub fn all(&self, reader: &Reader, keys: &[K]) {
        self.known().entry(reader.identity().clone()).or_default().looked(keys, Instant::now());
    }

    /// What changed in accounts since they were last asked; nothing where that cannot be read.
    async fn changes(&self, reader: &Reader, accounts: &BTreeSet<String>) -> AuditChanges {
        let mut changes = AuditChanges::default();
        for account in accounts {
            let Some(since) = self.since(reader, account) else { continue };
            let until = reader.time();
            match audit::changes(reader, account, since).await {
                Ok(found) => {
                    changes.extend(found);
                    self.note(reader, account, Log { until, refused: None });
                }
                Err(error) if matches!(error.class, ErrorClass::Transient | ErrorClass::RateLimit) => {}
                Err(error) => {
                    let log = Log { until, refused: Some(Instant::now()) };
                    if self.note(reader, account, log).is_none_or(|before| before.refused.is_none()) {
                        tracing::info!(
                            account, %error,
                            "The audit log cannot be read, so that zones are checked for drift in turn; to have changed \
                             ones checked first, give the API token Account Settings:Read"
                        );
                    }
                }
            }
        }
        changes
    }

    /// From when on the audit log is read; none where it was refused lately.
    fn since(&self, reader: &Reader, account: &str) -> Option<Timestamp> {
        let log = self.known().get(reader.identity()).and_then(|known| known.logs.get(account).copied());
        match log {
            Some(Log { refused: Some(at), .. }) if at.elapsed() < REFUSED => None,
            Some(log) => log.until.checked_sub(LAG).ok(),
            None => reader.time().checked_sub(self.every + LAG).ok(),
        }
    }

    fn note(&self, reader: &Reader, account: &str, log: Log) -> Option<Log> {
        self.known().entry(reader.identity().clone()).or_default().logs.insert(account.to_owned(), log)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Identity, KnownScopes<K>>> {
        self.credentials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone> KnownScopes<K> {
    /// New ones are as old as to be due; those that are gone are forgotten.
    fn candidates(&mut self, scopes: Vec<DriftScope<K>>, due: Instant) -> Vec<Candidate<K>> {
        let before = std::mem::take(&mut self.looked);
        let mut candidates = Vec::with_capacity(scopes.len());
        for DriftScope { key, parts, .. } in scopes {
            let looked = before.get(&key).copied().unwrap_or(due);
            self.looked.insert(key.clone(), looked);
            candidates.push(Candidate { changed: self.changed.contains(&key), key, parts, looked });
        }
        self.changed.retain(|key| self.looked.contains_key(key));
        candidates
    }

    fn looked(&mut self, keys: &[K], now: Instant) {
        for key in keys {
            self.looked.insert(key.clone(), now);
            self.changed.remove(key);
        }
    }
}
