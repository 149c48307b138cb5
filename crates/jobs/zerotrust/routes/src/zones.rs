//! Hostname → the zone that it lies in, by a snapshot of the zones that the credential sees; where these are many, by
//! requests for those whose names fit.
//!
//! The longest name wins, so that delegated zones do. A zone that was found stays known for ten minutes, and for good where
//! no delegated zone can lie between it and the name; a name without a zone is looked for again after one minute. The
//! zone that a tenant names stands in where zones cannot be listed, and only for names that lie in it.

use std::sync::Arc;
use std::time::Duration;

use portolan_cloudflare_api::{
    ApiError, Entry, ErrorClass, Freshness, Lane, Page, Reader, SharedLook, Snapshot, collections, objects,
};
use portolan_core::{Hostname, Problem, ZoneName};
use portolan_zerotrust_model::zone::{self, TenantZone};
use serde_json::Value;

use crate::credentials::CredentialReader;

/// How long a zone that was found is taken as still there.
pub(crate) const FOUND: Duration = Duration::from_secs(600);
/// How long a name without a zone is taken as still without.
const MISSED: Duration = Duration::from_secs(60);
/// A list of zones with more pages is not read: it would take as many requests each minute that a name has no zone.
const FEW_PAGES: u64 = 4;
/// Zones of a page.
const PAGE: usize = 50;
/// How long a credential is taken as still seeing many zones.
const MANY: Duration = Duration::from_secs(3600);

/// Where to look, and what the tenant says about it.
pub(crate) struct ZoneQuestion<'a> {
    pub(crate) hostname: &'a Hostname,
    pub(crate) account: &'a str,
    /// The only zone that the tenant allows.
    pub(crate) only: Option<&'a str>,
}

/// The zone of a name; none where the account has none that fits.
pub(crate) async fn look_up(
    credentials: &CredentialReader,
    reader: &Reader,
    question: &ZoneQuestion<'_>,
) -> Result<Option<String>, Problem> {
    portolan_core::waypoint!();
    look_up_in(Lane::Change, credentials, reader, question).await
}

/// The same for those who are in less of a hurry.
pub(crate) async fn look_up_in(
    lane: Lane,
    credentials: &CredentialReader,
    reader: &Reader,
    question: &ZoneQuestion<'_>,
) -> Result<Option<String>, Problem> {
    if question.only.is_none() {
        credentials.not_refused(reader)?;
    }
    match (find(lane, reader, question).await, question.only) {
        (Ok(Some(found)), only) => zone::agree(question.hostname, &found.id, only).map(Some),
        (Ok(None), None) => Ok(None),
        (Ok(None), Some(only)) => {
            let told = told(credentials, reader, only).await?;
            zone::stand_in(question.hostname, only, &told).map(Some)
        }
        (Err(error), Some(only)) if error.class == ErrorClass::Auth => {
            let told = credentials.zone(reader, only).await?.map_or(TenantZone::Unreadable, TenantZone::Named);
            zone::stand_in(question.hostname, only, &told).map(Some)
        }
        (Err(error), _) => {
            Err(credentials.problem(reader, &error, &format!("looking for the zone of {}", question.hostname)))
        }
    }
}

/// Looks in the list of all zones, or, where that is long, for those that may hold the name.
async fn find(lane: Lane, reader: &Reader, question: &ZoneQuestion<'_>) -> Result<Option<ChosenZone>, ApiError> {
    let zones = reader.records(&collections::ZONES, "");
    for (freshness, age, any) in [
        (Freshness::Any, Duration::MAX, false),
        (Freshness::Within(FOUND), FOUND, true),
        (Freshness::Within(MISSED), MISSED, true),
    ] {
        if !are_many(reader) && !zones.refresh_up_to(lane, freshness, FEW_PAGES).await? {
            many(reader).note(());
        }
        let found = if are_many(reader) {
            named(lane, reader, question, age).await?
        } else {
            zones.with(|snapshot| chosen(&listed(snapshot, question.hostname), question))
        };
        if let Some(found) = found.filter(|found| any || found.is_parent_of(question.hostname)) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether the credential sees so many zones that they are looked for by name.
fn are_many(reader: &Reader) -> bool {
    many(reader).within(MANY).is_some()
}

fn many(reader: &Reader) -> SharedLook<()> {
    reader.looked("many_zones", "")
}

/// What is known of the tenant's own zone.
async fn told(credentials: &CredentialReader, reader: &Reader, only: &str) -> Result<TenantZone, Problem> {
    let zones = reader.records(&collections::ZONES, "");
    let (listed, empty) = zones.with(|snapshot| (snapshot.get(only).and_then(name_of), snapshot.is_empty()));
    Ok(match listed {
        Some(name) => TenantZone::Named(name),
        None => match credentials.zone(reader, only).await? {
            Some(name) => TenantZone::Named(name),
            // A credential that may read no zone is told that there are none.
            None if empty && !are_many(reader) => TenantZone::Unreadable,
            None => TenantZone::Hidden,
        },
    })
}

/// The zone of a name among many, by what was found at most so long ago. One request tells all zones of a domain; where
/// even these fill a page, each name that a zone could have is looked for.
async fn named(
    lane: Lane,
    reader: &Reader,
    question: &ZoneQuestion<'_>,
    age: Duration,
) -> Result<Option<ChosenZone>, ApiError> {
    let names = zone_names(question.hostname);
    let Some(domain) = names.last() else { return Ok(None) };
    // <https://developers.cloudflare.com/api/resources/zones/methods/list/>: `name` may begin with an operator.
    let query = format!("ends_with:{domain}");
    let is_full = |zones: &Arc<[zone::Zone]>| zones.len() >= PAGE;
    if by_name(reader, &query).within(MANY).is_none_or(|zones| !is_full(&zones)) {
        let below = asked(lane, reader, &query, age).await?;
        if !is_full(&below) {
            return Ok(chosen(&below, question));
        }
    }
    // However many names there are, a minute takes no more than two requests.
    let age = age.max(MISSED * u32::try_from(names.len()).unwrap_or(u32::MAX) / 2);
    for name in &names {
        if let Some(found) = chosen(&asked(lane, reader, name, age).await?, question) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The first page of the zones whose name is asked for so.
async fn asked(lane: Lane, reader: &Reader, name: &str, age: Duration) -> Result<Arc<[zone::Zone]>, ApiError> {
    let look = async || {
        let page = Page { number: 1, per_page: collections::ZONES.per_page, cursor: None };
        let answer = reader.get(lane, &collections::ZONES.list("", &page).with_query("name", name)).await?;
        let Value::Array(zones) = answer else { return Ok(Arc::default()) };
        Ok(zones.into_iter().filter_map(|zone| as_zone(&Entry::read(zone)?)).collect())
    };
    by_name(reader, name).get(lane, age, look).await
}

fn by_name(reader: &Reader, name: &str) -> SharedLook<Arc<[zone::Zone]>> {
    reader.looked("zones_by_name", name)
}

/// The names that a zone of a hostname may have, longest first; a zone has two labels at least.
fn zone_names(hostname: &Hostname) -> Vec<String> {
    let labels: Vec<&str> = hostname.labels().filter(|label| *label != "*").collect();
    let names = (0..labels.len().saturating_sub(1)).map(|from| labels[from..].join("."));
    names.collect()
}

fn name_of(entry: &Entry<objects::Zone>) -> Option<ZoneName> {
    ZoneName::parse(&entry.item.name).ok()
}

/// What is known of the zones of a name is no longer trusted.
pub(crate) fn doubt(reader: &Reader, hostname: &str) {
    reader.records(&collections::ZONES, "").invalidate();
    let names = Hostname::parse(hostname).map(|hostname| zone_names(&hostname)).unwrap_or_default();
    for name in names.iter().cloned().chain(names.last().map(|domain| format!("ends_with:{domain}"))) {
        by_name(reader, &name).forget();
    }
}

/// The zones whose names the hostname ends with.
fn listed(zones: &Snapshot<objects::Zone>, hostname: &Hostname) -> Vec<zone::Zone> {
    let labels: Vec<&str> = hostname.labels().collect();
    let names = (0..labels.len()).map(|from| labels[from..].join("."));
    names.flat_map(|name| zones.by_key(&name).filter_map(as_zone).collect::<Vec<_>>()).collect()
}

/// Of these zones the one to use.
fn chosen(zones: &[zone::Zone], question: &ZoneQuestion<'_>) -> Option<ChosenZone> {
    let zone = zone::choose(question.hostname, question.account, zones)?;
    Some(ChosenZone { id: zone.id.clone(), labels: zone.name.labels().count() })
}

/// A zone that holds the name.
struct ChosenZone {
    id: String,
    labels: usize,
}

impl ChosenZone {
    /// Whether the name lies directly below the zone, so that no other zone can lie between them.
    fn is_parent_of(&self, hostname: &Hostname) -> bool {
        hostname.labels().count() <= self.labels + 1
    }
}

fn as_zone(entry: &Entry<objects::Zone>) -> Option<zone::Zone> {
    Some(zone::Zone {
        id: entry.id.clone(),
        name: name_of(entry)?,
        account_id: entry.item.account.as_deref().filter(|id| !id.is_empty()).map(str::to_owned),
        active: entry.item.status.as_deref() == Some("active"),
    })
}
