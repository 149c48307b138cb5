//! What holds for a server → all of its files, checked as `named` would check them, and what tells one set of files from another.

use std::collections::{BTreeMap, BTreeSet};

use portolan_core::ObjectKey;

use crate::conf::check::check;
use crate::conf::clause::{Clause, render};
use crate::conf::key_files::{key_clause, key_clauses, keys_conf, rndc_key};
use crate::conf::options::{elements, options, primaries, signing};
use crate::defaults;
use crate::finding::{Finding, Weight};
use crate::keys::{KeyRing, TsigKey};
use crate::names;
use crate::settings::ServerSettings;
use crate::validate;

const NAMED: &str = "named.conf";
const OPTIONS: &str = "named.conf.options";

/// Where a server listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PodAddress {
    /// On all addresses of its pod, which has a network of its own.
    #[default]
    Any,
    /// On this one: pods that share a machine's network must not take each other's. Also a word that whoever runs the pod replaces.
    Own(String),
}

/// A server that is followed: where it is, by which keys, and which of its catalogs is for the follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Following {
    /// The instance that is followed.
    pub writer: ObjectKey,
    /// Where it answers: its Service, so that a new pod changes nothing.
    pub addresses: Vec<String>,
    /// On which port.
    pub port: u16,
    /// The catalog zone for this follower.
    pub catalog: String,
    /// Its keys for transfers that are valid, the current one first.
    pub keys: Vec<TsigKey>,
}

/// Everything that the files of a server follow from.
#[derive(Clone, Debug)]
pub struct FileSet<'a> {
    /// The server.
    pub server: ObjectKey,
    /// What holds for it.
    pub settings: &'a ServerSettings,
    /// Its keys.
    pub ring: &'a KeyRing,
    /// Further keys that it knows.
    pub further: &'a [TsigKey],
    /// Whom it follows.
    pub following: &'a [Following],
    /// Addresses of the servers that follow it, and are told of changes.
    pub followers: &'a [String],
    /// Where it listens.
    pub address: PodAddress,
    /// What the user's own files hold, by the name that each has here: `named.conf`, `named.conf.options`, `named.conf.zones`.
    pub given: BTreeMap<String, String>,
}

/// The files of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFiles {
    /// Those that anybody may read: for the `ConfigMap`.
    pub plain: BTreeMap<String, String>,
    /// Those that hold keys or name them: for the Secret.
    pub secret: BTreeMap<String, String>,
    /// What the server says of its version once it runs with these files: `rndc reconfig` is enough for everything in them.
    pub version: String,
    /// What only a new pod takes: files that are mounted one by one.
    pub rollout: String,
    /// What has no effect, or less than it seems.
    pub notes: Vec<Finding>,
}

/// The files of a server, or why no server would start with them. The same inputs give the same files, octet by octet.
pub fn files(set: &FileSet<'_>) -> Result<ServerFiles, Vec<Finding>> {
    let mut found = validate::server(set.settings);
    let policy = set
        .settings
        .config
        .dnssec
        .as_ref()
        .and_then(|one| validate::policy(one, "spec.config.dnssec", &mut Vec::new()));
    let whom = sorted(set.following);
    let unmarked = options(set.settings, &whom, &set.address, "");
    let below: Vec<Clause> = lists(set.settings).chain(policy.iter().filter_map(signing)).collect();
    let named = named_conf(set, &whom);
    let keyed = key_clauses(set, &whom);
    let whole: Vec<Clause> = set
        .ring
        .valid()
        .into_iter()
        .map(key_clause)
        .chain(keyed)
        .chain(below.clone())
        .chain([unmarked.clone()])
        .collect();
    let without_includes =
        whole.iter().chain(named.iter().filter(|clause| clause.name() != "include")).cloned().collect::<Vec<_>>();
    found.extend(check(&without_includes, "named.conf"));
    for (name, text) in &set.given {
        found.extend(crate::conf::check::check_text(text, name));
    }
    found.extend(notes(set));
    found.sort();
    found.dedup();
    let (notes, refused): (Vec<Finding>, Vec<Finding>) =
        found.into_iter().partition(|one| one.weight == Weight::Ignored);
    if !refused.is_empty() {
        return Err(refused);
    }
    let (named, rest) = (render(&named), render(&below));
    let followers: Vec<&str> = BTreeSet::from_iter(set.followers).into_iter().map(String::as_str).collect();
    let version = names::digest(&[&named, &rest, &render(&[unmarked]), &followers.join(" "), &set.ring.generation()]);
    let marked = options(set.settings, &whom, &set.address, &version);
    let options = format!("{rest}{}", render(&[marked]));
    let rollout = rollout(set, &options);
    let mut plain = BTreeMap::from([("named.conf".to_owned(), named), ("rndc.conf".to_owned(), rndc_conf(set.ring))]);
    if !set.given.contains_key(OPTIONS) {
        plain.insert(OPTIONS.to_owned(), options);
    }
    let secret =
        BTreeMap::from([("rndc.key".to_owned(), rndc_key(set.ring)), ("keys.conf".to_owned(), keys_conf(set, &whom))]);
    Ok(ServerFiles { plain, secret, version, rollout, notes })
}

fn sorted(following: &[Following]) -> Vec<Following> {
    let mut all = following.to_vec();
    all.sort_by(|one, other| one.catalog.cmp(&other.catalog));
    all.dedup_by(|one, other| one.catalog == other.catalog);
    all
}

/// Files that are mounted by themselves are never renewed in a pod: those of the user's, and the options that a user's file includes.
fn rollout(set: &FileSet<'_>, options: &str) -> String {
    let mut texts: Vec<&str> = set.given.iter().flat_map(|(name, text)| [name.as_str(), text.as_str()]).collect();
    if set.given.contains_key(NAMED) && !set.given.contains_key(OPTIONS) {
        texts.push(options);
    }
    names::digest(&texts)
}

/// What a user's own files lack without which zones cannot be added or followed.
fn notes(set: &FileSet<'_>) -> Vec<Finding> {
    let Some(options) = set.given.get(OPTIONS) else { return Vec::new() };
    let lacks = |words: &str| !options.split_whitespace().collect::<Vec<_>>().join(" ").contains(words);
    let mut notes = Vec::new();
    if lacks("allow-new-zones yes") {
        notes.push(Finding::ignored(
            "spec.configMapRefs.namedConfOptions",
            "it lacks `allow-new-zones yes;`, so no zone can be added",
        ));
    }
    if !set.following.is_empty() && lacks("catalog-zones") {
        notes.push(Finding::ignored(
            "spec.configMapRefs.namedConfOptions",
            "it has no catalog-zones, so zones of other servers are not followed",
        ));
    }
    notes
}

/// Lists under names, those that others use before them: they are checked in the order of their names.
fn lists(settings: &ServerSettings) -> impl Iterator<Item = Clause> + '_ {
    settings.acls.iter().map(|(name, entries)| {
        let mut members = elements(entries);
        if members.is_empty() {
            members.push(Clause::word("none"));
        }
        Clause::word("acl").quoted(name).block(members)
    })
}

fn named_conf(set: &FileSet<'_>, whom: &[Following]) -> Vec<Clause> {
    let include = |path: String| Clause::word("include").quoted(path);
    let keys = format!("{}/rndc.key", defaults::KEYS_DIRECTORY);
    let given = set.given.get(NAMED);
    let mut all = Vec::new();
    // No key may be there twice, and files of that name have always included this one.
    if !given.is_some_and(|text| text.contains(&keys)) {
        all.push(include(keys));
    }
    all.push(include(format!("{}/keys.conf", defaults::KEYS_DIRECTORY)));
    match given {
        Some(_) => all.push(include("/etc/bind/named.conf".to_owned())),
        None => all.extend([include(options_path(set)), logging()]),
    }
    all.extend(whom.iter().map(catalog_zone));
    if given.is_none() && set.given.contains_key("named.conf.zones") {
        all.push(include("/etc/bind/named.conf.zones".to_owned()));
    }
    all
}

/// A user's own file is mounted by itself, where files of that name always were.
fn options_path(set: &FileSet<'_>) -> String {
    if set.given.contains_key(OPTIONS) {
        format!("/etc/bind/{OPTIONS}")
    } else {
        format!("{}/{OPTIONS}", defaults::CONFIG_DIRECTORY)
    }
}

fn catalog_zone(one: &Following) -> Clause {
    Clause::word("zone").quoted(&one.catalog).block([
        Clause::words("type secondary"),
        Clause::word("file").quoted(format!("{}.db", one.catalog)),
        Clause::word("primaries").block(primaries(one)),
        Clause::words("allow-query").block([Clause::word("bindy-servers")]),
    ])
}

/// Everything goes where a container's log is; queries are not logged one by one unless asked for with `rndc querylog`.
fn logging() -> Clause {
    let channel = Clause::words("channel console").block([
        Clause::word("stderr"),
        Clause::words("severity info"),
        Clause::words("print-time iso8601"),
        Clause::words("print-category yes"),
        Clause::words("print-severity yes"),
    ]);
    let category = |name: &str| Clause::word("category").with(name).block([Clause::word("console")]);
    let all = [
        "default",
        "general",
        "config",
        "network",
        "xfer-in",
        "xfer-out",
        "notify",
        "update",
        "queries",
        "security",
        "dnssec",
        "update-security",
    ];
    Clause::word("logging").block(std::iter::once(channel).chain(all.into_iter().map(category)))
}

/// For a person in the pod: `rndc -c /etc/bind/config/rndc.conf status`.
fn rndc_conf(ring: &KeyRing) -> String {
    let options = [
        Clause::word("default-key").quoted(&ring.current.control.name),
        Clause::words("default-server 127.0.0.1"),
        Clause::word("default-port").with(defaults::CONTROL_PORT.to_string()),
    ];
    render(&[
        Clause::word("include").quoted(format!("{}/rndc.key", defaults::KEYS_DIRECTORY)),
        Clause::word("options").block(options),
    ])
}

#[cfg(test)]
mod tests;
