//! The deletion ledger of one scope: wanted deletions → go ahead, or hold until somebody approves.
//!
//! More than ten deletions within ten minutes that are also more than 30 % of the scope's objects, or more than 500,
//! are held as one list with a digest. Who approves the digest releases that list, or any part of it, for one hour.
//! A list that grew since its digest was shown can still be approved as it was shown. The ledger is kept across
//! restarts by whoever owns it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    Problem,
    owner::digest_hex,
    reasons,
    text::{count, join_some},
};

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
        /// Everything that is held in the scope, sorted.
        list: Vec<String>,
    },
}

impl Verdict {
    /// Whether this one may be deleted.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::Granted => true,
            Self::Held { list, .. } => list.binary_search_by(|held| held.as_str().cmp(name)).is_err(),
        }
    }

    /// The problem to report for what is held in a scope, as `zone example.com`; none where all may go ahead.
    pub fn problem(&self, scope: &str) -> Option<Problem> {
        let Self::Held { digest, list } = self else { return None };
        Some(Problem::waiting(
            reasons::DELETION_BUDGET_EXCEEDED,
            format!(
                "{} in {scope} held back, because that is a large part of it: {}. \
                 To let them go within the next hour, annotate the object with portolan.dev/release-deletions: {digest}",
                count(list.len(), "deletion"),
                join_some(list, 20),
            ),
        ))
    }
}

impl Ledger {
    /// Whether the wanted deletions may go ahead. `total` is the number of objects in the scope, with these among them.
    /// What is held stays held, and counts, until it is approved, [withdrawn](Self::withdraw), or little enough. A
    /// caller that knows of more deletions to come names them all, so that the first of them do not slip through.
    pub fn consider(&mut self, now: Timestamp, wanted: &[String], total: usize) -> Verdict {
        let wanted: Vec<&String> =
            wanted.iter().filter(|name| !self.is_approved(name, now) && !self.is_counted(name, now)).collect();
        if wanted.is_empty() {
            return Verdict::Granted;
        }
        for name in wanted {
            self.held.entry(name.clone()).or_insert(now);
        }
        let (spent, pending) = (self.spent(now), self.held.len());
        if is_free(spent + pending, spent + total.max(pending)) {
            self.held.clear();
        }
        self.verdict()
    }

    /// Whether this deletion is held already: asking for it again changes nothing.
    pub fn holds(&self, name: &str) -> bool {
        self.held.contains_key(name)
    }

    /// What is held now.
    pub fn verdict(&self) -> Verdict {
        if self.held.is_empty() {
            return Verdict::Granted;
        }
        Verdict::Held { digest: self.digest(self.held.keys()), list: self.held.keys().cloned().collect() }
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
        }
    }

    /// Releases the list with this digest for one hour; false where no list has it. Approving again what is approved
    /// is fine and does not make it last longer.
    pub fn approve(&mut self, digest: &str, now: Timestamp) -> bool {
        self.forget_old(now);
        if self.approvals.iter().any(|approval| approval.digest == digest) {
            return true;
        }
        let Some(names) = self.list_with(digest) else { return false };
        self.held.retain(|name, _| !names.contains(name));
        self.approvals.push(Approval { digest: digest.to_owned(), at: now, names });
        self.round += 1;
        true
    }

    /// Whether there is nothing in it that has to be remembered.
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.held.is_empty() && self.spent(now) == 0 && self.approvals.iter().all(|approval| !approval.is_live(now))
    }

    /// The names of the list with this digest: all that is held, or what was held at an earlier time.
    fn list_with(&self, digest: &str) -> Option<BTreeSet<String>> {
        let times: BTreeSet<Timestamp> = self.held.values().copied().collect();
        times.into_iter().rev().take(EARLIER_LISTS).find_map(|time| {
            let then = || self.held.iter().filter(|(_, since)| **since <= time).map(|(name, _)| name);
            (self.digest(then()) == digest).then(|| then().cloned().collect())
        })
    }

    fn digest<'a>(&self, names: impl Iterator<Item = &'a String>) -> String {
        let round = self.round.to_string();
        let mut texts = vec![round.as_str()];
        for name in names {
            texts.push(name);
        }
        digest_hex(texts, 12)
    }

    fn is_approved(&self, name: &str, now: Timestamp) -> bool {
        self.approvals.iter().any(|approval| approval.is_live(now) && approval.names.contains(name))
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

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) < WINDOW
}

fn is_free(deletions: usize, of: usize) -> bool {
    deletions <= ALWAYS_FREE || (deletions <= NEVER_FREE && deletions * 100 <= of * PERCENT)
}

#[cfg(test)]
mod tests;
