//! The texts that a server answers with → values. Pure. What is not known in them is left out, so that a newer version is read too.

use jiff::{Timestamp, civil::DateTime};

use crate::{message::DomainName, values::Serial};

/// How a server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// `9.18.49-…`, without the word before it.
    pub version: String,
    /// When it was started.
    pub booted: Option<Timestamp>,
    /// When it last read its configuration.
    pub configured: Option<Timestamp>,
    /// How many zones it has, automatic ones included.
    pub zones: u32,
    /// Transfers under way.
    pub transfers: u32,
    /// Transfers that wait for their turn.
    pub transfers_deferred: u32,
}

/// What a server is for a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneRole {
    /// Updates go here.
    Primary,
    /// It gets the zone from others.
    Secondary,
    /// Anything else, as it is called.
    Other(String),
}

/// How a zone is on a server that has loaded it.
#[expect(clippy::struct_excessive_bools, reason = "they are the server's own yes and no, a line each")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneStatus {
    /// What the server is for it.
    pub role: Option<ZoneRole>,
    /// Its version.
    pub serial: Option<Serial>,
    /// The files it is read from.
    pub files: Vec<String>,
    /// How many names it has.
    pub nodes: Option<u64>,
    /// When it was last loaded.
    pub loaded: Option<Timestamp>,
    /// When a secondary next looks for a newer version.
    pub next_refresh: Option<Timestamp>,
    /// Until when a secondary answers without having reached a primary.
    pub expires: Option<Timestamp>,
    /// Whether it is signed.
    pub is_signed: bool,
    /// Whether it takes updates.
    pub is_dynamic: bool,
    /// Whether it was frozen.
    pub is_frozen: bool,
    /// Whether it was made by `addzone`.
    pub is_from_command: bool,
}

/// How a zone's keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnssecStatus {
    /// The policy by which the server keeps them; none where the zone has none.
    pub policy: Option<String>,
    /// The keys.
    pub keys: Vec<DnssecKey>,
}

/// How a key of a zone is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnssecKey {
    /// Its tag.
    pub tag: u16,
    /// Its algorithm, as `ECDSAP256SHA256`.
    pub algorithm: String,
    /// `CSK`, `KSK` or `ZSK`.
    pub role: String,
    /// Whether it stands in the zone.
    pub is_published: bool,
    /// Whether it signs keys.
    pub signs_keys: bool,
    /// Whether it signs the zone.
    pub signs_zone: bool,
    /// What happens to it next, in named's words.
    pub next: String,
    /// When, by the server's own clock and time zone.
    pub next_at: Option<DateTime>,
    /// The states that named keeps: `goal`, `dnskey`, `ds`, `zone rrsig`, `key rrsig`.
    pub states: Vec<(String, String)>,
}

/// A key that a server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKey {
    /// The view it belongs to.
    pub view: String,
    /// Its name.
    pub name: DomainName,
}

impl ServerStatus {
    pub(crate) fn read(text: &str) -> Self {
        let mut status = Self::default();
        for (name, value) in fields(text) {
            match name {
                "version" => value.trim_start_matches("BIND ").clone_into(&mut status.version),
                "boot time" => status.booted = time(value),
                "last configured" => status.configured = time(value),
                "number of zones" => status.zones = first_number(value),
                "xfers running" => status.transfers = first_number(value),
                "xfers deferred" => status.transfers_deferred = first_number(value),
                _ => {}
            }
        }
        status
    }
}

impl ZoneStatus {
    pub(crate) fn read(text: &str) -> Self {
        let value = |wanted: &str| fields(text).find(|(name, _)| *name == wanted).map(|(_, value)| value);
        let is = |wanted: &str| value(wanted) == Some("yes");
        Self {
            role: value("type").map(|role| match role {
                "primary" | "master" => ZoneRole::Primary,
                "secondary" | "slave" => ZoneRole::Secondary,
                other => ZoneRole::Other(other.to_owned()),
            }),
            serial: value("serial").and_then(|serial| serial.parse().ok()).map(Serial),
            files: value("files").map(|files| files.split(", ").map(str::to_owned).collect()).unwrap_or_default(),
            nodes: value("nodes").and_then(|nodes| nodes.parse().ok()),
            loaded: value("last loaded").and_then(time),
            next_refresh: value("next refresh").and_then(time),
            expires: value("expires").and_then(time),
            is_signed: is("secure"),
            is_dynamic: is("dynamic"),
            is_frozen: is("frozen"),
            is_from_command: is("reconfigurable via modzone"),
        }
    }
}

impl DnssecStatus {
    pub(crate) fn read(text: &str) -> Self {
        let mut status = Self { policy: None, keys: Vec::new() };
        for line in text.lines().map(str::trim) {
            if let Some(policy) = line.strip_prefix("dnssec-policy:") {
                status.policy = Some(policy.trim().to_owned());
            } else if let Some(key) = line.strip_prefix("key:") {
                status.keys.push(DnssecKey::begun(key));
            } else if let Some(key) = status.keys.last_mut() {
                key.take(line);
            }
        }
        status
    }
}

impl DnssecKey {
    /// `8494 (ECDSAP256SHA256), CSK`
    fn begun(line: &str) -> Self {
        let mut words = line.split([' ', '(', ')', ',']).filter(|word| !word.is_empty());
        let mut word = || words.next().unwrap_or_default().to_owned();
        Self { tag: word().parse().unwrap_or(0), algorithm: word(), role: word(), ..Self::default() }
    }

    fn take(&mut self, line: &str) {
        let says_yes = |value: &str| value.trim_start().starts_with("yes");
        match line.split_once(':') {
            Some(("published", value)) => self.is_published = says_yes(value),
            Some(("key signing", value)) => self.signs_keys = says_yes(value),
            Some(("zone signing", value)) => self.signs_zone = says_yes(value),
            Some((name, value)) if name.starts_with("- ") => {
                self.states.push((name[2..].to_owned(), value.trim().to_owned()));
            }
            _ if !line.is_empty() && self.next.is_empty() => {
                line.clone_into(&mut self.next);
                self.next_at = line.split_once(" on ").and_then(|(_, date)| civil(date));
            }
            _ => {}
        }
    }
}

impl KnownKey {
    /// `view "_default"; type "static"; key "control";`, a line a key. Those of named's own view are left out.
    pub(crate) fn read_all(text: &str) -> Vec<Self> {
        let read = |line: &str| {
            let mut quoted = line.split('"').skip(1).step_by(2);
            let (view, _kind, name) = (quoted.next()?, quoted.next()?, quoted.next()?);
            (view != "_bind").then_some(Self { view: view.to_owned(), name: DomainName::parse(name).ok()? })
        };
        text.lines().filter_map(read).collect()
    }
}

/// `name: value`, a line each.
fn fields(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.trim(), value.trim()))
}

fn first_number(text: &str) -> u32 {
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// `Thu, 19 Nov 2026 21:57:29 GMT`
fn time(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|time| time.timestamp())
}

/// `Thu Nov 19 21:57:46 2026`
fn civil(text: &str) -> Option<DateTime> {
    DateTime::strptime("%a %b %d %H:%M:%S %Y", text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zones_status_is_read_from_its_lines() {
        let status = ZoneStatus::read(
            "name: z.example\ntype: secondary\nfiles: z.db\nserial: 4294967295\nnodes: 3\n\
             last loaded: Thu, 19 Nov 2026 21:57:29 GMT\nnext refresh: Thu, 19 Nov 2026 22:57:29 GMT\n\
             expires: Fri, 20 Nov 2026 21:57:29 GMT\nsecure: no\ndynamic: no\nreconfigurable via modzone: yes",
        );

        assert_eq!(status.role, Some(ZoneRole::Secondary));
        assert_eq!((status.serial, status.nodes), (Some(Serial(u32::MAX)), Some(3)));
        assert_eq!(status.loaded.unwrap().to_string(), "2026-11-19T21:57:29Z");
        assert_eq!(status.expires.unwrap().to_string(), "2026-11-20T21:57:29Z");
        assert!(status.is_from_command && !status.is_signed && !status.is_dynamic);
        assert_eq!(status.files, ["z.db"]);
    }

    #[test]
    fn keys_and_what_happens_to_them_are_read() {
        let status = DnssecStatus::read(
            "dnssec-policy: default\ncurrent time:  Thu Nov 19 21:57:46 2026\n\n\
             key: 8494 (ECDSAP256SHA256), CSK\n  published:      yes - since Thu Nov 19 21:57:44 2026\n\
             \x20 key signing:    yes - since Thu Nov 19 21:57:44 2026\n  zone signing:   no\n\n\
             \x20 Next rollover scheduled on Fri Nov 20 00:02:46 2026\n  - goal:           omnipresent\n  - ds:             hidden\n",
        );

        let key = &status.keys[0];
        assert_eq!((key.tag, &*key.algorithm, &*key.role), (8494, "ECDSAP256SHA256", "CSK"));
        assert!(key.is_published && key.signs_keys && !key.signs_zone);
        assert_eq!(key.next_at.unwrap().to_string(), "2026-11-20T00:02:46");
        assert_eq!(key.states, [("goal".into(), "omnipresent".into()), ("ds".into(), "hidden".into())]);
        assert_eq!(DnssecStatus::read("Zone does not have dnssec-policy"), DnssecStatus { policy: None, keys: vec![] });
    }

    #[test]
    fn texts_that_are_none_of_these_make_empty_values() {
        assert_eq!(ServerStatus::read("what?"), ServerStatus::default());
        assert_eq!(ZoneStatus::read("").serial, None);
        assert_eq!(KnownKey::read_all("view \"a"), []);
    }
}
