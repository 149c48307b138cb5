//! `VirtualNetwork` ↔ `accounts/{account}/teamnet/virtual_networks/{id}`
//!
//! An account always has exactly one default network: a network becomes it when asked, and ceases to be it only when
//! another one does. So not asking is no wish to cease.

use kube::{CustomResource, ResourceExt};
use portolan_cloudflare_api::objects::{OptionalWish, VirtualNetwork as Remote};
use portolan_cloudflare_api::{TypedCollection, collections};
use portolan_core::{Condition, Problem, reasons, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::blocks::{CloudflareDetails, given};
use crate::kind::{Kind, Management, Needs, Recorded, Resolved, StatusView};
use crate::reasons::DEFAULT_NETWORK;
use crate::used::UsedCredentials;

/// A private address space that routes can be told apart by.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "VirtualNetwork")]
#[kube(status = "VirtualNetworkStatus", shortname = "vnet", category = "cloudflare")]
#[kube(doc = "A private address space that routes can be told apart by.")]
#[kube(printcolumn = r#"{"name":"VNetID","type":"string","jsonPath":".status.virtualNetworkId"}"#)]
#[kube(printcolumn = r#"{"name":"Default","type":"boolean","jsonPath":".spec.isDefaultNetwork"}"#)]
#[kube(printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.state"}"#)]
#[kube(printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct VirtualNetworkSpec {
    /// Name at Cloudflare; the object's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub name: Option<String>,
    /// Free text that Cloudflare keeps with the network, behind the mark that says whose it is; cut to what fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub comment: Option<String>,
    /// Whether routes that name no network belong to this one.
    #[serde(default)]
    pub is_default_network: bool,
    /// Who asks Cloudflare, and about which account.
    pub cloudflare: CloudflareDetails,
}

/// What became of a `VirtualNetwork`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct VirtualNetworkStatus {
    /// What is known of the network's health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_network_id: Option<String>,
    /// Id of its account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// `active` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Whether it is the account's default network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_default: Option<bool>,
    /// The credential that wrote it, and that will delete it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_credentials: Option<UsedCredentials>,
}

impl VirtualNetwork {
    /// Id of the network, once it is known.
    pub fn network_id(&self) -> Option<&str> {
        self.status.as_ref()?.virtual_network_id.as_deref().filter(|id| !id.is_empty())
    }

    fn network_name(&self) -> String {
        given(self.spec.name.as_ref()).unwrap_or_else(|| self.name_any())
    }
}

impl Kind for VirtualNetwork {
    type Body = Remote;

    const KIND: &'static str = "VirtualNetwork";
    const NOUN: &'static str = "virtual network";
    const FINALIZER: &'static str = "virtualnetwork.networking.cloudflare-operator.io/finalizer";
    const OLDER_FINALIZERS: &'static [&'static str] =
        &["cloudflare.com/virtualnetwork-finalizer", "cloudflare.com/finalizer"];
    const REMOTE: &'static TypedCollection<Self::Body> = &collections::VIRTUAL_NETWORKS;
    const LIFE: Management = Management::Owned;

    fn needs(&self) -> Result<Needs, Problem> {
        Ok(self.spec.cloudflare.needs())
    }

    fn desired(&self, _: &Resolved) -> Result<Vec<Remote>, Problem> {
        let name = self.network_name();
        if name.trim() != name {
            let message = format!("name {name:?} begins or ends with a blank; remove it");
            return Err(Problem::invalid(reasons::INVALID_CONFIG, message));
        }
        Ok(vec![Remote {
            name: name.into(),
            comment: self.spec.comment.clone().unwrap_or_default().into(),
            default: OptionalWish(self.spec.is_default_network.then_some(true)),
            deleted: false,
        }])
    }

    fn claim(&self) -> Option<String> {
        Some(format!("virtual network {}{}", self.network_name(), self.spec.cloudflare.account_hint()))
    }

    fn undeletable(there: &Remote) -> Option<Problem> {
        let message = format!(
            "virtual network {} is the account's default one, which Cloudflare never deletes. Make another network the \
             default, by isDefaultNetwork: true on its VirtualNetwork or in the dashboard, and this one goes by itself; \
             or leave it at Cloudflare by the annotation cloudflare-operator.io/deletion-policy: Orphan",
            there.name
        );
        there.is_default().then(|| Problem::denied(DEFAULT_NETWORK, message))
    }

    fn recorded(&self) -> Recorded {
        let status = self.status.clone().unwrap_or_default();
        Recorded {
            scope: given(status.account_id.as_ref()),
            ids: given(status.virtual_network_id.as_ref()).into_iter().collect(),
            credentials: status.used_credentials,
        }
    }

    fn without_ids(&self) -> Value {
        json!({ "virtualNetworkId": null })
    }

    fn status(&self, view: &StatusView<'_, Remote>) -> Value {
        let before = self.status.clone().unwrap_or_default();
        let account = view.resolved.and_then(|resolved| resolved.account.as_ref()).map(ToString::to_string);
        let kept = view.problem.is_some() && view.present.is_empty();
        let found = view.present.first();
        let now = VirtualNetworkStatus {
            used_credentials: view.used_credentials(before.used_credentials.as_ref()),
            virtual_network_id: if kept { before.virtual_network_id } else { found.map(|entry| entry.id.clone()) },
            account_id: if kept { before.account_id.or(account) } else { account.or(before.account_id) },
            is_default: if kept { before.is_default } else { found.map(|entry| entry.item.is_default()) },
            state: Some(super::lower_state(view.problem).to_owned()),
            ..VirtualNetworkStatus::default()
        };
        serde_json::to_value(now).expect("statuses are plain JSON")
    }
}

#[cfg(test)]
mod tests {
    use portolan_cloudflare_api::{Entry, Item as _};
    use serde_json::from_value;

    use super::*;

    fn vnet(spec: Value) -> VirtualNetwork {
        from_value(json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "VirtualNetwork",
            "metadata": { "name": "corp" }, "spec": spec,
        }))
        .unwrap()
    }

    fn wanted(spec: Value) -> Remote {
        vnet(spec).desired(&Resolved::default()).unwrap().remove(0)
    }

    fn found(value: Value) -> Remote {
        from_value(value).unwrap()
    }

    #[test]
    fn the_object_names_the_network_unless_the_spec_does() {
        assert_eq!(&*wanted(json!({ "cloudflare": {} })).name, "corp");
        assert_eq!(&*wanted(json!({ "name": "Production Network", "cloudflare": {} })).name, "Production Network");
    }

    #[test]
    fn the_default_is_called_differently_when_a_network_is_made_and_when_it_is_changed() {
        let body = wanted(json!({ "isDefaultNetwork": true, "comment": "hi", "cloudflare": {} }));

        assert_eq!(body.create_body(), json!({ "name": "corp", "comment": "hi", "is_default": true }));
        assert_eq!(body.update_body(&body), json!({ "name": "corp", "comment": "hi", "is_default_network": true }));
    }

    #[test]
    fn a_network_that_does_not_ask_for_it_neither_refuses_to_be_the_default_nor_gives_it_up() {
        let body = wanted(json!({ "cloudflare": {} }));
        let there = found(json!({ "name": "corp", "comment": "", "is_default_network": true }));

        assert_eq!(body, there);
        assert_eq!(body.update_body(&there), json!({ "name": "corp", "comment": "" }));
        assert_eq!(body.create_body()["is_default"], json!(false));
    }

    #[test]
    fn a_network_that_asks_for_it_differs_until_it_is_the_default() {
        let body = wanted(json!({ "isDefaultNetwork": true, "cloudflare": {} }));

        assert_ne!(body, found(json!({ "name": "corp", "comment": "", "is_default_network": false })));
        assert_eq!(
            body,
            found(json!({ "name": "corp", "comment": "", "is_default_network": true, "deleted_at": null }))
        );
    }

    #[test]
    fn a_deleted_network_is_known_as_such() {
        assert!(found(json!({ "name": "corp", "deleted_at": "2026-01-01T00:00:00Z" })).deleted());
    }

    #[test]
    fn a_failure_keeps_the_recorded_ids() {
        let mut object = vnet(json!({ "cloudflare": {} }));
        object.status = Some(VirtualNetworkStatus {
            virtual_network_id: Some("v1".to_owned()),
            account_id: Some("a1".to_owned()),
            ..VirtualNetworkStatus::default()
        });
        let problem = Problem::transient(reasons::API_ERROR, "down");

        let status =
            object.status(&StatusView { resolved: None, present: &[], problem: Some(&problem), checked_at: None });

        assert_eq!(status, json!({ "virtualNetworkId": "v1", "accountId": "a1", "state": "error" }));
    }

    #[test]
    fn the_status_shows_what_is_there() {
        let body = found(json!({ "name": "corp", "is_default_network": true }));
        let present = [Entry { id: "v2".to_owned(), item: body }];
        let resolved = Resolved { account: Some("a1".parse().unwrap()), ..Resolved::default() };
        let view = StatusView { resolved: Some(&resolved), present: &present, problem: None, checked_at: None };

        let status = vnet(json!({ "cloudflare": {} })).status(&view);

        let expected = json!({ "virtualNetworkId": "v2", "accountId": "a1", "state": "active", "isDefault": true });
        assert_eq!(status, expected);
    }

    #[test]
    fn two_objects_with_one_name_claim_the_same() {
        let named = vnet(json!({ "name": "corp", "cloudflare": { "accountId": "a1" } }));

        assert_eq!(named.claim(), vnet(json!({ "cloudflare": { "accountId": "a1" } })).claim());
        assert_ne!(named.claim(), vnet(json!({ "cloudflare": { "accountId": "a2" } })).claim());
    }
}
