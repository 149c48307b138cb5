//! `Tunnel` and `ClusterTunnel` ↔ `accounts/{account}/cfd_tunnel/{id}`, as far as this release goes: a tunnel that exists is
//! looked up, so that routes can lead to it. None is made, changed or deleted.
//!
//! Both kinds are served in two versions with one schema that holds the fields of both, so that no conversion is needed.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResource;
use portolan_cloudflare_api::objects::Tunnel as Remote;
use portolan_cloudflare_api::{Entry, Item, TypedCollection, collections};
use portolan_core::{Condition, Problem, reasons, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blocks::{CloudflareDetails, given};
use crate::kind::{Kind, Recorded, Resolved, StatusView};
use crate::reasons::UNSUPPORTED;
use crate::sheet::{Sheet, StateWords};
use crate::shown;

/// A tunnel from Cloudflare into a namespace.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "Tunnel")]
#[kube(namespaced, status = "TunnelStatus", category = "cloudflare")]
#[kube(printcolumn = r#"{"name":"TunnelID","type":"string","jsonPath":".status.tunnelId"}"#)]
#[serde(transparent)]
#[schemars(transform = schema::plain, transform = schema::rules(ONE_TUNNEL))]
pub struct TunnelSpec {
    /// What both kinds of tunnel say.
    pub fields: TunnelFields,
}

/// A tunnel from Cloudflare into the cluster.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "ClusterTunnel")]
#[kube(status = "TunnelStatus", category = "cloudflare")]
#[kube(printcolumn = r#"{"name":"TunnelID","type":"string","jsonPath":".status.tunnelId"}"#)]
#[serde(transparent)]
#[schemars(transform = schema::plain, transform = schema::rules(ONE_TUNNEL))]
pub struct ClusterTunnelSpec {
    /// What both kinds of tunnel say.
    pub fields: TunnelFields,
}

const ONE_TUNNEL: &[schema::CelRule] = &[(
    "(has(self.newTunnel) && self.newTunnel.name != '') != (has(self.existingTunnel) && \
     ((has(self.existingTunnel.id) && self.existingTunnel.id != '') || \
     (has(self.existingTunnel.name) && self.existingTunnel.name != '')))",
    "set either newTunnel with a name, or existingTunnel with an id or name",
)];

/// What both kinds of tunnel say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TunnelFields {
    /// A tunnel to be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_tunnel: Option<NewTunnel>,
    /// A tunnel that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing_tunnel: Option<ExistingTunnel>,
    /// Who asks Cloudflare, and about which account.
    pub cloudflare: CloudflareDetails,
    /// Changes to the Deployment of cloudflared, as YAML or JSON.
    #[serde(default = "no_patch")]
    #[schemars(length(max = 65_536))]
    pub deploy_patch: String,
    /// Whether certificates of origins are not checked.
    #[serde(default)]
    pub no_tls_verify: bool,
    /// Secret with certificate authorities of origins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub origin_ca_pool: Option<String>,
    /// Protocol between cloudflared and Cloudflare.
    #[serde(default)]
    pub protocol: TunnelProtocol,
    /// What answers names that no rule knows.
    #[serde(default = "not_found")]
    #[schemars(length(max = 2048))]
    pub fallback_target: String,
    /// Whether devices reach private networks through the tunnel.
    #[serde(default)]
    pub enable_warp_routing: bool,
    /// Number of cloudflared pods; older version only, see `deployPatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u16>,
    /// Image of cloudflared; older version only, see `deployPatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// Labels of nodes for cloudflared; older version only, see `deployPatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selectors: Option<BTreeMap<String, String>>,
    /// Taints that cloudflared tolerates; older version only, see `deployPatch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
}

fn no_patch() -> String {
    "{}".to_owned()
}

fn not_found() -> String {
    "http_status:404".to_owned()
}

/// A tunnel to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewTunnel {
    /// Its name at Cloudflare.
    #[schemars(length(max = 100))]
    pub name: String,
}

/// A tunnel that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExistingTunnel {
    /// Its id; wins over the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub id: Option<String>,
    /// Its name at Cloudflare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub name: Option<String>,
}

/// Protocol between cloudflared and Cloudflare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TunnelProtocol {
    /// cloudflared chooses.
    #[default]
    Auto,
    /// QUIC.
    Quic,
    /// HTTP/2.
    Http2,
}

/// A taint that is tolerated, as in a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Key of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Exists` or `Equal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Effect of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// For how long it is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// What became of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TunnelStatus {
    /// What is known of the tunnel's health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the tunnel.
    #[schemars(transform = schema::no_default)]
    pub tunnel_id: String,
    /// Name of the tunnel at Cloudflare.
    #[schemars(transform = schema::no_default)]
    pub tunnel_name: String,
    /// Id of the account.
    #[schemars(transform = schema::no_default)]
    pub account_id: String,
    /// Id of the zone.
    #[schemars(transform = schema::no_default)]
    pub zone_id: String,
    /// `pending`, `creating`, `active`, `error` or `deleting`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Version of the configuration that was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_version: Option<i64>,
    /// Names that lead through the tunnel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub synced_hostnames: Vec<String>,
}

/// What a tunnel's object means.
enum Meant {
    /// The one with this id.
    Id(String),
    /// The live one with this name.
    Name(String),
}

impl TunnelFields {
    /// The tunnel that is meant. One that an older operator made is known by the id that its status recorded.
    fn meant(&self, recorded: Option<&TunnelStatus>) -> Result<Meant, Problem> {
        let new = self.new_tunnel.as_ref().and_then(|new| given(Some(&new.name)));
        let existing = self.existing_tunnel.clone().unwrap_or_default();
        let recorded = recorded.and_then(|status| given(Some(&status.tunnel_id)));
        match (new, given(existing.id.as_ref()), given(existing.name.as_ref())) {
            (None, Some(id), _) => Ok(Meant::Id(id)),
            (None, None, Some(name)) => Ok(Meant::Name(name)),
            (Some(new), None, None) => recorded.map(Meant::Id).ok_or_else(|| unsupported(&new)),
            (Some(_), _, _) => Err(one_of_both("newTunnel and existingTunnel exclude each other; remove one of them")),
            (None, None, None) => Err(one_of_both("set newTunnel with a name, or existingTunnel with an id or name")),
        }
    }

    fn status(&self, before: Option<&TunnelStatus>, view: &StatusView<'_, Remote>) -> Value {
        let before = before.cloned().unwrap_or_default();
        let account = view.resolved.and_then(|resolved| resolved.account.as_ref()).map(ToString::to_string);
        let zone_id = given(self.cloudflare.zone_id.as_ref()).unwrap_or(before.zone_id);
        let state = Some(StateWords::LOWER.of(view.problem).to_owned());
        let now = match view.present.first() {
            Some(Entry { id, item }) => TunnelStatus {
                tunnel_id: id.clone(),
                tunnel_name: item.name.to_string(),
                account_id: given(Some(&item.account_tag.to_string())).or(account).unwrap_or(before.account_id),
                zone_id,
                state,
                config_version: before.config_version,
                synced_hostnames: before.synced_hostnames,
                ..TunnelStatus::default()
            },
            None => TunnelStatus { conditions: Vec::new(), observed_generation: None, zone_id, state, ..before },
        };
        serde_json::to_value(now).expect("statuses are plain JSON")
    }

    fn missing(&self) -> Problem {
        let existing = self.existing_tunnel.clone().unwrap_or_default();
        let which = given(existing.name.as_ref())
            .map_or_else(|| format!("with id {}", existing.id.unwrap_or_default()), |name| format!("named {name}"));
        let message = format!("the account has no tunnel {which}; create it at Cloudflare, or correct existingTunnel");
        Problem::waiting(reasons::DEPENDENCY_ERROR, message)
    }
}

fn one_of_both(message: &str) -> Problem {
    Problem::invalid(reasons::INVALID_CONFIG, message)
}

fn unsupported(name: &str) -> Problem {
    let message = format!(
        "this release does not create tunnels yet: create {name} at Cloudflare (cloudflared tunnel create {name}) and \
         refer to it by existingTunnel.name"
    );
    Problem::invalid(UNSUPPORTED, message)
}

macro_rules! observed_tunnel {
    ($kind:ident, $name:literal) => {
        impl Kind for $kind {
            type Body = Remote;

            const SHEET: Sheet = Sheet {
                shown: shown::TUNNEL,
                ready_reason: reasons::RECONCILED,
                ..Sheet::observed($name, "tunnel", "cloudflare-operator.io/finalizer")
            };
            const REMOTE: &'static TypedCollection<Self::Body> = &collections::TUNNELS;

            fn cloudflare(&self) -> Option<&CloudflareDetails> {
                Some(&self.spec.fields.cloudflare)
            }

            fn desired(&self, _: &Resolved) -> Result<Vec<Remote>, Problem> {
                let name = match self.spec.fields.meant(self.status.as_ref())? {
                    Meant::Id(_) => String::new(),
                    Meant::Name(name) => name,
                };
                Ok(vec![Remote::named(&name)])
            }

            fn recorded(&self) -> Recorded {
                let status = self.status.clone().unwrap_or_default();
                let ids = given(Some(&status.tunnel_id)).into_iter().collect();
                let (scope, name) = (given(Some(&status.account_id)), given(Some(&status.tunnel_name)));
                Recorded { scope, ids, name, ..Recorded::default() }
            }

            fn status(&self, view: &StatusView<'_, Remote>) -> Value {
                self.spec.fields.status(self.status.as_ref(), view)
            }

            fn lookup_id(&self) -> Option<String> {
                match self.spec.fields.meant(self.status.as_ref()) {
                    Ok(Meant::Id(id)) => Some(id),
                    Ok(Meant::Name(_)) | Err(_) => None,
                }
            }

            fn missing(&self) -> Problem {
                self.spec.fields.missing()
            }

            fn well(&self, _: &Resolved) -> (&'static str, String) {
                (Self::READY_REASON, "the tunnel is there; this release only looks at it".to_owned())
            }

            fn observed(&self, found: &Entry<Remote>, _: &Resolved) -> Result<(), Problem> {
                if found.item.deleted() { Err(self.missing()) } else { Ok(()) }
            }
        }
    };
}

observed_tunnel!(Tunnel, "Tunnel");
observed_tunnel!(ClusterTunnel, "ClusterTunnel");

/// The definition in both versions, of which the older one is deprecated. Both have the same fields.
pub(crate) fn crd<K: Kind>() -> CustomResourceDefinition {
    let mut definition = super::crd::<K>();
    let mut older = definition.spec.versions[0].clone();
    "v1alpha1".clone_into(&mut older.name);
    older.storage = false;
    older.deprecated = Some(true);
    let kind = K::KIND;
    older.deprecation_warning = Some(format!(
        "networking.cloudflare-operator.io/v1alpha1 {kind} is deprecated; use networking.cloudflare-operator.io/v1alpha2 {kind}"
    ));
    definition.spec.versions.push(older);
    definition
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn tunnel(spec: Value) -> ClusterTunnel {
        from_value(json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "ClusterTunnel",
            "metadata": { "name": "edge" }, "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn an_id_wins_over_a_name() {
        let both = tunnel(json!({ "existingTunnel": { "id": "t1", "name": "edge" }, "cloudflare": {} }));
        let named = tunnel(json!({ "existingTunnel": { "name": "edge" }, "cloudflare": {} }));

        assert_eq!(both.lookup_id().as_deref(), Some("t1"));
        assert_eq!(named.lookup_id(), None);
        assert_eq!(named.desired(&Resolved::default()).unwrap()[0].natural_key(), "edge");
    }

    #[test]
    fn a_new_tunnel_is_refused_with_what_to_do_instead() {
        let problem =
            tunnel(json!({ "newTunnel": { "name": "edge" }, "cloudflare": {} })).desired(&Resolved::default());

        let problem = problem.unwrap_err();
        assert_eq!((problem.class, problem.reason), (portolan_core::Class::Invalid, "Unsupported"));
        assert!(problem.message.contains("existingTunnel.name"), "{problem}");
    }

    #[test]
    fn a_tunnel_that_an_older_operator_made_is_found_by_its_recorded_id() {
        let mut made = tunnel(json!({ "newTunnel": { "name": "edge" }, "existingTunnel": {}, "cloudflare": {} }));
        made.status = Some(TunnelStatus { tunnel_id: "t9".to_owned(), ..TunnelStatus::default() });

        assert_eq!(made.lookup_id().as_deref(), Some("t9"));
    }

    #[test]
    fn the_status_has_all_four_ids_even_when_they_are_empty() {
        let problem = Problem::transient(reasons::API_ERROR, "down");
        let view = StatusView { resolved: None, present: &[], problem: Some(&problem), checked_at: None };

        let status = tunnel(json!({ "existingTunnel": { "name": "edge" }, "cloudflare": {} })).status(&view);

        let expected = json!({ "tunnelId": "", "tunnelName": "", "accountId": "", "zoneId": "", "state": "error" });
        assert_eq!(status, expected);
    }

    #[test]
    fn a_found_tunnel_fills_the_status() {
        let item: Remote = from_value(json!({ "name": "edge", "account_tag": "a1", "deleted_at": null })).unwrap();
        let present = [Entry { id: "t1".to_owned(), item }];
        let view = StatusView { resolved: None, present: &present, problem: None, checked_at: None };

        let status =
            tunnel(json!({ "existingTunnel": { "name": "edge" }, "cloudflare": { "zoneId": "z1" } })).status(&view);

        let expected =
            json!({ "tunnelId": "t1", "tunnelName": "edge", "accountId": "a1", "zoneId": "z1", "state": "active" });
        assert_eq!(status, expected);
    }

    #[test]
    fn both_versions_are_served_and_the_newer_is_stored() {
        let definition = crd::<Tunnel>();

        let versions: Vec<_> =
            definition.spec.versions.iter().map(|one| (one.name.as_str(), one.served, one.storage)).collect();
        assert_eq!(versions, [("v1alpha2", true, true), ("v1alpha1", true, false)]);
        assert_eq!(definition.spec.versions[0].schema, definition.spec.versions[1].schema);
    }
}
