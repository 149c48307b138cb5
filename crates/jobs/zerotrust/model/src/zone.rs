//! Which zone holds a name: the one with the longest name, so that a delegated part of a domain wins.

use portolan_core::{Hostname, Problem, ZoneName};

use crate::reasons;

/// A zone as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: ZoneName,
    /// The account that it is in, if it is told.
    pub account_id: Option<String>,
    /// Whether it is active.
    pub active: bool,
}

/// The zone of an account that holds a name; of several with one name the active one.
pub fn choose<'a>(hostname: &Hostname, account: &str, zones: impl IntoIterator<Item = &'a Zone>) -> Option<&'a Zone> {
    let ours = |zone: &&Zone| zone.account_id.as_deref().is_none_or(|id| id == account);
    let fitting = zones.into_iter().filter(ours).filter(|zone| hostname.is_in(&zone.name));
    fitting.max_by_key(|zone| (zone.name.as_str().len(), zone.active, std::cmp::Reverse(zone.id.as_str())))
}

/// What is known of the tenant's own zone, where none was found that holds the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TenantZone {
    /// Its name.
    Named(ZoneName),
    /// Zones can be listed and this one is not among them, nor can it be read.
    Hidden,
    /// The credential may read no zone at all: nobody can tell.
    Unreadable,
}

/// The zone that was found, where the tenant's is not another one.
pub fn agree(hostname: &Hostname, found: &str, tenant: Option<&str>) -> Result<String, Problem> {
    match tenant.filter(|zone| !zone.is_empty() && *zone != found) {
        None => Ok(found.to_owned()),
        Some(tenant) => {
            let message = format!(
                "{hostname} lies in zone {found}, but the tenant's zoneId is {tenant}: change zoneId or the hostname"
            );
            Err(Problem::invalid(reasons::ZONE_MISMATCH, message))
        }
    }
}

/// The tenant's zone where none was found: only if the name lies in it, or if nobody can tell. Cloudflare takes a name
/// outside of a zone for one inside of it, and makes `app.example.org.example.com`.
pub fn stand_in(hostname: &Hostname, tenant: &str, told: &TenantZone) -> Result<String, Problem> {
    let mismatch = |why: String| Err(Problem::invalid(reasons::ZONE_MISMATCH, why));
    match told {
        TenantZone::Named(name) if hostname.is_in(name) => Ok(tenant.to_owned()),
        TenantZone::Named(name) => mismatch(format!(
            "{hostname} does not lie in zone {name}, which the tenant's zoneId {tenant} is: change zoneId or the hostname"
        )),
        TenantZone::Hidden => mismatch(format!(
            "no zone that the API token can see holds {hostname}, and it cannot see the tenant's zoneId {tenant}: give the \
             token Zone:Read for that zone, or change zoneId"
        )),
        TenantZone::Unreadable => Ok(tenant.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(id: &str, name: &str) -> Zone {
        Zone { id: id.into(), name: ZoneName::parse(name).unwrap(), account_id: Some("a".into()), active: true }
    }

    fn chosen(hostname: &str, zones: &[Zone]) -> Option<String> {
        choose(&Hostname::parse(hostname).unwrap(), "a", zones).map(|zone| zone.id.clone())
    }

    #[test]
    fn scenario_24_the_longest_zone_name_wins() {
        let zones = [zone("1", "example.com"), zone("2", "dev.example.com"), zone("3", "ample.com")];

        assert_eq!(chosen("a.dev.example.com", &zones).as_deref(), Some("2"));
        assert_eq!(chosen("*.dev.example.com", &zones).as_deref(), Some("2"));
        assert_eq!(chosen("dev.example.com", &zones).as_deref(), Some("2"));
        assert_eq!(chosen("xdev.example.com", &zones).as_deref(), Some("1"));
        assert_eq!(chosen("a.example.org", &zones), None);
    }

    #[test]
    fn zones_of_other_accounts_and_inactive_twins_are_passed_over() {
        let foreign = Zone { account_id: Some("b".into()), ..zone("1", "dev.example.com") };
        let pending = Zone { active: false, ..zone("2", "example.com") };
        let zones = [foreign, pending.clone(), zone("3", "example.com")];

        assert_eq!(chosen("a.dev.example.com", &zones).as_deref(), Some("3"));
        assert_eq!(chosen("a.example.com", &[pending]).as_deref(), Some("2"));
    }

    #[test]
    fn scenario_25_a_tenants_zone_guards_and_stands_in() {
        let name = Hostname::parse("a.example.com").unwrap();

        assert_eq!(agree(&name, "1", Some("2")).unwrap_err().reason, "ZoneMismatch");
        assert_eq!(agree(&name, "1", Some("")).unwrap(), "1");
        assert_eq!(agree(&name, "1", None).unwrap(), "1");
        assert_eq!(stand_in(&name, "2", &TenantZone::Unreadable).unwrap(), "2");
    }

    #[test]
    fn finding_15_a_tenants_zone_stands_in_only_for_names_inside_it() {
        let (name, other) = (Hostname::parse("a.example.com").unwrap(), Hostname::parse("app.other.org").unwrap());
        let named = TenantZone::Named(ZoneName::parse("example.com").unwrap());

        assert_eq!(stand_in(&name, "2", &named).unwrap(), "2");
        assert_eq!(stand_in(&other, "2", &named).unwrap_err().reason, "ZoneMismatch");
        assert_eq!(stand_in(&name, "2", &TenantZone::Hidden).unwrap_err().reason, "ZoneMismatch");
    }
}
