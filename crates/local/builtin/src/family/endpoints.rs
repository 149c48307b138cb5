//! `Endpoints` and `EndpointSlice`.

use serde_json::{Value, json};

use crate::value::{default, list_mut};

/// Protocols of `Endpoints` ports.
pub(crate) fn endpoints_defaults(endpoints: &mut Value) {
    for subset in list_mut(endpoints, "subsets") {
        for port in list_mut(subset, "ports") {
            default(port, "protocol", "TCP");
        }
    }
}

/// Names and protocols of slice ports.
pub(crate) fn slice_defaults(slice: &mut Value) {
    for port in list_mut(slice, "ports") {
        if port.get("name").is_none_or(Value::is_null) {
            port["name"] = json!("");
        }
        default(port, "protocol", "TCP");
    }
}
