use portolan_schema::crd::{Judge, ObjectScope};
use serde_json::{Value, json};

use super::*;

const GROUP: &str = "networking.cloudflare-operator.io";

fn judge() -> Judge {
    Judge::new(table().iter().map(|row| serde_json::to_value(row.crd()).unwrap()))
}

fn applied(manifest: &Value) -> Result<Value, Vec<String>> {
    judge().applied(manifest)
}

fn manifest(kind: &str, spec: &Value) -> Value {
    json!({ "apiVersion": format!("{GROUP}/v1alpha2"), "kind": kind, "metadata": { "name": "x" }, "spec": spec })
}

#[test]
fn an_api_server_takes_every_definition_without_a_warning() {
    assert_eq!(judge().complaints(), Vec::<String>::new());
}

#[test]
fn every_rule_comes_with_a_sentence() {
    for row in table() {
        let definition = judge().parsed(row.kind).unwrap();
        for version in &definition.versions {
            let text = version.schema_json.to_string();
            let rules = text.matches("\"rule\"").count();
            let told = text.matches("\"message\":\"").count();
            assert!(told >= rules, "{}: a rule without a sentence", row.kind);
        }
    }
}

#[test]
fn the_table_says_what_the_definitions_say() {
    for row in table() {
        let definition = judge().parsed(row.kind).unwrap();

        assert_eq!((definition.names.kind.as_str(), definition.names.plural.as_str()), (row.kind, row.plural));
        assert_eq!(definition.scope == ObjectScope::Namespaced, row.namespaced, "{}", row.kind);
        assert!(definition.versions.iter().all(|version| version.subresources.status), "{}", row.kind);
    }
}

#[test]
fn short_names_and_columns_are_those_that_users_know() {
    let shown: Vec<String> = table().iter().map(|row| judge().columns(row.kind).unwrap()).collect();

    assert_eq!(
        shown,
        [
            "CloudflareCredentials [cfcreds]: Account ID, Auth Type, Default, Validated, State, Age",
            "CloudflareDomain [cfdomain,cfdom]: Domain, Zone ID, Default, State, Age",
            "Tunnel []: TunnelID, State, Age",
            "ClusterTunnel []: TunnelID, State, Age",
            "VirtualNetwork [vnet]: VNetID, Default, State, Age",
            "NetworkRoute [netroute]: Network, TunnelID, VNetID, State, Age",
            "DNSRecord [dnsrec]: Type, Name, Content, Resolved, Proxied, State, Age",
            "AccessGroup [accessgrp]: GroupID, State, Age",
            "GatewayConfiguration [gwconfig]: State, Age",
        ]
    );
}

#[test]
fn every_field_is_described_and_none_takes_null() {
    for row in table() {
        for (path, property) in judge().fields(row.kind) {
            let known = path.starts_with("status.conditions[]");
            assert!(known || property.get("description").is_some(), "{} {path} has no description", row.kind);
            let either = property.get("x-kubernetes-int-or-string").is_some();
            assert!(either || property.get("nullable").is_none(), "{} {path}", row.kind);
            assert_ne!(property.get("default"), Some(&json!([])), "{} {path}", row.kind);
        }
    }
}

#[test]
fn conditions_are_owned_one_by_one() {
    for row in table() {
        let judge = judge();
        let conditions = judge
            .definition(row.kind)
            .unwrap()
            .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions")
            .unwrap();

        assert_eq!(conditions["x-kubernetes-list-type"], json!("map"), "{}", row.kind);
        assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]), "{}", row.kind);
    }
}

#[test]
fn defaults_are_those_that_manifests_rely_on() {
    let record = applied(&manifest(
        "DNSRecord",
        &json!({ "name": "a.example.com", "sourceRef": { "service": { "name": "web" }, "node": null }, "cloudflare": {} }),
    ))
    .unwrap();
    let credentials =
        applied(&manifest("CloudflareCredentials", &json!({ "accountId": "a1", "secretRef": { "name": "cf" } })))
            .unwrap();
    let route = applied(&manifest(
        "NetworkRoute",
        &json!({ "network": "10.0.0.0/8", "tunnelRef": { "name": "t" }, "cloudflare": {} }),
    ))
    .unwrap();
    let domain = applied(&manifest("CloudflareDomain", &json!({ "domain": "example.com", "ssl": {} }))).unwrap();

    assert_eq!(
        record["spec"],
        json!({
            "name": "a.example.com", "ttl": 1, "proxied": false, "addressSelection": "First",
            "sourceDeletionPolicy": "Delete", "cloudflare": {},
            "sourceRef": { "service": { "name": "web", "addressType": "LoadBalancerIP" } },
        })
    );
    assert_eq!(credentials["spec"]["authType"], json!("apiToken"));
    assert_eq!(credentials["spec"]["isDefault"], json!(false));
    assert_eq!(
        credentials["spec"]["secretRef"],
        json!({
            "name": "cf", "apiTokenKey": "CLOUDFLARE_API_TOKEN",
            "apiKeyKey": "CLOUDFLARE_API_KEY", "emailKey": "CLOUDFLARE_EMAIL",
        })
    );
    assert_eq!(route["spec"]["tunnelRef"]["kind"], json!("ClusterTunnel"));
    assert_eq!(
        domain["spec"]["ssl"],
        json!({
            "mode": "full", "minTLSVersion": "1.2", "tls13": "on", "alwaysUseHttps": true,
            "automaticHttpsRewrites": true, "opportunisticEncryption": true,
        })
    );
}

#[test]
fn manifests_of_the_older_operator_are_accepted_as_they_are() {
    let inline = json!({ "accountId": "<Cloudflare account ID>", "domain": "<your-domain.com>", "secret": "cloudflare-secrets" });
    let record = |spec: Value| {
        let mut spec = spec;
        spec["cloudflare"] = inline.clone();
        manifest("DNSRecord", &spec)
    };
    let mut all = vec![
        record(
            json!({ "name": "app.example.com", "type": "CNAME", "content": "tunnel-id.example.net", "proxied": true,
            "ttl": 1, "comment": "Managed by an operator" }),
        ),
        record(json!({ "name": "www", "type": "A", "content": "203.0.113.50", "ttl": 300, "proxied": true })),
        record(json!({ "name": "@", "type": "MX", "content": "mail.example.com", "priority": 10, "ttl": 3600 })),
        record(
            json!({ "name": "_verify", "type": "TXT", "content": "token-12345", "ttl": 3600, "tags": ["verification"] }),
        ),
        record(json!({ "name": "_ldap._tcp", "type": "SRV", "content": "ldap.example.com", "priority": 10,
            "data": { "service": "ldap", "proto": "tcp", "weight": 5, "port": 389, "target": "ldap.example.com" } })),
        record(
            json!({ "name": "ha.example.com", "sourceRef": { "service": { "name": "ha", "addressType": "LoadBalancerIP" } },
            "addressSelection": "All", "sourceDeletionPolicy": "Orphan" }),
        ),
        record(
            json!({ "name": "node1.example.com", "sourceRef": { "node": { "name": "n1", "addressType": "ExternalIP" } } }),
        ),
        manifest(
            "VirtualNetwork",
            &json!({ "name": "Production Network", "comment": "all of it", "isDefaultNetwork": false,
            "cloudflare": inline }),
        ),
        manifest(
            "NetworkRoute",
            &json!({ "network": "10.244.0.0/16", "comment": "pods",
            "tunnelRef": { "kind": "Tunnel", "name": "t", "namespace": "production" },
            "virtualNetworkRef": { "name": "production-vnet" }, "cloudflare": inline }),
        ),
        manifest("Tunnel", &json!({ "existingTunnel": { "id": "<tunnel-uuid>" }, "cloudflare": inline })),
        manifest(
            "ClusterTunnel",
            &json!({ "newTunnel": { "name": "shared" }, "enableWarpRouting": true,
            "deployPatch": "spec:\n  replicas: 2\n", "cloudflare": inline }),
        ),
        manifest(
            "CloudflareCredentials",
            &json!({ "accountId": "1234567890abcdef", "accountName": "Production",
            "authType": "globalAPIKey", "defaultDomain": "example.com", "isDefault": true,
            "secretRef": { "name": "k", "namespace": "cloudflare-operator-system", "apiKeyKey": "K", "emailKey": "E" } }),
        ),
        manifest(
            "CloudflareDomain",
            &json!({ "domain": "example.com", "credentialsRef": { "name": "default" },
            "zoneId": "z1", "isDefault": true, "cache": { "browserTTL": 14400, "tieredCache": { "topology": "generic" } },
            "security": { "level": "under_attack", "waf": { "enabled": true } },
            "performance": { "minify": { "css": true }, "polish": "lossy", "zeroRTT": false } }),
        ),
    ];
    let mut older = manifest(
        "ClusterTunnel",
        &json!({ "newTunnel": { "name": "shared" }, "existingTunnel": {}, "size": 2,
        "image": "cloudflare/cloudflared:2025.4.0", "nodeSelectors": { "disk": "ssd" },
        "tolerations": [{ "key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5 }],
        "cloudflare": { "domain": "example.com", "secret": "s", "email": "a@example.com", "accountName": "<name>",
            "CLOUDFLARE_API_TOKEN": "CLOUDFLARE_API_TOKEN", "CLOUDFLARE_TUNNEL_CREDENTIAL_FILE": "F" } }),
    );
    older["apiVersion"] = json!(format!("{GROUP}/v1alpha1"));
    all.push(older);

    for manifest in all {
        assert!(applied(&manifest).is_ok(), "{:?}\n{manifest:#}", applied(&manifest));
    }
}

#[test]
fn bad_input_is_refused_at_apply_time_with_what_to_change() {
    let record = |spec: Value| {
        let mut spec = spec;
        spec["name"] = spec.get("name").cloned().unwrap_or_else(|| json!("a.example.com"));
        spec["cloudflare"] = json!({});
        ("DNSRecord", spec)
    };
    let route = |spec: Value| {
        let mut all = json!({ "network": "10.0.0.0/8", "tunnelRef": { "name": "t" }, "cloudflare": {} });
        for (key, value) in spec.as_object().unwrap() {
            all[key] = value.clone();
        }
        ("NetworkRoute", all)
    };
    for ((kind, spec), sentence) in [
        (record(json!({ "type": "A", "content": "a.example.net" })), "content of an A record is an IPv4 address"),
        (record(json!({ "type": "A", "content": "2001:db8::1" })), "content of an A record is an IPv4 address"),
        (record(json!({ "type": "AAAA", "content": "192.0.2.1" })), "content of an AAAA record is an IPv6 address"),
        (record(json!({ "type": "CNAME", "content": "192.0.2.1" })), "for an address use type A or AAAA"),
        (
            record(json!({ "type": "CNAME", "content": "https://example.com/" })),
            "is a host name, as target.example.com",
        ),
        (record(json!({ "type": "MX", "content": "mail.example.com" })), "an MX record needs a priority: set priority"),
        (record(json!({ "type": "TXT", "content": "x", "proxied": true })), "proxied is for A, AAAA and CNAME"),
        (record(json!({ "type": "A", "content": "192.0.2.1", "ttl": 0 })), "spec.ttl: Invalid value: 0"),
        (record(json!({ "type": "A", "content": "192.0.2.1", "ttl": 7 })), "ttl is 1 for automatic, or 60 to 86400"),
        (record(json!({ "type": "A", "content": "192.0.2.1", "ttl": 90_000 })), "ttl is 1 for automatic"),
        (record(json!({ "type": "PTR", "content": "x" })), "spec.type: Unsupported value: \"PTR\""),
        (record(json!({ "type": "A" })), "a record needs a value: set content, data or sourceRef"),
        (record(json!({ "content": "192.0.2.1" })), "set type: it can only be left out with sourceRef"),
        (
            record(json!({ "type": "A", "content": "192.0.2.1", "sourceRef": { "node": { "name": "n" } } })),
            "content and sourceRef exclude each other",
        ),
        (record(json!({ "sourceRef": {} })), "set exactly one of service, ingress, httpRoute, gateway and node"),
        (
            record(json!({ "sourceRef": { "node": { "name": "n" }, "gateway": { "name": "g" } } })),
            "set exactly one of service, ingress, httpRoute, gateway and node",
        ),
        (
            record(json!({ "name": "https://a.example.com", "type": "A", "content": "192.0.2.1" })),
            "name is the full name",
        ),
        (record(json!({ "name": "a b.example.com", "type": "A", "content": "192.0.2.1" })), "name is the full name"),
        (record(json!({ "name": "", "type": "A", "content": "192.0.2.1" })), "spec.name: Invalid value"),
        (record(json!({ "type": "A", "content": "192.0.2.1", "priority": 70_000 })), "spec.priority: Invalid value"),
        (record(json!({ "type": "A", "content": "192.0.2.1", "comment": "c".repeat(101) })), "spec.comment: Too long"),
        (
            record(json!({ "type": "SRV", "data": { "port": 1, "target": "a.example.com" } })),
            "SRV and URI records need a priority",
        ),
        (
            record(json!({ "type": "SRV", "priority": 1, "data": { "port": 1 } })),
            "data of an SRV record needs port and target",
        ),
        (record(json!({ "type": "CAA", "data": { "flags": 0 } })), "data of a CAA record needs tag and value"),
        (record(json!({ "type": "TLSA", "data": { "usage": 3 } })), "needs certificate"),
        (record(json!({ "type": "SSHFP", "data": { "algorithm": 1 } })), "data of an SSHFP record needs fingerprint"),
        (record(json!({ "type": "DS", "data": { "keyTag": 1 } })), "data of a DS record needs digest"),
        (record(json!({ "type": "DNSKEY", "data": { "flags": 257 } })), "data of a DNSKEY record needs publicKey"),
        (
            record(json!({ "type": "NAPTR", "data": { "order": 1 } })),
            "data of a NAPTR record needs replacement or regex",
        ),
        (record(json!({ "type": "URI", "priority": 1, "data": { "weight": 1 } })), "data of a URI record needs target"),
        (
            record(json!({ "type": "LOC", "data": { "latDegrees": 1 } })),
            "needs latDirection (N or S) and longDirection (E or W)",
        ),
        (record(json!({ "type": "A", "contents": "192.0.2.1" })), "unknown field spec.contents"),
        (route(json!({ "network": "999.0.0.0/99" })), "network is an address with a prefix length"),
        (route(json!({ "network": "10.0.0.0" })), "network is an address with a prefix length"),
        (route(json!({ "network": "10.0.0.1/8" })), "network has bits set behind its prefix length"),
        (route(json!({ "network": "fd00::1/48" })), "network has bits set behind its prefix length"),
        (route(json!({ "virtualNetworkRef": {} })), "set exactly one of name, cloudflareId and cloudflareName"),
        (
            route(json!({ "virtualNetworkRef": { "name": "a", "cloudflareId": "b" } })),
            "set exactly one of name, cloudflareId and cloudflareName",
        ),
        (route(json!({ "tunnelRef": { "kind": "Ingress", "name": "t" } })), "spec.tunnelRef.kind: Unsupported value"),
        (route(json!({ "comment": "c".repeat(501) })), "spec.comment: Too long"),
        (("VirtualNetwork", json!({ "comment": "c".repeat(501), "cloudflare": {} })), "spec.comment: Too long"),
        (("VirtualNetwork", json!({ "name": "x" })), "spec.cloudflare: Required value"),
        (
            ("CloudflareDomain", json!({ "domain": "https://example.com" })),
            "domain is the name of a zone, as example.com",
        ),
        (("CloudflareDomain", json!({ "domain": "*.example.com" })), "domain is the name of a zone, as example.com"),
        (("CloudflareDomain", json!({ "domain": "example" })), "domain is the name of a zone, as example.com"),
        (
            ("CloudflareDomain", json!({ "domain": "example.com", "ssl": { "mode": "on" } })),
            "spec.ssl.mode: Unsupported value",
        ),
        (
            ("CloudflareCredentials", json!({ "accountId": "", "secretRef": { "name": "s" } })),
            "spec.accountId: Invalid value",
        ),
        (("CloudflareCredentials", json!({ "accountId": "a" })), "spec.secretRef: Required value"),
        (
            ("Tunnel", json!({ "cloudflare": {} })),
            "set either newTunnel with a name, or existingTunnel with an id or name",
        ),
        (
            (
                "ClusterTunnel",
                json!({ "newTunnel": { "name": "a" }, "existingTunnel": { "name": "b" }, "cloudflare": {} }),
            ),
            "set either newTunnel with a name, or existingTunnel with an id or name",
        ),
        (
            ("Tunnel", json!({ "newTunnel": { "name": "a" }, "protocol": "tcp", "cloudflare": {} })),
            "spec.protocol: Unsupported value",
        ),
    ] {
        let said = judge().refusals(&manifest(kind, &spec));
        assert!(said.contains(sentence), "{kind} {spec}\nexpected: {sentence}\nsaid: {said}");
    }
}

#[test]
fn good_input_of_unusual_form_is_accepted() {
    for (kind, spec) in [
        ("DNSRecord", json!({ "name": "*.example.com", "type": "A", "content": "192.0.2.1", "cloudflare": {} })),
        (
            "DNSRecord",
            json!({ "name": "bücher.example", "type": "CNAME", "content": "Ünï.example.", "cloudflare": {} }),
        ),
        ("DNSRecord", json!({ "name": "example.com", "type": "MX", "content": ".", "priority": 0, "cloudflare": {} })),
        (
            "DNSRecord",
            json!({ "name": "example.com", "type": "CAA", "content": "0 issue \"ca.example\"", "cloudflare": {} }),
        ),
        (
            "DNSRecord",
            json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1", "ttl": 30, "cloudflare": {} }),
        ),
        (
            "DNSRecord",
            json!({ "name": "a.example.com", "type": "NAPTR", "cloudflare": {},
                "data": { "flags": "S", "service": "SIP+D2U", "replacement": "b.example.com" } }),
        ),
        ("NetworkRoute", json!({ "network": "fd00::/48", "tunnelRef": { "name": "t" }, "cloudflare": {} })),
        (
            "NetworkRoute",
            json!({ "network": "10.0.0.7/32", "tunnelRef": { "kind": "Tunnel", "name": "t" }, "cloudflare": {},
                "virtualNetworkRef": { "cloudflareName": "corp" } }),
        ),
        ("CloudflareDomain", json!({ "domain": "bücher.example" })),
        ("CloudflareDomain", json!({ "domain": "xn--p1ai.xn--p1ai" })),
    ] {
        assert_eq!(judge().refusals(&manifest(kind, &spec)), "accepted", "{kind} {spec}");
    }
}

#[test]
fn what_kinds_report_fits_their_schemas() {
    let problem = portolan_core::Problem::invalid(portolan_core::reasons::INVALID_CONFIG, "change it");
    let mut visitor = StatusCheck { problem, seen: 0 };

    each(&mut visitor);

    assert_eq!(visitor.seen, table().len());
}

struct StatusCheck {
    problem: portolan_core::Problem,
    seen: usize,
}

impl Visitor for StatusCheck {
    fn visit<K: Kind>(&mut self) {
        let spec = match K::KIND {
            "CloudflareCredentials" => json!({ "accountId": "a1", "secretRef": { "name": "s" } }),
            "CloudflareDomain" => json!({ "domain": "example.com", "performance": {} }),
            "NetworkRoute" => json!({ "network": "10.0.0.0/8", "tunnelRef": { "name": "t" }, "cloudflare": {} }),
            "DNSRecord" => json!({ "name": "a.example.com", "type": "A", "content": "192.0.2.1", "cloudflare": {} }),
            "VirtualNetwork" => json!({ "cloudflare": {} }),
            "GatewayConfiguration" => json!({ "settings": {}, "cloudflare": {} }),
            "AccessGroup" => json!({ "include": [{ "everyone": true }], "cloudflare": {} }),
            _ => json!({ "existingTunnel": { "name": "t" }, "cloudflare": {} }),
        };
        let mut manifest = manifest(K::KIND, &spec);
        let object: K = serde_json::from_value(manifest.clone()).unwrap();
        for (problem, checked_at) in [(None, Some("2026-01-01T00:00:00Z")), (Some(&self.problem), None)] {
            let view = crate::kind::StatusView { resolved: None, present: &[], problem, checked_at };
            manifest["status"] = object.status(&view);
            assert!(applied(&manifest).is_ok(), "{:?}", applied(&manifest));
        }
        self.seen += 1;
    }
}
