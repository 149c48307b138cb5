//! Steps for people: what is changed, before and after.

use portolan_cloudflare_api::Entry;
use portolan_cloudflare_api::objects::DnsRecord;
use portolan_core::{Change, Hostname, Target};
use serde_json::{Value, json};

use crate::app::App;
use crate::record::{self, PublishedRecord as _};

/// How users call a service token.
pub(crate) const SERVICE_TOKEN: &str = "service token";

/// How users call an Access application.
pub(crate) const ACCESS_APPLICATION: &str = "Access application";

/// A DNS record.
pub(crate) fn record(zone_id: &str, label: String, id: Option<&str>) -> Target {
    with(Target::new("DNS record", zone_id, label), id)
}

/// A record that goes.
pub(crate) fn record_gone(zone_id: &str, entry: &Entry<DnsRecord>, why: &str) -> Change {
    Change::delete(record(zone_id, record::label(entry), Some(&entry.id)), entry.item.shown(), why)
}

/// A tunnel's rule.
pub(crate) fn rule(tunnel_id: &str, hostname: &Hostname) -> Target {
    Target::new("tunnel rule", tunnel_id, hostname.as_str())
}

/// An Access application.
pub(crate) fn app(account_id: &str, domain: &str, id: Option<&str>) -> Target {
    with(Target::new(ACCESS_APPLICATION, account_id, domain), id)
}

/// An application that goes.
pub(crate) fn app_gone(account_id: &str, entry: &Entry<App>, why: &str) -> Change {
    Change::delete(app(account_id, &entry.item.domain(), Some(&entry.id)), entry.item.shown(), why)
}

/// A policy.
pub(crate) fn policy(account_id: &str, name: &str, id: Option<&str>) -> Target {
    with(Target::new("Access policy", account_id, name), id)
}

/// A service token.
pub(crate) fn token(account_id: &str, name: &str, id: Option<&str>) -> Target {
    with(Target::new(SERVICE_TOKEN, account_id, name), id)
}

/// A redirect rule.
pub(crate) fn redirect(zone_id: &str, hostname: &str, id: Option<&str>) -> Target {
    with(Target::new("redirect rule", zone_id, hostname), id)
}

/// A token as it is shown: never its secret.
pub(crate) fn token_shown(name: &str, duration: &str) -> Value {
    json!({"name": name, "duration": duration})
}

fn with(target: Target, id: Option<&str>) -> Target {
    portolan_core::waypoint!();
    match id {
        Some(id) => target.with_id(id),
        None => target,
    }
}
