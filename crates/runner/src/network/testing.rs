//! Services and slices for tests: specifications as the API has them → a table.

use serde_json::{Value, json};

use super::service::{ServiceFacts, ServiceName, SliceFacts};
use super::table::ServiceTable;

pub(crate) fn service_name(namespace: &str, name: &str) -> ServiceName {
    ServiceName { namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Puts a Service of the namespace `shop`.
pub(crate) fn put_service(table: &mut ServiceTable, name: &str, spec: &Value) {
    let service = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
    let facts = ServiceFacts::of(&serde_json::from_value(service).unwrap());
    table.put_service(&service_name("shop", name), facts);
}

/// Puts a slice of a Service of that namespace.
pub(crate) fn put_slice(table: &mut ServiceTable, service: &str, name: &str, slice: &Value) -> Vec<ServiceName> {
    let mut slice = slice.clone();
    slice["addressType"] = json!("IPv4");
    let facts = SliceFacts::of(&serde_json::from_value(slice).unwrap()).unwrap();
    table.put_slice("shop", name, Some((service_name("shop", service), facts)))
}
