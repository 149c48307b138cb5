//! How many objects the API is known to grant, and what a user knows better. Pure: it only advises.
//!
//! Accounts differ: what Cloudflare grants on request nobody tells, so that a known limit is a reason to warn and never one to
//! refuse. <https://developers.cloudflare.com/cloudflare-one/account-limits/> lists what accounts have without asking.

use std::collections::BTreeMap;

use crate::collection::Collection;
use crate::objects::ZonePlan;

/// Something of which there may be only so many.
#[derive(Debug)]
struct LimitedThing {
    /// As users write it.
    name: &'static str,
    /// The collection that it is counted in; domains are counted in an application.
    collection: Option<&'static str>,
    /// What everybody has; none where it depends on the zone's plan.
    usual: Option<usize>,
}

const COUNTED: [LimitedThing; 8] = [
    LimitedThing { name: "access-applications", collection: Some("access_apps"), usual: Some(500) },
    LimitedThing { name: "access-policies", collection: Some("access_policies"), usual: Some(500) },
    LimitedThing { name: "access-groups", collection: Some("access_groups"), usual: Some(300) },
    LimitedThing { name: "service-tokens", collection: Some("service_tokens"), usual: Some(50) },
    LimitedThing { name: "tunnels", collection: Some("tunnels"), usual: Some(1_000) },
    LimitedThing { name: "network-routes", collection: Some("network_routes"), usual: Some(1_000) },
    LimitedThing { name: "dns-records", collection: Some("dns_records"), usual: None },
    LimitedThing { name: DOMAINS, collection: None, usual: Some(5) },
];

const DOMAINS: &str = "domains-per-application";

/// Zones of the free plan that were made since may have fewer records.
const FEWER_SINCE: &str = "2024-09-01";

/// Records that make it worth knowing a zone's plan: nine tenths of the lowest limit.
pub(crate) const WORTH_KNOWING: usize = 180;

/// Known limits: those that everybody has, and those that a user set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    set: BTreeMap<&'static str, usize>,
}

impl Limits {
    /// Reads `access-applications=2000,service-tokens=200`; what is not said is as everybody has it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut set = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, number) = part.split_once('=').ok_or_else(|| unreadable(part))?;
            let counted = COUNTED.iter().find(|counted| counted.name == name.trim()).ok_or_else(|| unreadable(part))?;
            let number = number.trim().parse().ok().filter(|number| *number > 0).ok_or_else(|| unreadable(part))?;
            set.insert(counted.name, number);
        }
        Ok(Self { set })
    }

    /// How many objects a collection may have in one account or zone, as far as known.
    pub(crate) fn of(&self, collection: &Collection) -> Option<usize> {
        self.limit(COUNTED.iter().find(|counted| counted.collection == Some(collection.name))?)
    }

    /// How many domains an Access application may stand for.
    pub fn domains_per_application(&self) -> Option<usize> {
        self.limit(COUNTED.iter().find(|counted| counted.name == DOMAINS)?)
    }

    fn limit(&self, counted: &LimitedThing) -> Option<usize> {
        self.set.get(counted.name).copied().or(counted.usual)
    }
}

fn unreadable(part: &str) -> String {
    let names: Vec<&str> = COUNTED.iter().map(|counted| counted.name).collect();
    format!("{part:?} is no limit: write NAME=NUMBER with one of {}", names.join(", "))
}

/// Whether so many are nine tenths of the limit, or more.
pub fn is_near(used: usize, limit: usize) -> bool {
    used.saturating_mul(10) >= limit.saturating_mul(9)
}

/// How many records a zone may have by its plan and the time when it was made: 200 on the free plan, 1,000 where the zone was
/// made before September 2024, 3,500 on paid plans (<https://developers.cloudflare.com/dns/manage-dns-records/>); what an
/// enterprise agreed on nobody tells.
pub(crate) fn records_of(plan: ZonePlan, created: &str) -> Option<usize> {
    match plan {
        ZonePlan::Free if created.is_empty() => None,
        ZonePlan::Free if created < FEWER_SINCE => Some(1_000),
        ZonePlan::Free => Some(200),
        ZonePlan::Pro | ZonePlan::Business => Some(3_500),
        ZonePlan::Enterprise | ZonePlan::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::collections::{ACCESS_APPS, DNS_RECORDS, SERVICE_TOKENS, VIRTUAL_NETWORKS};
    use crate::objects::Zone;

    #[test]
    fn what_a_user_sets_counts_and_the_rest_is_as_everybody_has_it() {
        let limits = Limits::parse(" access-applications = 2000, dns-records=10000,").unwrap();

        assert_eq!((limits.of(&ACCESS_APPS), limits.of(&SERVICE_TOKENS)), (Some(2000), Some(50)));
        assert_eq!((limits.of(&DNS_RECORDS), Limits::default().of(&DNS_RECORDS)), (Some(10_000), None));
        assert_eq!((limits.of(&VIRTUAL_NETWORKS), limits.domains_per_application()), (None, Some(5)));
    }

    #[test]
    fn a_limit_that_nobody_knows_is_told_with_those_that_there_are() {
        for text in ["apps=5", "service-tokens", "service-tokens=many", "service-tokens=0"] {
            let told = Limits::parse(text).unwrap_err();
            assert!(told.contains("access-applications, access-policies"), "{told}");
        }
    }

    #[test]
    fn a_zone_may_have_as_many_records_as_its_plan_and_its_age_allow() {
        let of = |zone: Value| from_value::<Zone>(zone).unwrap().most_records;
        let zone = |plan: &str, created: &str| of(json!({"plan": {"legacy_id": plan}, "created_on": created}));

        assert_eq!(zone("free", "2024-08-31T23:59:59Z"), Some(1_000));
        assert_eq!(zone("free", "2024-09-01T00:00:00Z"), Some(200));
        assert_eq!((zone("free", ""), zone("enterprise", "2025-01-01T00:00:00Z")), (None, None));
        assert_eq!(zone("business", "2025-01-01T00:00:00Z"), Some(3_500));
        assert_eq!(of(json!({"plan": {"name": "Pro Website"}})), Some(3_500));
        assert_eq!(of(json!({"plan": {"legacy_id": "free"}, "created_on": null})), None);
    }

    #[test]
    fn a_limit_is_near_from_nine_tenths_on() {
        assert!(is_near(450, 500) && is_near(45, 50) && is_near(9, 9));
        assert!(!is_near(449, 500) && !is_near(4, 5));
    }
}
