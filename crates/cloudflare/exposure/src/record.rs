//! DNS records that publish a name: as they are found, wanted, compared and written.

use portolan_cloudflare_api::Entry;
use portolan_cloudflare_api::objects::{AUTOMATIC_TTL, DnsRecord};
use portolan_core::{Claim, Hostname, Mark, user_text};
use portolan_dns::RecordType;
use portolan_publication::Record;
use serde_json::{Value, json};

use crate::inventory::RecordKind;

/// Characters of a comment where nothing is known of the zone's plan.
const COMMENT_LIMIT: usize = 100;
/// How an older operator marked its records: then cluster, namespace and name.
const OLDER_MARK: &str = "managed-by=cfzt ";

/// Names and addresses in one spelling.
fn spelled(text: &str) -> String {
    text.trim_end_matches('.').to_ascii_lowercase()
}

/// A record as far as it publishes a name.
pub(crate) trait PublishedRecord {
    /// Whether requests for the name come to this record.
    fn is_address(&self) -> bool;

    /// What sort it is, if it is one that we make.
    fn held_kind(&self) -> Option<RecordKind>;

    /// Whose it is.
    fn claim(&self, mark: &Mark) -> Claim;

    /// The record for a change's text.
    fn shown(&self) -> Value;

    /// The whole record without our mark: the API wants name and type also where only the comment changes.
    fn unmarked(&self) -> Value;

    /// The user's own text in the comment.
    fn users_comment(&self) -> &str;
}

impl PublishedRecord for DnsRecord {
    fn is_address(&self) -> bool {
        self.kind.is_proxiable()
    }

    fn held_kind(&self) -> Option<RecordKind> {
        let kinds = [(RecordType::Cname, RecordKind::Cname), (RecordType::A, RecordKind::Address)];
        kinds.into_iter().find(|(kind, _)| *kind == self.kind).map(|(_, held)| held)
    }

    fn claim(&self, mark: &Mark) -> Claim {
        match (mark.claim(&self.comment), older_owner(&self.comment)) {
            (Claim::Unmarked, Some(owner)) if owner.ends_with(&format!("/{}", mark.key)) => {
                Claim::Ours { adopted: false }
            }
            (Claim::Unmarked, Some(owner)) => Claim::Foreign(owner.to_owned()),
            (claim, _) => claim,
        }
    }

    fn shown(&self) -> Value {
        json!({"type": self.kind.as_str(), "name": self.name, "content": self.value(), "ttl": self.ttl, "proxied": self.proxied})
    }

    fn unmarked(&self) -> Value {
        let mut body = self.shown();
        body["comment"] = json!(self.users_comment());
        body
    }

    fn users_comment(&self) -> &str {
        if older_owner(&self.comment).is_some() { "" } else { user_text(&self.comment) }
    }
}

/// `cluster/namespace/name` of an older mark.
fn older_owner(comment: &str) -> Option<&str> {
    let (_, owner) = comment.split_once(OLDER_MARK)?;
    owner.split_whitespace().next()
}

/// A record as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WantedRecord {
    pub(crate) kind: RecordKind,
    name: String,
    content: String,
    ttl: u32,
    proxied: bool,
}

impl WantedRecord {
    pub(crate) fn new(hostname: &Hostname, record: &Record) -> Self {
        let name = hostname.as_str().to_owned();
        match record {
            Record::Cname { target, .. } => {
                Self { kind: RecordKind::Cname, name, content: spelled(target), ttl: AUTOMATIC_TTL, proxied: true }
            }
            Record::Address { ip, ttl, proxied, .. } => {
                let ttl = if *proxied { AUTOMATIC_TTL } else { *ttl };
                Self { kind: RecordKind::Address, name, content: ip.to_string(), ttl, proxied: *proxied }
            }
        }
    }

    fn record_type(&self) -> RecordType {
        match self.kind {
            RecordKind::Cname => RecordType::Cname,
            RecordKind::Address => RecordType::A,
        }
    }

    /// The address, of a record that is only resolved.
    pub(crate) fn ip(&self) -> Option<String> {
        (self.kind == RecordKind::Address).then(|| self.content.clone())
    }

    /// Whether the found record leads where this one does.
    pub(crate) fn has_content_of(&self, found: &DnsRecord) -> bool {
        found.kind == self.record_type() && found.value() == self.content
    }

    /// Whether the found record is as wanted; comments do not matter.
    pub(crate) fn is(&self, found: &DnsRecord) -> bool {
        let ttl_fits = self.proxied || found.ttl == self.ttl;
        self.has_content_of(found) && found.proxied == self.proxied && ttl_fits
    }

    /// Whether the found record stands in the way of this one.
    pub(crate) fn is_blocked_by(&self, found: &DnsRecord) -> bool {
        match self.kind {
            RecordKind::Cname => found.is_address(),
            RecordKind::Address => matches!(found.kind, RecordType::A | RecordType::Cname),
        }
    }

    /// The body of a request.
    pub(crate) fn body(&self, mark: &Mark, comment: &str) -> Value {
        let mut body = self.shown();
        body["comment"] = json!(mark.write(comment, COMMENT_LIMIT));
        body
    }

    /// The record for a change's text.
    pub(crate) fn shown(&self) -> Value {
        json!({
            "type": self.record_type().as_str(), "name": self.name, "content": self.content,
            "ttl": self.ttl, "proxied": self.proxied,
        })
    }

    /// `CNAME www.example.com`.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.record_type(), self.name)
    }
}

/// `CNAME www.example.com`.
pub(crate) fn label(entry: &Entry<DnsRecord>) -> String {
    format!("{} {}", entry.item.kind, entry.item.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_core::{ObjectKey, OwnerId};

    fn mark() -> Mark {
        Mark {
            kind: "HTTPRoute".to_owned(),
            key: ObjectKey::namespaced("shop", "web"),
            owner: OwnerId::derive("x"),
            adopted: false,
        }
    }

    fn read(json: Value) -> DnsRecord {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn older_marks_are_read_by_namespace_and_name() {
        let record = |comment: &str| read(json!({"type": "CNAME", "name": "a.x.com", "comment": comment}));

        assert_eq!(record("managed-by=cfzt prod/shop/web").claim(&mark()), Claim::Ours { adopted: false });
        assert_eq!(
            record("managed-by=cfzt prod/shop/other").claim(&mark()),
            Claim::Foreign("prod/shop/other".to_owned())
        );
        assert_eq!(record("by hand").claim(&mark()), Claim::Unmarked);
    }

    #[test]
    fn a_written_record_is_ours_and_as_wanted_when_it_is_read() {
        let hostname = Hostname::parse("a.x.com").unwrap();
        let wanted =
            WantedRecord::new(&hostname, &Record::Cname { zone_id: "z".into(), target: "T1.cfargotunnel.com".into() });

        let found = read(wanted.body(&mark(), "theirs"));

        assert!(wanted.is(&found));
        assert_eq!((found.claim(&mark()), found.users_comment()), (Claim::Ours { adopted: false }, "theirs"));
    }

    #[test]
    fn a_proxied_record_has_no_ttl_of_its_own() {
        let hostname = Hostname::parse("a.x.com").unwrap();
        let record = Record::Address { zone_id: "z".into(), ip: [10, 0, 0, 1].into(), ttl: 300, proxied: true };

        let found = read(json!({"type": "A", "name": "A.x.com.", "content": "10.0.0.1", "ttl": 1.0, "proxied": true}));

        assert!(WantedRecord::new(&hostname, &record).is(&found));
    }
}
