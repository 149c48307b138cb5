//! A zone's spec → the records that it has by itself: its SOA, its name servers, and their addresses where those lie in the zone.
//!
//! A zone whose name server lies in it and has no address is none: `addzone` fails for it, whatever `check-integrity` says, and an update
//! that leaves one so is refused (tried with 9.18.49). So both come together, and a zone that lacks one is refused before anybody is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use portolan_core::{Hostname, Problem, ZoneName};

use crate::defaults;
use crate::kinds::DNSZoneSpec;
use crate::reasons;
use crate::validate::zone_name;

/// The fields of a SOA record but its serial (RFC 1035 §3.3.13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoaFields {
    /// The first name server.
    pub primary: Hostname,
    /// The mailbox of who is responsible, as it is written in the DNS, without a dot at its end.
    pub mailbox: String,
    /// Seconds between looks for changes.
    pub refresh: u32,
    /// Seconds between looks where that failed.
    pub retry: u32,
    /// Seconds after which followers stop answering.
    pub expire: u32,
    /// Seconds that an absence may be kept.
    pub negative_ttl: u32,
}

/// The records that a zone has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneContents {
    /// The zone.
    pub zone: ZoneName,
    /// Seconds that answers may be kept where a record does not say.
    pub ttl: u32,
    /// Its SOA record.
    pub soa: SoaFields,
    /// Its name servers.
    pub name_servers: BTreeSet<Hostname>,
    /// Addresses of those that lie in the zone.
    pub glue: BTreeMap<Hostname, BTreeSet<IpAddr>>,
}

/// The records of a zone. `addresses` are those that records of the user's give to names: a name server may have its address from one.
pub fn contents(spec: &DNSZoneSpec, addresses: &BTreeSet<Hostname>) -> Result<ZoneContents, Problem> {
    let invalid = |message: String| Problem::invalid(reasons::INVALID_SPEC, message);
    let zone = zone_name(&spec.zone_name).map_err(|why| invalid(format!("spec.zoneName {why}")))?;
    let host = |text: &str| Hostname::parse(text).map_err(|error| invalid(error.to_string()));
    let primary = host(&spec.soa_record.primary_ns)?;
    let mut glue: BTreeMap<Hostname, BTreeSet<IpAddr>> = BTreeMap::new();
    let mut name_servers = BTreeSet::from([primary.clone()]);
    for (name, given) in named_servers(spec) {
        let name = host(&name)?;
        let inside = name.is_in(&zone);
        name_servers.insert(name.clone());
        if inside && !given.is_empty() {
            glue.entry(name).or_default().extend(given);
        }
    }
    if let Some(lost) =
        name_servers.iter().find(|name| name.is_in(&zone) && !glue.contains_key(*name) && !addresses.contains(*name))
    {
        return Err(Problem::invalid(reasons::GLUE_MISSING, without_address(lost, &zone)));
    }
    let soa = &spec.soa_record;
    let seconds = |value: i32| u32::try_from(value).unwrap_or_default();
    Ok(ZoneContents {
        ttl: seconds(spec.ttl.unwrap_or(defaults::TTL)),
        soa: SoaFields {
            primary,
            mailbox: soa.admin_email.trim_end_matches('.').to_owned(),
            refresh: seconds(soa.refresh),
            retry: seconds(soa.retry),
            expire: seconds(soa.expire),
            negative_ttl: seconds(soa.negative_ttl),
        },
        zone,
        name_servers,
        glue,
    })
}

/// The name servers that a spec names, with their addresses that can be read. The older form counts where the present one is absent.
fn named_servers(spec: &DNSZoneSpec) -> Vec<(String, Vec<IpAddr>)> {
    let address = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
    match (&spec.name_servers, &spec.name_server_ips) {
        (Some(servers), _) => servers
            .iter()
            .map(|one| {
                (
                    one.hostname.clone(),
                    address(&one.ipv4_address).into_iter().chain(address(&one.ipv6_address)).collect(),
                )
            })
            .collect(),
        (None, Some(older)) => {
            older.iter().map(|(host, ip)| (host.clone(), ip.parse().into_iter().collect())).collect()
        }
        (None, None) => Vec::new(),
    }
}

fn without_address(name: &Hostname, zone: &ZoneName) -> String {
    format!(
        "name server {name} lies in zone {zone} and has no address: give it one in nameServers, make an ARecord or AAAARecord for it, or name a server elsewhere"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing;

    fn made(more: Value, addresses: &[&str]) -> Result<ZoneContents, Problem> {
        let addresses = addresses.iter().map(|name| Hostname::parse(name).unwrap()).collect();
        contents(&testing::zone("dns", "z", more).spec, &addresses)
    }

    fn soa(primary: &str) -> Value {
        let mut spec = testing::zone_spec();
        spec["soaRecord"]["primaryNs"] = json!(primary);
        spec["soaRecord"].take()
    }

    fn names(contents: &ZoneContents) -> Vec<&str> {
        contents.name_servers.iter().map(Hostname::as_str).collect()
    }

    #[test]
    fn scenario_27_a_name_server_in_the_zone_needs_an_address_from_anywhere() {
        let refused = made(json!({"soaRecord": soa("ns1.example.com.")}), &[]).unwrap_err();
        assert_eq!(refused.reason, "GlueMissing");
        assert!(
            refused.message.contains("ns1.example.com") && refused.message.contains("ARecord"),
            "{}",
            refused.message
        );

        let servers = json!([{"hostname": "ns1.example.com.", "ipv4Address": "192.0.2.1"}]);
        assert!(made(json!({"soaRecord": soa("ns1.example.com."), "nameServers": servers}), &[]).is_ok());
        assert!(made(json!({"soaRecord": soa("ns1.example.com.")}), &["ns1.example.com"]).is_ok());
        assert!(made(json!({}), &[]).is_ok(), "a server elsewhere has its address there");
    }

    #[test]
    fn the_first_name_server_is_one_of_them_and_each_is_there_once() {
        let servers = json!([{"hostname": "NS1.example.net."}, {"hostname": "ns2.example.com.", "ipv4Address": "192.0.2.2", "ipv6Address": "2001:DB8::2"}]);
        let made = made(json!({ "nameServers": servers }), &[]).unwrap();

        assert_eq!(names(&made), ["ns1.example.net", "ns2.example.com"]);
        let glue: Vec<String> = made.glue.values().flatten().map(ToString::to_string).collect();
        assert_eq!(glue, ["192.0.2.2", "2001:db8::2"]);
    }

    #[test]
    fn addresses_of_servers_elsewhere_are_no_business_of_this_zone() {
        let made =
            made(json!({"nameServers": [{"hostname": "ns1.other.org.", "ipv4Address": "192.0.2.1"}]}), &[]).unwrap();

        assert!(made.glue.is_empty());
    }

    #[test]
    fn the_older_form_counts_where_the_present_one_is_absent() {
        let older = json!({"nameServerIps": {"ns9.example.com.": "192.0.2.9"}});
        assert_eq!(names(&made(older.clone(), &[]).unwrap()), ["ns1.example.net", "ns9.example.com"]);

        let both = json!({"nameServerIps": older["nameServerIps"], "nameServers": []});
        assert_eq!(names(&made(both, &[]).unwrap()), ["ns1.example.net"]);
    }

    #[test]
    fn answers_are_kept_as_long_as_the_zone_says_or_five_minutes() {
        assert_eq!((made(json!({}), &[]).unwrap().ttl, made(json!({"ttl": 60}), &[]).unwrap().ttl), (300, 60));
    }
}
