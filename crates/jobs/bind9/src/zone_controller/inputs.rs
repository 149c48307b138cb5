//! What a pass over a zone knows: who is to have it, how it is there, and what it is to hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use portolan_bind9_model::contents::ZoneContents;
use portolan_bind9_model::phases::ZonePhase;
use portolan_bind9_model::zone_plan::ZoneView;
use portolan_bind9_model::zone_status::ZoneFacts;
use portolan_bind9_wire::{DomainName, ZoneChange};
use portolan_core::ObjectKey;

use crate::zone_controller::links::ServerLink;

/// What a pass over a zone knows.
#[derive(Default)]
pub(crate) struct ZoneInputs {
    /// Why nothing is done about it, where nothing is.
    pub(crate) refusal: Option<ZonePhase>,
    /// Its name.
    pub(crate) name: Option<DomainName>,
    /// What it is to hold.
    pub(crate) contents: Option<ZoneContents>,
    /// How it stands.
    pub(crate) view: ZoneView,
    /// What was found where.
    pub(crate) facts: ZoneFacts,
    /// The clients that answer, of every server's pods.
    pub(crate) links: BTreeMap<ObjectKey, Vec<Arc<ServerLink>>>,
    /// What has to change of what the writer serves.
    pub(crate) changes: Vec<ZoneChange>,
    /// The instances whose catalogs on some server have the zone and are to have it no longer, with that server.
    pub(crate) stale: Vec<(ObjectKey, ObjectKey)>,
    /// Whether a follower that is behind is still given time.
    pub(crate) waits: bool,
    /// How often these steps were taken already, without any effect.
    pub(crate) repeated: u32,
    /// What time it is.
    pub(crate) now: Option<Timestamp>,
}

impl ZoneInputs {
    /// The client of a server that is one pod.
    pub(crate) fn link(&self, server: &ObjectKey) -> Option<&Arc<ServerLink>> {
        self.links.get(server)?.first()
    }
}
