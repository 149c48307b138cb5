//! `VirtualNetwork` ↔ `accounts/{account}/teamnet/virtual_networks/{id}`
//!
//! An account always has exactly one default network: a network becomes it when asked, and ceases to be it only when
//! another one does. So not asking is no wish to cease.

use kube::ResourceExt;
use portolan_cloudflare_api::Item as _;
use portolan_cloudflare_api::objects::{OptionalWish, VirtualNetwork as Remote};

use crate::blocks::{CloudflareDetails, given};
use crate::kind::prelude::*;
use crate::reasons::DEFAULT_NETWORK;

/// A private address space that routes can be told apart by.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "VirtualNetwork")]
#[kube(status = "VirtualNetworkStatus", shortname = "vnet", category = "cloudflare")]
#[kube(printcolumn = r#"{"name":"VNetID","type":"string","jsonPath":".status.virtualNetworkId"}"#)]
#[kube(printcolumn = r#"{"name":"Default","type":"boolean","jsonPath":".spec.isDefaultNetwork"}"#)]
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

status! {
    /// What became of a `VirtualNetwork`.
    VirtualNetworkStatus: AccountStatus {
        /// Id of the network.
        virtual_network_id: String,
        /// Whether it is the account's default network.
        is_default: bool,
    }
}

impl Kind for VirtualNetwork {
    type Body = Remote;

    const SHEET: Sheet = Sheet {
        shown: shown::NETWORK,
        id: "virtualNetworkId",
        older_finalizers: &["cloudflare.com/virtualnetwork-finalizer", "cloudflare.com/finalizer"],
        ..Sheet::owned("VirtualNetwork", "virtual network", finalizer!("virtualnetwork"))
    };
    const REMOTE: &'static TypedCollection<Self::Body> = &collections::VIRTUAL_NETWORKS;

    fn cloudflare(&self) -> Option<&CloudflareDetails> {
        Some(&self.spec.cloudflare)
    }

    fn remote_name(&self) -> Option<String> {
        Some(given(self.spec.name.as_ref()).unwrap_or_else(|| self.name_any()))
    }

    fn desired(&self, _: &Resolved) -> Result<Vec<Remote>, Problem> {
        let name = self.remote_name().unwrap_or_default();
        if name.trim() != name {
            let message = format!("name {name:?} begins or ends with a blank; remove it");
            return Err(Problem::invalid(reasons::INVALID_CONFIG, message));
        }
        Ok(vec![Remote {
            name: name.into(),
            comment: self.spec.comment.clone().unwrap_or_default().into(),
            default: OptionalWish(self.spec.is_default_network.then_some(true)),
            ..Remote::default()
        }])
    }

    fn is_default(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.is_default == Some(true))
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

    fn shown(&self, view: &StatusView<'_, Remote>) -> Value {
        json!({ "isDefault": view.present.first().map(|entry| entry.item.is_default()) })
    }
}

#[cfg(test)]
mod tests {
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
            common: AccountStatus { account_id: Some("a1".to_owned()), ..AccountStatus::default() },
            virtual_network_id: Some("v1".to_owned()),
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
