//! What is to change in a zone → UPDATE messages (RFC 2136), as few as their bytes allow. Pure.
//!
//! One [`ZoneUpdate`] is one message and happens as a whole or not at all. [`batches`] fills messages with groups of changes that
//! belong together, as all changes of one name, and never splits a group.

mod batch;

pub use batch::{Batches, OversizedGroup, batches};

use crate::{
    message::{
        ANY, DomainName, Entry, Header, IN, LONGEST_MESSAGE, MessageBuilder, NONE, Opcode, Question, RecordData,
        ResourceRecord, ResponseCode, Section, TypeCode,
    },
    tsig::{HmacKey, signature_width},
};

/// What must hold of a zone for an update to happen (RFC 2136 §2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prerequisite {
    /// Something has the name, else NXDOMAIN.
    NameExists(DomainName),
    /// Nothing has the name, else YXDOMAIN.
    NameAbsent(DomainName),
    /// The name has records of the type, else NXRRSET.
    RrsetExists(DomainName, TypeCode),
    /// The name has no records of the type, else YXRRSET.
    RrsetAbsent(DomainName, TypeCode),
    /// Exactly these are the values of the type, else NXRRSET.
    RrsetIs(DomainName, TypeCode, Vec<RecordData>),
}

/// One change of a zone (RFC 2136 §2.5). They happen in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneChange {
    /// The record is there, and all records of its name and type get its TTL.
    Add(ResourceRecord),
    /// The value is gone. The case of names in it does not count (tried: 9.18.49).
    Delete(DomainName, TypeCode, RecordData),
    /// All values of the type are gone.
    DeleteRrset(DomainName, TypeCode),
    /// The name is gone. Of the apex, SOA and NS stay.
    DeleteName(DomainName),
}

impl ZoneChange {
    /// Whose record changes.
    pub fn name(&self) -> &DomainName {
        match self {
            Self::Add(record) => &record.name,
            Self::Delete(name, ..) | Self::DeleteRrset(name, _) | Self::DeleteName(name) => name,
        }
    }

    fn entry(&self) -> Entry {
        match self {
            Self::Add(record) => record.clone().into(),
            Self::Delete(name, kind, data) => {
                Entry { name: name.clone(), kind: *kind, class: NONE, ttl: 0, data: data.clone() }
            }
            Self::DeleteRrset(name, kind) => Entry::empty(name.clone(), *kind, ANY),
            Self::DeleteName(name) => Entry::empty(name.clone(), TypeCode::ANY, ANY),
        }
    }
}

impl Prerequisite {
    fn entries(&self) -> Vec<Entry> {
        match self {
            Self::NameExists(name) => vec![Entry::empty(name.clone(), TypeCode::ANY, ANY)],
            Self::NameAbsent(name) => vec![Entry::empty(name.clone(), TypeCode::ANY, NONE)],
            Self::RrsetExists(name, kind) => vec![Entry::empty(name.clone(), *kind, ANY)],
            Self::RrsetAbsent(name, kind) => vec![Entry::empty(name.clone(), *kind, NONE)],
            Self::RrsetIs(name, kind, values) => {
                let value = |data: &RecordData| Entry {
                    name: name.clone(),
                    kind: *kind,
                    class: IN,
                    ttl: 0,
                    data: data.clone(),
                };
                values.iter().map(value).collect()
            }
        }
    }
}

/// One message: changes of one zone that happen together, if all prerequisites hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneUpdate {
    /// The zone.
    pub zone: DomainName,
    /// What must hold before.
    pub prerequisites: Vec<Prerequisite>,
    /// What changes, in this order.
    pub changes: Vec<ZoneChange>,
}

/// An update that does not fit a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the update has more bytes than a message can have (65,535 with its signature): send it in parts")]
pub struct OversizedUpdate;

impl ZoneUpdate {
    /// An update of a zone without prerequisites.
    pub fn new(zone: DomainName, changes: Vec<ZoneChange>) -> Self {
        Self { zone, prerequisites: Vec::new(), changes }
    }

    /// The message, unsigned; with its signature by the key it will fit.
    pub(crate) fn message(&self, id: u16, key: &HmacKey) -> Result<Vec<u8>, OversizedUpdate> {
        let longest = LONGEST_MESSAGE - signature_width(key);
        let mut builder = started(&self.zone, id);
        for entry in self.prerequisites.iter().flat_map(Prerequisite::entries) {
            if !builder.push_within(Section::Answer, &entry, longest) {
                return Err(OversizedUpdate);
            }
        }
        for change in &self.changes {
            if !builder.push_within(Section::Authority, &change.entry(), longest) {
                return Err(OversizedUpdate);
            }
        }
        Ok(builder.finish())
    }
}

fn started(zone: &DomainName, id: u16) -> MessageBuilder {
    MessageBuilder::new(Header::asking(id, Opcode::UPDATE), Some(&Question::of(zone.clone(), TypeCode::SOA)))
}

/// Why a server did not do what an update says, by what is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpdateRefusal {
    /// The server may not be updated by this key, or named's own checks forbid the change: an apex NS or a MX whose target has no
    /// address, an owner that may not have that type; or `allow-query` leaves the updater out (REFUSED).
    Refused,
    /// The server does not have the zone, is not its primary, or does not take the signature (NOTAUTH).
    NotAuthoritative,
    /// A name of it lies outside of the zone (NOTZONE).
    NotInZone,
    /// A prerequisite does not hold.
    Prerequisite(ResponseCode),
    /// The server failed: among other reasons since a name would have had more than 100 values of a type (9.18.49).
    ServerFailed,
    /// The server does not understand the message.
    NotUnderstood,
    /// Anything else.
    Other(ResponseCode),
}

impl UpdateRefusal {
    /// What a response code says of an update; `None` when it was done.
    pub fn of(code: ResponseCode) -> Option<Self> {
        Some(match code {
            ResponseCode::NOERROR => return None,
            ResponseCode::REFUSED => Self::Refused,
            ResponseCode::NOTAUTH => Self::NotAuthoritative,
            ResponseCode::NOTZONE => Self::NotInZone,
            ResponseCode::NXDOMAIN | ResponseCode::NXRRSET | ResponseCode::YXDOMAIN | ResponseCode::YXRRSET => {
                Self::Prerequisite(code)
            }
            ResponseCode::SERVFAIL => Self::ServerFailed,
            ResponseCode::FORMERR | ResponseCode::NOTIMP => Self::NotUnderstood,
            other => Self::Other(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HmacAlgorithm, message::DnsMessage};

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).unwrap()
    }

    fn key() -> HmacKey {
        HmacKey::new("k", HmacAlgorithm::Sha512, "c2VjcmV0").unwrap()
    }

    #[test]
    fn prerequisites_and_changes_have_the_classes_of_rfc_2136() {
        let data = RecordData::parse(TypeCode::A, "192.0.2.1").unwrap();
        let record = ResourceRecord { name: name("www.example.com"), kind: TypeCode::A, ttl: 60, data: data.clone() };
        let update = ZoneUpdate {
            zone: name("example.com"),
            prerequisites: vec![
                Prerequisite::NameExists(name("a.example.com")),
                Prerequisite::NameAbsent(name("b.example.com")),
                Prerequisite::RrsetExists(name("c.example.com"), TypeCode::TXT),
                Prerequisite::RrsetAbsent(name("d.example.com"), TypeCode::TXT),
                Prerequisite::RrsetIs(name("e.example.com"), TypeCode::A, vec![data.clone()]),
            ],
            changes: vec![
                ZoneChange::DeleteName(name("f.example.com")),
                ZoneChange::DeleteRrset(name("g.example.com"), TypeCode::MX),
                ZoneChange::Delete(name("h.example.com"), TypeCode::A, data),
                ZoneChange::Add(record),
            ],
        };

        let message = DnsMessage::read(&update.message(7, &key()).unwrap()).unwrap();

        let said = |entries: &[Entry]| {
            entries
                .iter()
                .map(|e| format!("{} {} {} {} {}", e.name, e.class, e.kind, e.ttl, e.data.as_bytes().len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(message.header.opcode, Opcode::UPDATE);
        assert_eq!(message.questions, [Question::of(name("example.com"), TypeCode::SOA)]);
        assert_eq!(
            said(&message.answers),
            [
                "a.example.com. 255 ANY 0 0",
                "b.example.com. 254 ANY 0 0",
                "c.example.com. 255 TXT 0 0",
                "d.example.com. 254 TXT 0 0",
                "e.example.com. 1 A 0 4"
            ]
        );
        assert_eq!(
            said(&message.authorities),
            [
                "f.example.com. 255 ANY 0 0",
                "g.example.com. 255 MX 0 0",
                "h.example.com. 254 A 0 4",
                "www.example.com. 1 A 60 4"
            ]
        );
    }

    #[test]
    fn an_update_that_does_not_fit_is_refused_and_never_cut() {
        let long = RecordData::txt([&vec![b'x'; 20_000][..]]).unwrap();
        let add = |number: u32| {
            ZoneChange::Add(ResourceRecord {
                name: name(&format!("n{number}.example.com")),
                kind: TypeCode::TXT,
                ttl: 60,
                data: long.clone(),
            })
        };
        let three = ZoneUpdate::new(name("example.com"), (0..3).map(add).collect());
        let four = ZoneUpdate::new(name("example.com"), (0..4).map(add).collect());

        assert_eq!(DnsMessage::read(&three.message(7, &key()).unwrap()).unwrap().authorities.len(), 3);
        assert_eq!(four.message(7, &key()), Err(OversizedUpdate));
    }

    #[test]
    fn a_response_code_says_what_is_to_be_done() {
        assert_eq!(UpdateRefusal::of(ResponseCode::NOERROR), None);
        assert_eq!(UpdateRefusal::of(ResponseCode::YXRRSET), Some(UpdateRefusal::Prerequisite(ResponseCode::YXRRSET)));
        assert_eq!(UpdateRefusal::of(ResponseCode::NOTAUTH), Some(UpdateRefusal::NotAuthoritative));
        assert_eq!(UpdateRefusal::of(ResponseCode(23)), Some(UpdateRefusal::Other(ResponseCode(23))));
    }
}
