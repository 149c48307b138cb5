//! The deletion ledger of one scope: wanted deletions → go ahead, or hold until somebody approves.
//!
//! More than ten deletions within ten minutes that are also more than 30 % of the scope's objects, or more than 500,
//! are held as one list with a digest. Who approves the digest releases that list, or any part of it, for one hour.
//! A list that grew since its digest was shown can still be approved as it was shown. Of a very long list only the first
//! names are kept, the rest is counted: then an approval is good for whatever is asked for in the scope. The ledger is
//! kept across restarts by whoever owns it; who asked for what was not kept asks again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::owner::digest_hex;

/// How far back deletions count.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// How long an approval lasts.
const APPROVAL: SignedDuration = SignedDuration::from_hours(1);
/// So many deletions are never held.
const ALWAYS_FREE: usize = 10;
/// More than so many percent of the scope's objects are held.
const PERCENT: usize = 30;
/// More than so many deletions are always held.
const NEVER_FREE: usize = 500;
/// How many earlier states of a growing list can still be approved.
const EARLIER_LISTS: usize = 64;
/// So many held names are kept one by one, and so many bytes of them: a ledger has to fit into one object.
const NAMES_KEPT: usize = 2000;
const BYTES_KEPT: usize = 150_000;
/// So many bytes of approved names are remembered; of older approvals what is left is held again.
const BYTES_APPROVED: usize = 2 * BYTES_KEPT;

/// What was deleted in a scope of late, what is held, and what was approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ledger {
    /// Deletions that count against the budget, and when they were first made: trying again costs nothing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    deletions: BTreeMap<String, Timestamp>,
    /// Held names, and since when.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    held: BTreeMap<String, Timestamp>,
    /// Hashes of held names beyond those that are kept.
    #[serde(skip)]
    unlisted: BTreeSet<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    approvals: Vec<Approval>,
    /// Approvals so far: part of each digest, so that none is good for a second list of the same names.
    round: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Approval {
    digest: String,
    at: Timestamp,
    names: BTreeSet<String>,
    /// Whether it is good for names that are not listed, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    all: bool,
}

impl Approval {
    fn is_live(&self, now: Timestamp) -> bool {
        now.duration_since(self.at) < APPROVAL
    }
}

/// Whether deletions may go ahead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All that was asked for may.
    Granted,
    /// What is in the list may not; what was asked for and is not in it, being approved, may.
    Held {
        /// What an approval has to name.
        digest: String,
        /// What is held in the scope, sorted.
        list: Vec<String>,
        /// How many more are held than are listed.
        more: usize,
    },
}

impl Ledger {
    /// Whether the wanted deletions may go ahead. `total` is the number of objects in the scope, with these among them.
    /// What is held stays held, and counts, until it is approved or [withdrawn](Self::withdraw), however little is left of
    /// it: who takes back a mistake object by object must not lose the last ten. A caller that knows of more deletions to
    /// come names them all, so that the first of them do not slip through.
    pub fn consider(&mut self, now: Timestamp, wanted: &[String], total: usize) -> Verdict {
        crate::waypoint!();
        let wanted: Vec<&String> =
            wanted.iter().filter(|name| !self.is_approved(name, now) && !self.is_counted(name, now)).collect();
        if wanted.is_empty() {
            return Verdict::Granted;
        }
        let fresh: Vec<String> = wanted.into_iter().filter(|name| !self.holds(name)).cloned().collect();
        self.hold(fresh.clone(), now);
        let (spent, pending) = (self.spent(now), self.held.len() + self.unlisted.len());
        if is_free(spent + pending, spent + total.max(pending)) {
            self.withdraw(&fresh);
        }
        self.verdict()
    }

    /// Lists names as held, or counts them where the list is full.
    fn hold(&mut self, names: Vec<String>, now: Timestamp) {
        let mut bytes: usize = self.held.keys().map(String::len).sum();
        for name in names.into_iter().filter(|name| !self.held.contains_key(name)).collect::<BTreeSet<_>>() {
            if self.held.len() < NAMES_KEPT && bytes + name.len() <= BYTES_KEPT {
                bytes += name.len();
                self.unlisted.remove(&hash(&name));
                self.held.insert(name, now);
            } else {
                self.unlisted.insert(hash(&name));
            }
        }
    }

    /// Whether this deletion is held already: asking for it again changes nothing.
    pub fn holds(&self, name: &str) -> bool {
        self.held.contains_key(name) || self.unlisted.contains(&hash(name))
    }

    /// The held names that are listed.
    pub fn listed(&self) -> impl Iterator<Item = &String> {
        self.held.keys()
    }

    /// What is held now.
    pub fn verdict(&self) -> Verdict {
        if self.held.is_empty() {
            return Verdict::Granted;
        }
        let (list, more) = (self.held.keys().cloned().collect(), self.unlisted.len());
        Verdict::Held { digest: self.digest(self.held.keys(), more > 0), list, more }
    }

    /// Notes deletions that were made; those under an approval do not count against the budget. Note them before the
    /// request is sent: a crash in between then counts too much, never too little.
    pub fn record(&mut self, now: Timestamp, deleted: &[String]) {
        self.forget_old(now);
        self.withdraw(deleted);
        for name in deleted {
            if !self.is_approved(name, now) {
                self.deletions.entry(name.clone()).or_insert(now);
            }
        }
    }

    /// Takes names off the held list that nobody wants to delete any more.
    pub fn withdraw(&mut self, names: &[String]) {
        for name in names {
            self.held.remove(name);
            self.unlisted.remove(&hash(name));
        }
    }

    /// Releases the list with this digest for one hour; false where no list has it. Approving again what is approved
    /// is fine, does not make it last longer, and changes nothing: the annotation stands long after its list went.
    pub fn approve(&mut self, digest: &str, now: Timestamp) -> bool {
        if self.approvals.iter().any(|approval| approval.digest == digest && approval.is_live(now)) {
            return true;
        }
        let Some((names, all)) = self.list_with(digest) else { return false };
        self.forget_old(now);
        self.held.retain(|name, _| !names.contains(name));
        if all {
            self.unlisted.clear();
        }
        self.approvals.push(Approval { digest: digest.to_owned(), at: now, names, all });
        self.round += 1;
        let bytes = |approval: &Approval| approval.names.iter().map(String::len).sum::<usize>();
        while self.approvals.iter().map(bytes).sum::<usize>() > BYTES_APPROVED {
            self.approvals.remove(0);
        }
        true
    }

    /// Whether there is nothing in it that has to be remembered.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.held.is_empty() && self.spent(now) == 0 && self.approvals.iter().all(|approval| !approval.is_live(now))
    }

    /// The names of the list with this digest: all that is held, or what was held at an earlier time; and whether it
    /// stands for more than it lists.
    fn list_with(&self, digest: &str) -> Option<(BTreeSet<String>, bool)> {
        if !self.unlisted.is_empty() && self.digest(self.held.keys(), true) == digest {
            return Some((self.held.keys().cloned().collect(), true));
        }
        let times: BTreeSet<Timestamp> = self.held.values().copied().collect();
        times.into_iter().rev().take(EARLIER_LISTS).find_map(|time| {
            let then = || self.held.iter().filter(|(_, since)| **since <= time).map(|(name, _)| name);
            (self.digest(then(), false) == digest).then(|| (then().cloned().collect(), false))
        })
    }

    fn digest<'a>(&self, names: impl Iterator<Item = &'a String>, more: bool) -> String {
        let round = self.round.to_string();
        let mut texts = vec![round.as_str()];
        for name in names {
            texts.push(name);
        }
        if more {
            texts.push("and more");
        }
        digest_hex(texts, 12)
    }

    fn is_approved(&self, name: &str, now: Timestamp) -> bool {
        self.approvals.iter().any(|approval| approval.is_live(now) && (approval.all || approval.names.contains(name)))
    }

    fn is_counted(&self, name: &str, now: Timestamp) -> bool {
        self.deletions.get(name).is_some_and(|at| is_recent(*at, now))
    }

    fn spent(&self, now: Timestamp) -> usize {
        self.deletions.values().filter(|at| is_recent(**at, now)).count()
    }

    fn forget_old(&mut self, now: Timestamp) {
        self.deletions.retain(|_, at| is_recent(*at, now));
        self.approvals.retain(|approval| approval.is_live(now));
    }
}

/// What a name that is not listed is known by; nothing outside of the process sees it.
fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < WINDOW
}

fn is_free(deletions: usize, of: usize) -> bool {
    deletions <= ALWAYS_FREE || (deletions <= NEVER_FREE && deletions * 100 <= of * PERCENT)
}

#[cfg(test)]
mod tests;
