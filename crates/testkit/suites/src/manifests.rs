//! Manifests as users write them, and the names that every world begins with.

use serde_json::{Value, json};

/// API version of the job's kinds.
pub const API_VERSION: &str = "networking.cloudflare-operator.io/v1alpha2";
/// Where the operator's own objects are.
pub const OPERATOR_NAMESPACE: &str = "cloudflare-operator-system";
/// Where the users' objects are.
pub const NAMESPACE: &str = "apps";
/// The account that every world has.
pub const ACCOUNT: &str = "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";
/// The zone that every world has.
pub const ZONE: &str = "example.com";
/// Its id.
pub const ZONE_ID: &str = "d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0";
/// The token of that account; it must never be seen anywhere but in its Secret and on the wire.
pub const CANARY: &str = "canary-7f3e9d-token-that-must-not-leak";
/// The tunnel that every world has.
pub const TUNNEL: &str = "edge";

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// A Secret with an API token.
pub fn token_secret(namespace: &str, name: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": namespace },
        "stringData": { "CLOUDFLARE_API_TOKEN": token },
    })
}

/// A `CloudflareCredentials` that reads a Secret of the operator's namespace.
pub fn credentials(name: &str, secret: &str) -> Value {
    cluster_object(
        "CloudflareCredentials",
        name,
        json!({
            "accountId": ACCOUNT, "authType": "apiToken", "secretRef": { "name": secret },
        }),
    )
}

/// A `CloudflareDomain`, named after its domain.
pub fn domain(domain: &str) -> Value {
    cluster_object("CloudflareDomain", &domain.replace('.', "-"), json!({ "domain": domain }))
}

/// A `ClusterTunnel` for a tunnel that exists.
pub fn cluster_tunnel(name: &str, tunnel_id: &str) -> Value {
    cluster_object("ClusterTunnel", name, json!({ "existingTunnel": { "id": tunnel_id }, "cloudflare": {} }))
}

/// A `DNSRecord` of type A: `name` in the world's zone.
pub fn record(name: &str, address: &str) -> Value {
    object(
        "DNSRecord",
        name,
        json!({
            "name": format!("{name}.{ZONE}"), "type": "A", "content": address, "cloudflare": {},
        }),
    )
}

/// A `VirtualNetwork`.
pub fn network(name: &str) -> Value {
    cluster_object("VirtualNetwork", name, json!({ "comment": "offices", "cloudflare": {} }))
}

/// A `NetworkRoute` to the world's tunnel.
pub fn route(name: &str, network: &str) -> Value {
    cluster_object(
        "NetworkRoute",
        name,
        json!({
            "network": network, "comment": "offices", "tunnelRef": { "kind": "ClusterTunnel", "name": TUNNEL }, "cloudflare": {},
        }),
    )
}

/// An object of the job in the users' namespace.
pub fn object(kind: &str, name: &str, spec: Value) -> Value {
    let mut object = cluster_object(kind, name, spec);
    object["metadata"]["namespace"] = json!(NAMESPACE);
    object
}

/// An object of the job without a namespace.
pub fn cluster_object(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": API_VERSION, "kind": kind, "metadata": { "name": name }, "spec": spec })
}

/// The manifest with one field of its spec set.
pub fn with(mut object: Value, field: &str, value: Value) -> Value {
    object["spec"][field] = value;
    object
}

/// The manifest with an annotation.
pub fn annotated(mut object: Value, annotation: &str, value: &str) -> Value {
    object["metadata"]["annotations"][annotation] = json!(value);
    object
}

/// `Kind/namespace/name` of a manifest.
pub fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    match meta["namespace"].as_str() {
        Some(namespace) => format!("{}/{namespace}/{}", text(&object["kind"]), text(&meta["name"])),
        None => format!("{}/{}", text(&object["kind"]), text(&meta["name"])),
    }
}
