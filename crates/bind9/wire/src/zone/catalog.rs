//! Which zones a catalog has ↔ the catalog's records (RFC 9432); and what changes when other zones shall be in it.

use std::collections::BTreeMap;

use sha1::{Digest, Sha1};

use crate::{
    message::{DomainName, RecordData, ResourceRecord, TypeCode},
    update::ZoneChange,
    values::{Soa, hex},
};

/// The version that RFC 9432 §4.2.1 asks for.
const VERSION: &[u8] = b"2";
/// Nobody asks for a catalog's records by name, so their TTL is of no importance (RFC 9432 §4.1).
const TTL: u32 = 0;

/// A zone of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogMember {
    /// The zone.
    pub zone: DomainName,
    /// The label that it stands under. A secondary that sees a zone under another label makes it anew (RFC 9432 §5.4).
    pub id: String,
    /// The group whose settings the secondaries have for it (RFC 9432 §4.3.2).
    pub group: Option<String>,
    /// The catalog that it is about to move to (RFC 9432 §4.3.1).
    pub moves_to: Option<DomainName>,
}

impl CatalogMember {
    /// A zone under the label that follows from its name.
    pub fn new(zone: DomainName) -> Self {
        Self { id: member_id(&zone), zone, group: None, moves_to: None }
    }

    fn records(&self, catalog: &DomainName) -> Vec<ResourceRecord> {
        let owner = child(&child(catalog, "zones"), &self.id);
        let mut records = vec![record(&owner, TypeCode::PTR, RecordData::name(&self.zone))];
        if let Some(group) = self.group.as_ref().and_then(|group| RecordData::txt([group.as_bytes()])) {
            records.push(record(&child(&owner, "group"), TypeCode::TXT, group));
        }
        if let Some(other) = &self.moves_to {
            records.push(record(&child(&owner, "coo"), TypeCode::PTR, RecordData::name(other)));
        }
        records
    }
}

/// A label that is always the same for a zone and never that of another: the SHA-1 of its name, as BIND's own documentation has it.
pub fn member_id(zone: &DomainName) -> String {
    hex(&Sha1::digest(zone.canonical().wire()))
}

/// All records of a catalog, its SOA record first.
pub fn catalog_records(catalog: &DomainName, soa: &Soa, members: &[CatalogMember]) -> Vec<ResourceRecord> {
    // The server's name is of no importance, and this one can be nobody's (RFC 9432 §4.1).
    let nobody = DomainName::parse("invalid").expect("it is a name");
    let version = RecordData::txt([VERSION]).expect("it is short");
    let mut records = vec![
        record(catalog, TypeCode::SOA, soa.to_data()),
        record(catalog, TypeCode::NS, RecordData::name(&nobody)),
        record(&child(catalog, "version"), TypeCode::TXT, version),
    ];
    records.extend(members.iter().flat_map(|member| member.records(catalog)));
    records
}

/// The zones of a catalog, by its records. What is no member is left out, and so is a zone that stands in it twice.
pub fn catalog_members(catalog: &DomainName, records: &[ResourceRecord]) -> Vec<CatalogMember> {
    let zones = child(catalog, "zones");
    let mut members: BTreeMap<DomainName, CatalogMember> = BTreeMap::new();
    let below = |record: &ResourceRecord, depth: usize| {
        record.name.is_in(&zones) && record.name.depth() == zones.depth() + depth
    };
    for record in records.iter().filter(|record| record.kind == TypeCode::PTR && below(record, 1)) {
        let (Some(zone), Some(label)) = (target(record), record.name.labels().next()) else { continue };
        let id = String::from_utf8_lossy(label).into_owned();
        members.entry(record.name.clone()).or_insert(CatalogMember { zone, id, group: None, moves_to: None });
    }
    for record in records.iter().filter(|record| below(record, 2)) {
        let Some(member) = record.name.parent().and_then(|owner| members.get_mut(&owner)) else { continue };
        match (record.name.labels().next(), record.kind) {
            (Some(b"group"), TypeCode::TXT) => member.group = first_string(record),
            (Some(b"coo"), TypeCode::PTR) => member.moves_to = target(record),
            _ => {}
        }
    }
    members.into_values().collect()
}

/// What makes a catalog have other members: a group of changes for each zone that comes, goes, or is there in another way.
pub fn catalog_changes(
    catalog: &DomainName,
    before: &[CatalogMember],
    after: &[CatalogMember],
) -> Vec<Vec<ZoneChange>> {
    let by_id = |members: &[CatalogMember]| -> BTreeMap<String, CatalogMember> {
        members.iter().map(|member| (member.id.clone(), member.clone())).collect()
    };
    let (before, after) = (by_id(before), by_id(after));
    let gone = before.values().filter(|member| !after.contains_key(&member.id)).map(|member| removal(catalog, member));
    let come = after.values().filter(|member| before.get(&member.id) != Some(member)).map(|member| {
        let mut changes = before.get(&member.id).map(|before| removal(catalog, before)).unwrap_or_default();
        changes.extend(member.records(catalog).into_iter().map(ZoneChange::Add));
        changes
    });
    gone.chain(come).collect()
}

fn removal(catalog: &DomainName, member: &CatalogMember) -> Vec<ZoneChange> {
    member.records(catalog).into_iter().map(|record| ZoneChange::DeleteRrset(record.name, record.kind)).collect()
}

fn child(name: &DomainName, label: &str) -> DomainName {
    // A catalog's own name is short, and so are labels; one that is not stays where it is and is nobody's member.
    name.child(label).unwrap_or_else(|_| name.clone())
}

fn record(name: &DomainName, kind: TypeCode, data: RecordData) -> ResourceRecord {
    ResourceRecord { name: name.clone(), kind, ttl: TTL, data }
}

fn target(record: &ResourceRecord) -> Option<DomainName> {
    record.data.target(record.kind)
}

fn first_string(record: &ResourceRecord) -> Option<String> {
    let (length, rest) = record.data.as_bytes().split_first()?;
    Some(String::from_utf8_lossy(rest.get(..usize::from(*length))?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Serial;

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).unwrap()
    }

    fn soa() -> Soa {
        let (primary, mailbox) = (name("invalid"), name("invalid"));
        Soa { primary, mailbox, serial: Serial(1), refresh: 1, retry: 1, expire: 1, negative_ttl: 1 }
    }

    fn members() -> Vec<CatalogMember> {
        let grouped = CatalogMember { group: Some("signed".into()), ..CatalogMember::new(name("b.example")) };
        let moving = CatalogMember { moves_to: Some(name("other.catalog")), ..CatalogMember::new(name("c.example")) };
        vec![CatalogMember::new(name("a.example")), grouped, moving]
    }

    #[test]
    fn a_catalog_is_read_as_it_was_written() {
        let catalog = name("catalog.bindy");
        let records = catalog_records(&catalog, &soa(), &members());

        assert_eq!(records[1].to_string(), "catalog.bindy. 0 IN NS invalid.");
        assert_eq!(records[2].to_string(), "version.catalog.bindy. 0 IN TXT \"2\"");
        assert_eq!(records.len(), 3 + 3 + 2);
        let mut read = catalog_members(&catalog, &records);
        read.sort_by_key(|member| member.zone.clone());
        assert_eq!(read, members());
    }

    #[test]
    fn the_label_of_a_zone_does_not_depend_on_spelling() {
        assert_eq!(member_id(&name("Example.COM")), member_id(&name("example.com.")));
        assert_ne!(member_id(&name("example.com")), member_id(&name("example.org")));
        assert_eq!(member_id(&name("example.com")), "c5e4b4da1e5a620ddaa3635e55c3732a5b49c7f4");
    }

    #[test]
    fn only_what_differs_changes() {
        let catalog = name("catalog.bindy");
        let before = members();
        let mut after = vec![before[0].clone(), before[1].clone(), CatalogMember::new(name("d.example"))];
        assert_eq!(catalog_changes(&catalog, &before, &before), Vec::<Vec<ZoneChange>>::new());
        after[1].group = None;

        let changes = catalog_changes(&catalog, &before, &after);

        assert_eq!(changes.len(), 3, "one goes, one comes, one has no group any more: {changes:?}");
        assert_eq!(changes.iter().flatten().filter(|change| matches!(change, ZoneChange::Add(_))).count(), 2);
    }
}
