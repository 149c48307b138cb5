//! Which zones a follower takes from a writer, in the catalog that the writer has for it (RFC 9432): read, made, changed.
//!
//! A follower drops what is in its catalog no longer, so a catalog that has to be made anew is made whole: with every zone that the follower
//! is to have, never with one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::lock::Mutex as AsyncMutex;
use portolan_bind9_model::conf::{ZoneForm, zone_clauses, zone_file};
use portolan_bind9_model::names;
use portolan_bind9_wire::{
    CatalogMember, DomainName, RndcRefusal, Seeding, Serial, Soa, TransferBounds, ZoneFiles, ZoneSeed, ZoneUpdate,
    catalog_changes, catalog_members, catalog_records,
};
use portolan_core::{ObjectKey, ZoneName};

use crate::seeding::ZoneSeeds;
use crate::zone_controller::links::ServerLink;

/// How long what is known of a catalog is taken for true without asking.
const FRESH: Duration = Duration::from_secs(300);
/// How long a catalog may take to be fetched.
const SEEDING: Duration = Duration::from_secs(20);

/// What is known of a catalog.
struct KnownCatalog {
    start: (String, i64),
    read: Instant,
    members: BTreeSet<DomainName>,
}

type CatalogSlot = Arc<AsyncMutex<Option<KnownCatalog>>>;

/// The catalogs of all writers. One catalog is read or changed by one at a time.
#[derive(Default)]
pub(crate) struct Catalogs {
    slots: Mutex<BTreeMap<(ObjectKey, ObjectKey), CatalogSlot>>,
}

/// A catalog: whose it is, and for whom.
#[derive(Clone, Copy)]
pub(crate) struct CatalogOf<'a> {
    pub(crate) link: &'a ServerLink,
    pub(crate) writer: &'a ObjectKey,
    pub(crate) follower: &'a ObjectKey,
}

impl CatalogOf<'_> {
    fn zone(self) -> ZoneName {
        ZoneName::parse(&names::catalog(self.writer, self.follower)).expect("names of catalogs are names")
    }

    fn name(self) -> DomainName {
        DomainName::parse(self.zone().as_str()).expect("names of zones are names")
    }
}

impl Catalogs {
    fn slot(&self, of: CatalogOf<'_>) -> CatalogSlot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry((of.writer.clone(), of.follower.clone())).or_default())
    }

    /// Whether a catalog is there, and whether it has a zone.
    pub(crate) async fn has(&self, of: CatalogOf<'_>, zone: &DomainName) -> Result<Option<bool>, String> {
        let slot = self.slot(of);
        let mut slot = slot.lock().await;
        if slot.as_ref().is_none_or(|known| known.start != of.link.start || known.read.elapsed() > FRESH) {
            *slot = read(of).await?;
        }
        Ok(slot.as_ref().map(|known| known.members.contains(&zone.canonical())))
    }

    /// Makes a catalog with all of its zones, where it is not there. `follower_has` is the serial that the follower has of it.
    pub(crate) async fn make(
        &self,
        of: CatalogOf<'_>,
        zones: Vec<DomainName>,
        serial: u32,
        seeds: &ZoneSeeds,
    ) -> Result<(), String> {
        let slot = self.slot(of);
        let mut slot = slot.lock().await;
        if slot.is_some() {
            return Ok(());
        }
        let Some(operator) = seeds.address() else { return Err("zones cannot be fetched from us yet".to_owned()) };
        seed(of, &zones, serial, seeds, operator).await?;
        let members = zones.iter().map(DomainName::canonical).collect();
        *slot = Some(KnownCatalog { start: of.link.start.clone(), read: Instant::now(), members });
        Ok(())
    }

    /// Has a zone be in a catalog.
    pub(crate) async fn add(&self, of: CatalogOf<'_>, zone: &DomainName) -> Result<(), String> {
        let member = [CatalogMember::new(zone.canonical())];
        self.change(of, (&[], &member), |members| {
            members.insert(zone.canonical());
        })
        .await
    }

    /// Has a zone be in a catalog no longer.
    pub(crate) async fn remove(&self, of: CatalogOf<'_>, zone: &DomainName) -> Result<(), String> {
        let member = [CatalogMember::new(zone.canonical())];
        self.change(of, (&member, &[]), |members| {
            members.remove(&zone.canonical());
        })
        .await
    }

    /// What was known is forgotten where nobody knows what became of a change.
    async fn change(
        &self,
        of: CatalogOf<'_>,
        (before, after): (&[CatalogMember], &[CatalogMember]),
        note: impl FnOnce(&mut BTreeSet<DomainName>),
    ) -> Result<(), String> {
        let (slot, name) = (self.slot(of), of.name());
        let mut slot = slot.lock().await;
        let Some(mut known) = slot.take() else { return Ok(()) };
        let changes = catalog_changes(&name, before, after).concat();
        of.link.dns.update(&ZoneUpdate::new(name, changes)).await.map_err(|error| error.to_string())?;
        note(&mut known.members);
        *slot = Some(known);
        Ok(())
    }
}

async fn read(of: CatalogOf<'_>) -> Result<Option<KnownCatalog>, String> {
    let name = of.name();
    match of.link.control.zone_status(&name).await {
        Ok(_) => {}
        Err(error) if matches!(error.refusal(), Some(RndcRefusal::ZoneNotFound | RndcRefusal::NotLoaded)) => {
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    }
    match of.link.dns.contents(&name, TransferBounds::default()).await {
        Ok(contents) => {
            let members =
                catalog_members(&name, &contents.records).into_iter().map(|one| one.zone.canonical()).collect();
            Ok(Some(KnownCatalog { start: of.link.start.clone(), read: Instant::now(), members }))
        }
        // One that was being fetched when somebody was cut off answers nobody.
        Err(error) if error.code().is_some() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

async fn seed(
    of: CatalogOf<'_>,
    zones: &[DomainName],
    serial: u32,
    seeds: &ZoneSeeds,
    operator: SocketAddr,
) -> Result<(), String> {
    let name = of.name();
    // Whatever is left of it did not answer.
    if let Err(error) = of.link.control.delete_zone(&name, ZoneFiles::Remove).await
        && error.refusal() != Some(RndcRefusal::ZoneNotFound)
    {
        return Err(error.to_string());
    }
    let nobody = DomainName::parse("invalid").expect("it is a name");
    let (primary, mailbox) = (nobody.clone(), nobody);
    let soa =
        Soa { primary, mailbox, serial: Serial(serial), refresh: 60, retry: 10, expire: 604_800, negative_ttl: 60 };
    let members: Vec<CatalogMember> = zones.iter().map(|zone| CatalogMember::new(zone.canonical())).collect();
    let records = catalog_records(&name, &soa, &members);
    let made = ZoneSeed::new(soa, 0, of.link.update.clone(), move || records.clone().into_iter());
    let made = seeds.zones.insert(name.clone(), made);
    let (address, key) = (operator.ip().to_string(), of.link.update.name().to_string());
    let file = zone_file(&of.zone(), serial);
    let closed = ZoneForm::Seeding { operator: (&address, operator.port()), key: key.trim_end_matches('.') };
    let (closed, open) = (zone_clauses(&file, closed), zone_clauses(&file, ZoneForm::Catalog));
    let seeding = Seeding { zone: &name, closed: &closed, open: &open, seed: &made, limit: SEEDING };
    let opened = of.link.control.open_seeded(seeding).await;
    seeds.zones.remove(&name);
    opened.map_err(|error| error.to_string())
}
