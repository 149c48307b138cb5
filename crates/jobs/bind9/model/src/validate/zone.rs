//! A zone's spec → what no server could serve of it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use portolan_core::{Hostname, ZoneName};

use crate::finding::Finding;
use crate::kinds::{DNSZoneSpec, NameServer, SOARecord};
use crate::validate::dnssec::is_identifier;

/// What is wrong with a zone by itself. Whether its name servers have addresses is for [`contents`](crate::contents) to say.
pub fn zone(spec: &DNSZoneSpec) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Err(why) = zone_name(&spec.zone_name) {
        found.push(Finding::refused("spec.zoneName", why));
    }
    soa(&spec.soa_record, &mut found);
    if spec.ttl.is_some_and(|ttl| ttl < 0) {
        found.push(Finding::refused("spec.ttl", "is less than 0"));
    }
    name_servers(spec.name_servers.as_deref().unwrap_or_default(), &mut found);
    older_name_servers(spec, &mut found);
    if let Some(policy) = spec.dnssec_policy.as_deref().filter(|policy| !is_identifier(policy)) {
        let shown = portolan_core::text::shorten(policy, 80);
        found.push(Finding::refused("spec.dnssecPolicy", format!("{shown:?} is no name of a policy")));
    }
    selectors(spec, &mut found);
    found
}

/// Reads a zone's name as it is compared with others: in lower case and without a dot at its end.
pub fn zone_name(text: &str) -> Result<ZoneName, String> {
    let trimmed = text.strip_suffix('.').unwrap_or(text);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if trimmed.parse::<Ipv4Addr>().is_ok() {
        return Err("is an address; write the zone's name, as example.com, or that of its reverse zone".to_owned());
    }
    if !trimmed.chars().all(is_part) {
        return Err("has characters that no zone's name has; write it in ASCII, as xn--bcher-kva.example".to_owned());
    }
    ZoneName::parse(trimmed).map_err(|error| error.to_string())
}

fn soa(soa: &SOARecord, found: &mut Vec<Finding>) {
    for (name, text) in [("primaryNs", &soa.primary_ns), ("adminEmail", &soa.admin_email)] {
        let field = format!("spec.soaRecord.{name}");
        if text.contains('@') {
            found.push(Finding::refused(field, "a mailbox is written with a dot for the @, as admin.example.com."));
        } else if !is_full_name(text) {
            let shown = portolan_core::text::shorten(text, 80);
            found.push(Finding::refused(field, format!("{shown:?} is no full name; write one with a dot at its end")));
        }
    }
    if u32::try_from(soa.serial).is_err() {
        found.push(Finding::refused("spec.soaRecord.serial", "is no serial; write a number up to 4294967295"));
    }
    for (name, value, least) in [
        ("refresh", soa.refresh, 1),
        ("retry", soa.retry, 1),
        ("expire", soa.expire, 1),
        ("negativeTtl", soa.negative_ttl, 0),
    ] {
        if value < least {
            found.push(Finding::refused(format!("spec.soaRecord.{name}"), format!("is less than {least}")));
        }
    }
}

/// A name with a dot at its end. In mailboxes a label may have escaped dots.
fn is_full_name(text: &str) -> bool {
    let plain = text.replace("\\.", "-").replace('+', "-");
    text.ends_with('.') && plain.is_ascii() && !plain.contains('*') && Hostname::parse(&plain).is_ok()
}

fn name_servers(servers: &[NameServer], found: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for (index, server) in servers.iter().enumerate() {
        let field = format!("spec.nameServers[{index}]");
        if !is_full_name(&server.hostname) {
            found.push(Finding::refused(format!("{field}.hostname"), "is no full name; write one as ns1.example.com."));
        }
        if !seen.insert(server.hostname.to_ascii_lowercase()) {
            found.push(Finding::refused(format!("{field}.hostname"), "is named twice"));
        }
        if server.ipv4_address.as_deref().is_some_and(|text| text.parse::<Ipv4Addr>().is_err()) {
            found.push(Finding::refused(format!("{field}.ipv4Address"), "is no IPv4 address"));
        }
        if server.ipv6_address.as_deref().is_some_and(|text| text.parse::<Ipv6Addr>().is_err()) {
            found.push(Finding::refused(format!("{field}.ipv6Address"), "is no IPv6 address"));
        }
    }
}

/// The older form counts only where the present one is absent.
fn older_name_servers(spec: &DNSZoneSpec, found: &mut Vec<Finding>) {
    let Some(older) = &spec.name_server_ips else { return };
    if spec.name_servers.is_some() {
        found.push(Finding::ignored("spec.nameServerIps", "nameServers is there and is used instead"));
        return;
    }
    for (host, address) in older {
        let shown = portolan_core::text::shorten(host, 80).into_owned();
        let field = format!("spec.nameServerIps.{shown}");
        if !is_full_name(&format!("{}.", host.trim_end_matches('.'))) {
            found.push(Finding::refused(field, "is no name of a host"));
        } else if !matches!(address.parse(), Ok(IpAddr::V4(_))) {
            found.push(Finding::refused(field, "is no IPv4 address; write nameServers, which has both families"));
        }
    }
}

fn selectors(spec: &DNSZoneSpec, found: &mut Vec<Finding>) {
    let records = spec.records_from.iter().flatten().map(|source| &source.selector);
    let instances = spec.bind9_instances_from.iter().flatten().map(|source| &source.selector);
    for (name, complaint) in records
        .map(|selector| ("recordsFrom", selector.complaint()))
        .chain(instances.map(|selector| ("bind9InstancesFrom", selector.complaint())))
    {
        if let Some(complaint) = complaint {
            found.push(Finding::refused(format!("spec.{name}"), complaint));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::finding::{Weight, sentence};

    fn said(more: Value) -> String {
        let mut spec = crate::testing::zone_spec();
        for (name, value) in more.as_object().unwrap() {
            match (spec.get_mut(name), value) {
                (Some(Value::Object(there)), Value::Object(more)) => there.extend(more.clone()),
                _ => drop(spec.as_object_mut().unwrap().insert(name.clone(), value.clone())),
            }
        }
        sentence(&zone(&from_value(spec).unwrap()), Weight::Refused).unwrap_or_default()
    }

    #[test]
    fn zones_of_every_sort_of_name_are_right() {
        for name in
            ["example.com", "Example.COM", "_msdcs.example.com", "2.0.192.in-addr.arpa", "com", "xn--bcher-kva.example"]
        {
            assert_eq!(said(json!({ "zoneName": name })), "", "{name}");
        }
    }

    #[test]
    fn what_no_server_could_serve_is_named_with_what_to_write() {
        for (spec, sentence) in [
            (json!({"zoneName": "192.0.2.1"}), "is an address"),
            (json!({"zoneName": "a..b"}), "spec.zoneName"),
            (json!({"zoneName": "-a.b"}), "spec.zoneName"),
            (json!({"zoneName": "bücher.example"}), "in ASCII"),
            (json!({"zoneName": "x\"; }; zone \"y"}), "characters"),
            (json!({"zoneName": "*.example.com"}), "characters"),
            (json!({"zoneName": ""}), "spec.zoneName"),
            (json!({"zoneName": "a".repeat(64)}), "spec.zoneName"),
            (json!({"soaRecord": {"primaryNs": "ns1.example.com"}}), "dot at its end"),
            (json!({"soaRecord": {"adminEmail": "admin@example.com"}}), "a dot for the @"),
            (json!({"soaRecord": {"serial": 4_294_967_296_i64}}), "no serial"),
            (json!({"soaRecord": {"serial": -1}}), "no serial"),
            (json!({"soaRecord": {"refresh": 0}}), "less than 1"),
            (json!({"nameServers": [{"hostname": "ns1.example.com.", "ipv4Address": "192.0.2.256"}]}), "no IPv4"),
            (json!({"nameServers": [{"hostname": "ns1.example.com.", "ipv6Address": "::g"}]}), "no IPv6"),
            (json!({"nameServers": [{"hostname": "a.example."}, {"hostname": "A.example."}]}), "named twice"),
            (json!({"nameServerIps": {"ns1.example.com.": "2001:db8::1"}}), "write nameServers"),
            (json!({"dnssecPolicy": "a; b"}), "no name of a policy"),
            (
                json!({"recordsFrom": [{"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]}),
                "operator",
            ),
        ] {
            let said = said(spec.clone());
            assert!(said.contains(sentence), "{spec} said {said:?}");
        }
    }

    #[test]
    fn scenario_25_names_are_compared_without_case_and_without_their_dot() {
        assert_eq!(zone_name("Example.COM"), zone_name("example.com."));
    }

    #[test]
    fn mailboxes_may_have_dots_in_their_first_part() {
        assert_eq!(said(json!({"soaRecord": {"adminEmail": "first\\.last.example.com."}})), "");
    }
}
