//! The Gateway API's `HTTPRoute` and `ReferenceGrant`, as far as they are read: what is missing here is kept out of sight
//! and never written.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::api::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The Gateway API's group.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";
/// Versions of `ReferenceGrant`, those that every release serves first.
pub const GRANT_VERSIONS: [&str; 2] = ["v1beta1", "v1"];

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
    /// The names that a gateway answers for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<String>,
    /// What is done with which requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<HttpRouteRule>,
}

/// What is done with some requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteRule {
    /// Which requests; all where empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<HttpRouteMatch>,
    /// What is changed on their way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Value>,
    /// Who answers them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backend_refs: Vec<BackendRef>,
}

impl HttpRouteRule {
    /// Whether every request is meant.
    fn takes_all(&self) -> bool {
        self.matches.is_empty() || self.matches.iter().any(HttpRouteMatch::takes_all)
    }
}

/// Which requests a rule is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRouteMatch {
    /// Those to some paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<HttpPathMatch>,
    /// Those with one method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Those with some headers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Value>,
    /// Those with some parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query_params: Vec<Value>,
}

impl HttpRouteMatch {
    fn takes_all(&self) -> bool {
        let any_path = self.path.as_ref().is_none_or(HttpPathMatch::takes_all);
        any_path && self.method.is_none() && self.headers.is_empty() && self.query_params.is_empty()
    }
}

/// Which paths a rule is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpPathMatch {
    /// How the value is compared; `PathPrefix` where absent.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What paths are compared with; `/` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl HttpPathMatch {
    fn takes_all(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| kind == "PathPrefix")
            && self.value.as_deref().is_none_or(|path| path == "/")
    }
}

impl HttpRouteSpec {
    /// Why the first backend of the first rule cannot stand for the whole route; none where it can.
    pub(crate) fn beyond_one_backend(&self) -> Option<&'static str> {
        let first = self.rules.first()?.backend_refs.first()?;
        let backends = || self.rules.iter().flat_map(|rule| &rule.backend_refs);
        if backends().any(|backend| !backend.is_same_as(first)) {
            Some("the route has several backends")
        } else if self.rules.iter().any(|rule| rule.backend_refs.is_empty()) {
            Some("a rule of the route has no backend")
        } else if self.rules.iter().any(|rule| !rule.filters.is_empty())
            || backends().any(|one| !one.filters.is_empty())
        {
            Some("the route has filters")
        } else if backends().any(|backend| backend.weight == Some(0)) {
            Some("a backend of the route has the weight 0")
        } else if !self.rules.iter().any(HttpRouteRule::takes_all) {
            Some("the route's rules take some requests only")
        } else {
            None
        }
    }
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
    /// Its share of the requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// What is changed on the way to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Value>,
}

impl BackendRef {
    /// Whether both send requests to the same place, whatever their shares.
    fn is_same_as(&self, other: &Self) -> bool {
        let place =
            |one: &Self| (one.group.clone(), one.kind.clone(), one.name.clone(), one.namespace.clone(), one.port);
        place(self) == place(other)
    }
}

/// What a namespace lets others refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReferenceGrantSpec {
    /// Who may refer.
    pub from: Vec<GrantFrom>,
    /// What may be referred to.
    pub to: Vec<GrantTo>,
}

/// Who may refer to something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GrantFrom {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
}

/// What may be referred to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GrantTo {
    /// API group; empty for Services.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// The only object; all of the kind where absent.
    pub name: Option<String>,
}

impl ReferenceGrantSpec {
    /// Whether routes of a namespace may refer to a Service that the grant stands beside.
    pub fn permits(&self, from: &str, service: &str) -> bool {
        let named = |one: &GrantFrom| one.group == GATEWAY_GROUP && one.kind == "HTTPRoute" && one.namespace == from;
        let meant = |one: &GrantTo| {
            one.group.is_empty() && one.kind == "Service" && one.name.as_deref().is_none_or(|name| name == service)
        };
        self.from.iter().any(named) && self.to.iter().any(meant)
    }
}

impl Resource for HttpRoute {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "HTTPRoute".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GATEWAY_GROUP.into()
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

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn beyond(rules: Value) -> Option<&'static str> {
        from_value::<HttpRouteSpec>(json!({ "rules": rules })).unwrap().beyond_one_backend()
    }

    #[test]
    fn ux_h7_a_route_that_is_more_than_its_first_backend_says_why() {
        let web = json!({ "name": "web", "port": 80 });
        let all = json!([{ "path": { "type": "PathPrefix", "value": "/" } }]);
        for (rules, why) in [
            (
                json!([{ "backendRefs": [{ "name": "admin", "port": 9000 }] }, { "backendRefs": [web] }]),
                "several backends",
            ),
            (json!([{ "backendRefs": [web, { "name": "canary", "port": 80 }] }]), "several backends"),
            (json!([{ "backendRefs": [web] }, {}]), "has no backend"),
            (json!([{ "backendRefs": [web], "filters": [{ "type": "RequestRedirect" }] }]), "filters"),
            (
                json!([{ "backendRefs": [{ "name": "web", "port": 80, "filters": [{ "type": "URLRewrite" }] }] }]),
                "filters",
            ),
            (json!([{ "backendRefs": [{ "name": "web", "port": 80, "weight": 0 }] }]), "weight 0"),
            (json!([{ "backendRefs": [web], "matches": [{ "path": { "value": "/admin" } }] }]), "some requests"),
            (
                json!([{ "backendRefs": [web], "matches": [{ "path": { "type": "Exact", "value": "/" } }] }]),
                "some requests",
            ),
            (json!([{ "backendRefs": [web], "matches": [{ "method": "GET" }] }]), "some requests"),
            (json!([{ "backendRefs": [web], "matches": [{ "headers": [{ "name": "a" }] }] }]), "some requests"),
        ] {
            assert!(
                beyond(rules.clone()).is_some_and(|told| told.contains(why)),
                "{rules}: {:?}",
                beyond(rules.clone())
            );
        }
        for simple in [
            json!([{ "backendRefs": [web] }]),
            json!([{ "backendRefs": [web], "matches": all }]),
            json!([{ "backendRefs": [web], "matches": [{ "path": { "value": "/api" } }] }, { "backendRefs": [web] }]),
            json!([]),
        ] {
            assert_eq!(beyond(simple.clone()), None, "{simple}");
        }
    }

    #[test]
    fn a_grant_is_for_routes_of_its_namespaces_and_for_its_services_alone() {
        let grant =
            |from: Value, to: Value| from_value::<ReferenceGrantSpec>(json!({ "from": [from], "to": [to] })).unwrap();
        let route = json!({ "group": GATEWAY_GROUP, "kind": "HTTPRoute", "namespace": "apps" });
        let any = json!({ "group": "", "kind": "Service" });

        assert!(grant(route.clone(), any.clone()).permits("apps", "web"));
        assert!(grant(route.clone(), json!({ "group": "", "kind": "Service", "name": "web" })).permits("apps", "web"));
        for (from, to, namespace) in [
            (route.clone(), any.clone(), "sandbox"),
            (route.clone(), json!({ "group": "", "kind": "Service", "name": "db" }), "apps"),
            (route.clone(), json!({ "group": "", "kind": "Secret" }), "apps"),
            (json!({ "group": GATEWAY_GROUP, "kind": "Gateway", "namespace": "apps" }), any.clone(), "apps"),
            (json!({ "group": "", "kind": "HTTPRoute", "namespace": "apps" }), any, "apps"),
        ] {
            assert!(!grant(from.clone(), to.clone()).permits(namespace, "web"), "{from} {to}");
        }
    }
}
