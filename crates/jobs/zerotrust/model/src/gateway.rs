//! The Gateway API's `HTTPRoute`, as far as it is read: what is missing here is kept out of sight and never written.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpRoute {
    /// Names, annotations, finalizers.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Where it sends requests to.
    #[serde(default)]
    pub spec: HttpRouteSpec,
}

/// Where a route sends requests to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteSpec {
    /// What is done with which requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<HttpRouteRule>,
}

/// What is done with some requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteRule {
    /// Who answers them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backend_refs: Vec<BackendRef>,
}

/// Who answers requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendRef {
    /// API group; empty for Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind; `Service` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name.
    pub name: String,
    /// Namespace; the route's where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

impl Resource for HttpRoute {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "HTTPRoute".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "gateway.networking.k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "httproutes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
