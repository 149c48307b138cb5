//! Manifests for tests.

use portolan_core::ObjectKey;
use serde_json::{Value, from_value, json};

use crate::kinds::{Bind9Instance, DNSZone};

/// A zone that any server could serve.
pub(crate) fn zone_spec() -> Value {
    json!({
        "zoneName": "example.com",
        "soaRecord": {
            "primaryNs": "ns1.example.net.", "adminEmail": "admin.example.com.", "serial": 1,
            "refresh": 3600, "retry": 600, "expire": 604_800, "negativeTtl": 300,
        },
    })
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("dns", name)
}

/// A zone, with some fields of its spec.
pub(crate) fn zone(namespace: &str, name: &str, more: Value) -> DNSZone {
    let mut spec = zone_spec();
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let metadata = json!({"namespace": namespace, "name": name, "uid": name, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"});
    from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}

/// An instance, with some fields of its spec, and labels.
pub(crate) fn instance(key: &ObjectKey, role: &str, labels: Value, more: Value) -> Bind9Instance {
    let mut spec = json!({"clusterRef": "", "role": role});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let metadata =
        json!({"namespace": key.namespace, "name": key.name, "uid": key.name, "generation": 1, "labels": labels});
    from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
}
