//! Names, zones and certificates → whether each name can be reached, and by HTTPS. Pure.

use portolan_core::{Hostname, ZoneName};
use portolan_zerotrust::model::zone::{self, Zone};

use crate::doctor::check::{CERTIFICATE, NAME_ZONE};
use crate::doctor::facts::{Account, Api, Certificate, NameFacts, Observation};
use crate::doctor::finding::{CheckResult, Finding};

pub(super) fn judge(account: &Account) -> Vec<Finding> {
    let Some(api) = account.api.as_ref().filter(|api| api.token.is_active()) else { return Vec::new() };
    api.names.iter().flat_map(|name| judge_one(account, api, name)).collect()
}

fn judge_one(account: &Account, api: &Api, name: &NameFacts) -> Vec<Finding> {
    let subject = format!("name {}", name.hostname);
    let found = |verdict, message: String| Finding::new(&NAME_ZONE, &subject, verdict, message);
    let zones = match &api.zones {
        Ok(zones) => zones,
        Err(why) => return vec![found(CheckResult::NotKnown, format!("zones cannot be listed: {why}"))],
    };
    let Some(zone) = zone::choose(&name.hostname, &account.id, zones) else {
        let message = format!("no zone of account {} that the token of {} sees holds it", account.id, account.subject);
        return vec![found(CheckResult::Failed, message)];
    };
    vec![in_zone(&subject, zone, account.zone_id.as_deref()), certificate(&subject, api, name, zone)]
}

fn in_zone(subject: &str, zone: &Zone, only: Option<&str>) -> Finding {
    let found = |verdict, message: String| Finding::new(&NAME_ZONE, subject, verdict, message);
    let name = &zone.name;
    match only {
        Some(only) if only != zone.id => {
            let message = format!("it lies in zone {name} ({}), but the tenant's zoneId is {only}", zone.id);
            found(CheckResult::Failed, message).next("change zoneId or the hostname")
        }
        _ if !zone.active => found(CheckResult::Warning, format!("zone {name} is not active yet"))
            .next("change the domain's name servers to those that the dashboard shows"),
        _ => found(CheckResult::Ok, format!("zone {name}")),
    }
}

fn certificate(subject: &str, api: &Api, name: &NameFacts, zone: &Zone) -> Finding {
    let found = |verdict, message: String| Finding::new(&CERTIFICATE, subject, verdict, message);
    if !name.at_the_edge {
        return found(CheckResult::Ok, "its record is not proxied: the edge needs none".to_owned());
    }
    match (api.certificates.get(&zone.id), is_universal(&name.hostname, &zone.name)) {
        (Some(Ok(packs)), universal) => by_packs(subject, &name.hostname, packs, universal),
        (None | Some(Err(_)), true) => found(CheckResult::Ok, "by the universal certificate".to_owned()),
        (unread, false) => {
            let message = format!(
                "it is more than one label below {}, where the universal certificate does not reach{}",
                zone.name,
                whether_others(unread)
            );
            found(CheckResult::Warning, message)
        }
    }
}

fn whether_others(unread: Option<&Observation<Vec<Certificate>>>) -> &'static str {
    match unread {
        Some(Err(_)) => "; whether another one does cannot be read with this token",
        Some(Ok(_)) | None => "",
    }
}

/// By the certificates that the zone has.
fn by_packs(subject: &str, hostname: &Hostname, packs: &[Certificate], universal: bool) -> Finding {
    let found = |verdict, message: String| Finding::new(&CERTIFICATE, subject, verdict, message);
    let covering = |pack: &&Certificate| pack.hosts.iter().any(|host| covers(host, hostname));
    if let Some(pack) = packs.iter().filter(covering).find(|pack| pack.status == "active") {
        return found(CheckResult::Ok, format!("by the {} certificate for {}", pack.kind, pack.hosts.join(", ")));
    }
    match packs.iter().find(covering) {
        Some(pack) => found(CheckResult::Warning, format!("its {} certificate is {}", pack.kind, pack.status))
            .next("wait until it is active, or look at its validation in the dashboard (SSL/TLS, Edge Certificates)"),
        None if universal => found(CheckResult::Warning, "the zone has no certificate for it".to_owned())
            .next("switch Universal SSL on in the dashboard (SSL/TLS, Edge Certificates)"),
        None => found(CheckResult::Warning, "no certificate of the zone covers it".to_owned()),
    }
}

/// Whether the universal certificate covers a name: the zone's own, and one label below it.
fn is_universal(hostname: &Hostname, zone: &ZoneName) -> bool {
    hostname.labels().count() <= zone.labels().count() + 1
}

/// Whether a certificate's host, as `*.example.com`, covers a name. A star stands for one label.
fn covers(host: &str, hostname: &Hostname) -> bool {
    let name = hostname.as_str();
    match host.strip_prefix("*.") {
        None => host.eq_ignore_ascii_case(name),
        Some(parent) => name.split_once('.').is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(parent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Hostname {
        Hostname::parse(text).unwrap()
    }

    #[test]
    fn the_universal_certificate_reaches_one_label_below_the_zone() {
        let zone = ZoneName::parse("example.com").unwrap();

        for covered in ["example.com", "app.example.com", "*.example.com"] {
            assert!(is_universal(&name(covered), &zone), "{covered}");
        }
        for deeper in ["a.b.example.com", "*.dev.example.com"] {
            assert!(!is_universal(&name(deeper), &zone), "{deeper}");
        }
    }

    #[test]
    fn a_star_in_a_certificate_stands_for_one_label() {
        assert!(covers("*.dev.example.com", &name("a.dev.example.com")));
        assert!(covers("*.dev.example.com", &name("*.dev.example.com")));
        assert!(covers("Example.com", &name("example.com")));
        assert!(!covers("*.example.com", &name("example.com")));
        assert!(!covers("*.example.com", &name("a.dev.example.com")));
        assert!(!covers("a.example.com", &name("b.example.com")));
    }
}
