//! The DNS record: found by its mark or recorded id, and never somebody else's.

use portolan_cloudflare_api::Entry;
use portolan_cloudflare_api::objects::DnsRecord;
use portolan_core::{Action, Change, Claim, Mark, Notice, Problem, reasons as core_reasons};
use portolan_publication::reasons;

use super::Planner;
use crate::changes;
use crate::inventory::{Inventory, RecordHeld, RecordKind};
use crate::live::Live;
use crate::quota::Counted;
use crate::record::{PublishedRecord as _, WantedRecord, label};
use crate::step::{ExposureStep, RecordWork, Work};

/// The record that is to become the wanted one.
struct Keeper<'a> {
    entry: &'a Entry<DnsRecord>,
    adopted: bool,
    why: &'static str,
}

impl<'a> Planner<'a> {
    /// Brings what is held in line with what stands, and plans the zone of the wish.
    pub(super) fn records(&mut self) -> Result<Vec<ExposureStep>, Problem> {
        portolan_core::waypoint!();
        find_records(&mut self.held, self.live, &self.desired.mark, Some(self.desired.hostname.as_str()));
        let Some(record) = &self.desired.record else { return Ok(Vec::new()) };
        let zone = record.zone_id();
        let wanted = WantedRecord::new(self.hostname(), record);
        let here: Vec<&Entry<DnsRecord>> =
            self.live.records(zone).iter().filter(|entry| *entry.item.name == *self.name()).collect();
        let (mine, others): (Vec<_>, Vec<_>) = here.into_iter().partition(|entry| self.holds(zone, &entry.id));
        let others: Vec<_> = others.into_iter().filter(|entry| wanted.is_blocked_by(&entry.item)).collect();
        let keeper = match self.keeper(zone, &wanted, &mine) {
            Some(keeper) => Some(keeper),
            None => self.take_over(&wanted, &others)?,
        };
        // What stands of the name already is still changed, protection first; only the record has to wait then.
        if keeper.is_none() && mine.is_empty() && self.holds_nothing() {
            self.check_room(Counted::Records)?;
        }
        Ok(self.record_step(zone, &wanted, keeper, &mine).into_iter().collect())
    }

    fn holds(&self, zone: &str, id: &str) -> bool {
        holds(&self.held, zone, id)
    }

    fn holds_nothing(&self) -> bool {
        self.held.hostnames().is_empty() && self.held.app.is_none()
    }

    fn is_adopted(&self, zone: &str, id: &str) -> bool {
        self.held.records.iter().any(|held| held.zone_id == zone && held.id == id && held.adopted)
    }

    fn keeper(&self, zone: &str, wanted: &WantedRecord, mine: &[&'a Entry<DnsRecord>]) -> Option<Keeper<'a>> {
        let same_type = |entry: &&&Entry<DnsRecord>| entry.item.held_kind() == Some(wanted.kind);
        let equal = mine.iter().find(|entry| wanted.is(&entry.item));
        let adopted_one = mine.iter().find(|entry| self.is_adopted(zone, &entry.id));
        let entry = *equal.or_else(|| mine.iter().find(same_type)).or(adopted_one)?;
        Some(Keeper { entry, adopted: self.is_adopted(zone, &entry.id), why: "" })
    }

    /// Something stands at the name that is not ours. What leads to the same place is taken over silently; anything else
    /// only where the user says so and there is one of it.
    fn take_over(
        &mut self,
        wanted: &WantedRecord,
        others: &[&'a Entry<DnsRecord>],
    ) -> Result<Option<Keeper<'a>>, Problem> {
        let Some(first) = others.first() else { return Ok(None) };
        for entry in others {
            if let Claim::Foreign(owner) = entry.item.claim(&self.desired.mark) {
                return Err(conflict(
                    entry,
                    &format!("is managed by {owner}; remove one of the two, or the mark in its comment"),
                ));
            }
        }
        let equal = others.iter().find(|entry| wanted.has_content_of(&entry.item));
        let entry = match (equal, others.len(), self.desired.adopt) {
            (Some(equal), 1, _) | (Some(equal), _, true) => equal,
            (None, 1, true) => first,
            (_, 1, false) => {
                let hint = "is not managed here; remove it, or say adopt: \"true\" to take it over";
                return Err(conflict(first, hint));
            }
            _ => return Err(conflict(first, "is one of several that are not managed here; remove all but one")),
        };
        self.notices.push(Notice::normal(
            core_reasons::ADOPTED,
            format!("the DNS record {} existed already and is now managed; it will not be deleted", label(entry)),
        ));
        Ok(Some(Keeper { entry, adopted: true, why: "it existed before" }))
    }

    /// All writes of the zone at this name go together.
    fn record_step(
        &mut self,
        zone: &str,
        wanted: &WantedRecord,
        keeper: Option<Keeper<'a>>,
        mine: &[&'a Entry<DnsRecord>],
    ) -> Option<ExposureStep> {
        let (mut changes, mut work) = (Vec::new(), Vec::new());
        let kept = keeper.as_ref().map(|keeper| keeper.entry.id.as_str());
        for entry in mine.iter().filter(|entry| Some(entry.id.as_str()) != kept) {
            if self.is_adopted(zone, &entry.id) {
                continue;
            }
            changes.push(changes::record_gone(zone, entry, "another record takes its place"));
            work.push(RecordWork::Delete { id: entry.id.clone() });
        }
        match keeper {
            Some(keeper) if wanted.is(&keeper.entry.item) => self.keep_record(zone, wanted, &keeper),
            Some(keeper) => {
                self.keep_record(zone, wanted, &keeper);
                let Keeper { entry, adopted, why } = keeper;
                let target = changes::record(zone, wanted.label(), Some(&entry.id));
                let action = if why.is_empty() { Action::Update } else { Action::Adopt };
                changes.push(Change::update(target, entry.item.shown(), wanted.shown(), why).as_action(action));
                let body = wanted.body(&self.mark(adopted), entry.item.users_comment());
                let id = entry.id.clone();
                work.push(RecordWork::Update { id, kind: wanted.kind, ip: wanted.ip(), body, adopted });
            }
            None => {
                changes.push(Change::create(changes::record(zone, wanted.label(), None), wanted.shown(), ""));
                let body = wanted.body(&self.mark(false), "");
                work.push(RecordWork::Create { kind: wanted.kind, ip: wanted.ip(), body });
            }
        }
        let hostname = self.name().to_owned();
        (!work.is_empty())
            .then(|| ExposureStep { changes, work: Work::Records { zone_id: zone.to_owned(), hostname, work } })
    }

    /// Notes a record as ours that stands already.
    fn keep_record(&mut self, zone: &str, wanted: &WantedRecord, keeper: &Keeper<'_>) {
        self.held.records.retain(|held| held.zone_id != zone || held.id != keeper.entry.id);
        let held = RecordHeld {
            zone_id: zone.to_owned(),
            hostname: self.name().to_owned(),
            id: keeper.entry.id.clone(),
            kind: wanted.kind,
            ip: wanted.ip(),
            adopted: keeper.adopted,
        };
        self.held.records.insert(0, held);
    }
}

/// Recorded records that are gone or somebody else's are forgotten; unrecorded ones with our mark are ours. One that stands
/// at the wanted name by now was renamed by an older operator that did not get to record it.
pub(crate) fn find_records(held: &mut Inventory, live: &Live, mark: &Mark, wanted: Option<&str>) {
    held.records.retain_mut(|held| {
        let Some(entry) = live.record(&held.zone_id, &held.id) else { return false };
        let claim = entry.item.claim(mark);
        held.adopted |= claim == Claim::Ours { adopted: true };
        if let Some(kind) = entry.item.held_kind() {
            held.kind = kind;
        }
        if wanted == Some(&*entry.item.name) {
            held.hostname = entry.item.name.to_string();
        }
        *entry.item.name == *held.hostname && !matches!(claim, Claim::Foreign(_))
    });
    for (zone_id, entries) in &live.records {
        for entry in entries {
            let Claim::Ours { adopted } = entry.item.claim(mark) else { continue };
            let Some(kind) = entry.item.held_kind() else { continue };
            if !holds(held, zone_id, &entry.id) {
                let ip = Some(entry.item.value()).filter(|_| kind == RecordKind::Address);
                let (hostname, id) = (entry.item.name.to_string(), entry.id.clone());
                held.records.push(RecordHeld { zone_id: zone_id.clone(), hostname, id, kind, ip, adopted });
            }
        }
    }
}

fn holds(held: &Inventory, zone: &str, id: &str) -> bool {
    held.records.iter().any(|held| held.zone_id == zone && held.id == id)
}

fn conflict(entry: &Entry<DnsRecord>, hint: &str) -> Problem {
    Problem::denied(
        reasons::DNS_RECORD_CONFLICT,
        format!("the DNS record {} → {} (id {}) {hint}", label(entry), entry.item.value(), entry.id),
    )
}
