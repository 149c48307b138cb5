//! What stands at Cloudflare, as far as a plan has to know it.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_cloudflare_api::document::Content;
use portolan_cloudflare_api::objects::{AccessGroup, DnsRecord};
use portolan_cloudflare_api::{ApiError, Entry};
use portolan_publication::Footprint;

use crate::app::App;
use crate::policy::ReusablePolicy;
use crate::quota::Counted;
use crate::redirect::Redirects;
use crate::token::ServiceToken;
use crate::tunnel::TunnelState;

/// What stands at Cloudflare: only what may concern one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// What is known of the tunnels; one that is not there could not be looked up.
    pub tunnels: BTreeMap<String, TunnelState>,
    /// Configurations of tunnels, where one was read before.
    pub configurations: BTreeMap<String, Arc<Content>>,
    /// By zone: records at the name, recorded ones, and those that carry our mark.
    pub records: BTreeMap<String, Vec<Entry<DnsRecord>>>,
    /// The recorded application, and those for the name.
    pub apps: Vec<Entry<App>>,
    /// The recorded token, and those of its name.
    pub tokens: Vec<Entry<ServiceToken>>,
    /// Reusable policies: those that are named, and ours.
    pub policies: Vec<Entry<ReusablePolicy>>,
    /// Groups that are named.
    pub groups: Vec<Entry<AccessGroup>>,
    /// The name of the account's team, where a rule has to name it and it may be read.
    pub team: Option<String>,
    /// By zone: its redirects.
    pub redirects: BTreeMap<String, Redirects>,
    /// The fingerprint of the credential that all of it was read with.
    pub credential: String,
    /// What Cloudflare refused to make more of a few minutes ago.
    pub refused: BTreeMap<Counted, ApiError>,
}

impl Live {
    /// Whether something was found that only its not being recorded by others could make this name's.
    pub fn may_be_others(&self, recorded: &Footprint) -> bool {
        let apps = self.apps.iter().any(|app| !recorded.app_ids().any(|id| *id == app.id));
        apps || self.tokens.iter().any(|token| recorded.service_token_id.as_ref() != Some(&token.id))
    }

    pub(crate) fn records(&self, zone_id: &str) -> &[Entry<DnsRecord>] {
        self.records.get(zone_id).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn record(&self, zone_id: &str, id: &str) -> Option<&Entry<DnsRecord>> {
        self.records(zone_id).iter().find(|entry| entry.id == id)
    }

    pub(crate) fn app(&self, id: &str) -> Option<&Entry<App>> {
        self.apps.iter().find(|entry| entry.id == id)
    }

    pub(crate) fn token(&self, id: &str) -> Option<&Entry<ServiceToken>> {
        self.tokens.iter().find(|entry| entry.id == id)
    }
}
