use serde_json::{from_value, json};

use super::*;

fn reference(value: Value) -> SourceReference {
    from_value(value).unwrap()
}

fn values(source: &AddressSource) -> Vec<&str> {
    match source {
        AddressSource::Found { addresses, .. } => addresses.iter().map(|address| address.value.as_str()).collect(),
        AddressSource::Gone => panic!("gone"),
    }
}

fn service() -> Value {
    json!({
        "metadata": { "name": "web", "namespace": "shop", "resourceVersion": "7" },
        "spec": {
            "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::7"],
            "externalIPs": ["198.51.100.1"], "externalName": "Elsewhere.Example.net.",
        },
        "status": { "loadBalancer": { "ingress": [
            { "ip": "203.0.113.1" }, { "ip": "2001:DB8:0::1" }, { "ip": "203.0.113.1" }, { "hostname": "lb.example.net" },
        ] } },
    })
}

#[test]
fn each_address_type_of_a_service_is_read_from_its_own_field() {
    for (kind, expected) in [
        ("LoadBalancerIP", vec!["203.0.113.1", "2001:db8::1"]),
        ("LoadBalancerHostname", vec!["lb.example.net"]),
        ("ExternalIP", vec!["198.51.100.1"]),
        ("ExternalName", vec!["elsewhere.example.net"]),
        ("ClusterIP", vec!["10.96.0.7", "fd00::7"]),
    ] {
        let reference = reference(json!({ "service": { "name": "web", "addressType": kind } }));

        let source = addresses(&reference, &service(), &[]).unwrap();

        assert_eq!(values(&source), expected, "{kind}");
    }
}

#[test]
fn a_headless_service_has_no_address() {
    let reference = reference(json!({ "service": { "name": "web", "addressType": "ClusterIP" } }));
    let headless = json!({ "metadata": {}, "spec": { "clusterIP": "None", "clusterIPs": ["None"] } });

    assert!(values(&addresses(&reference, &headless, &[]).unwrap()).is_empty());
}

#[test]
fn a_service_is_told_by_default_by_its_load_balancer_and_carries_its_version() {
    let reference = reference(json!({ "service": { "name": "web" } }));

    let source = addresses(&reference, &service(), &[]).unwrap();

    assert!(matches!(&source, AddressSource::Found { version, .. } if version == "7"));
    assert_eq!(values(&source), ["203.0.113.1", "2001:db8::1"]);
}

#[test]
fn an_ingress_gives_addresses_and_names() {
    let reference = reference(json!({ "ingress": { "name": "web" } }));

    let source = addresses(&reference, &service(), &[]).unwrap();

    assert_eq!(values(&source), ["203.0.113.1", "2001:db8::1", "lb.example.net"]);
}

#[test]
fn a_node_gives_the_addresses_of_the_type_asked_for() {
    let node = json!({ "status": { "addresses": [
        { "type": "InternalIP", "address": "10.0.0.1" }, { "type": "ExternalIP", "address": "198.51.100.9" },
        { "type": "Hostname", "address": "n1" },
    ] } });
    for (kind, expected) in [("InternalIP", "10.0.0.1"), ("ExternalIP", "198.51.100.9"), ("Hostname", "n1")] {
        let reference = reference(json!({ "node": { "name": "n1", "addressType": kind } }));

        assert_eq!(values(&addresses(&reference, &node, &[]).unwrap()), [expected]);
    }
}

#[test]
fn a_route_has_the_addresses_of_its_gateways() {
    let route = json!({
        "metadata": { "namespace": "shop", "resourceVersion": "3" },
        "spec": { "parentRefs": [
            { "name": "edge", "namespace": "infra" }, { "name": "inner" }, { "kind": "Service", "name": "mesh" },
            { "name": "inner", "sectionName": "https" },
        ] },
    });
    let gateway = json!({ "metadata": { "resourceVersion": "9" }, "status": { "addresses": [
        { "type": "IPAddress", "value": "203.0.113.5" }, { "type": "Hostname", "value": "edge.example.net" },
    ] } });

    let reference = reference(json!({ "httpRoute": { "name": "web" } }));

    let parents = parents(&reference, &route, Some("shop"));
    let source = addresses(&reference, &route, &[gateway]).unwrap();

    let keys: Vec<_> = parents.iter().map(|parent| (parent.namespace.as_deref(), parent.name.as_str())).collect();
    assert_eq!(keys, [(Some("infra"), "edge"), (Some("shop"), "inner")]);
    assert_eq!(parents[0].resource.api_version, "gateway.networking.k8s.io/v1");
    assert_eq!(values(&source), ["203.0.113.5", "edge.example.net"]);
    assert!(matches!(source, AddressSource::Found { version, .. } if version == "3.9"));
}

#[test]
fn two_sources_are_none() {
    let both = reference(json!({ "ingress": { "name": "a" }, "gateway": { "name": "b" } }));

    let problem = addresses(&both, &json!({}), &[]).unwrap_err();

    assert_eq!(problem.message, "set exactly one of service, ingress, httpRoute, gateway and node in sourceRef");
}

#[test]
fn finding_36_a_source_of_another_namespace_is_granted_by_what_stands_beside_it() {
    let source = NamedObject { kind: "Service", namespace: Some("shop"), name: "web" };
    let grant = |from: Value, to: Value| vec![json!({ "spec": { "from": [from], "to": [to] } })];
    let from = |namespace: &str| json!({ "group": "networking.cloudflare-operator.io", "kind": "DNSRecord", "namespace": namespace });
    let service = json!({ "group": "", "kind": "Service" });

    assert!(granted(&grant(from("dns"), service.clone()), "dns", &source));
    assert!(granted(&grant(from("dns"), json!({ "group": "", "kind": "Service", "name": "web" })), "dns", &source));
    for refused in [
        vec![],
        grant(from("other"), service.clone()),
        grant(json!({ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "dns" }), service),
        grant(from("dns"), json!({ "group": "", "kind": "Service", "name": "db" })),
        grant(from("dns"), json!({ "group": "networking.k8s.io", "kind": "Ingress" })),
        vec![json!({ "spec": {} })],
    ] {
        assert!(!granted(&refused, "dns", &source), "{refused:?}");
    }
}
