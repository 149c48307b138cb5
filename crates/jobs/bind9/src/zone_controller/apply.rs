//! The steps of a zone → taken on its servers; and which of them failed, why, on which server.
//!
//! One server's trouble is no other's: a step that fails is told, and the others go on.

use std::collections::BTreeMap;
use std::time::Duration;

use portolan_bind9_model::conf::{ZoneForm, zone_clauses, zone_file};
use portolan_bind9_model::kinds::DNSZone;
use portolan_bind9_model::names;
use portolan_bind9_model::serial;
use portolan_bind9_model::zone_plan::{ZoneState, ZoneStep};
use portolan_bind9_wire::{DomainName, RndcError, RndcRefusal, Seeding, ZoneFiles, ZoneSeed, ZoneUpdate};
use portolan_core::ObjectKey;

use crate::zone_controller::apex::{apex, records};
use crate::zone_controller::catalogs::CatalogOf;
use crate::zone_controller::gather::catalog_serial;
use crate::zone_controller::inputs::ZoneInputs;
use crate::zone_controller::links::ServerLink;
use crate::zone_controller::{ZoneController, ZoneStepPlan};

/// What could not be done, by the server.
pub(crate) type StepFailures = BTreeMap<ObjectKey, String>;

/// How long a zone may take to be fetched and opened.
const SEEDING: Duration = Duration::from_secs(30);

impl ZoneController {
    pub(crate) async fn carry_out(&self, zone: &DNSZone, inputs: &ZoneInputs, plan: &ZoneStepPlan) -> StepFailures {
        let mut failures = StepFailures::new();
        let Some(name) = &inputs.name else { return failures };
        for (writer, follower) in &plan.stale {
            let Some(link) = inputs.link(writer) else { continue };
            if let Err(why) = self.catalogs.remove(CatalogOf { link, writer, follower }, name).await {
                failures.insert(writer.clone(), why);
            }
        }
        for step in &plan.steps {
            if let Err((server, why)) = self.take(zone, inputs, name, step).await {
                failures.entry(server).or_insert(why);
            }
        }
        failures
    }

    /// Takes one step; a failure is that of the server it was taken on, or for.
    async fn take(
        &self,
        zone: &DNSZone,
        inputs: &ZoneInputs,
        name: &DomainName,
        step: &ZoneStep,
    ) -> Result<(), (ObjectKey, String)> {
        let writer = inputs.view.writer.as_ref().map_or_else(|| zone.key(), |(writer, _)| writer.clone());
        let (at, taken) = match step {
            ZoneStep::Seed => (&writer, self.seed(zone, inputs, name, &writer).await),
            ZoneStep::SeedAgain | ZoneStep::Open | ZoneStep::Discard => {
                (&writer, self.seed_anew(zone, inputs, name, &writer).await)
            }
            ZoneStep::Update => (&writer, update(inputs, name, &writer).await),
            ZoneStep::AddCatalog(follower) => (follower, self.add_catalog(inputs, &writer, follower).await),
            ZoneStep::AddMember(follower) => (follower, self.in_catalog(inputs, &writer, follower, name, true).await),
            ZoneStep::RemoveMember(follower) => {
                (follower, self.in_catalog(inputs, &writer, follower, name, false).await)
            }
            ZoneStep::Refresh(follower) => (follower, self.refresh(inputs, &writer, follower, name).await),
            ZoneStep::Retransfer(follower) => (follower, retransfer(inputs, follower, name).await),
            ZoneStep::Remove(server) => (server, remove(inputs, server, name).await),
        };
        taken.map_err(|why| (at.clone(), why))
    }

    /// Has the writer fetch the zone from us and open it once it is complete.
    async fn seed(
        &self,
        zone: &DNSZone,
        inputs: &ZoneInputs,
        name: &DomainName,
        writer: &ObjectKey,
    ) -> Result<(), String> {
        let (Some(link), Some(contents)) = (inputs.link(writer), &inputs.contents) else { return Ok(()) };
        let seeds = &self.shared.seeds;
        let Some(operator) = seeds.address() else { return Err("zones cannot be fetched from us yet".to_owned()) };
        let serial = inputs.view.seed_serial;
        let apex = apex(contents, serial).map_err(|problem| problem.message)?;
        let records = records(&apex).map_err(|problem| problem.message)?;
        let seed = ZoneSeed::new(apex.soa, apex.ttl, link.update.clone(), move || records.clone().into_iter());
        let seed = seeds.zones.insert(name.clone(), seed);
        let (address, key) = (operator.ip().to_string(), link.update.name().to_string());
        let file = zone_file(&contents.zone, serial);
        let closed = ZoneForm::Seeding { operator: (&address, operator.port()), key: key.trim_end_matches('.') };
        let open = ZoneForm::Open { policy: zone.spec.dnssec_policy.as_deref() };
        let (closed, open) = (zone_clauses(&file, closed), zone_clauses(&file, open));
        let seeding = Seeding { zone: name, closed: &closed, open: &open, seed: &seed, limit: SEEDING };
        let opened = link.control.open_seeded(seeding).await;
        seeds.zones.remove(name);
        opened.map_err(|error| error.to_string())
    }

    /// What is there is not complete, or cannot be loaded, and answers nobody: it is thrown away. Its responder may be one that is no more.
    async fn seed_anew(
        &self,
        zone: &DNSZone,
        inputs: &ZoneInputs,
        name: &DomainName,
        writer: &ObjectKey,
    ) -> Result<(), String> {
        let Some(link) = inputs.link(writer) else { return Ok(()) };
        delete(link, name).await?;
        self.seed(zone, inputs, name, writer).await
    }

    /// A catalog that is not there is made with all zones that the follower is to have, with a serial after the one that it knows.
    async fn add_catalog(&self, inputs: &ZoneInputs, writer: &ObjectKey, follower: &ObjectKey) -> Result<(), String> {
        let Some(link) = inputs.link(writer) else { return Ok(()) };
        let known = catalog_serial(inputs.link(follower), writer, follower).await;
        let unix = inputs.now.map_or(0, |now| u32::try_from(now.as_second()).unwrap_or(u32::MAX));
        let zones = self.shared.zones_followed(writer, follower);
        let of = CatalogOf { link, writer, follower };
        self.catalogs.make(of, zones, serial::next(known, 0, unix), &self.shared.seeds).await
    }

    async fn in_catalog(
        &self,
        inputs: &ZoneInputs,
        writer: &ObjectKey,
        follower: &ObjectKey,
        name: &DomainName,
        is_member: bool,
    ) -> Result<(), String> {
        let Some(link) = inputs.link(writer) else { return Ok(()) };
        let of = CatalogOf { link, writer, follower };
        if is_member { self.catalogs.add(of, name).await } else { self.catalogs.remove(of, name).await }
    }

    /// A follower that is behind looks; where it does not have the zone at all it looks at its catalog. Where that did not help, the zone goes
    /// from the catalog and comes back: a follower passes over one that it had from elsewhere when it first saw it.
    async fn refresh(
        &self,
        inputs: &ZoneInputs,
        writer: &ObjectKey,
        follower: &ObjectKey,
        name: &DomainName,
    ) -> Result<(), String> {
        let is_absent = inputs.view.followers.get(follower) == Some(&ZoneState::Absent);
        if is_absent && inputs.repeated > 1 {
            return self.in_catalog(inputs, writer, follower, name, false).await;
        }
        let catalog = DomainName::parse(&names::catalog(writer, follower)).map_err(|error| error.to_string())?;
        for link in inputs.links.get(follower).into_iter().flatten() {
            let looked = link.control.refresh(if is_absent { &catalog } else { name }).await;
            looked.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

async fn update(inputs: &ZoneInputs, name: &DomainName, writer: &ObjectKey) -> Result<(), String> {
    let Some(link) = inputs.link(writer) else { return Ok(()) };
    let update = ZoneUpdate::new(name.clone(), inputs.changes.clone());
    link.dns.update(&update).await.map_err(|error| error.to_string())
}

async fn retransfer(inputs: &ZoneInputs, follower: &ObjectKey, name: &DomainName) -> Result<(), String> {
    for link in inputs.links.get(follower).into_iter().flatten() {
        link.control.retransfer(name).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn remove(inputs: &ZoneInputs, server: &ObjectKey, name: &DomainName) -> Result<(), String> {
    for link in inputs.links.get(server).into_iter().flatten() {
        delete(link, name).await?;
    }
    Ok(())
}

/// Takes a zone from a server with its files; one that is gone is deleted.
async fn delete(link: &ServerLink, name: &DomainName) -> Result<(), String> {
    let is_gone = |error: &RndcError| error.refusal() == Some(RndcRefusal::ZoneNotFound);
    match link.control.delete_zone(name, ZoneFiles::Remove).await {
        Err(error) if !is_gone(&error) => Err(error.to_string()),
        Ok(()) | Err(_) => Ok(()),
    }
}
