//! Where a name without a tunnel points to: an address that was given, or a Service's.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use portolan_core::{ObjectKey, Problem};

use crate::reasons;

/// How soon a Service without an address is looked at again, should nobody say that it has one.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Where the address of a name comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// The name has a tunnel and needs none.
    None,
    /// It was given.
    Static(Ipv4Addr),
    /// It is a Service's.
    Service(ObjectKey),
}

/// Reads an address that others can reach.
pub fn address(text: &str) -> Result<Ipv4Addr, Problem> {
    let refuse = |why: &str| {
        let message = format!("{text:?} cannot be the address of a name: {why}");
        Err(Problem::invalid(reasons::INVALID_TARGET_IP, message))
    };
    let Ok(ip) = text.trim().parse::<Ipv4Addr>() else {
        let six = text.trim().parse::<Ipv6Addr>().is_ok();
        return refuse(if six {
            "IPv6 is not supported here; write an IPv4 address"
        } else {
            "write an IPv4 address, as 10.0.0.7"
        });
    };
    let first = ip.octets()[0];
    if ip.is_loopback() {
        refuse("it is a loopback address, which every machine has for itself")
    } else if ip.is_multicast() {
        refuse("it is a multicast address; write the address of one machine")
    } else if first == 0 || first >= 240 {
        refuse("it is reserved; write the address of a machine")
    } else if ip.is_link_local() {
        refuse("it is a link-local address, which nobody else can reach")
    } else {
        Ok(ip)
    }
}

/// Whether an address is only reachable from inside (RFC 1918, RFC 6598).
pub fn is_private(ip: Ipv4Addr) -> bool {
    let shared = ip.octets()[0] == 100 && (64..128).contains(&ip.octets()[1]);
    ip.is_private() || shared
}

/// The address of a Service: its load balancer's first IPv4 one.
pub fn of_service(key: &ObjectKey, service: Option<&Service>) -> Result<Ipv4Addr, Problem> {
    let wait = |why: String| Problem::waiting(reasons::NO_LOAD_BALANCER_IP, why).with_retry_after(LOOK_AGAIN);
    let Some(service) = service else { return Err(wait(format!("Service {key} does not exist"))) };
    let ingress = service.status.as_ref().and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
    let addresses: Vec<&str> = ingress.into_iter().flatten().filter_map(|one| one.ip.as_deref()).collect();
    let Some(first) = addresses.first() else {
        let balanced = service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
        let hint = if balanced { "" } else { "; it is not of type LoadBalancer" };
        return Err(wait(format!("Service {key} has no load balancer address yet{hint}")));
    };
    address(addresses.iter().find(|one| one.parse::<Ipv4Addr>().is_ok()).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn reason(text: &str) -> &'static str {
        address(text).map_or_else(|problem| problem.reason, |_| "accepted")
    }

    #[test]
    fn scenario_26_only_addresses_of_single_machines_are_taken() {
        for text in [
            "fd00::1",
            "::1",
            "224.0.0.1",
            "127.0.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "10.0.0",
            "here",
            "",
            "10.0.0.1/8",
        ] {
            assert_eq!(reason(text), "InvalidTargetIP", "{text}");
        }
        for text in ["10.1.2.3", "192.0.2.1", " 203.0.113.9 ", "100.64.0.1", "8.8.8.8"] {
            assert_eq!(reason(text), "accepted", "{text}");
        }
    }

    #[test]
    fn ipv6_is_refused_by_name() {
        assert!(address("2001:db8::1").unwrap_err().message.contains("IPv6"));
    }

    #[test]
    fn private_addresses_are_those_of_inner_networks() {
        for (text, private) in [
            ("10.0.0.1", true),
            ("172.31.0.1", true),
            ("172.32.0.1", false),
            ("192.168.7.7", true),
            ("100.64.0.0", true),
            ("100.127.255.255", true),
            ("100.128.0.0", false),
            ("8.8.8.8", false),
        ] {
            assert_eq!(is_private(text.parse().unwrap()), private, "{text}");
        }
    }

    fn service(ingress: serde_json::Value) -> Service {
        let status = json!({ "loadBalancer": { "ingress": ingress } });
        from_value(json!({ "spec": { "type": "LoadBalancer" }, "status": status })).unwrap()
    }

    #[test]
    fn scenario_26_a_service_without_an_address_is_waited_for() {
        let key = ObjectKey::namespaced("traefik", "traefik");
        let pending = of_service(&key, Some(&service(json!([])))).unwrap_err();
        let gone = of_service(&key, None).unwrap_err();

        assert_eq!((pending.class, pending.reason), (portolan_core::Class::Waiting, "NoLoadBalancerIP"));
        assert_eq!((gone.reason, gone.retry_after), ("NoLoadBalancerIP", Some(LOOK_AGAIN)));
    }

    #[test]
    fn a_service_with_both_families_gives_its_ipv4_address() {
        let key = ObjectKey::namespaced("traefik", "traefik");
        let both = service(json!([{ "ip": "fd00::7" }, { "hostname": "lb.example" }, { "ip": "10.0.0.7" }]));
        let six = service(json!([{ "ip": "fd00::7" }]));

        assert_eq!(of_service(&key, Some(&both)).unwrap(), Ipv4Addr::new(10, 0, 0, 7));
        assert_eq!(of_service(&key, Some(&six)).unwrap_err().reason, "InvalidTargetIP");
    }
}
