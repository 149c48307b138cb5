//! How a Kubernetes object is named in maps, logs and messages.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Namespace and name; cluster-scoped objects have no namespace. Displayed as `namespace/name` or `name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// The namespace; none for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: impl Into<String>) -> Self {
        Self { namespace: None, name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Kind and key. Displayed as `Kind/namespace/name` or `Kind/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    /// The kind, as `DNSRecord`.
    pub kind: String,
    /// Namespace and name.
    pub key: ObjectKey,
}

impl ObjectId {
    /// Names an object of a kind.
    pub fn new(kind: impl Into<String>, key: ObjectKey) -> Self {
        Self { kind: kind.into(), key }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_shown_with_their_kind_and_namespace() {
        let www = ObjectId::new("DNSRecord", ObjectKey::namespaced("shop", "www"));
        let domain = ObjectId::new("CloudflareDomain", ObjectKey::cluster("example"));

        assert_eq!(www.to_string(), "DNSRecord/shop/www");
        assert_eq!(domain.to_string(), "CloudflareDomain/example");
    }
}
