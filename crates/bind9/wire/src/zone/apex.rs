//! Who is responsible for a zone and which servers have it → the records at its apex, and addresses of servers that lie in it.

use std::{collections::BTreeSet, net::IpAddr};

use crate::{
    message::{DomainName, RecordData, ResourceRecord, TypeCode},
    values::Soa,
};

/// A server of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nameserver {
    /// Its name.
    pub host: DomainName,
    /// Its addresses; needed where its name lies in the zone.
    pub addresses: Vec<IpAddr>,
}

/// What every zone begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneApex {
    /// The zone.
    pub zone: DomainName,
    /// Its SOA record.
    pub soa: Soa,
    /// The TTL of all of these records.
    pub ttl: u32,
    /// Its servers.
    pub nameservers: Vec<Nameserver>,
}

/// Why a zone cannot be served with these records. named takes no such zone ("bad zone"), not even with `check-integrity no`
/// (tried: 9.18.49).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApexFault {
    /// A zone has at least one server.
    #[error("{0} has no name server: name at least one")]
    NoNameserver(DomainName),
    /// A server in the zone without an address, so that nobody could find it.
    #[error("the name server {0} lies in its zone and has no address: give it one")]
    NoAddress(DomainName),
}

impl ZoneApex {
    /// The records: SOA, then NS, then the addresses of servers that lie in the zone. Servers named twice are one, with the
    /// addresses of both; addresses of servers elsewhere are not the zone's to say and left out.
    pub fn records(&self) -> Result<Vec<ResourceRecord>, ApexFault> {
        let mut hosts: Vec<(&DomainName, BTreeSet<IpAddr>)> = Vec::new();
        for server in &self.nameservers {
            match hosts.iter_mut().find(|(host, _)| **host == server.host) {
                Some((_, addresses)) => addresses.extend(&server.addresses),
                None => hosts.push((&server.host, server.addresses.iter().copied().collect())),
            }
        }
        if hosts.is_empty() {
            return Err(ApexFault::NoNameserver(self.zone.clone()));
        }
        let in_zone: Vec<_> = hosts.iter().filter(|(host, _)| host.is_in(&self.zone)).collect();
        if let Some((host, _)) = in_zone.iter().find(|(_, addresses)| addresses.is_empty()) {
            return Err(ApexFault::NoAddress((*host).clone()));
        }
        let mut records = vec![self.record(&self.zone, TypeCode::SOA, self.soa.to_data())];
        records.extend(hosts.iter().map(|(host, _)| self.record(&self.zone, TypeCode::NS, RecordData::name(host))));
        records.extend(
            in_zone.iter().flat_map(|(host, addresses)| addresses.iter().map(|address| self.address(host, *address))),
        );
        Ok(records)
    }

    fn address(&self, host: &DomainName, address: IpAddr) -> ResourceRecord {
        match address {
            IpAddr::V4(address) => self.record(host, TypeCode::A, RecordData::a(address)),
            IpAddr::V6(address) => self.record(host, TypeCode::AAAA, RecordData::aaaa(address)),
        }
    }

    fn record(&self, name: &DomainName, kind: TypeCode, data: RecordData) -> ResourceRecord {
        ResourceRecord { name: name.clone(), kind, ttl: self.ttl, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Serial;

    fn apex(nameservers: &[(&str, &[&str])]) -> ZoneApex {
        let name = |text: &str| DomainName::parse(text).unwrap();
        let server = |(host, addresses): &(&str, &[&str])| Nameserver {
            host: name(host),
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        };
        let (primary, mailbox) = (name("ns1.example.com"), name("hostmaster.example.com"));
        let soa = Soa { primary, mailbox, serial: Serial(7), refresh: 1, retry: 2, expire: 3, negative_ttl: 4 };
        ZoneApex { zone: name("example.com"), soa, ttl: 300, nameservers: nameservers.iter().map(server).collect() }
    }

    #[test]
    fn servers_in_the_zone_come_with_their_addresses_and_others_without() {
        let apex = apex(&[
            ("ns1.example.com", &["192.0.2.1", "2001:db8::1"]),
            ("ns.example.net", &["192.0.2.9"]),
            ("NS1.example.com", &["192.0.2.1", "192.0.2.2"]),
        ]);

        let records: Vec<_> = apex.records().unwrap().iter().map(ToString::to_string).collect();

        assert_eq!(
            records,
            [
                "example.com. 300 IN SOA ns1.example.com. hostmaster.example.com. 7 1 2 3 4",
                "example.com. 300 IN NS ns1.example.com.",
                "example.com. 300 IN NS ns.example.net.",
                "ns1.example.com. 300 IN A 192.0.2.1",
                "ns1.example.com. 300 IN A 192.0.2.2",
                "ns1.example.com. 300 IN AAAA 2001:db8::1",
            ]
        );
    }

    #[test]
    fn a_zone_that_named_would_not_take_is_refused_before() {
        assert!(matches!(apex(&[]).records(), Err(ApexFault::NoNameserver(_))));
        let said = apex(&[("ns1.example.com", &[])]).records().unwrap_err().to_string();
        assert_eq!(said, "the name server ns1.example.com. lies in its zone and has no address: give it one");
    }
}
