//! The kinds of the job. A kind is a file here, and a line in the table at the end of this one.

pub mod access_group;
pub mod cloudflare_credentials;
pub mod cloudflare_domain;
pub mod dns_record;
pub mod gateway_configuration;
pub mod network_route;
pub mod tunnel;
pub mod virtual_network;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use portolan_cloudflare_api::{Collection, Item as _};

use crate::kind::{Kind, Management};
use crate::sheet::StateWords;
use crate::shown::Shown;

pub use access_group::AccessGroup;
pub use cloudflare_credentials::CloudflareCredentials;
pub use cloudflare_domain::{CloudflareDomain, resolve_zone, zone_of};
pub use dns_record::DnsRecord;
pub use gateway_configuration::GatewayConfiguration;
pub use network_route::NetworkRoute;
pub use tunnel::{ClusterTunnel, Tunnel};
pub use virtual_network::VirtualNetwork;

/// Something that is done for every kind.
pub trait Visitor {
    /// Does it for one.
    fn visit<K: Kind>(&mut self);
}

/// What the table says of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name, as in manifests.
    pub kind: &'static str,
    /// Its name in URLs.
    pub plural: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Where what stands for it at Cloudflare is.
    pub remote: &'static Collection,
    /// What may be done to what stands for it at Cloudflare.
    pub management: Management,
    /// What a token must be allowed to do that, as the dashboard names it.
    pub permission: &'static str,
    /// Whether what stands for it carries a mark that says whose it is.
    pub marked: bool,
    /// The finalizer of its objects.
    pub finalizer: &'static str,
    /// Finalizers that older operators left on them.
    pub older_finalizers: &'static [&'static str],
    /// What people are told of an object besides its health.
    pub shown: Shown,
    definition: fn() -> CustomResourceDefinition,
}

impl Row {
    /// Its definition, to be given to an API server.
    pub fn crd(&self) -> CustomResourceDefinition {
        (self.definition)()
    }
}

/// One line for each kind: its type, its plural, where its objects live, and its definition.
macro_rules! kinds {
    ($($kind:ty, $plural:literal, $namespaced:literal, $definition:expr;)+) => {
        /// Does something for every kind, in the order of the table.
        pub fn each(visitor: &mut impl Visitor) {
            $(visitor.visit::<$kind>();)+
        }

        /// All kinds, what others refer to first.
        pub fn table() -> Vec<Row> {
            vec![$(Row {
                kind: <$kind as Kind>::KIND,
                plural: $plural,
                namespaced: $namespaced,
                remote: <$kind as Kind>::REMOTE,
                management: <$kind as Kind>::MANAGEMENT,
                permission: permission::<$kind>(),
                marked: is_marked::<$kind>(),
                finalizer: <$kind as Kind>::FINALIZER,
                older_finalizers: <$kind as Kind>::SHEET.older_finalizers,
                shown: <$kind as Kind>::SHEET.shown,
                definition: $definition,
            },)+]
        }
    };
}

fn permission<K: Kind>() -> &'static str {
    match K::MANAGEMENT {
        Management::Owned | Management::Singleton => K::REMOTE.permission.edit,
        Management::Observed => K::REMOTE.permission.read,
    }
}

fn is_marked<K: Kind>() -> bool {
    K::Body::MARK_LIMIT.is_some()
}

/// The definitions of all kinds, in the order of the table.
pub fn crds() -> Vec<CustomResourceDefinition> {
    table().iter().map(Row::crd).collect()
}

/// A kind's definition. What is the same for all kinds is added here: the words of `state` are those of the sheet, the last
/// two columns are the state and the age, and the object is described as its spec is.
fn crd<K: Kind>() -> CustomResourceDefinition {
    let mut definition = K::crd();
    for version in &mut definition.spec.versions {
        version
            .additional_printer_columns
            .get_or_insert_default()
            .extend([column("State", "string", ".status.state"), column("Age", "date", ".metadata.creationTimestamp")]);
        let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) else {
            continue;
        };
        schema.description = schema.properties.as_ref().and_then(|fields| fields.get("spec")?.description.clone());
        let status = schema.properties.as_mut().and_then(|fields| fields.get_mut("status"));
        let state = status.and_then(|status| status.properties.as_mut()?.get_mut("state"));
        let usual = StateWords::LOWER.sentence();
        if let Some(state) = state.filter(|state| state.description.as_ref() == Some(&usual)) {
            state.description = Some(K::SHEET.states.sentence());
        }
    }
    definition
}

fn column(name: &str, kind: &str, path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: kind.to_owned(),
        json_path: path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    }
}

kinds! {
    CloudflareCredentials, "cloudflarecredentials", false, crd::<CloudflareCredentials>;
    CloudflareDomain, "cloudflaredomains", false, crd::<CloudflareDomain>;
    Tunnel, "tunnels", true, tunnel::crd::<Tunnel>;
    ClusterTunnel, "clustertunnels", false, tunnel::crd::<ClusterTunnel>;
    VirtualNetwork, "virtualnetworks", false, crd::<VirtualNetwork>;
    NetworkRoute, "networkroutes", false, crd::<NetworkRoute>;
    DnsRecord, "dnsrecords", true, crd::<DnsRecord>;
    AccessGroup, "accessgroups", false, crd::<AccessGroup>;
    GatewayConfiguration, "gatewayconfigurations", false, crd::<GatewayConfiguration>;
}

#[cfg(test)]
mod tests;
