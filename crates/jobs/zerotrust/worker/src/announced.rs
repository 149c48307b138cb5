//! Says as early as possible that a tunnel's configuration and a zone's records are about to be written, so that tasks that
//! come together go out together.

use std::sync::{Mutex, PoisonError};

use portolan_cloudflare_api::document::TUNNEL_CONFIGURATION;
use portolan_cloudflare_api::objects::DnsRecord;
use portolan_cloudflare_api::{Client, PendingWrite, collections};
use portolan_exposure::Footprint;

use crate::work::TaskWork;

/// What a task is about to write, until it does or turns out not to.
#[derive(Default)]
pub(crate) struct Announced(Mutex<Option<AnnouncedWrites>>);

struct AnnouncedWrites {
    _rule: Option<PendingWrite>,
    _record: Option<PendingWrite<DnsRecord>>,
}

impl Announced {
    pub(crate) fn new(client: &Client, work: &TaskWork, recorded: &Footprint) -> Self {
        let (account, tunnel, zone) = work.place(recorded);
        let rule = tunnel.map(|tunnel| client.document(&TUNNEL_CONFIGURATION, account, tunnel).expect());
        let record = zone.map(|zone| client.records(&collections::DNS_RECORDS, zone).expect());
        Self(Mutex::new(Some(AnnouncedWrites { _rule: rule, _record: record })))
    }

    /// The writes begin now, or do not come.
    pub(crate) fn no_longer(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
