//! What passes remember of zones, so that a settled one costs nothing: what was found to stand, who is behind since when, which steps
//! were taken last. All of it may be lost; then servers are asked again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use portolan_bind9_model::contents::ZoneContents;
use portolan_bind9_model::zone_plan::ZoneStep;
use portolan_core::ObjectKey;

/// Contents that stood, on which start of which pod, with which serial.
type Standing = (ZoneContents, (String, i64), u32);

#[derive(Default)]
struct RememberedZone {
    stood: Option<Standing>,
    behind: BTreeMap<ObjectKey, Timestamp>,
    steps: (Vec<ZoneStep>, u32),
}

/// What is remembered of all zones.
#[derive(Default)]
pub(crate) struct ZoneMemory {
    zones: Mutex<BTreeMap<ObjectKey, RememberedZone>>,
}

impl ZoneMemory {
    fn zones(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, RememberedZone>> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A zone is gone.
    pub(crate) fn forget(&self, zone: &ObjectKey) {
        self.zones().remove(zone);
    }

    /// Whether a server was found to serve these contents with this serial.
    pub(crate) fn stands(&self, zone: &ObjectKey, contents: &ZoneContents, start: &(String, i64), serial: u32) -> bool {
        let zones = self.zones();
        let stood = zones.get(zone).and_then(|one| one.stood.as_ref());
        stood.is_some_and(|(what, at, which)| what == contents && at == start && *which == serial)
    }

    /// A server serves these contents with this serial.
    pub(crate) fn note_stands(&self, zone: &ObjectKey, contents: &ZoneContents, start: &(String, i64), serial: u32) {
        self.zones().entry(zone.clone()).or_default().stood = Some((contents.clone(), start.clone(), serial));
    }

    /// For how long a follower has been behind.
    pub(crate) fn behind(
        &self,
        zone: &ObjectKey,
        follower: &ObjectKey,
        stands: bool,
        now: Timestamp,
    ) -> SignedDuration {
        let mut zones = self.zones();
        let behind = &mut zones.entry(zone.clone()).or_default().behind;
        if stands {
            behind.remove(follower);
            return SignedDuration::ZERO;
        }
        now.duration_since(*behind.entry(follower.clone()).or_insert(now))
    }

    /// How often these steps were taken right before.
    pub(crate) fn repeated(&self, zone: &ObjectKey, steps: &[ZoneStep]) -> u32 {
        self.zones().get(zone).filter(|one| !steps.is_empty() && one.steps.0 == steps).map_or(0, |one| one.steps.1)
    }

    /// These steps were taken.
    pub(crate) fn note_steps(&self, zone: &ObjectKey, steps: &[ZoneStep]) {
        let mut zones = self.zones();
        let last = &mut zones.entry(zone.clone()).or_default().steps;
        let count = if last.0 == steps { last.1 + 1 } else { 1 };
        *last = (steps.to_vec(), count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("dns", name)
    }

    #[test]
    fn a_follower_is_behind_since_it_was_first_seen_so_and_no_longer_once_it_stands() {
        let (memory, at) = (ZoneMemory::default(), |second| Timestamp::from_second(second).unwrap());

        assert_eq!(memory.behind(&key("z"), &key("s"), false, at(10)).as_secs(), 0);
        assert_eq!(memory.behind(&key("z"), &key("s"), false, at(14)).as_secs(), 4);
        memory.behind(&key("z"), &key("s"), true, at(15));
        assert_eq!(memory.behind(&key("z"), &key("s"), false, at(20)).as_secs(), 0);
    }

    #[test]
    fn steps_that_are_taken_again_are_counted_and_others_begin_anew() {
        let (memory, steps) = (ZoneMemory::default(), [ZoneStep::Update]);
        assert_eq!(memory.repeated(&key("z"), &steps), 0);
        memory.note_steps(&key("z"), &steps);
        memory.note_steps(&key("z"), &steps);

        assert_eq!((memory.repeated(&key("z"), &steps), memory.repeated(&key("z"), &[ZoneStep::Seed])), (2, 0));
        memory.note_steps(&key("z"), &[ZoneStep::Seed]);
        assert_eq!(memory.repeated(&key("z"), &steps), 0);
    }
}
