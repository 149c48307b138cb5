//! What a zone is to have at its apex, and what is there → one update's changes. Pure.
//!
//! Additions come first, so that no step in between lacks a name server or its address; named checks a message as a whole, refuses one that
//! leaves a name server in the zone without an address, and passes over the removal of the last NS without a word (tried with 9.18.49).

use std::collections::BTreeSet;
use std::net::IpAddr;

use portolan_bind9_model::contents::ZoneContents;
use portolan_bind9_wire::{
    DomainName, Nameserver, RecordData, ResourceRecord, Serial, Soa, TypeCode, ZoneApex, ZoneChange,
};
use portolan_core::{Hostname, Problem};

use portolan_bind9_model::reasons;

/// What stands at an apex: its SOA record, its name servers, and the addresses of those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApexThere {
    pub(crate) soa: Soa,
    pub(crate) soa_ttl: u32,
    pub(crate) records: Vec<ResourceRecord>,
}

/// A zone's contents as the wire has them, with a serial.
pub(crate) fn apex(contents: &ZoneContents, serial: u32) -> Result<ZoneApex, Problem> {
    let name = |text: &str| {
        DomainName::parse(text).map_err(|error| Problem::invalid(reasons::INVALID_SPEC, error.to_string()))
    };
    let addresses =
        |host: &Hostname| -> Vec<IpAddr> { contents.glue.get(host).into_iter().flatten().copied().collect() };
    let soa = &contents.soa;
    let nameservers = contents
        .name_servers
        .iter()
        .map(|host| Ok(Nameserver { host: name(host.as_str())?, addresses: addresses(host) }));
    Ok(ZoneApex {
        zone: name(contents.zone.as_str())?,
        soa: Soa {
            primary: name(soa.primary.as_str())?,
            mailbox: name(&soa.mailbox)?,
            serial: Serial(serial),
            refresh: soa.refresh,
            retry: soa.retry,
            expire: soa.expire,
            negative_ttl: soa.negative_ttl,
        },
        ttl: contents.ttl,
        nameservers: nameservers.collect::<Result<_, Problem>>()?,
    })
}

/// The records of an apex but its SOA record.
pub(crate) fn records(apex: &ZoneApex) -> Result<Vec<ResourceRecord>, Problem> {
    let all = apex.records().map_err(|fault| Problem::invalid(reasons::GLUE_MISSING, fault.to_string()))?;
    Ok(all.into_iter().filter(|record| record.kind != TypeCode::SOA).collect())
}

/// The changes that make what is there what it is to be; none where it is. The serial is the apex's own.
pub(crate) fn changes(wanted: &ZoneApex, there: &ApexThere) -> Result<Vec<ZoneChange>, Problem> {
    let records: BTreeSet<ResourceRecord> = records(wanted)?.iter().map(ResourceRecord::canonical).collect();
    let found: BTreeSet<ResourceRecord> = there.records.iter().map(ResourceRecord::canonical).collect();
    let value = |record: &ResourceRecord| (record.name.clone(), record.kind, record.data.clone());
    let values: BTreeSet<(DomainName, TypeCode, RecordData)> = records.iter().map(value).collect();
    let mut all: Vec<ZoneChange> = Vec::new();
    if !is_same_soa(wanted, there) {
        let (name, data) = (wanted.zone.clone(), wanted.soa.to_data());
        all.push(ZoneChange::Add(ResourceRecord { name, kind: TypeCode::SOA, ttl: wanted.ttl, data }));
    }
    // Addresses before the name servers that need them, and the other way round when they go.
    let (servers, addresses): (Vec<_>, Vec<_>) = records.difference(&found).partition(|one| one.kind == TypeCode::NS);
    all.extend(addresses.into_iter().chain(servers).cloned().map(ZoneChange::Add));
    let gone = found.iter().filter(|record| !values.contains(&value(record)));
    let (servers, addresses): (Vec<_>, Vec<_>) = gone.partition(|one| one.kind == TypeCode::NS);
    let removal = |record: &ResourceRecord| ZoneChange::Delete(record.name.clone(), record.kind, record.data.clone());
    all.extend(servers.into_iter().chain(addresses).map(removal));
    Ok(all)
}

fn is_same_soa(wanted: &ZoneApex, there: &ApexThere) -> bool {
    let plain = |soa: &Soa| Soa {
        primary: soa.primary.canonical(),
        mailbox: soa.mailbox.canonical(),
        serial: Serial(0),
        ..soa.clone()
    };
    plain(&wanted.soa) == plain(&there.soa) && wanted.ttl == there.soa_ttl
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use portolan_bind9_model::contents::SoaFields;
    use portolan_core::ZoneName;

    use super::*;

    fn host(text: &str) -> Hostname {
        Hostname::parse(text).unwrap()
    }

    fn contents(servers: &[(&str, &[&str])]) -> ZoneContents {
        let glue = |(name, ips): &(&str, &[&str])| (host(name), ips.iter().map(|ip| ip.parse().unwrap()).collect());
        ZoneContents {
            zone: ZoneName::parse("example.com").unwrap(),
            ttl: 300,
            soa: SoaFields {
                primary: host(servers[0].0),
                mailbox: "admin.example.com".to_owned(),
                refresh: 1,
                retry: 2,
                expire: 3,
                negative_ttl: 4,
            },
            name_servers: servers.iter().map(|(name, _)| host(name)).collect(),
            glue: servers.iter().filter(|(_, ips)| !ips.is_empty()).map(glue).collect::<BTreeMap<_, _>>(),
        }
    }

    fn there(servers: &[(&str, &[&str])]) -> ApexThere {
        let apex = apex(&contents(servers), 7).unwrap();
        ApexThere { soa: apex.soa.clone(), soa_ttl: apex.ttl, records: records(&apex).unwrap() }
    }

    fn said(wanted: &[(&str, &[&str])], there: &ApexThere) -> Vec<String> {
        let told = |change: ZoneChange| match change {
            ZoneChange::Add(record) => format!("+ {} {}", record.name, record.kind),
            ZoneChange::Delete(name, kind, _) => format!("- {name} {kind}"),
            other => format!("{other:?}"),
        };
        changes(&apex(&contents(wanted), 8).unwrap(), there).unwrap().into_iter().map(told).collect()
    }

    const ONE: (&str, &[&str]) = ("ns1.example.com", &["192.0.2.1"]);

    #[test]
    fn what_stands_as_it_is_to_changes_nothing_whatever_its_serial() {
        assert_eq!(said(&[ONE], &there(&[ONE])), Vec::<String>::new());
    }

    #[test]
    fn scenario_28_a_name_server_comes_after_its_addresses_and_goes_before_them() {
        let two: (&str, &[&str]) = ("ns2.example.com", &["192.0.2.2", "2001:db8::2"]);

        assert_eq!(
            said(&[ONE, two], &there(&[ONE])),
            ["+ ns2.example.com. A", "+ ns2.example.com. AAAA", "+ example.com. NS"]
        );
        assert_eq!(
            said(&[ONE], &there(&[ONE, two])),
            ["- example.com. NS", "- ns2.example.com. A", "- ns2.example.com. AAAA"]
        );
    }

    #[test]
    fn scenario_29_fields_of_the_soa_record_change_with_it_alone() {
        let mut before = there(&[ONE]);
        before.soa.refresh = 99;

        assert_eq!(said(&[ONE], &before), ["+ example.com. SOA"]);
    }

    #[test]
    fn another_ttl_is_given_to_every_record() {
        let mut before = there(&[ONE]);
        before.soa_ttl = 60;
        before.records.iter_mut().for_each(|record| record.ttl = 60);

        assert_eq!(said(&[ONE], &before), ["+ example.com. SOA", "+ ns1.example.com. A", "+ example.com. NS"]);
    }
}
