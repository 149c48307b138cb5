//! Clauses → why `named` would not start with them, or would not do what they say (`lib/bind9/check.c`, tried with 9.18.49).
//!
//! Rather too little is found than too much: what is not known here is passed over, so that no file is refused that a server takes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::conf::clause::{Clause, ClausePart, find};
use crate::conf::parse::parse;
use crate::finding::Finding;
use crate::keys::is_base64;
use crate::kinds::keys::RndcAlgorithm;
use crate::validate::lifetime_seconds;

/// Statements that a configuration is made of (the grammar of 9.18).
const STATEMENTS: [&str; 26] = [
    "acl",
    "controls",
    "dlz",
    "dnssec-policy",
    "dyndb",
    "http",
    "include",
    "key",
    "logging",
    "managed-keys",
    "masters",
    "options",
    "parental-agents",
    "plugin",
    "primaries",
    "server",
    "statistics-channels",
    "tls",
    "trust-anchors",
    "trusted-keys",
    "view",
    "zone",
    "template",
    "remote-servers",
    "builtin-trust-anchors",
    "dnskey",
];
/// Statements of which there is at most one.
const ALONE: [&str; 2] = ["options", "logging"];
/// Clauses whose block is an address list.
const ADDRESS_LISTS: [&str; 15] = [
    "allow-query",
    "allow-query-cache",
    "allow-query-on",
    "allow-recursion",
    "allow-transfer",
    "allow-update",
    "allow-update-forwarding",
    "allow-notify",
    "blackhole",
    "listen-on",
    "listen-on-v6",
    "match-clients",
    "match-destinations",
    "no-case-compress",
    "sortlist",
];
const BUILT_IN_ACLS: [&str; 4] = ["any", "none", "localhost", "localnets"];
const BUILT_IN_POLICIES: [&str; 3] = ["default", "insecure", "none"];

/// What is known of a configuration's names.
#[derive(Default)]
struct Names {
    acls: BTreeSet<String>,
    keys: BTreeSet<String>,
    policies: BTreeSet<String>,
    servers: BTreeSet<String>,
}

/// What is wrong with a configuration: its files as one, includes in their places. `file` names it in findings.
pub fn check(clauses: &[Clause], file: &str) -> Vec<Finding> {
    let mut checking = Checking { file, found: Vec::new(), names: Names::of(clauses), complete: !includes(clauses) };
    checking.statements(clauses);
    checking.found
}

/// What is wrong with a user's own file. What it includes is not seen, so nothing is missed in it that may stand there.
pub fn check_text(text: &str, file: &str) -> Vec<Finding> {
    match parse(text) {
        Ok(clauses) => check(&clauses, file),
        Err(error) => vec![Finding::refused(file, error.to_string())],
    }
}

fn includes(clauses: &[Clause]) -> bool {
    clauses.iter().any(|clause| clause.name() == "include" || clause.inner().is_some_and(includes))
}

impl Names {
    fn of(clauses: &[Clause]) -> Self {
        let mut names = Self::default();
        for clause in clauses {
            let Some(name) = clause.text(1).map(str::to_owned) else { continue };
            match clause.name() {
                "acl" => drop(names.acls.insert(name)),
                "key" => drop(names.keys.insert(name.to_ascii_lowercase())),
                "dnssec-policy" => drop(names.policies.insert(name)),
                "primaries" | "masters" | "parental-agents" => drop(names.servers.insert(name)),
                _ => {}
            }
        }
        names
    }
}

struct Checking<'a> {
    file: &'a str,
    found: Vec<Finding>,
    names: Names,
    /// Whether all names are seen.
    complete: bool,
}

impl Checking<'_> {
    fn refuse(&mut self, message: impl Into<String>) {
        self.found.push(Finding::refused(self.file, message));
    }

    fn statements(&mut self, clauses: &[Clause]) {
        let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
        for clause in clauses {
            let name = clause.name();
            if !STATEMENTS.contains(&name) {
                self.refuse(format!("{name:?} is no statement of a configuration"));
                continue;
            }
            self.once(clause, &mut seen);
            match name {
                "key" => self.key(clause),
                "acl" => self.address_list(clause.inner().unwrap_or_default()),
                "options" | "view" => self.options(clause.inner().unwrap_or_default()),
                "zone" => self.zone(clause),
                "controls" => self.controls(clause.inner().unwrap_or_default()),
                "dnssec-policy" => self.policy(clause),
                "primaries" | "masters" | "parental-agents" => self.servers(clause.inner().unwrap_or_default()),
                _ => {}
            }
        }
    }

    /// Names are defined once.
    fn once(&mut self, clause: &Clause, seen: &mut BTreeMap<(String, String), usize>) {
        let (kind, name) = (clause.name(), clause.text(1).unwrap_or_default());
        let counted = matches!(kind, "acl" | "key" | "dnssec-policy" | "primaries" | "masters" | "zone" | "view")
            || ALONE.contains(&kind);
        if !counted {
            return;
        }
        let count = seen.entry((kind.to_owned(), name.to_ascii_lowercase())).or_default();
        *count += 1;
        if *count == 2 {
            self.refuse(format!("{} is there twice", format!("{kind} {name}").trim_end()));
        }
        if kind == "acl" && BUILT_IN_ACLS.contains(&name) {
            self.refuse(format!("acl {name} is one that servers have by themselves"));
        }
    }

    fn key(&mut self, clause: &Clause) {
        let name = clause.text(1).unwrap_or_default().to_owned();
        let inner = clause.inner().unwrap_or_default();
        match find(inner, "algorithm").and_then(|one| one.text(1)) {
            None => self.refuse(format!("key {name} has no algorithm")),
            Some(text) if RndcAlgorithm::parse(text).is_none() && !text.eq_ignore_ascii_case("hmac-md5") => {
                self.refuse(format!("key {name} has an algorithm that is none"));
            }
            Some(_) => {}
        }
        let secret = find(inner, "secret").and_then(|one| one.text(1));
        if !secret.is_some_and(is_base64) {
            self.refuse(format!("key {name} has no secret in base64"));
        }
    }

    fn controls(&mut self, clauses: &[Clause]) {
        for control in clauses {
            self.port(control);
            self.address_list(control.block_after("allow").unwrap_or_default());
            for key in control.block_after("keys").unwrap_or_default() {
                self.known_key(key.name());
            }
        }
    }

    fn known_key(&mut self, name: &str) {
        if self.complete && !self.names.keys.contains(&name.to_ascii_lowercase()) {
            self.refuse(format!("key {name} is used and not defined"));
        }
    }

    fn options(&mut self, clauses: &[Clause]) {
        for clause in clauses {
            let inner = clause.inner().unwrap_or_default();
            match clause.name() {
                name if ADDRESS_LISTS.contains(&name) => {
                    self.port(clause);
                    self.address_list(inner);
                }
                "forwarders" => self.forwarders(inner),
                "catalog-zones" => {
                    for zone in inner {
                        self.servers(zone.block_after("default-primaries").unwrap_or_default());
                    }
                }
                "zone" => self.zone(clause),
                _ => {}
            }
        }
    }

    fn zone(&mut self, clause: &Clause) {
        let name = clause.text(1).unwrap_or_default().to_owned();
        let inner = clause.inner().unwrap_or_default();
        let kind = find(inner, "type").and_then(|one| one.text(1)).unwrap_or_default();
        let has = |name: &str| find(inner, name).is_some();
        let is_view = find(inner, "in-view").is_some();
        match kind {
            "" if is_view => {}
            "" => self.refuse(format!("zone {name} has no type")),
            "primary" | "master" if !has("file") && !has("database") && !has("dlz") => {
                self.refuse(format!("zone {name} has no file"));
            }
            "secondary" | "slave" | "stub" if !has("primaries") && !has("masters") => {
                self.refuse(format!("zone {name} has no primaries"));
            }
            _ => {}
        }
        // A policy that no zone is signed by may be missing.
        if let Some(policy) = find(inner, "dnssec-policy").and_then(|one| one.text(1)) {
            self.known_policy(policy);
        }
        for list in ["primaries", "masters", "also-notify"] {
            self.servers(find(inner, list).and_then(Clause::inner).unwrap_or_default());
        }
        self.options(inner);
    }

    /// Servers with their ports and keys, or names of lists of such.
    fn servers(&mut self, clauses: &[Clause]) {
        for server in clauses {
            self.port(server);
            if let Some(key) = server.after("key").map(str::to_owned) {
                self.known_key(&key);
            }
            let name = server.name();
            if name.parse::<IpAddr>().is_err() && self.complete && !self.names.servers.contains(name) {
                self.refuse(format!("{name:?} is neither an address nor a list of servers"));
            }
        }
    }

    fn forwarders(&mut self, clauses: &[Clause]) {
        for forwarder in clauses {
            self.port(forwarder);
            if forwarder.name().parse::<IpAddr>().is_err() {
                self.refuse(format!("forwarder {:?} is no address", forwarder.name()));
            }
        }
    }

    fn port(&mut self, clause: &Clause) {
        if let Some(port) = clause.after("port").filter(|port| *port != "*" && port.parse::<u16>().is_err()) {
            self.refuse(format!("port {port:?} is none"));
        }
    }

    fn address_list(&mut self, clauses: &[Clause]) {
        for clause in clauses {
            if let Some(inner) = clause.inner() {
                self.address_list(inner);
                continue;
            }
            let parts: Vec<&str> = (0..clause.parts.len()).filter_map(|place| clause.text(place)).collect();
            match parts.as_slice() {
                ["key" | "!key", _] | ["!", "key", _] | ["geoip" | "!geoip", ..] | ["!", "geoip", ..] => {}
                [] => self.refuse("an address list has an empty element"),
                [one] | ["!", one] => self
                    .element(one.trim_start_matches('!'), matches!(clause.parts.last(), Some(ClausePart::Quoted(_)))),
                _ => self.refuse(format!("{:?} is no element of an address list", parts.join(" "))),
            }
        }
    }

    fn element(&mut self, text: &str, is_quoted: bool) {
        let is_address = text.parse::<IpAddr>().is_ok()
            || text.contains('/')
            || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if (is_address && !is_quoted) || BUILT_IN_ACLS.contains(&text) {
            return;
        }
        if self.complete && !self.names.acls.contains(text) {
            self.refuse(format!("acl {text:?} is used and not defined"));
        }
    }

    fn known_policy(&mut self, name: &str) {
        let known = BUILT_IN_POLICIES.contains(&name) || self.names.policies.contains(name);
        if self.complete && !known {
            self.refuse(format!("dnssec-policy {name} is used and not defined"));
        }
    }

    fn policy(&mut self, clause: &Clause) {
        let name = clause.text(1).unwrap_or_default().to_owned();
        if BUILT_IN_POLICIES.contains(&name.as_str()) {
            self.refuse(format!("dnssec-policy {name} is one that servers have by themselves, and cannot be defined"));
        }
        let keys = find(clause.inner().unwrap_or_default(), "keys").and_then(Clause::inner).unwrap_or_default();
        let mut algorithms: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for key in keys {
            if let Some(algorithm) = key.after("algorithm") {
                algorithms.entry(key.name()).or_default().insert(algorithm.to_ascii_lowercase());
            }
            if let Some(life) = key.after("lifetime").filter(|life| lifetime_seconds(life).is_none()) {
                self.refuse(format!("dnssec-policy {name}: {life:?} is no lifetime"));
            }
        }
        if let (Some(ksk), Some(zsk)) = (algorithms.get("ksk"), algorithms.get("zsk"))
            && ksk != zsk
        {
            self.refuse(format!("dnssec-policy {name} signs keys and zones with different algorithms"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Weight, sentence};

    fn said(text: &str) -> String {
        sentence(&check_text(text, "named.conf"), Weight::Refused).unwrap_or_default()
    }

    const KEY: &str = "key \"k\" { algorithm hmac-sha256; secret \"MTIzNA==\"; };";

    #[test]
    fn a_configuration_that_a_server_takes_is_taken() {
        let text = format!(
            "{KEY} acl a {{ 10.0.0.0/8; !10.9.0.0/16; key k; {{ ::1; }}; }}; options {{ listen-on port 53 {{ any; }}; \
             allow-query {{ a; \"a\"; ! none; }}; forwarders {{ 9.9.9.9 port 53; }}; dnssec-policy p; }}; \
             dnssec-policy p {{ keys {{ ksk lifetime P1Y algorithm ed25519; zsk lifetime 30d algorithm ED25519; }}; }}; \
             primaries m {{ 10.0.0.1 port 53 key k; }}; zone \"x\" {{ type secondary; primaries {{ m; }}; }}; \
             controls {{ inet * port 953 allow {{ any; }} keys {{ \"k\"; }}; }}; logging {{ category default {{ null; }}; }};"
        );

        assert_eq!(said(&text), "");
    }

    #[test]
    fn what_a_server_would_not_start_with_is_found() {
        for (text, sentence) in [
            ("optionz { };", "is no statement"),
            ("options { }; options { };", "options is there twice"),
            ("acl a { any; }; acl a { none; };", "acl a is there twice"),
            ("acl any { none; };", "by themselves"),
            ("options { allow-query { home; }; };", "acl \"home\" is used and not defined"),
            ("options { listen-on port 99999 { any; }; };", "port \"99999\" is none"),
            ("options { forwarders { ns1; }; };", "is no address"),
            ("options { allow-transfer { any none; }; };", "is no element"),
            ("key \"k\" { algorithm hmac-sha0; secret \"MTIzNA==\"; };", "algorithm that is none"),
            ("key \"k\" { algorithm hmac-sha256; secret \"not base64\"; };", "no secret in base64"),
            ("key \"k\" { algorithm hmac-sha256; secret \"uuu=\"; };", "no secret in base64"),
            ("key \"k\" { secret \"MTIzNA==\"; };", "has no algorithm"),
            ("controls { inet * port 953 allow { any; } keys { k; }; };", "key k is used and not defined"),
            ("zone \"x\" { };", "has no type"),
            ("zone \"x\" { type primary; };", "has no file"),
            ("zone \"x\" { type secondary; };", "has no primaries"),
            ("zone \"x\" { type secondary; primaries { m; }; };", "neither an address nor a list"),
            ("zone \"x\" { type hint; file \"a\"; }; zone \"X\" { type hint; file \"b\"; };", "is there twice"),
            ("dnssec-policy default { };", "cannot be defined"),
            ("dnssec-policy p { keys { ksk lifetime 1y algorithm ed25519; }; };", "is no lifetime"),
            ("dnssec-policy p { keys { ksk algorithm ed25519; zsk algorithm ed448; }; };", "different algorithms"),
            ("zone \"x\" { type primary; file \"x\"; dnssec-policy p; };", "dnssec-policy p is used and not defined"),
            ("options { recursion no };", "line 1: a semicolon is missing"),
        ] {
            let said = said(text);
            assert!(said.contains(sentence), "{text}\nsaid {said:?}");
        }
    }

    #[test]
    fn what_an_included_file_may_define_is_not_missed() {
        assert_eq!(said("include \"/etc/bind/keys/rndc.key\"; options { allow-query { home; }; };"), "");
    }
}
