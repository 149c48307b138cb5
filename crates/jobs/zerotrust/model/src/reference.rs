//! How tasks and states refer to routes, tenants and Secrets.

use std::fmt;

use portolan_core::{ObjectKey, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tenant::TOKEN_KEY;

/// A route, and which one of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct RouteRef {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Its uid: a route that was deleted and made again has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
}

impl RouteRef {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace.clone(), self.name.clone())
    }
}

/// A tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantRef {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
}

impl TenantRef {
    /// Refers to a tenant.
    pub fn to(key: &ObjectKey) -> Self {
        Self { name: key.name.clone(), namespace: key.namespace.clone().unwrap_or_default() }
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace.clone(), self.name.clone())
    }
}

/// A Secret, and the key of the API token in it. Displayed as `namespace/name/key`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct SecretRef {
    /// Name of the Secret.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its namespace.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Key of the API token in it; `token` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub key: Option<String>,
}

impl SecretRef {
    /// Namespace and name of the Secret.
    pub fn object(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace.clone(), self.name.clone())
    }

    /// Key of the API token in it.
    pub fn key(&self) -> &str {
        self.key.as_deref().filter(|key| !key.is_empty()).unwrap_or(TOKEN_KEY)
    }

    /// Reads `namespace/name/key`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '/');
        let (namespace, name, key) = (parts.next()?, parts.next()?, parts.next());
        let key = Some(key.filter(|key| !key.is_empty()).unwrap_or(TOKEN_KEY).to_owned());
        (!namespace.is_empty() && !name.is_empty()).then(|| Self {
            name: name.into(),
            namespace: namespace.into(),
            key,
        })
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.name, self.key())
    }
}
