use portolan_schema::crd::{Judge, ObjectScope};
use serde_json::{Value, json};

use super::*;
use crate::names::API_VERSION;
use crate::testing::zone_spec;

fn judge() -> Judge {
    Judge::new(crds().iter().map(|definition| serde_json::to_value(definition).unwrap()))
}

fn kinds() -> Vec<String> {
    crds().into_iter().map(|definition| definition.spec.names.kind).collect()
}

fn manifest(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "x", "namespace": "y"}, "spec": spec})
}

fn zone(more: Value) -> (&'static str, Value) {
    let mut spec = zone_spec();
    for (name, value) in more.as_object().unwrap() {
        match (spec.get_mut(name), value) {
            (Some(Value::Object(there)), Value::Object(more)) => there.extend(more.clone()),
            _ => drop(spec.as_object_mut().unwrap().insert(name.clone(), value.clone())),
        }
    }
    ("DNSZone", spec)
}

fn instance(more: Value) -> (&'static str, Value) {
    let mut spec = json!({"clusterRef": "main", "role": "primary"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ("Bind9Instance", spec)
}

#[test]
fn an_api_server_takes_every_definition_without_a_warning() {
    assert_eq!(judge().complaints(), Vec::<String>::new());
}

#[test]
fn short_names_and_columns_are_those_that_users_know() {
    let shown: Vec<String> = kinds().iter().map(|kind| judge().columns(kind).unwrap()).collect();

    assert_eq!(
        shown,
        [
            "ClusterBind9Provider [cb9p,cb9ps]: Version, Primary, Secondary, Ready",
            "Bind9Cluster [b9c,b9cs]: Version, Primary, Secondary, Ready",
            "Bind9Instance [b9,b9s]: Cluster, Role, Replicas, Zones, Ready",
            "DNSZone [zone,zones,dz,dzs]: Zone, Provider, Records, Instances, TTL, Ready",
        ]
    );
}

#[test]
fn plurals_scopes_and_statuses_are_those_of_the_older_operator() {
    let known = |kind: &String| {
        let definition = judge().parsed(kind).unwrap();
        assert!(definition.versions.iter().all(|version| version.subresources.status), "{kind}");
        assert_eq!(definition.versions.len(), 1);
        (definition.names.plural, definition.scope)
    };

    let all: Vec<(String, ObjectScope)> = kinds().iter().map(known).collect();

    let plurals: Vec<&str> = all.iter().map(|(plural, _)| plural.as_str()).collect();
    assert_eq!(plurals, ["clusterbind9providers", "bind9clusters", "bind9instances", "dnszones"]);
    assert!(all.iter().all(|(plural, scope)| (*scope == ObjectScope::Cluster) == (plural == "clusterbind9providers")));
}

#[test]
fn every_field_is_described_and_none_has_a_default() {
    for kind in kinds() {
        for (path, property) in judge().fields(&kind) {
            let known = path.starts_with("status.conditions[]");
            assert!(known || property.get("description").is_some(), "{kind} {path} has no description");
            assert!(known || property.get("default").is_none(), "{kind} {path} has a default");
            assert!(property.get("nullable").is_none(), "{kind} {path}");
        }
    }
}

#[test]
fn definitions_fit_into_the_annotation_of_a_plain_apply() {
    for definition in crds() {
        let bytes = serde_json::to_string(&definition).unwrap().len();
        assert!(bytes < 100_000, "{} has {bytes} bytes", definition.spec.names.kind);
    }
}

#[test]
fn bad_input_is_refused_with_the_field_that_it_is_in() {
    for ((kind, spec), sentence) in [
        (zone(json!({"zoneName": "example.com."})), "spec.zoneName"),
        (zone(json!({"zoneName": "192.0.2.1"})), "write the zone's name"),
        (zone(json!({"zoneName": "a..b"})), "spec.zoneName"),
        (zone(json!({"zoneName": "-a"})), "spec.zoneName"),
        (zone(json!({"zoneName": "a/b.example"})), "spec.zoneName"),
        (zone(json!({"soaRecord": null})), "spec.soaRecord"),
        (zone(json!({"soaRecord": {"primaryNs": "ns1.example.com"}})), "primaryNs"),
        (zone(json!({"soaRecord": {"adminEmail": "admin@example.com."}})), "adminEmail"),
        (zone(json!({"soaRecord": {"serial": 4_294_967_296_i64}})), "serial"),
        (zone(json!({"soaRecord": {"refresh": 0}})), "refresh"),
        (zone(json!({"ttl": -1})), "spec.ttl"),
        (zone(json!({"nameServers": [{"hostname": "ns1.example.com"}]})), "hostname"),
        (zone(json!({"nameServers": [{"hostname": "ns1.example.com.", "ipv4Address": "300.1.1.1"}]})), "ipv4Address"),
        (zone(json!({"dnssecPolicy": "-x"})), "dnssecPolicy"),
        (
            zone(json!({"recordsFrom": [{"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]})),
            "operator",
        ),
        (zone(json!({"recordsFrom": [{}]})), "selector"),
        (instance(json!({"role": "Primary"})), "spec.role"),
        (instance(json!({"replicas": 101})), "spec.replicas"),
        (instance(json!({"rndcKey": {"rotateAfter": "30m"}})), "rotateAfter"),
        (instance(json!({"rndcKey": {"secretRef": {}}})), "secretRef.name"),
        (instance(json!({"storage": {"storageType": "nfs"}})), "storageType"),
        (instance(json!({"version": "9.18; x"})), "version"),
        (instance(json!({"primaryServers": ["ns1"]})), "primaryServers"),
        (("Bind9Instance", json!({"role": "primary"})), "clusterRef"),
        (("Bind9Cluster", json!({"primary": {"replicas": -1}})), "replicas"),
        (("Bind9Cluster", json!({"primary": {"rndcKey": {"algorithm": "hmac-md5"}}})), "algorithm"),
        (("Bind9Cluster", json!({"namespace": "x"})), "unknown field"),
        (("ClusterBind9Provider", json!({"global": {"dnssec": {"signing": {"policy": "a b"}}}})), "policy"),
    ] {
        let said = judge().refusals(&manifest(kind, &spec));
        assert!(said.contains(sentence), "{kind} {spec}\nexpected: {sentence}\nsaid: {said}");
    }
}

fn common() -> Value {
    json!({
        "version": "9.18",
        "primary": {
            "replicas": 2, "labels": {"tier": "dns"}, "allowTransfer": ["10.0.0.0/8"],
            "service": {"annotations": {"a": "b"}, "spec": {"type": "LoadBalancer", "loadBalancerIP": "192.0.2.1"}},
            "rndcKey": {"autoRotate": true, "rotateAfter": "30d", "algorithm": "hmac-sha512",
                        "secret": {"metadata": {"name": "keys", "labels": {"a": "b"}}, "type": "Opaque", "stringData": {"secret": "x"}}},
        },
        "secondary": {"replicas": 1, "rndcSecretRef": {"name": "k", "algorithm": "hmac-sha1", "keyNameKey": "n", "secretKey": "s"}},
        "image": {"image": "internetsystemsconsortium/bind9:9.18", "imagePullPolicy": "Always", "imagePullSecrets": ["pull"]},
        "configMapRefs": {"namedConf": "a", "namedConfOptions": "b", "namedConfZones": "c"},
        "global": {
            "recursion": false, "allowQuery": ["any"], "allowTransfer": [], "forwarders": ["9.9.9.9"],
            "listenOn": ["any"], "listenOnV6": ["none"], "rndcSecretRef": {"name": "k"},
            "dnssec": {"validation": true, "signing": {
                "enabled": true, "policy": "default", "algorithm": "ECDSAP256SHA256", "kskLifetime": "365d",
                "zskLifetime": "90d", "nsec3": true, "nsec3Salt": "abcd", "nsec3Iterations": 0,
                "keysFrom": {"secretRef": {"name": "bindy-keys", "namespace": "x"}, "persistentVolume": {"resources": {}}},
                "autoGenerate": true, "exportToSecret": true}},
            "bindcarConfig": {"image": "i", "imagePullPolicy": "Always", "resources": {"limits": {"cpu": 1}}, "port": 8080,
                "serviceSpec": {"type": "NodePort"}, "logLevel": "debug", "envVars": [{"name": "A", "value": "b"}]},
        },
        "rndcSecretRefs": [{"name": "k"}], "acls": {"office": ["10.0.0.0/8"]},
        "volumes": [{"name": "v", "emptyDir": {}}], "volumeMounts": [{"name": "v", "mountPath": "/data/x"}],
    })
}

#[test]
fn manifests_of_the_older_operator_are_stored_as_they_are() {
    let mut provider = common();
    provider["namespace"] = json!("dns");
    for (kind, spec) in [
        ("Bind9Cluster", json!({})),
        ("Bind9Cluster", common()),
        ("ClusterBind9Provider", provider),
        instance(json!({})),
        instance(json!({
            "clusterRef": "", "role": "secondary", "replicas": 2, "version": "9.18", "primaryServers": ["10.0.0.1"],
            "config": common()["global"], "rndcKey": {"secretRef": {"name": "k"}},
            "storage": {"storageType": "persistentVolumeClaim", "emptyDir": {"medium": "Memory"},
                        "persistentVolumeClaim": {"claimName": "c", "storageClassName": "s", "size": "1Gi", "accessModes": ["ReadWriteOnce"]}},
        })),
        zone(json!({})),
        zone(json!({
            "zoneName": "_msdcs.Example.com", "ttl": 3600, "clusterRef": "main", "nameServerIps": {"ns1.example.com.": "192.0.2.1"},
            "nameServers": [{"hostname": "ns1.example.com.", "ipv4Address": "192.0.2.1", "ipv6Address": "2001:db8::1"}],
            "recordsFrom": [{"selector": {"matchLabels": {"zone": "example.com"}}}],
            "bind9InstancesFrom": [{"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}],
            "dnssecPolicy": "default",
        })),
    ] {
        let stored = judge().applied(&manifest(kind, &spec)).unwrap_or_else(|said| panic!("{kind} {spec}: {said:?}"));
        assert_eq!(stored["spec"], spec, "{kind}");
    }
}

#[test]
fn a_spec_that_was_read_is_written_as_it_was() {
    let cluster: Bind9ClusterSpec = serde_json::from_value(common()).unwrap();

    assert_eq!(serde_json::to_value(cluster).unwrap(), common());
}

#[test]
fn what_statuses_are_made_of_fits_their_definitions() {
    let zone_status = ZoneStatus {
        observed_generation: Some(1),
        records_count: Some(0),
        bind9_instances_count: Some(1),
        bind9_instances: vec![reference::InstanceReferenceWithStatus {
            status: reference::InstanceClaim::Configured,
            ..Default::default()
        }],
        secondary_ips: vec!["10.0.0.1".to_owned()],
        serial: Some(4_294_967_295),
        primaries: vec![ZoneOnServer { instance: "dns/a".to_owned(), lag: Some(0), ..ZoneOnServer::default() }],
        dnssec: Some(ZoneSigning::default()),
        ..ZoneStatus::default()
    };
    let (kind, spec) = zone(json!({}));
    let mut object = manifest(kind, &spec);
    object["status"] = serde_json::to_value(&zone_status).unwrap();

    assert_eq!(judge().applied(&object).unwrap()["status"], object["status"]);
}
