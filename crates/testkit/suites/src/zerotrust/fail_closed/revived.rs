//! Rules that a stale write of another cluster brought back.
//!
//! A tunnel's document is read and written as a whole, and the API has no `If-Match`: what one cluster took out between
//! the other's read and write is written again by the other, which may not touch it. No order of our own requests helps;
//! the rule carries the second wall, leads nowhere without a record, and is not held against either cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Who writes: we, or the other cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RuleWriter {
    Us,
    Neighbour,
}

/// What is known of both clusters' reads and writes. Places are a tunnel and a hostname.
#[derive(Clone, Debug, Default)]
pub(super) struct Revivals {
    /// The credential of the other cluster; without one there is nobody to revive anything.
    pub(super) neighbour: Option<String>,
    /// What each cluster last read of each document.
    read: BTreeMap<(RuleWriter, String), BTreeSet<String>>,
    /// Who took a rule out, where nobody saw it since.
    removed: BTreeMap<(String, String), RuleWriter>,
    /// Rules that came back with the second wall.
    revived: BTreeSet<(String, String)>,
    /// Rules that came back as they were made for open names: no excuse for a name that is owed protection by now.
    revived_open: BTreeSet<(String, String)>,
}

impl Revivals {
    /// Whether the rule of a name stands only because a stale write brought it back, and lets nobody in who did not pass Access.
    pub(super) fn has(&self, tunnel: &str, name: &str) -> bool {
        self.revived.contains(&(tunnel.to_owned(), name.to_owned()))
    }

    /// Every name that has such a rule.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.revived.iter().chain(&self.revived_open).map(|(_, name)| name.clone()).collect()
    }

    fn writer(&self, line: &Value) -> Option<RuleWriter> {
        let neighbour = self.neighbour.as_deref()?;
        Some(if line["credential"] == neighbour { RuleWriter::Neighbour } else { RuleWriter::Us })
    }

    /// Somebody read a document.
    pub(super) fn read(&mut self, tunnel: &str, line: &Value, names: &BTreeSet<String>) {
        let Some(writer) = self.writer(line) else { return };
        self.read.insert((writer, tunnel.to_owned()), names.clone());
        self.removed.retain(|(place, name), _| place != tunnel || !names.contains(name));
        for revived in [&mut self.revived, &mut self.revived_open] {
            revived.retain(|(place, name)| place != tunnel || names.contains(name));
        }
    }

    /// Somebody wrote a document, perhaps without an answer: what may have stood before, and the document.
    pub(super) fn wrote(&mut self, tunnel: &str, line: &Value, before: &BTreeSet<String>, config: &Value) {
        let Some(writer) = self.writer(line) else { return };
        let names = super::hostnames(config);
        let read = self.read.get(&(writer, tunnel.to_owned())).cloned().unwrap_or_default();
        for name in &names {
            let place = (tunnel.to_owned(), name.clone());
            let by_other = self.removed.get(&place).is_some_and(|remover| *remover != writer);
            if by_other && read.contains(name) {
                self.removed.remove(&place);
                let revived = if is_walled(config, name) { &mut self.revived } else { &mut self.revived_open };
                revived.insert(place);
            }
        }
        for name in before.difference(&names) {
            let place = (tunnel.to_owned(), name.clone());
            self.revived.remove(&place);
            self.revived_open.remove(&place);
            self.removed.insert(place, writer);
        }
    }
}

/// Whether cloudflared itself refuses who did not pass Access.
fn is_walled(config: &Value, name: &str) -> bool {
    let mut rules = config["ingress"].as_array().into_iter().flatten().filter(|rule| rule["hostname"] == name);
    rules.all(|rule| rule["originRequest"]["access"]["required"] == true)
}
