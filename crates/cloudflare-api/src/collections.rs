//! The collections that Portolan knows, a row each.

use crate::collection;
use crate::collection::{Batch, Collection, Paging};

/// Accounts that the credential sees.
pub static ACCOUNTS: Collection = Collection { per_page: 50, ..collection!(Root, "accounts", "accounts") };

/// Zones that the credential sees.
pub static ZONES: Collection =
    Collection { per_page: 50, refuses_duplicates: true, ..collection!(Root, "zones", "zones") };

/// A zone's records. A second record with the same type, name and content is refused (81058), one with the same type and
/// name is not.
pub static DNS_RECORDS: Collection = Collection {
    per_page: 5_000,
    batch: Some(Batch { template: "/zones/{zone_id}/dns_records/batch", max: 200 }),
    ..collection!(Zone, "dns_records", "dns_records")
};

/// An account's virtual networks; names are unique among those that are not deleted.
pub static VIRTUAL_NETWORKS: Collection = Collection {
    paging: Paging::Single,
    list_query: &[("is_deleted", "false")],
    refuses_duplicates: true,
    ..collection!(Account, "virtual_networks", "teamnet/virtual_networks")
};

/// An account's private network routes; (network, virtual network) is unique.
pub static NETWORK_ROUTES: Collection = Collection {
    per_page: 1_000,
    list_query: &[("is_deleted", "false")],
    refuses_duplicates: true,
    ..collection!(Account, "network_routes", "teamnet/routes")
};

/// An account's `cloudflared` tunnels; names are unique among those that are not deleted.
pub static TUNNELS: Collection = Collection {
    per_page: 1_000,
    list_query: &[("is_deleted", "false")],
    refuses_duplicates: true,
    masked: true,
    ..collection!(Account, "tunnels", "cfd_tunnel")
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
    fn a_tunnel_that_is_made_with_a_secret_is_masked() {
        assert!(TUNNELS.create("a1", &json!({"tunnel_secret": "s"})).masked);
    }
}
