//! Hostname → the zone that it lies in, by a snapshot of the zones that the credential sees.
//!
//! The longest name wins, so that delegated zones do. A zone that was found stays known for ten minutes, and for good where
//! no delegated zone can lie between it and the name; a name without a zone is looked for again after one minute. The
//! zone that a tenant names stands in where zones cannot be listed, and only for names that lie in it.

use std::time::Duration;

use portolan_cloudflare_api::{Entry, ErrorClass, Freshness, Item, Lane, Reader, Snapshot, collections};
use portolan_core::{Hostname, Problem, ZoneName};
use portolan_zerotrust_model::zone::{self, Told};
use serde::Deserialize;

use crate::credentials::Credentials;

/// How long a zone that was found is taken as still there.
pub(crate) const FOUND: Duration = Duration::from_secs(600);
/// How long a name without a zone is taken as still without.
const MISSED: Duration = Duration::from_secs(60);

/// What is kept of a zone.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Zone {
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    account: Option<Account>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Account {
    #[serde(default)]
    id: String,
}

impl Item for Zone {
    fn natural_key(&self) -> String {
        self.name.to_ascii_lowercase()
    }
}

/// Where to look, and what the tenant says about it.
pub(crate) struct Question<'a> {
    pub(crate) hostname: &'a Hostname,
    pub(crate) account: &'a str,
    /// The only zone that the tenant allows.
    pub(crate) only: Option<&'a str>,
}

/// The zone of a name; none where the account has none that fits.
pub(crate) async fn look_up(
    credentials: &Credentials,
    reader: &Reader,
    question: &Question<'_>,
) -> Result<Option<String>, Problem> {
    if question.only.is_none() {
        credentials.not_refused(reader)?;
    }
    let zones = reader.records::<Zone>(&collections::ZONES, "");
    for (freshness, any) in
        [(Freshness::Any, false), (Freshness::Within(FOUND), true), (Freshness::Within(MISSED), true)]
    {
        if let Err(error) = zones.refresh(Lane::Change, freshness).await {
            return match question.only {
                Some(only) if error.class == ErrorClass::Auth => {
                    let told = credentials.zone(reader, only).await?.map_or(Told::Unreadable, Told::Named);
                    zone::stand_in(question.hostname, only, &told).map(Some)
                }
                _ => {
                    Err(credentials.problem(reader, &error, &format!("looking for the zone of {}", question.hostname)))
                }
            };
        }
        let found = zones.with(|snapshot| chosen(snapshot, question));
        if let Some(found) = found.filter(|found| any || found.is_parent_of(question.hostname)) {
            return zone::agree(question.hostname, &found.id, question.only).map(Some);
        }
    }
    let Some(only) = question.only else { return Ok(None) };
    let (listed, empty) = zones.with(|snapshot| (snapshot.get(only).and_then(name_of), snapshot.is_empty()));
    let told = match listed {
        Some(name) => Told::Named(name),
        None => match credentials.zone(reader, only).await? {
            Some(name) => Told::Named(name),
            // A credential that may read no zone is told that there are none.
            None if empty => Told::Unreadable,
            None => Told::Hidden,
        },
    };
    zone::stand_in(question.hostname, only, &told).map(Some)
}

fn name_of(entry: &Entry<Zone>) -> Option<ZoneName> {
    ZoneName::parse(&entry.item.name).ok()
}

/// What is known of zones is no longer trusted.
pub(crate) fn doubt(reader: &Reader) {
    reader.records::<Zone>(&collections::ZONES, "").invalidate();
}

/// The zones whose names the hostname ends with, and of those the one to use.
fn chosen(zones: &Snapshot<Zone>, question: &Question<'_>) -> Option<Chosen> {
    let labels: Vec<&str> = question.hostname.labels().collect();
    let names = (0..labels.len()).map(|from| labels[from..].join("."));
    let found = names.flat_map(|name| zones.by_key(&name).filter_map(as_zone).collect::<Vec<_>>());
    let found: Vec<zone::Zone> = found.collect();
    let zone = zone::choose(question.hostname, question.account, &found)?;
    Some(Chosen { id: zone.id.clone(), labels: zone.name.labels().count() })
}

/// A zone that holds the name.
struct Chosen {
    id: String,
    labels: usize,
}

impl Chosen {
    /// Whether the name lies directly below the zone, so that no other zone can lie between them.
    fn is_parent_of(&self, hostname: &Hostname) -> bool {
        hostname.labels().count() <= self.labels + 1
    }
}

fn as_zone(entry: &Entry<Zone>) -> Option<zone::Zone> {
    Some(zone::Zone {
        id: entry.id.clone(),
        name: name_of(entry)?,
        account_id: entry.item.account.as_ref().map(|account| account.id.clone()).filter(|id| !id.is_empty()),
        active: entry.item.status == "active",
    })
}
