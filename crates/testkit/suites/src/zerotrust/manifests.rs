//! Tenants, templates and annotated routes as users write them.

use serde_json::{Value, json};

use super::{ACCOUNT, ORIGIN, TUNNEL};

/// The prefix of all annotations.
pub const PREFIX: &str = "cfzt.cloudflare.com/";

/// A Secret with an API token under the usual key.
pub fn token_secret(namespace: &str, name: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": namespace },
        "stringData": { "token": token },
    })
}

/// A tenant of the world's account and tunnel, in `default`.
pub fn tenant(name: &str) -> Value {
    json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustTenant",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "accountId": ACCOUNT, "tunnelId": TUNNEL,
            "credentialRef": { "name": "cloudflare-api-token", "key": "token" },
            "defaults": { "originService": ORIGIN },
        },
    })
}

/// A tenant that takes routes of all namespaces.
pub fn open_tenant(name: &str) -> Value {
    let mut tenant = tenant(name);
    tenant["spec"]["allowedNamespaces"] = json!(["*"]);
    tenant
}

/// Lets routes of one namespace lead to the Services of another.
pub fn reference_grant(from: &str, to: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant",
        "metadata": { "name": format!("from-{from}"), "namespace": to },
        "spec": {
            "from": [{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": from }],
            "to": [{ "group": "", "kind": "Service" }],
        },
    })
}

/// A template in `default`.
pub fn template(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustTemplate",
        "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    })
}

/// A `LoadBalancer` Service.
pub fn load_balancer(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "https", "port": 443, "protocol": "TCP" }] },
    })
}

/// The object in another namespace.
pub fn in_namespace(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = json!(namespace);
    object
}

/// An annotated route, built field by field.
#[derive(Clone, Debug)]
pub struct RouteManifest(Value);

impl RouteManifest {
    /// A route in `default` to the Service of its name, not yet enabled.
    pub fn new(name: &str) -> Self {
        Self(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": { "name": name, "namespace": "default", "annotations": {} },
            "spec": {
                "parentRefs": [{ "name": "public" }],
                "rules": [{ "backendRefs": [{ "name": name, "port": 8080 }] }],
            },
        }))
    }

    /// An enabled route for a hostname.
    pub fn to(name: &str, hostname: &str) -> Self {
        Self::new(name).with("enabled", "true").with("hostname", hostname)
    }

    /// With an annotation, whose prefix is left out.
    pub fn with(mut self, suffix: &str, value: &str) -> Self {
        self.0["metadata"]["annotations"][format!("{PREFIX}{suffix}")] = json!(value);
        self
    }

    /// Without an annotation.
    pub fn without(mut self, suffix: &str) -> Self {
        let annotations = self.0["metadata"]["annotations"].as_object_mut();
        annotations.map(|all| all.remove(&format!("{PREFIX}{suffix}")));
        self
    }

    /// With Access for some addresses.
    pub fn allowing(self, emails: &str) -> Self {
        self.with("accessApp", "true").with("allowEmails", emails)
    }

    /// In another namespace.
    pub fn within(self, namespace: &str) -> Self {
        Self(in_namespace(self.0, namespace))
    }

    /// With another backend.
    pub fn backend(mut self, backend: Value) -> Self {
        self.0["spec"]["rules"] = json!([{ "backendRefs": [backend] }]);
        self
    }

    /// `HTTPRoute/namespace/name`.
    pub fn id(&self) -> String {
        crate::manifests::id(&self.0)
    }

    /// The manifest.
    pub fn manifest(&self) -> &Value {
        &self.0
    }
}

impl From<RouteManifest> for Value {
    fn from(route: RouteManifest) -> Self {
        route.0
    }
}
