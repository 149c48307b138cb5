//! Objects → the other objects whose addresses they publish. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

/// A kind of object that a record can have its address from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SourceKind {
    Service,
    Ingress,
    Gateway,
    HttpRoute,
    Node,
}

/// One such object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) kind: SourceKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl SourceKind {
    const ALL: [Self; 5] = [Self::Service, Self::Ingress, Self::Gateway, Self::HttpRoute, Self::Node];

    fn field(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Ingress => "ingress",
            Self::Gateway => "gateway",
            Self::HttpRoute => "httpRoute",
            Self::Node => "node",
        }
    }

    /// `apiVersion` and plural.
    pub(crate) fn resource(self) -> (&'static str, &'static str) {
        match self {
            Self::Service => ("/api/v1", "services"),
            Self::Ingress => ("/apis/networking.k8s.io/v1", "ingresses"),
            Self::Gateway => ("/apis/gateway.networking.k8s.io/v1", "gateways"),
            Self::HttpRoute => ("/apis/gateway.networking.k8s.io/v1", "httproutes"),
            Self::Node => ("/api/v1", "nodes"),
        }
    }
}

impl Reference {
    /// Where a server has it.
    pub(crate) fn path(&self) -> String {
        let (root, plural) = self.kind.resource();
        let name = crate::kinds::segment(&self.name);
        match self.kind {
            SourceKind::Node => format!("{root}/{plural}/{name}"),
            _ => format!("{root}/namespaces/{}/{plural}/{name}", crate::kinds::segment(&self.namespace)),
        }
    }
}

/// What the `sourceRef` of objects names.
pub(crate) fn sources<'a>(objects: impl IntoIterator<Item = &'a Value>) -> BTreeSet<Reference> {
    objects.into_iter().flat_map(of_object).collect()
}

fn of_object(object: &Value) -> impl Iterator<Item = Reference> + '_ {
    let own = object["metadata"]["namespace"].as_str().unwrap_or("default");
    SourceKind::ALL.into_iter().filter_map(move |kind| {
        let named = &object["spec"]["sourceRef"][kind.field()];
        let namespace = named["namespace"].as_str().filter(|namespace| !namespace.is_empty()).unwrap_or(own);
        Some(Reference { kind, namespace: namespace.to_owned(), name: named["name"].as_str()?.to_owned() })
    })
}

/// The Gateways that an `HTTPRoute` hangs on.
pub(crate) fn gateways(route: &Value) -> Vec<Reference> {
    let own = route["metadata"]["namespace"].as_str().unwrap_or("default");
    let parents = route["spec"]["parentRefs"].as_array().into_iter().flatten();
    let named = parents.filter(|parent| parent["kind"].as_str().is_none_or(|kind| kind == "Gateway"));
    named
        .filter_map(|parent| {
            Some(Reference {
                kind: SourceKind::Gateway,
                namespace: parent["namespace"].as_str().unwrap_or(own).to_owned(),
                name: parent["name"].as_str()?.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_is_looked_for_beside_its_record_unless_it_says_where() {
        let record = |source: Value| json!({"metadata": {"namespace": "apps"}, "spec": {"sourceRef": source}});
        let objects = [
            record(json!({"service": {"name": "web"}})),
            record(json!({"ingress": {"name": "web", "namespace": "edge"}})),
            record(json!({"node": {"name": "one"}})),
        ];

        let paths: Vec<String> = sources(&objects).iter().map(Reference::path).collect();

        assert_eq!(
            paths,
            [
                "/api/v1/namespaces/apps/services/web",
                "/apis/networking.k8s.io/v1/namespaces/edge/ingresses/web",
                "/api/v1/nodes/one"
            ]
        );
    }

    #[test]
    fn a_route_has_its_addresses_from_its_gateways() {
        let parents = json!([{"name": "public", "namespace": "edge"}, {"kind": "Service", "name": "mesh"}]);

        let found = gateways(&json!({"metadata": {"namespace": "apps"}, "spec": {"parentRefs": parents}}));

        assert_eq!((found.len(), found[0].namespace.as_str()), (1, "edge"));
    }
}
