//! Keys → the files that hold them: `rndc.key` with the keys themselves, `keys.conf` with all that names them.
//!
//! What names a key stands beside it, in one Secret, so that a renewal changes one object and no server ever reads a name without its key.
//! Zones name the lists alone (`allow-update { bindy-updaters; }`): lists in zones that were added at run time follow `rndc reconfig`
//! (tried with 9.18.49), so a renewal never touches a zone.

use crate::conf::clause::{Clause, render};
use crate::conf::files::{FileSet, Following, PodAddress};
use crate::defaults;
use crate::keys::{KeyRing, TsigKey};
use crate::names::API_VERSION;

/// The keys themselves, as `rndc-confgen` writes one.
pub fn rndc_key(ring: &KeyRing) -> String {
    render(&ring.valid().into_iter().map(key_clause).collect::<Vec<_>>())
}

/// All that names keys: whom the server follows and by which keys, the lists of who may do what, and how it is controlled.
pub fn keys_conf(set: &FileSet<'_>, following: &[Following]) -> String {
    format!("// {API_VERSION}: what names a key stands beside it\n{}", render(&key_clauses(set, following)))
}

pub(crate) fn key_clauses(set: &FileSet<'_>, following: &[Following]) -> Vec<Clause> {
    let FileSet { ring, further, .. } = set;
    let mut known: Vec<&TsigKey> = ring.valid();
    let mut clauses = Vec::new();
    for key in further.iter().chain(following.iter().flat_map(|one| &one.keys)) {
        if known.iter().all(|other| other.name != key.name) {
            known.push(key);
            clauses.push(key_clause(key));
        }
    }
    let (control, update, transfer) =
        (ring.valid_for(|set| &set.control), ring.valid_for(|set| &set.update), ring.valid_for(|set| &set.transfer));
    let peers: Vec<&TsigKey> = following.iter().flat_map(|one| &one.keys).collect();
    let servers: Vec<&TsigKey> = update.iter().chain(&transfer).chain(&peers).copied().collect();
    clauses.extend([
        acl("bindy-updaters", &update),
        acl("bindy-transfer", &transfer),
        acl("bindy-peers", &peers),
        acl("bindy-servers", &servers),
        followers(set),
        controls(&control, &set.address),
    ]);
    clauses
}

pub(crate) fn key_clause(key: &TsigKey) -> Clause {
    let inner = [Clause::words("algorithm").with(key.algorithm.as_str()), Clause::word("secret").quoted(&key.secret)];
    Clause::word("key").quoted(&key.name).block(inner)
}

fn acl(name: &str, keys: &[&TsigKey]) -> Clause {
    let mut members: Vec<Clause> = Vec::new();
    for key in keys {
        let member = Clause::word("key").quoted(&key.name);
        if !members.contains(&member) {
            members.push(member);
        }
    }
    if members.is_empty() {
        members.push(Clause::word("none"));
    }
    Clause::word("acl").quoted(name).block(members)
}

/// Who is told when a zone has changed: zones name the list, so that a new follower changes no zone.
fn followers(set: &FileSet<'_>) -> Clause {
    let key = &set.ring.current.transfer.name;
    let mut addresses = set.followers.to_vec();
    addresses.sort();
    addresses.dedup();
    let told = |address: &String| {
        Clause::word(address).with("port").with(defaults::SERVICE_PORT.to_string()).with("key").quoted(key)
    };
    Clause::word("primaries").quoted("bindy-followers").block(addresses.iter().map(told))
}

/// Who holds the key may control the server, from wherever pods are reached; a Service of its own leads there, never the public one.
fn controls(keys: &[&TsigKey], address: &PodAddress) -> Clause {
    let keys: Vec<Clause> =
        keys.iter().map(|key| Clause { parts: Clause::default().quoted(&key.name).parts }).collect();
    let listener = |address: &str| {
        let listener = Clause::word("inet").with(address).with("port").with(defaults::CONTROL_PORT.to_string());
        listener.with("allow").block([Clause::word("any")]).with("keys").block(keys.clone())
    };
    let listeners = match address {
        PodAddress::Any => vec![listener("*"), listener("::")],
        PodAddress::Own(address) => vec![listener(address)],
    };
    Clause::word("controls").block(listeners)
}
