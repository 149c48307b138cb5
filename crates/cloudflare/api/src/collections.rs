//! The collections that Portolan knows, a row each. Permissions are named as in the dashboard:
//! <https://developers.cloudflare.com/fundamentals/api/reference/permissions/>; those of virtual networks and routes:
//! <https://developers.cloudflare.com/api/resources/zero_trust/subresources/networks/>.

use crate::collection::{Batch, Collection, Paging, TypedCollection, Verb};
use crate::objects::{
    AccessGroup, Account, DnsRecord, GatewayConfiguration, IdentityProvider, NetworkRoute, Tunnel, VirtualNetwork, Zone,
};
use crate::{collection, token_permission};

/// Accounts that the credential sees.
pub static ACCOUNTS: TypedCollection<Account> = TypedCollection::of(Collection {
    per_page: 50,
    permission: token_permission!("Account · Account Settings"),
    ..collection!(Root, "accounts", "accounts")
});

/// Zones that the credential sees.
pub static ZONES: TypedCollection<Zone> = TypedCollection::of(Collection {
    per_page: 50,
    refuses_duplicates: true,
    permission: token_permission!("Zone · Zone"),
    ..collection!(Root, "zones", "zones")
});

/// A zone's records. A second record with the same type, name and content is refused (81058), one with the same type and
/// name is not.
pub static DNS_RECORDS: TypedCollection<DnsRecord> = TypedCollection::of(Collection {
    per_page: 5_000,
    batch: Some(Batch { template: "/zones/{zone_id}/dns_records/batch", max: 200 }),
    permission: token_permission!("Zone · DNS"),
    ..collection!(Zone, "dns_records", "dns_records")
});

/// An account's virtual networks; names are unique among those that are not deleted.
pub static VIRTUAL_NETWORKS: TypedCollection<VirtualNetwork> = TypedCollection::of(Collection {
    paging: Paging::Single,
    list_query: &[("is_deleted", "false")],
    refuses_duplicates: true,
    permission: token_permission!("Account · Cloudflare Tunnel"),
    ..collection!(Account, "virtual_networks", "teamnet/virtual_networks")
});

/// An account's private network routes; (network, virtual network) is unique.
pub static NETWORK_ROUTES: TypedCollection<NetworkRoute> = TypedCollection::of(Collection {
    per_page: 1_000,
    list_query: &[("is_deleted", "false")],
    refuses_duplicates: true,
    permission: token_permission!("Account · Cloudflare Tunnel"),
    ..collection!(Account, "network_routes", "teamnet/routes")
});

/// An account's `cloudflared` tunnels; names are unique among those that are not deleted.
pub static TUNNELS: TypedCollection<Tunnel> = TypedCollection::of(Collection {
    per_page: 1_000,
    list_query: &[("is_deleted", "false")],
    refuses_duplicates: true,
    masked: true,
    permission: token_permission!("Account · Cloudflare Tunnel"),
    ..collection!(Account, "tunnels", "cfd_tunnel")
});

/// An account's Access applications; a domain has one at most. A PUT replaces the whole application, policies included.
pub static ACCESS_APPS: Collection = Collection {
    per_page: 1_000,
    update: Verb::Put,
    refuses_duplicates: true,
    permission: token_permission!("Account · Access: Apps and Policies"),
    ..collection!(Account, "access_apps", "access/apps")
};

/// An account's reusable Access policies. Names are not unique.
pub static ACCESS_POLICIES: Collection = Collection {
    per_page: 1_000,
    update: Verb::Put,
    permission: token_permission!("Account · Access: Apps and Policies"),
    ..collection!(Account, "access_policies", "access/policies")
};

/// An account's Access groups. Names are not unique.
pub static ACCESS_GROUPS: TypedCollection<AccessGroup> = TypedCollection::of(Collection {
    per_page: 1_000,
    update: Verb::Put,
    permission: token_permission!("Account · Access: Organizations, Identity Providers, and Groups"),
    ..collection!(Account, "access_groups", "access/groups")
});

/// An account's service tokens. Names are not unique, and the secret is in the answer to a create or rotate only.
pub static SERVICE_TOKENS: Collection = Collection {
    per_page: 1_000,
    update: Verb::Put,
    masked: true,
    permission: token_permission!("Account · Access: Service Tokens"),
    ..collection!(Account, "service_tokens", "access/service_tokens")
};

/// Where an account's users log in.
pub static IDENTITY_PROVIDERS: TypedCollection<IdentityProvider> = TypedCollection::of(Collection {
    per_page: 1_000,
    update: Verb::Put,
    masked: true,
    permission: token_permission!("Account · Access: Organizations, Identity Providers, and Groups"),
    ..collection!(Account, "identity_providers", "access/identity_providers")
});

/// An account's Gateway configuration. A PATCH replaces the groups of settings that it names.
pub static GATEWAY_CONFIGURATION: TypedCollection<GatewayConfiguration> = TypedCollection::of(Collection {
    paging: Paging::Document,
    permission: token_permission!("Account · Zero Trust"),
    ..collection!(Account, "gateway_configuration", "gateway/configuration")
});

/// A zone's certificates at the edge, active or not.
pub static CERTIFICATE_PACKS: Collection = Collection {
    list_query: &[("status", "all")],
    permission: token_permission!("Zone · SSL and Certificates"),
    ..collection!(Zone, "certificate_packs", "ssl/certificate_packs")
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::Page;
    use serde_json::json;

    const FIRST: Page = Page { number: 1, per_page: 5_000, cursor: None };

    #[test]
    fn records_are_listed_by_pages_of_their_zone() {
        let request = DNS_RECORDS.list("z1", &FIRST);

        assert_eq!(request.url(""), "/zones/z1/dns_records?page=1&per_page=5000");
        assert_eq!(request.template, "/zones/{zone_id}/dns_records");
    }

    #[test]
    fn virtual_networks_are_listed_at_once_without_deleted_ones() {
        assert_eq!(
            VIRTUAL_NETWORKS.list("a1", &FIRST).url(""),
            "/accounts/a1/teamnet/virtual_networks?is_deleted=false"
        );
    }

    #[test]
    fn zones_stand_below_the_root() {
        assert_eq!(ZONES.get("", "z1").url(""), "/zones/z1");
    }

    #[test]
    fn a_route_is_changed_by_patch_and_deleted_by_its_id() {
        let update = NETWORK_ROUTES.update("a1", "r1", &json!({"comment": "x"}));
        let delete = NETWORK_ROUTES.delete("a1", "r1", &[("cascade".to_owned(), "true".to_owned())]);

        assert_eq!((update.method.as_str(), update.url("").as_str()), ("PATCH", "/accounts/a1/teamnet/routes/r1"));
        assert_eq!(delete.url(""), "/accounts/a1/teamnet/routes/r1?cascade=true");
    }

    #[test]
    fn a_document_is_read_and_changed_at_its_own_path_and_known_by_its_scope() {
        let update = GATEWAY_CONFIGURATION.update("a1", "a1", &json!({"settings": {}}));

        assert_eq!((update.method.as_str(), update.url("").as_str()), ("PATCH", "/accounts/a1/gateway/configuration"));
        assert_eq!(GATEWAY_CONFIGURATION.list("a1", &FIRST).url(""), "/accounts/a1/gateway/configuration");
        assert_eq!(GATEWAY_CONFIGURATION.identified(json!({}), "a1"), json!({"id": "a1"}));
        assert_eq!(ZONES.identified(json!({"id": "z1"}), ""), json!({"id": "z1"}));
    }

    #[test]
    fn an_access_application_is_replaced_as_a_whole_in_its_account() {
        let update = ACCESS_APPS.update("a1", "app1", &json!({"name": "x"}));

        assert_eq!((update.method.as_str(), update.url("").as_str()), ("PUT", "/accounts/a1/access/apps/app1"));
        assert_eq!(update.template, "/accounts/{account_id}/access/apps/{id}");
    }

    #[test]
    fn a_service_token_is_never_shown() {
        let create = SERVICE_TOKENS.create("a1", &json!({"name": "x"}));

        assert!(create.masked && SERVICE_TOKENS.list("a1", &FIRST).masked);
        assert_eq!(create.url(""), "/accounts/a1/access/service_tokens");
    }

    #[test]
    fn a_tunnel_that_is_made_with_a_secret_is_masked() {
        assert!(TUNNELS.create("a1", &json!({"tunnel_secret": "s"})).masked);
    }
}
