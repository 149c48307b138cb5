//! What holds for a server → its `options`, and the policy that it signs by.

use crate::conf::clause::Clause;
use crate::conf::files::{Following, PodAddress};
use crate::defaults;
use crate::settings::ServerSettings;
use crate::validate::{AclEntry, AclMatch, SigningPolicy};

/// Limits with which 200 zones are followed in half a second instead of a minute: the usual ones let a server ask for 20 serials a second
/// and hand out ten zones at a time (measured with 9.18.49).
const PACE: [&str; 6] = [
    "serial-query-rate 1000",
    "transfers-in 50",
    "transfers-per-ns 50",
    "transfers-out 200",
    "notify-rate 1000",
    "startup-notify-rate 1000",
];

/// The options of a server. `version` is what it says to who asks for its version: which configuration it runs, and nothing of itself.
pub(crate) fn options(
    settings: &ServerSettings,
    following: &[Following],
    address: &PodAddress,
    version: &str,
) -> Clause {
    let config = &settings.config;
    let mut all = places();
    all.push(listen("listen-on", config.listen_on.as_deref(), address));
    all.push(listen("listen-on-v6", config.listen_on_v6.as_deref(), address));
    all.push(Clause::word("version").quoted(version));
    all.push(Clause::words("allow-new-zones yes"));
    // A logging category for queries would log each of them otherwise.
    all.push(Clause::words("querylog no"));
    all.push(Clause::words(if config.recursion == Some(true) { "recursion yes" } else { "recursion no" }));
    all.extend(forwarders(config.forwarders.as_deref().unwrap_or_default()));
    all.extend(allow_query(config.allow_query.as_deref().unwrap_or_default()));
    all.push(allow_transfer(config.allow_transfer.as_deref().unwrap_or_default()));
    all.push(allow_notify(&settings.primary_servers));
    if let Some(validation) = config.dnssec.as_ref().and_then(|dnssec| dnssec.validation) {
        // `yes` alone trusts nobody unless anchors are configured; `auto` trusts the root's.
        all.push(Clause::words(if validation { "dnssec-validation auto" } else { "dnssec-validation no" }));
    }
    all.extend(PACE.iter().map(|words| Clause::words(words)));
    all.extend(catalogs(following));
    Clause::word("options").block(all)
}

fn places() -> Vec<Clause> {
    let at = |name: &str, file: &str| Clause::word(name).quoted(format!("{}{file}", defaults::DIRECTORY));
    vec![
        at("directory", ""),
        at("pid-file", "/named.pid"),
        at("session-keyfile", "/session.key"),
        at("dump-file", "/named_dump.db"),
        at("statistics-file", "/named.stats"),
    ]
}

fn listen(name: &str, entries: Option<&[String]>, address: &PodAddress) -> Clause {
    let clause = Clause::word(name).with("port").with(defaults::DNS_PORT.to_string());
    let is_v6 = name.ends_with("v6");
    match (entries, address) {
        (Some(entries), _) if !entries.is_empty() => clause.block(elements(entries)),
        (_, PodAddress::Any) => clause.block([Clause::word("any")]),
        (_, PodAddress::Own(own)) if own.contains(':') == is_v6 => clause.block([Clause::word(own)]),
        (_, PodAddress::Own(_)) => clause.block([Clause::word("none")]),
    }
}

/// Entries as elements. Those that are none have been refused before; they would be left out here, never passed on.
pub(crate) fn elements(entries: &[String]) -> Vec<Clause> {
    entries.iter().filter_map(|entry| AclEntry::parse(entry).ok()).map(|entry| element(&entry)).collect()
}

/// `!10.0.0.0/8`, `! key "partner"`, `"office"`.
fn element(entry: &AclEntry) -> Clause {
    let start = if entry.negated { Clause::word("!") } else { Clause::default() };
    match &entry.matches {
        AclMatch::Key(name) => start.with("key").quoted(name),
        AclMatch::Acl(name) => start.quoted(name),
        AclMatch::BuiltIn(_) | AclMatch::Address(_) | AclMatch::Network(..) => Clause::word(entry.to_string()),
    }
}

fn forwarders(entries: &[String]) -> Option<Clause> {
    let addresses: Vec<Clause> =
        entries.iter().filter(|entry| entry.parse::<std::net::IpAddr>().is_ok()).map(Clause::word).collect();
    (!addresses.is_empty()).then(|| Clause::word("forwarders").block(addresses))
}

/// Whoever may not ask may not update either (tried: "denied due to allow-query"), so servers and the operator come first.
fn allow_query(entries: &[String]) -> Option<Clause> {
    (!entries.is_empty()).then(|| Clause::word("allow-query").block(own_first(entries)))
}

fn allow_transfer(entries: &[String]) -> Clause {
    let mut all = vec![Clause::word("bindy-transfer"), Clause::word("bindy-updaters")];
    all.extend(elements(entries));
    Clause::word("allow-transfer").block(all)
}

fn own_first(entries: &[String]) -> Vec<Clause> {
    let mut all = vec![Clause::word("bindy-servers")];
    all.extend(elements(entries));
    all
}

/// Who says that a zone has changed: whoever is followed, by key, wherever its pod is; and servers elsewhere that the user names.
fn allow_notify(primaries: &[String]) -> Clause {
    let mut all = vec![Clause::word("bindy-peers")];
    all.extend(elements(primaries));
    Clause::word("allow-notify").block(all)
}

/// The catalogs by which those who are followed say which zones to take from them.
fn catalogs(following: &[Following]) -> Option<Clause> {
    let catalog = |one: &Following| {
        let zone = Clause::word("zone").quoted(&one.catalog).with("default-primaries").block(primaries(one));
        zone.with("in-memory").with("no").with("min-update-interval").with("1")
    };
    (!following.is_empty()).then(|| Clause::word("catalog-zones").block(following.iter().map(catalog)))
}

pub(crate) fn primaries(following: &Following) -> Vec<Clause> {
    let key = following.keys.first().map(|key| key.name.as_str());
    let at = |address: &String| {
        let clause = Clause::word(address).with("port").with(following.port.to_string());
        match key {
            Some(key) => clause.with("key").quoted(key),
            None => clause,
        }
    };
    following.addresses.iter().map(at).collect()
}

/// The policy that zones are signed by, where it is not one that servers have by themselves.
pub(crate) fn signing(policy: &SigningPolicy) -> Option<Clause> {
    let block = policy.block.as_ref()?;
    let key = |role: &str, life: &str| {
        Clause::word(role).with("lifetime").with(life).with("algorithm").with(block.algorithm.to_ascii_lowercase())
    };
    let mut all = vec![Clause::word("keys").block([key("ksk", &block.ksk_lifetime), key("zsk", &block.zsk_lifetime)])];
    if let Some((iterations, salt)) = block.nsec3 {
        all.push(Clause::words(&format!("nsec3param iterations {iterations} optout no salt-length {salt}")));
    }
    let rest = [
        "signatures-refresh 5d",
        "signatures-validity 30d",
        "signatures-validity-dnskey 30d",
        "zone-propagation-delay 300",
        "parent-propagation-delay 3600",
        "max-zone-ttl 86400",
    ];
    all.extend(rest.iter().map(|words| Clause::words(words)));
    Some(Clause::word("dnssec-policy").quoted(&policy.name).block(all))
}
