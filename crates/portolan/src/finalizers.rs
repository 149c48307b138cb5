//! A cluster's objects → those that our finalizers hold. Pure; the reading is at the end.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use portolan_engine::CREDENTIAL_FINALIZERS;
use portolan_zerotrust::model::{FINALIZER, OLDER_FINALIZER, State, annotations};
use serde_json::{Value, json};

use crate::definitions::GATEWAY_GROUP;
use crate::failure::Outcome;
use crate::health_view;
use crate::kinds::{Kinds, ServedKind, segment};
use crate::server::Server;
use crate::zerotrust;

/// An object that waits for us when it is deleted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeldObject {
    pub(crate) kind: ServedKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    uid: String,
    /// Its finalizers that are ours, or an older operator's.
    pub(crate) ours: Vec<String>,
    /// All of them, as they stand.
    all: Vec<String>,
}

impl HeldObject {
    /// What is ours on an object; none where nothing is.
    pub(crate) fn of(kind: &ServedKind, object: &Value, recorded: &BTreeSet<String>) -> Option<Self> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let all: Vec<String> = object["metadata"]["finalizers"]
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        let known = finalizers(kind, object, recorded);
        let guards = |name: &str| is_secret(kind) && name.starts_with(CREDENTIAL_FINALIZERS);
        let ours: Vec<String> =
            all.iter().filter(|name| known.contains(&name.as_str()) || guards(name)).cloned().collect();
        let hold =
            Self { kind: kind.clone(), namespace: text("namespace"), name: text("name"), uid: text("uid"), ours, all };
        (!hold.ours.is_empty()).then_some(hold)
    }

    /// `HTTPRoute default/shop`.
    pub(crate) fn title(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("{} {}", self.kind.kind, self.name),
            namespace => format!("{} {namespace}/{}", self.kind.kind, self.name),
        }
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({"kind": self.kind.kind, "namespace": self.namespace, "name": self.name, "finalizers": self.ours})
    }

    /// The JSON patch that takes ours away, if the object still is as it was seen.
    pub(crate) fn letting_go(&self) -> Value {
        let rest: Vec<&String> = self.all.iter().filter(|name| !self.ours.contains(name)).collect();
        json!([
            {"op": "test", "path": "/metadata/uid", "value": self.uid},
            {"op": "test", "path": "/metadata/finalizers", "value": self.all},
            {"op": "replace", "path": "/metadata/finalizers", "value": rest},
        ])
    }
}

/// Credentials carry a finalizer of each job that needs them.
fn is_secret(kind: &ServedKind) -> bool {
    kind.group.is_empty() && kind.kind == "Secret"
}

/// The finalizers that are ours to take off an object of a kind.
fn finalizers(kind: &ServedKind, object: &Value, recorded: &BTreeSet<String>) -> Vec<&'static str> {
    match kind.group.as_str() {
        health_view::GROUP => {
            let table = portolan_cloudflare::kinds::table();
            let row = table.iter().find(|row| row.kind == kind.kind);
            row.map(|row| [row.finalizer].into_iter().chain(row.older_finalizers.iter().copied()).collect())
                .unwrap_or_default()
        }
        zerotrust::GROUP => vec![FINALIZER, OLDER_FINALIZER],
        // Other programs put the older finalizer on routes as well: it is ours on routes that we know.
        GATEWAY_GROUP if is_known(object, recorded) => vec![FINALIZER, OLDER_FINALIZER],
        GATEWAY_GROUP => vec![FINALIZER],
        _ => Vec::new(),
    }
}

fn is_known(route: &Value, recorded: &BTreeSet<String>) -> bool {
    let notes = route["metadata"]["annotations"].as_object();
    let asks = |name: &String| name.starts_with(annotations::PREFIX) || name.starts_with(annotations::OLDER_PREFIX);
    let text = |field: &str| route["metadata"][field].as_str().unwrap_or_default();
    notes.is_some_and(|notes| notes.keys().any(asks))
        || recorded.contains(&format!("{}/{}", text("namespace"), text("name")))
}

/// Everything that is to be let go.
pub(crate) struct HeldObjects {
    /// Objects with finalizers of ours.
    pub(crate) objects: Vec<HeldObject>,
    /// Names of the states in the operator's namespace.
    pub(crate) states: Vec<String>,
    /// Names of the tasks there.
    pub(crate) tasks: Vec<String>,
}

impl HeldObjects {
    /// Looks through a cluster. Kinds that it does not know have no objects.
    pub(crate) async fn read(server: &Server, kinds: &Kinds, operator_namespace: &str) -> Outcome<Self> {
        let maps = config_maps(server, operator_namespace).await?;
        let recorded: BTreeSet<String> =
            maps.iter().filter_map(State::route_of).map(|route| route.to_string()).collect();
        let (mut objects, mut tasks) = (Vec::new(), Vec::new());
        for kind in looked_at(kinds) {
            for object in health_view::list(server, kind).await? {
                objects.extend(HeldObject::of(kind, &object, &recorded));
                if kind.kind == "CloudflareTask" && object["metadata"]["namespace"] == operator_namespace {
                    tasks.extend(object["metadata"]["name"].as_str().map(str::to_owned));
                }
            }
        }
        let states = maps.into_iter().filter(State::is_one).filter_map(|map| map.metadata.name).collect();
        Ok(Self { objects, states, tasks })
    }
}

/// The kinds whose objects may carry finalizers of ours, each once.
fn looked_at(kinds: &Kinds) -> Vec<&ServedKind> {
    let routes = kinds.in_group(GATEWAY_GROUP).into_iter().filter(|kind| kind.kind == "HTTPRoute");
    let secrets = kinds.in_group("").into_iter().filter(|kind| is_secret(kind));
    let ours = kinds.in_group(health_view::GROUP).into_iter().chain(kinds.in_group(zerotrust::GROUP));
    let all = ours.chain(routes).chain(secrets);
    let mut once = BTreeSet::new();
    all.filter(|kind| once.insert(kind.resource())).collect()
}

/// All `ConfigMap`s of a namespace; none where it does not exist.
pub(crate) async fn config_maps(server: &Server, namespace: &str) -> Outcome<Vec<ConfigMap>> {
    let path = format!("/api/v1/namespaces/{}/configmaps", segment(namespace));
    let list = server.find(&path).await?.unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, kind: &str) -> ServedKind {
        ServedKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            singular: String::new(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            listable: true,
        }
    }

    fn object(finalizers: &[&str], annotation: Option<&str>) -> Value {
        let notes = annotation.map(|name| json!({name: "x"})).unwrap_or_default();
        json!({"metadata": {"name": "shop", "namespace": "default", "uid": "u1", "finalizers": finalizers, "annotations": notes}})
    }

    fn ours(kind: &ServedKind, object: &Value, recorded: &[&str]) -> Vec<String> {
        let recorded = recorded.iter().map(|key| (*key).to_owned()).collect();
        HeldObject::of(kind, object, &recorded).map(|hold| hold.ours).unwrap_or_default()
    }

    #[test]
    fn finalizers_of_others_are_never_ours() {
        let tenant = kind(zerotrust::GROUP, "CloudflareZeroTrustTenant");

        assert_eq!(
            ours(&tenant, &object(&["foreign", FINALIZER, OLDER_FINALIZER], None), &[]),
            [FINALIZER, OLDER_FINALIZER]
        );
        assert_eq!(ours(&tenant, &object(&["foreign"], None), &[]), [""; 0]);
        let record = kind(health_view::GROUP, "DNSRecord");
        let finalizer = "dnsrecord.networking.cloudflare-operator.io/finalizer";
        assert_eq!(ours(&record, &object(&[finalizer, FINALIZER], None), &[]), [finalizer]);
    }

    #[test]
    fn finding_5_the_finalizers_that_keep_credentials_are_ours_on_secrets_alone() {
        let held =
            object(&["foreign", "portolan.dev/credential-zerotrust", "portolan.dev/credential-cloudflare"], None);

        assert_eq!(
            ours(&kind("", "Secret"), &held, &[]),
            ["portolan.dev/credential-zerotrust", "portolan.dev/credential-cloudflare"]
        );
        assert_eq!(ours(&kind("", "ConfigMap"), &held, &[]), [""; 0]);
    }

    #[test]
    fn the_older_finalizer_is_ours_on_routes_that_we_know_alone() {
        let route = kind(GATEWAY_GROUP, "HTTPRoute");

        assert_eq!(ours(&route, &object(&[OLDER_FINALIZER], None), &[]), [""; 0]);
        assert_eq!(
            ours(&route, &object(&[OLDER_FINALIZER], Some("cfzt.cloudflare.com/enabled")), &[]),
            [OLDER_FINALIZER]
        );
        assert_eq!(ours(&route, &object(&[OLDER_FINALIZER], None), &["default/shop"]), [OLDER_FINALIZER]);
    }

    #[test]
    fn the_patch_keeps_what_is_not_ours_and_expects_what_was_seen() {
        let route = kind(GATEWAY_GROUP, "HTTPRoute");
        let hold = HeldObject::of(&route, &object(&["foreign", FINALIZER], None), &BTreeSet::new()).unwrap();

        assert_eq!(hold.letting_go()[1]["value"], json!(["foreign", FINALIZER]));
        assert_eq!(hold.letting_go()[2]["value"], json!(["foreign"]));
        assert_eq!(hold.title(), "HTTPRoute default/shop");
    }
}
