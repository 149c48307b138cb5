//! `NetworkRoute` ↔ `accounts/{account}/teamnet/routes/{id}`
//!
//! A route is known by its network and virtual network; both cannot be changed in place, the tunnel can. The older operator
//! recorded no id: its routes are found by their key and mark.

use portolan_cloudflare_api::objects::NetworkRoute as Remote;
use portolan_core::Network;

use crate::blocks::{CloudflareDetails, TunnelReference, VirtualNetworkReference};
use crate::kind::prelude::*;

/// A private network that is reached through a tunnel.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "NetworkRoute")]
#[kube(status = "NetworkRouteStatus", shortname = "netroute", category = "cloudflare")]
#[kube(printcolumn = r#"{"name":"Network","type":"string","jsonPath":".spec.network"}"#)]
#[kube(printcolumn = r#"{"name":"TunnelID","type":"string","jsonPath":".status.tunnelId"}"#)]
#[kube(printcolumn = r#"{"name":"VNetID","type":"string","jsonPath":".status.virtualNetworkId"}"#)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct NetworkRouteSpec {
    /// The network in CIDR form, IPv4 or IPv6, as `10.0.0.0/8` or `fd00::/48`.
    #[schemars(length(min = 1, max = 64), transform = schema::rules(NETWORK))]
    pub network: String,
    /// Free text that Cloudflare keeps with the route, behind the mark that says whose it is; cut to what fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub comment: Option<String>,
    /// The tunnel that leads to the network.
    pub tunnel_ref: TunnelReference,
    /// The virtual network that the network belongs to; the account's default where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_network_ref: Option<VirtualNetworkReference>,
    /// Who asks Cloudflare, and about which account.
    pub cloudflare: CloudflareDetails,
}

const NETWORK: &[schema::CelRule] = &[
    ("isCIDR(self)", "network is an address with a prefix length, as 10.0.0.0/8 or fd00::/48"),
    (
        "!isCIDR(self) || cidr(self).masked() == cidr(self)",
        "network has bits set behind its prefix length: write the network itself, as 10.0.0.0/8 instead of 10.0.0.1/8",
    ),
];

status! {
    /// What became of a `NetworkRoute`.
    NetworkRouteStatus: AccountStatus {
        /// Id of the route.
        route_id: String,
        /// The network that is routed.
        network: String,
        /// Id of the tunnel.
        tunnel_id: String,
        /// Name of the tunnel.
        tunnel_name: String,
        /// Id of the virtual network.
        virtual_network_id: String,
    }
}

impl Kind for NetworkRoute {
    type Body = Remote;

    const SHEET: Sheet = Sheet {
        shown: shown::ROUTE,
        id: "routeId",
        older_finalizers: &["cloudflare.com/networkroute-finalizer", "cloudflare.com/finalizer"],
        ..Sheet::owned("NetworkRoute", "network route", finalizer!("networkroute"))
    };
    const REMOTE: &'static TypedCollection<Self::Body> = &collections::NETWORK_ROUTES;

    fn cloudflare(&self) -> Option<&CloudflareDetails> {
        Some(&self.spec.cloudflare)
    }

    fn refers(&self) -> Vec<SpecReference> {
        let network = VirtualNetworkReference::reference(self.spec.virtual_network_ref.as_ref());
        [self.spec.tunnel_ref.reference(None), network].map(SpecReference::Remote).to_vec()
    }

    fn desired(&self, resolved: &Resolved) -> Result<Vec<Remote>, Problem> {
        let [tunnel, virtual_network] = resolved.targets.each(&self.refers())?;
        Ok(vec![Remote {
            network: Network::parse(&self.spec.network)?.to_string().into(),
            tunnel_id: tunnel.id.as_str().into(),
            virtual_network_id: virtual_network.id.as_str().into(),
            comment: self.spec.comment.clone().unwrap_or_default().into(),
            ..Remote::default()
        }])
    }

    fn claim(&self) -> Option<String> {
        let place = VirtualNetworkReference::reference(self.spec.virtual_network_ref.as_ref());
        let account = self.spec.cloudflare.account_hint();
        Some(format!("route {} in {place}{account}", Network::spelled(&self.spec.network)))
    }

    fn shown(&self, view: &StatusView<'_, Remote>) -> Value {
        let Some(Entry { item, .. }) = view.present.first() else { return Value::Null };
        let tunnel = self.spec.tunnel_ref.reference(None);
        let tunnel = view.resolved.and_then(|resolved| resolved.targets.of(&tunnel).ok()?.name.clone());
        json!({
            "network": Network::spelled(&item.network),
            "tunnelId": item.tunnel_id,
            "tunnelName": tunnel.or_else(|| self.status.as_ref()?.tunnel_name.clone()),
            "virtualNetworkId": item.virtual_network_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use portolan_cloudflare_api::Item as _;
    use serde_json::from_value;

    use super::*;
    use crate::reference::{NamedBy, RemoteReference, RemoteTarget, RemoteTargets};

    fn route(network: &str) -> NetworkRoute {
        from_value(json!({
            "apiVersion": "networking.cloudflare-operator.io/v1alpha2", "kind": "NetworkRoute",
            "metadata": { "name": "pods" },
            "spec": { "network": network, "comment": "pods", "tunnelRef": { "name": "edge" }, "cloudflare": {} },
        }))
        .unwrap()
    }

    fn resolved() -> Resolved {
        let found = [("t1", Some("edge".to_owned())), ("v1", None)].into_iter();
        let found = found.map(|(id, name)| RemoteTarget { id: id.parse().unwrap(), name });
        let targets = RemoteTargets::for_each(&route("10.0.0.0/8").refers(), found);
        Resolved { account: Some("a1".parse().unwrap()), targets, ..Resolved::default() }
    }

    #[test]
    fn a_route_is_sent_with_its_tunnel_and_virtual_network() {
        let body = route("fd00:0::/48").desired(&resolved()).unwrap().remove(0);

        assert_eq!(
            body.create_body(),
            json!({ "network": "fd00::/48", "tunnel_id": "t1", "virtual_network_id": "v1", "comment": "pods" })
        );
        assert_eq!(body.natural_key(), "fd00::/48@v1");
    }

    #[test]
    fn a_network_with_host_bits_is_refused_with_the_right_one() {
        let problem = route("10.0.0.1/8").desired(&resolved()).unwrap_err();

        assert_eq!((problem.class, problem.reason), (portolan_core::Class::Invalid, "InvalidConfig"));
        assert!(problem.message.contains("write 10.0.0.0/8"), "{problem}");
    }

    #[test]
    fn a_route_without_a_resolved_tunnel_waits() {
        let problem = route("10.0.0.0/8").desired(&Resolved::default()).unwrap_err();

        assert_eq!(problem.reason, "DependencyError");
    }

    #[test]
    fn another_tunnel_is_a_change_and_another_network_a_new_route() {
        let body = route("10.0.0.0/8").desired(&resolved()).unwrap().remove(0);
        let old = |value: Value| from_value::<Remote>(value).unwrap();

        assert!(
            !body.replaces(&old(json!({ "network": "10.0.0.0/8", "tunnel_id": "t2", "virtual_network_id": "v1" })))
        );
        assert!(
            body.replaces(&old(json!({ "network": "10.1.0.0/16", "tunnel_id": "t1", "virtual_network_id": "v1" })))
        );
        assert!(body.replaces(&old(json!({ "network": "10.0.0.0/8", "tunnel_id": "t1", "virtual_network_id": "v2" }))));
    }

    #[test]
    fn the_status_names_everything_that_deletion_needs() {
        let body = route("10.0.0.0/8").desired(&resolved()).unwrap().remove(0);
        let (present, resolved) = ([Entry { id: "r1".to_owned(), item: body }], resolved());
        let view = StatusView { resolved: Some(&resolved), present: &present, problem: None, checked_at: None };

        assert_eq!(
            route("10.0.0.0/8").status(&view),
            json!({
                "routeId": "r1", "network": "10.0.0.0/8", "tunnelId": "t1", "tunnelName": "edge",
                "virtualNetworkId": "v1", "accountId": "a1", "state": "active",
            })
        );
    }

    #[test]
    fn routes_without_network_reference_ask_for_the_default_one() {
        let network = RemoteReference { kind: "VirtualNetwork", by: NamedBy::Default, field: "virtualNetworkRef" };

        assert!(route("10.0.0.0/8").refers().contains(&SpecReference::Remote(network)));
    }

    #[test]
    fn one_network_in_two_spellings_is_one_claim() {
        assert_eq!(route("fd00::/48").claim(), route("FD00:0::/48").claim());
    }
}
