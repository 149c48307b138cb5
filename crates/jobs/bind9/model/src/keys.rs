//! The keys of a server, and their age → what is to be done about them.
//!
//! ```text
//! none ─ create ─▶ current ─ rotate_at ─▶ current + previous ─ overlap over, servers know the current ─▶ current
//! ```
//!
//! A server has three keys: for control (rndc), for updates, and for transfers, which its followers know as well. While a previous key is
//! there both are valid, so nobody who signs with either is refused, and no server has to restart. A key of the user's serves control and
//! updates as it is.

mod secret;

use jiff::{SignedDuration, Timestamp};
use portolan_core::ObjectKey;

use crate::defaults;
use crate::kinds::keys::RndcAlgorithm;
use crate::names;

pub(crate) use secret::is_base64;
pub use secret::{SecretData, StoredKeys, read, read_user_key, written};

/// Never are keys renewed twice within this time, whatever is asked for.
const SHORTEST_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// How long the previous keys stay valid at least: whoever signs with them has learned of the new ones by then.
const OVERLAP: SignedDuration = SignedDuration::from_mins(10);
/// Octets of a generated key: as many as SHA-256 gives (RFC 2104 §3).
pub const SECRET_OCTETS: usize = 32;

/// A key: its name, what it signs with, and the secret in base64.
#[derive(Clone, PartialEq, Eq)]
pub struct TsigKey {
    /// Its name.
    pub name: String,
    /// What it signs with.
    pub algorithm: RndcAlgorithm,
    /// The secret, in base64.
    pub secret: String,
}

/// Secrets are never shown.
impl std::fmt::Debug for TsigKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TsigKey({} {})", self.algorithm.as_str(), self.name)
    }
}

/// The keys of a server at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySet {
    /// For control.
    pub control: TsigKey,
    /// For updates.
    pub update: TsigKey,
    /// For transfers from this server, and for its messages to those who follow it.
    pub transfer: TsigKey,
}

impl KeySet {
    /// All of them, each once: control and updates may have one.
    pub fn all(&self) -> Vec<&TsigKey> {
        let mut all = vec![&self.control];
        for key in [&self.update, &self.transfer] {
            if all.iter().all(|other| other.name != key.name) {
                all.push(key);
            }
        }
        all
    }
}

/// The keys of a server over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRing {
    /// Those that are signed with.
    pub current: KeySet,
    /// Those before, while they are still valid.
    pub previous: Option<KeySet>,
    /// When the current ones were made.
    pub created_at: Timestamp,
    /// When they took the place of others.
    pub rotated_at: Option<Timestamp>,
    /// How often keys were renewed.
    pub rotations: i64,
}

/// Secrets for new keys, in base64. Made by whoever has a source of chance.
#[derive(Clone)]
pub struct FreshSecrets {
    /// For control.
    pub control: String,
    /// For updates.
    pub update: String,
    /// For transfers.
    pub transfer: String,
}

/// How keys are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPolicy {
    /// What generated keys sign with.
    pub algorithm: RndcAlgorithm,
    /// Hours after which they are renewed; never where absent.
    pub rotate_after_hours: Option<i64>,
    /// The user's key for control and updates, where there is one.
    pub given: Option<TsigKey>,
}

/// What is to be done about a server's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyStep {
    /// They are as they should be; the time is when they are to be looked at again.
    Keep(Option<Timestamp>),
    /// There are none, or none that can be used.
    Create,
    /// They are renewed, and stay valid for a while.
    Rotate,
    /// Those before are valid no longer.
    Retire,
}

impl KeyRing {
    /// What is to be done about keys now. Previous ones are given up once every server knows the current ones.
    pub fn step(stored: Option<&Self>, policy: &KeyPolicy, now: Timestamp, servers_know: KeysKnown) -> KeyStep {
        let Some(ring) = stored else { return KeyStep::Create };
        if let Some(rotated) = ring.rotated_at.filter(|_| ring.previous.is_some()) {
            let over = rotated + OVERLAP;
            return match servers_know {
                KeysKnown::Everywhere if now >= over => KeyStep::Retire,
                KeysKnown::Everywhere => KeyStep::Keep(Some(over)),
                KeysKnown::NotYet => KeyStep::Keep(Some(over.max(now + SignedDuration::from_mins(1)))),
            };
        }
        if ring.differs(policy) {
            return KeyStep::Rotate;
        }
        match ring.rotate_at(policy) {
            Some(due) if now >= due => KeyStep::Rotate,
            due => KeyStep::Keep(due),
        }
    }

    /// Whether the current keys are others than those asked for.
    fn differs(&self, policy: &KeyPolicy) -> bool {
        let KeySet { control, update, transfer } = &self.current;
        if let Some(given) = &policy.given {
            return control != given || update != given;
        }
        [control, update, transfer].iter().any(|key| key.algorithm != policy.algorithm)
    }

    /// When the keys are to be renewed. A user's key never is.
    pub fn rotate_at(&self, policy: &KeyPolicy) -> Option<Timestamp> {
        let hours = policy.rotate_after_hours.filter(|_| policy.given.is_none())?;
        let asked = SignedDuration::from_hours(hours).max(SHORTEST_LIFE);
        self.created_at.checked_add(asked).ok()
    }

    /// The first keys of a server.
    pub fn created(server: &ObjectKey, policy: &KeyPolicy, fresh: FreshSecrets, now: Timestamp) -> Self {
        let current = key_set(server, policy, fresh, 0);
        Self { current, previous: None, created_at: now, rotated_at: None, rotations: 0 }
    }

    /// The keys after they were renewed: those before are still valid.
    pub fn rotated(self, server: &ObjectKey, policy: &KeyPolicy, fresh: FreshSecrets, now: Timestamp) -> Self {
        let rotations = self.rotations + 1;
        let mut current = key_set(server, policy, fresh, rotations);
        keep_what_may_not_have_two_secrets(&mut current, &self.current);
        Self { current, previous: Some(self.current), created_at: now, rotated_at: Some(now), rotations }
    }

    /// The keys without those before.
    pub fn retired(self) -> Self {
        Self { previous: None, ..self }
    }

    /// Every key that is valid, the current ones first, each name once.
    pub fn valid(&self) -> Vec<&TsigKey> {
        let mut all = self.current.all();
        for key in self.previous.iter().flat_map(KeySet::all) {
            if all.iter().all(|other| other.name != key.name) {
                all.push(key);
            }
        }
        all
    }

    /// The valid keys for one purpose, the current one first.
    pub fn valid_for(&self, purpose: impl Fn(&KeySet) -> &TsigKey) -> Vec<&TsigKey> {
        let current = purpose(&self.current);
        let previous = self.previous.as_ref().map(&purpose).filter(|key| key.name != current.name);
        std::iter::once(current).chain(previous).collect()
    }

    /// What tells these keys from others without telling anything of them.
    pub fn generation(&self) -> String {
        let names: Vec<&str> = self.valid().iter().map(|key| key.name.as_str()).collect();
        names::digest(&[&names.join(" "), &self.created_at.to_string(), &self.rotations.to_string()])
    }
}

/// Whether the servers of an instance know its current keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysKnown {
    /// All of them.
    Everywhere,
    /// Not all, or nobody can tell.
    NotYet,
}

/// A user's key that keeps its name and gets another secret cannot have both: its name means the new one at once.
fn keep_what_may_not_have_two_secrets(current: &mut KeySet, before: &KeySet) {
    if current.transfer.name == before.transfer.name {
        current.transfer = before.transfer.clone();
    }
}

fn key_set(server: &ObjectKey, policy: &KeyPolicy, fresh: FreshSecrets, generation: i64) -> KeySet {
    let KeyPolicy { algorithm, given, .. } = policy;
    let numbered = |name: &str| if generation == 0 { name.to_owned() } else { format!("{name}-{generation}") };
    let made = |name: String, secret: String| TsigKey { name, algorithm: *algorithm, secret };
    let transfer = made(numbered(&names::transfer_key(server)), fresh.transfer);
    match given {
        Some(given) => KeySet { control: given.clone(), update: given.clone(), transfer },
        None => KeySet {
            control: made(numbered(defaults::CONTROL_KEY), fresh.control),
            update: made(numbered(defaults::UPDATE_KEY), fresh.update),
            transfer,
        },
    }
}

#[cfg(test)]
mod tests;
