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

/// The zone to use, from what was found and what the tenant says: they must not differ.
pub fn agree(hostname: &Hostname, found: Option<&str>, tenant: Option<&str>) -> Result<Option<String>, Problem> {
    let tenant = tenant.filter(|zone| !zone.is_empty());
    match (found, tenant) {
        (Some(found), Some(tenant)) if found != tenant => {
            let message = format!(
                "{hostname} lies in zone {found}, but the tenant's zoneId is {tenant}: change zoneId or the hostname"
            );
            Err(Problem::invalid(reasons::ZONE_MISMATCH, message))
        }
        (found, tenant) => Ok(found.or(tenant).map(str::to_owned)),
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

        assert_eq!(agree(&name, Some("1"), Some("2")).unwrap_err().reason, "ZoneMismatch");
        assert_eq!(agree(&name, None, Some("2")).unwrap().as_deref(), Some("2"));
        assert_eq!(agree(&name, Some("1"), Some("")).unwrap().as_deref(), Some("1"));
        assert_eq!(agree(&name, None, None).unwrap(), None);
    }
}
