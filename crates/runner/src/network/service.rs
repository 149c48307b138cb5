//! A Service and its `EndpointSlice`s → the little that is kept of them: where it listens, and who serves it.

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

/// Namespace and name of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What carries a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// As a port names it; TCP where it says nothing. SCTP is not forwarded.
    fn read(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("TCP") => Some(Self::Tcp),
            Some("UDP") => Some(Self::Udp),
            Some(_) => None,
        }
    }

    /// As names of the DNS have it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// Where requests for a Service end up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceSort {
    /// Forwarded to endpoints.
    Addressed {
        /// The cluster address.
        address: Ipv4Addr,
    },
    /// Nothing is forwarded; its name stands for its endpoints.
    Headless,
    /// Its name is another name.
    Alias {
        /// That name.
        target: String,
    },
}

/// Which endpoints may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficScope {
    /// All of them.
    Cluster,
    /// Those on this node.
    Node,
}

impl TrafficScope {
    fn read(text: Option<&str>) -> Self {
        if text == Some("Local") { Self::Node } else { Self::Cluster }
    }
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name; empty where it has none.
    pub name: String,
    /// What it speaks.
    pub transport: Transport,
    /// Its number.
    pub port: u16,
    /// Its number on the node.
    pub node_port: Option<u16>,
}

/// What is kept of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFacts {
    /// Where requests end up.
    pub sort: ServiceSort,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Further addresses that it is asked at, as far as they are of this machine's loopback.
    pub more_addresses: Vec<Ipv4Addr>,
    /// How long a client stays with an endpoint.
    pub affinity: Option<Duration>,
    /// For requests to its cluster address.
    pub inside: TrafficScope,
    /// For requests to its other addresses and its ports on the node.
    pub outside: TrafficScope,
    /// Whether its name stands for endpoints that are not ready, too.
    pub publishes_not_ready: bool,
}

/// Whether an endpoint can be given requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointState {
    /// It can.
    Ready,
    /// It ends, and still answers: it is asked where nobody is ready.
    Leaving,
    /// It cannot.
    NotReady,
}

/// Who serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointFacts {
    /// Its addresses, of IPv4.
    pub addresses: Vec<Ipv4Addr>,
    /// Its own name below the Service's.
    pub hostname: Option<String>,
    /// Where it runs.
    pub node: Option<String>,
    /// Whether it can be asked.
    pub state: EndpointState,
}

/// A port by which all endpoints of a slice serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPort {
    /// The name of the Service's port that it stands for.
    pub name: String,
    /// What it speaks.
    pub transport: Transport,
    /// Its number.
    pub port: u16,
}

/// What is kept of an `EndpointSlice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceFacts {
    /// Its endpoints.
    pub endpoints: Vec<EndpointFacts>,
    /// Their ports.
    pub ports: Vec<EndpointPort>,
}

/// The label by which a slice says whose it is.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The label by which a Service says that other programs forward it (`pkg/proxy/apis/well_known_labels.go`).
const OTHER_PROXY_LABEL: &str = "service.kubernetes.io/service-proxy-name";
/// How long a client stays with an endpoint where the Service does not say (`pkg/apis/core/v1/defaults.go`).
const USUAL_AFFINITY: i32 = 10_800;

impl ServiceName {
    /// Whose a slice is.
    pub fn of_slice(slice: &EndpointSlice) -> Option<Self> {
        let name = slice.metadata.labels.as_ref()?.get(SERVICE_LABEL)?.clone();
        Some(Self { namespace: slice.metadata.namespace.clone()?, name })
    }

    /// The name of a Service.
    pub fn of(service: &Service) -> Option<Self> {
        Some(Self { namespace: service.metadata.namespace.clone()?, name: service.metadata.name.clone()? })
    }
}

impl ServiceFacts {
    /// What is kept; nothing of a Service that is somebody else's to forward, or has no address yet.
    pub fn of(service: &Service) -> Option<Self> {
        let spec = service.spec.as_ref()?;
        if service.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(OTHER_PROXY_LABEL)) {
            return None;
        }
        let timeout =
            spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
        let is_sticky = spec.session_affinity.as_deref() == Some("ClientIP");
        let seconds = u64::try_from(timeout.unwrap_or(USUAL_AFFINITY)).unwrap_or_default();
        Some(Self {
            sort: sort(service)?,
            ports: spec.ports.iter().flatten().filter_map(port).collect(),
            more_addresses: more_addresses(service),
            affinity: is_sticky.then(|| Duration::from_secs(seconds)),
            inside: TrafficScope::read(spec.internal_traffic_policy.as_deref()),
            outside: TrafficScope::read(spec.external_traffic_policy.as_deref()),
            publishes_not_ready: spec.publish_not_ready_addresses == Some(true),
        })
    }
}

fn sort(service: &Service) -> Option<ServiceSort> {
    let spec = service.spec.as_ref()?;
    if spec.type_.as_deref() == Some("ExternalName") {
        let target = spec.external_name.clone()?.trim_end_matches('.').to_ascii_lowercase();
        return Some(ServiceSort::Alias { target });
    }
    match spec.cluster_ip.as_deref()? {
        "None" => Some(ServiceSort::Headless),
        // What is not of the loopback cannot be listened on here.
        text => {
            let address = text.parse().ok().filter(Ipv4Addr::is_loopback)?;
            Some(ServiceSort::Addressed { address })
        }
    }
}

fn port(port: &k8s_openapi::api::core::v1::ServicePort) -> Option<ServicePort> {
    Some(ServicePort {
        name: port.name.clone().unwrap_or_default(),
        transport: Transport::read(port.protocol.as_deref())?,
        port: u16::try_from(port.port).ok()?,
        node_port: port.node_port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0),
    })
}

/// External addresses, and those that a load balancer has: as far as they are of the loopback.
fn more_addresses(service: &Service) -> Vec<Ipv4Addr> {
    let external = service.spec.iter().flat_map(|spec| spec.external_ips.iter().flatten()).map(String::as_str);
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let balanced = balancer.iter().flat_map(|balancer| balancer.ingress.iter().flatten()).filter_map(|one| {
        // An address that is a proxy's is not served by the node (`pkg/proxy/serviceport.go`).
        one.ip.as_deref().filter(|_| one.ip_mode.as_deref() != Some("Proxy"))
    });
    external.chain(balanced).filter_map(|text| text.parse().ok()).filter(Ipv4Addr::is_loopback).collect()
}

impl SliceFacts {
    /// What is kept; nothing of a slice of other addresses than those of IPv4.
    pub fn of(slice: &EndpointSlice) -> Option<Self> {
        if slice.address_type != "IPv4" {
            return None;
        }
        let ports = slice.ports.iter().flatten();
        let ports = ports.filter_map(|port| {
            Some(EndpointPort {
                name: port.name.clone().unwrap_or_default(),
                transport: Transport::read(port.protocol.as_deref())?,
                port: u16::try_from(port.port?).ok()?,
            })
        });
        Some(Self { ports: ports.collect(), endpoints: slice.endpoints.iter().flatten().map(endpoint).collect() })
    }
}

fn endpoint(endpoint: &k8s_openapi::api::discovery::v1::Endpoint) -> EndpointFacts {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    // Who says nothing is ready (`discovery/v1 EndpointConditions`).
    let (ready, serving) = (conditions.ready.unwrap_or(true), conditions.serving);
    let state = match (ready, serving.unwrap_or(ready), conditions.terminating.unwrap_or(false)) {
        (true, _, _) => EndpointState::Ready,
        (false, true, true) => EndpointState::Leaving,
        (false, _, _) => EndpointState::NotReady,
    };
    EndpointFacts {
        addresses: endpoint.addresses.iter().filter_map(|text| text.parse().ok()).collect(),
        hostname: endpoint.hostname.clone().filter(|name| !name.is_empty()),
        node: endpoint.node_name.clone(),
        state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn facts(spec: Value) -> Option<ServiceFacts> {
        let service = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
        ServiceFacts::of(&serde_json::from_value(service).unwrap())
    }

    #[test]
    fn a_service_is_addressed_headless_or_another_name() {
        let sort = |spec| facts(spec).map(|facts| facts.sort);

        let address = Ipv4Addr::new(127, 78, 1, 2);
        assert_eq!(sort(json!({"clusterIP": "127.78.1.2"})), Some(ServiceSort::Addressed { address }));
        assert_eq!(sort(json!({"clusterIP": "None"})), Some(ServiceSort::Headless));
        let target = "example.com".to_owned();
        assert_eq!(
            sort(json!({"type": "ExternalName", "externalName": "Example.com."})),
            Some(ServiceSort::Alias { target })
        );
    }

    #[test]
    fn a_service_that_cannot_be_listened_for_is_left_out() {
        assert_eq!(facts(json!({"clusterIP": "10.96.0.1"})), None);
        assert_eq!(facts(json!({"clusterIP": ""})), None);
        let foreign = json!({"metadata": {"labels": {OTHER_PROXY_LABEL: "mesh"}}, "spec": {"clusterIP": "127.78.1.2"}});
        assert_eq!(ServiceFacts::of(&serde_json::from_value(foreign).unwrap()), None);
    }

    #[test]
    fn clients_stay_as_long_as_the_service_says_and_three_hours_where_it_does_not() {
        let affinity = |spec| facts(spec).unwrap().affinity;

        assert_eq!(affinity(json!({"clusterIP": "None"})), None);
        assert_eq!(
            affinity(json!({"clusterIP": "None", "sessionAffinity": "ClientIP"})),
            Some(Duration::from_secs(10_800))
        );
        let config = json!({"clientIP": {"timeoutSeconds": 7}});
        assert_eq!(
            affinity(json!({"clusterIP": "None", "sessionAffinity": "ClientIP", "sessionAffinityConfig": config})),
            Some(Duration::from_secs(7))
        );
    }

    #[test]
    fn ports_of_protocols_that_are_not_forwarded_are_left_out() {
        let ports = json!([{"port": 53, "protocol": "UDP", "name": "dns", "nodePort": 30_053}, {"port": 1, "protocol": "SCTP"}]);

        let facts = facts(json!({"clusterIP": "None", "ports": ports})).unwrap();

        let dns = ServicePort { name: "dns".into(), transport: Transport::Udp, port: 53, node_port: Some(30_053) };
        assert_eq!(facts.ports, [dns]);
    }

    #[test]
    fn addresses_of_the_loopback_that_others_gave_it_are_listened_on() {
        let service = json!({
            "spec": {"clusterIP": "127.78.1.2", "externalIPs": ["127.9.9.9", "203.0.113.1"]},
            "status": {"loadBalancer": {"ingress": [{"ip": "127.8.8.8"}, {"ip": "127.8.8.9", "ipMode": "Proxy"}]}},
        });

        let facts = ServiceFacts::of(&serde_json::from_value(service).unwrap()).unwrap();

        assert_eq!(facts.more_addresses, [Ipv4Addr::new(127, 9, 9, 9), Ipv4Addr::new(127, 8, 8, 8)]);
    }

    #[test]
    fn an_endpoint_is_ready_unless_it_says_otherwise() {
        let state = |conditions: Value| {
            let slice =
                json!({"addressType": "IPv4", "endpoints": [{"addresses": ["127.77.0.1"], "conditions": conditions}]});
            SliceFacts::of(&serde_json::from_value(slice).unwrap()).unwrap().endpoints[0].state
        };

        assert_eq!(state(json!({})), EndpointState::Ready);
        assert_eq!(state(json!({"ready": false})), EndpointState::NotReady);
        assert_eq!(state(json!({"ready": false, "serving": true, "terminating": true})), EndpointState::Leaving);
        assert_eq!(state(json!({"ready": false, "serving": true})), EndpointState::NotReady);
    }

    #[test]
    fn slices_of_other_families_are_left_out() {
        let slice = json!({"addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}]});
        assert_eq!(SliceFacts::of(&serde_json::from_value(slice).unwrap()), None);
    }
}
