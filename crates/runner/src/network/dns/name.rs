//! A name that is asked for → whose it is.

use std::net::Ipv4Addr;

use super::CLUSTER_DOMAIN;

/// Whose a name is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskedName<'a> {
    /// Not ours: another server knows.
    Elsewhere,
    /// A zone, or a part of one, that has no records of its own.
    Zone,
    /// Which version of the specification is followed.
    Version,
    /// The Services of a namespace.
    Namespace {
        /// The namespace.
        namespace: &'a str,
    },
    /// A Service.
    Service {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        service: &'a str,
    },
    /// An endpoint of a Service.
    Endpoint {
        /// The Service's namespace.
        namespace: &'a str,
        /// The Service's name.
        service: &'a str,
        /// Its own name, or its address with dashes.
        endpoint: &'a str,
    },
    /// A port of a Service.
    Port {
        /// The Service's namespace.
        namespace: &'a str,
        /// The Service's name.
        service: &'a str,
        /// The port's name.
        port: &'a str,
        /// `tcp` or `udp`.
        transport: &'a str,
    },
    /// A pod by its address.
    Pod {
        /// The address.
        address: Ipv4Addr,
    },
    /// An address, for its name.
    Address {
        /// The address.
        address: Ipv4Addr,
    },
    /// A name of ours that nothing can have.
    Unknown,
}

/// The names of addresses of pods and of Services stand below these.
const REVERSE_ZONES: [&str; 2] = ["77.127.in-addr.arpa", "78.127.in-addr.arpa"];

/// Whose the name is: in small letters, without a dot at its end.
pub fn asked_name(name: &str) -> AskedName<'_> {
    for zone in REVERSE_ZONES {
        if let Some(below) = below(name, zone) {
            return reverse(below, zone);
        }
    }
    let Some(below) = below(name, CLUSTER_DOMAIN) else { return AskedName::Elsewhere };
    let labels: Vec<&str> = below.split('.').filter(|label| !label.is_empty()).collect();
    match *labels.as_slice() {
        [] | ["svc" | "pod"] => AskedName::Zone,
        ["dns-version"] => AskedName::Version,
        [namespace, "svc" | "pod"] => AskedName::Namespace { namespace },
        [service, namespace, "svc"] => AskedName::Service { namespace, service },
        [address, _, "pod"] => dashed(address).map_or(AskedName::Unknown, |address| AskedName::Pod { address }),
        [endpoint, service, namespace, "svc"] if !endpoint.starts_with('_') => {
            AskedName::Endpoint { namespace, service, endpoint }
        }
        [port, transport, service, namespace, "svc"] => match (port.strip_prefix('_'), transport.strip_prefix('_')) {
            (Some(port), Some(transport)) => AskedName::Port { namespace, service, port, transport },
            _ => AskedName::Unknown,
        },
        _ => AskedName::Unknown,
    }
}

/// What stands before a zone in a name; nothing in the zone itself.
fn below<'a>(name: &'a str, zone: &str) -> Option<&'a str> {
    let before = name.strip_suffix(zone)?;
    if before.is_empty() { Some(before) } else { before.strip_suffix('.') }
}

/// `2.1` below `78.127.in-addr.arpa` is 127.78.1.2.
fn reverse<'a>(below: &str, zone: &str) -> AskedName<'a> {
    let second = zone.split('.').next().and_then(|part| part.parse().ok());
    let parts: Vec<Option<u8>> =
        below.split('.').filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect();
    match (parts.as_slice(), second) {
        ([Some(fourth), Some(third)], Some(second)) => {
            AskedName::Address { address: Ipv4Addr::new(127, second, *third, *fourth) }
        }
        ([] | [Some(_)], _) => AskedName::Zone,
        _ => AskedName::Unknown,
    }
}

/// `127-77-0-1` is 127.77.0.1.
fn dashed(text: &str) -> Option<Ipv4Addr> {
    text.replace('-', ".").parse().ok()
}

/// The name of an endpoint that has none of its own.
pub fn dashed_name(address: Ipv4Addr) -> String {
    address.to_string().replace('.', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_the_cluster_domain_are_services_their_endpoints_and_their_ports() {
        let (namespace, service) = ("shop", "web");
        let (endpoint, port, transport) = ("web-0", "http", "tcp");
        let rows = [
            ("web.shop.svc.cluster.local", AskedName::Service { namespace, service }),
            ("web-0.web.shop.svc.cluster.local", AskedName::Endpoint { namespace, service, endpoint }),
            ("_http._tcp.web.shop.svc.cluster.local", AskedName::Port { namespace, service, port, transport }),
            ("shop.svc.cluster.local", AskedName::Namespace { namespace }),
            ("svc.cluster.local", AskedName::Zone),
            ("cluster.local", AskedName::Zone),
            ("dns-version.cluster.local", AskedName::Version),
            ("127-77-0-1.shop.pod.cluster.local", AskedName::Pod { address: Ipv4Addr::new(127, 77, 0, 1) }),
        ];
        for (name, expected) in rows {
            assert_eq!(asked_name(name), expected, "{name}");
        }
    }

    #[test]
    fn names_below_it_that_nothing_can_have_are_known_to_be_none() {
        for name in [
            "web.cluster.local",
            "x.shop.pod.cluster.local",
            "_tcp.web.shop.svc.cluster.local",
            "a.b.web.shop.svc.cluster.local",
            "1.2.3.78.127.in-addr.arpa",
            "x.2.78.127.in-addr.arpa",
        ] {
            assert_eq!(asked_name(name), AskedName::Unknown, "{name}");
        }
    }

    #[test]
    fn all_other_names_are_somebody_elses() {
        for name in ["example.com", "web", "web.shop", "", "notcluster.local", "1.0.0.127.in-addr.arpa"] {
            assert_eq!(asked_name(name), AskedName::Elsewhere, "{name}");
        }
    }

    #[test]
    fn addresses_are_asked_for_backwards() {
        let address = |name| match asked_name(name) {
            AskedName::Address { address } => address.to_string(),
            other => panic!("{other:?}"),
        };

        assert_eq!(address("2.1.78.127.in-addr.arpa"), "127.78.1.2");
        assert_eq!(address("9.0.77.127.in-addr.arpa"), "127.77.0.9");
        assert_eq!(asked_name("1.78.127.in-addr.arpa"), AskedName::Zone);
    }
}
