//! What publishes names: tunnels and their configurations, records, redirects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_cloudflare_api::document::{Content, TUNNEL_CONFIGURATION};
use portolan_cloudflare_api::objects::{DnsRecord, Tunnel};
use portolan_cloudflare_api::{ApiError, Entry, ErrorClass, Freshness, Lane, Request, Snapshot, collections};
use portolan_core::Problem;
use portolan_publication::Record;
use serde_json::Value;

use super::{Lookup, RECENT};
use crate::redirect::{self, Redirects, may_pass};
use crate::rules;
use crate::tunnel::{self, TunnelState, Unusable};

/// How old a zone's snapshot may be before a record is made that the API would make twice.
const BEFORE_CREATE: Duration = Duration::from_secs(30);

/// Records by zone.
type ZoneRecords = BTreeMap<String, Vec<Entry<DnsRecord>>>;

impl Lookup<'_> {
    /// What is known of the wanted tunnel. One that cannot be used is looked at once in a while for all names together:
    /// a tunnel that was deleted would else cost a look for each of its names, each time one of them is tried.
    pub(super) async fn tunnels(&self) -> Result<BTreeMap<String, TunnelState>, Problem> {
        portolan_core::waypoint!();
        let Some(rule) = self.desired.and_then(|desired| desired.rule.as_ref()) else { return Ok(BTreeMap::new()) };
        let id = rule.tunnel_id.as_str();
        let unusable = tunnel::unusable(self.reader, self.account(), id);
        let kept = match self.fresh.age {
            Freshness::Within(age) => age.min(tunnel::UNUSABLE_KEPT),
            Freshness::Any | Freshness::AfterNow => tunnel::UNUSABLE_KEPT,
        };
        let state = match unusable.within(kept) {
            Some(state) => state,
            None => Box::pin(self.tunnel(id, &unusable, kept)).await?,
        };
        if let Some(state) = state.filter(|_| self.fresh.lane != Lane::Drift) {
            // Planning would say the same, whatever else there is to see.
            state.check(id)?;
        }
        Ok(state.into_iter().map(|state| (id.to_owned(), state)).collect())
    }

    /// A tunnel as the list shows it, else as it shows itself; none where nothing can be said of it.
    async fn tunnel(&self, id: &str, unusable: &Unusable, kept: Duration) -> Result<Option<TunnelState>, Problem> {
        let pick = |tunnels: &Snapshot<Tunnel>| {
            let found: Vec<_> = tunnels.get(id).cloned().into_iter().collect();
            let usable = found.iter().any(|entry| TunnelState::of(&entry.item) == TunnelState::Usable);
            (found, usable)
        };
        let state = match self.find(&collections::TUNNELS, self.account(), self.fresh.age, pick).await {
            Ok(found) => {
                if let Some(entry) = found.first() {
                    Some(TunnelState::of(&entry.item))
                } else {
                    let alone = unusable.get(self.fresh.lane, kept, async || self.one_tunnel(id).await).await;
                    alone.map_err(|error| error.problem(&format!("reading tunnel {id}")))?
                }
            }
            // The credential may write configurations and still not see the list.
            Err(error) if matches!(error.class, ErrorClass::Auth | ErrorClass::NotFound) => None,
            Err(error) => return Err(error.problem("listing tunnels")),
        };
        if state != Some(TunnelState::Usable) {
            unusable.note(state);
        }
        Ok(state)
    }

    /// A tunnel that no list shows; none where nothing can be said of it.
    async fn one_tunnel(&self, id: &str) -> Result<Option<TunnelState>, ApiError> {
        let request = collections::TUNNELS.get(self.account(), id);
        match self.reader.get(self.fresh.lane, &request).await {
            Ok(tunnel) => Ok(Entry::<Tunnel>::read(tunnel).map(|entry| TunnelState::of(&entry.item))),
            Err(error) if error.class == ErrorClass::NotFound => {
                let request = Request::get(TUNNEL_CONFIGURATION.template, &[self.account(), id]);
                let known = self.reader.get(self.fresh.lane, &request).await.is_ok();
                Ok(if known { None } else { Some(TunnelState::Missing) })
            }
            Err(error) if error.class == ErrorClass::Auth => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Configurations that are known; read only where freshness is asked for, where a rule of somebody else seems to stand
    /// at the name, or where a name moves and its old place is left before the new one is taken.
    pub(super) async fn configurations(
        &self,
        tunnels: &BTreeMap<String, TunnelState>,
    ) -> Result<BTreeMap<String, Arc<Content>>, Problem> {
        let mut known = BTreeMap::new();
        let wanted = self.desired.and_then(|desired| Some((desired, desired.rule.as_ref()?)));
        let held = self.held.rules.iter().map(|rule| rule.tunnel_id.as_str());
        let intended = self.intended(|intent| &intent.tunnels);
        let ids: BTreeSet<&str> = held.chain(intended).chain(wanted.map(|(_, rule)| rule.tunnel_id.as_str())).collect();
        for id in ids {
            if tunnels.get(id) == Some(&TunnelState::Missing) {
                continue;
            }
            let document = self.reader.document(&TUNNEL_CONFIGURATION, self.account(), id);
            let snapshot = document.snapshot().map(|known| known.content);
            let age = match (self.fresh.age, &snapshot) {
                (Freshness::Any, snapshot) if self.must_be_sure(id, snapshot.as_deref()) => Freshness::Within(RECENT),
                (Freshness::Any, Some(content)) => {
                    known.insert(id.to_owned(), Arc::clone(content));
                    continue;
                }
                (Freshness::Any, None) => continue,
                (age, _) => age,
            };
            let content = document.refresh(self.fresh.lane, age).await;
            let content =
                content.map_err(|error| error.problem(&format!("reading the configuration of tunnel {id}")))?;
            known.insert(id.to_owned(), content);
        }
        Ok(known)
    }

    fn must_be_sure(&self, tunnel_id: &str, known: Option<&Content>) -> bool {
        if self.intent.is_some_and(|intent| intent.tunnels.contains(tunnel_id)) {
            return true;
        }
        let Some(desired) = self.desired else { return false };
        let Some(rule) = desired.rule.as_ref().filter(|rule| rule.tunnel_id == tunnel_id) else { return false };
        let name = desired.hostname.as_str();
        let moves = desired.access.is_some() && self.held.hostnames().iter().any(|held| *held != name);
        let held = self.held.rules.iter().any(|held| held.tunnel_id == tunnel_id && held.hostname == name);
        let found = known.and_then(|content| rules::find(&content.value, &desired.hostname));
        moves || found.is_some_and(|found| !held && !rules::matches_but_wall(found, rule))
    }

    pub(super) async fn records(&self) -> Result<ZoneRecords, Problem> {
        let mut records = BTreeMap::new();
        let wanted = self.desired.and_then(|desired| desired.record.as_ref());
        let held = self.held.records.iter().map(|record| record.zone_id.as_str());
        let recorded = self.recorded.zone_id.as_deref().filter(|_| self.desired.is_none());
        let intended = self.intended(|intent| &intent.zones);
        let zones: BTreeSet<&str> = held.chain(recorded).chain(intended).chain(wanted.map(Record::zone_id)).collect();
        for zone in zones {
            let is_wanted = wanted.is_some_and(|wanted| wanted.zone_id() == zone);
            let found = match self.zone(zone, self.zone_age(zone)).await {
                Ok(found) => found,
                // A zone that is gone took its records along.
                Err(error) if error.class == ErrorClass::NotFound && !is_wanted => Vec::new(),
                Err(error) => return Err(error.problem(&format!("listing the records of zone {zone}"))),
            };
            records.insert(zone.to_owned(), found);
        }
        Ok(records)
    }

    /// The API itself refuses a second CNAME, but not a second A record.
    fn zone_age(&self, zone: &str) -> Freshness {
        let address = match self.desired.and_then(|desired| desired.record.as_ref()) {
            Some(Record::Address { zone_id, .. }) => zone_id == zone,
            Some(Record::Cname { .. }) | None => false,
        };
        match self.fresh.age {
            Freshness::Any if address => Freshness::Within(BEFORE_CREATE),
            age => age,
        }
    }

    async fn zone(&self, zone: &str, age: Freshness) -> Result<Vec<Entry<DnsRecord>>, ApiError> {
        let ids: Vec<&str> =
            self.held.records.iter().filter(|record| record.zone_id == zone).map(|record| record.id.as_str()).collect();
        let pick = |records: &Snapshot<DnsRecord>| {
            let mut found: BTreeMap<String, Entry<DnsRecord>> = BTreeMap::new();
            let mut add = |entry: &Entry<DnsRecord>| drop(found.insert(entry.id.clone(), entry.clone()));
            ids.iter().filter_map(|id| records.get(id)).for_each(&mut add);
            self.hostnames().into_iter().flat_map(|name| records.by_key(name)).for_each(&mut add);
            let keys = self.mark.owner_keys();
            keys.iter().flat_map(|key| records.by_owner(key)).for_each(&mut add);
            let complete = ids.iter().all(|id| found.contains_key(*id));
            (found.into_values().collect(), complete)
        };
        let found = self.find_recorded(&collections::DNS_RECORDS, zone, age, pick).await?;
        self.reader.learn_limit(self.fresh.lane, &self.reader.records(&collections::DNS_RECORDS, zone)).await;
        Ok(found)
    }

    /// A recorded redirect is looked at only where freshness is asked for, after an attempt that did not end, or where the
    /// record that it belongs to is not there any more.
    fn trusts_redirect(&self, zone: &str, records: &ZoneRecords) -> bool {
        let names = self.hostnames();
        let recorded =
            self.held.redirects.iter().any(|held| held.zone_id == zone && names.contains(held.hostname.as_str()));
        let stands = |id: &String| records.get(zone).is_some_and(|found| found.iter().any(|entry| entry.id == *id));
        let mut held = self.held.records.iter().filter(|held| held.zone_id == zone);
        let quiet = self.fresh.age == Freshness::Any && self.intent.is_none();
        recorded && quiet && held.all(|held| stands(&held.id))
    }

    /// A zone's redirects. Looks for drift share theirs: they write nothing, and whoever does looks again.
    async fn zone_redirects(&self, zone: &str) -> Result<Arc<Redirects>, ApiError> {
        let look = async || self.look_at_redirects(zone).await.map(Arc::new);
        match (self.fresh.lane, self.fresh.age) {
            (Lane::Drift, Freshness::Within(age)) => {
                let shared = self.reader.looked::<Arc<Redirects>>("redirects", zone);
                shared.get(self.fresh.lane, age, look).await
            }
            _ => look().await,
        }
    }

    async fn look_at_redirects(&self, zone: &str) -> Result<Redirects, ApiError> {
        match self.reader.get(self.fresh.lane, &redirect::read(zone)).await {
            Ok(ruleset) => Ok(Redirects::Ruleset(ruleset)),
            Err(error) if error.class == ErrorClass::NotFound => Ok(Redirects::Ruleset(Value::Null)),
            Err(error) if may_pass(&error) => Err(error),
            Err(error) => Ok(Redirects::Denied(error.message)),
        }
    }

    pub(super) async fn redirects(&self, records: &ZoneRecords) -> Result<BTreeMap<String, Redirects>, Problem> {
        let mut redirects = BTreeMap::new();
        let wanted = self.desired.filter(|desired| desired.redirect).and_then(|desired| desired.record.as_ref());
        let wanted = wanted.map(Record::zone_id).filter(|zone| !self.trusts_redirect(zone, records));
        let held = self.held.redirects.iter().map(|redirect| redirect.zone_id.as_str());
        let held = held.filter(|zone| !self.trusts_redirect(zone, records));
        let intended = self.intended(|intent| &intent.redirects);
        let zones: BTreeSet<&str> = held.chain(intended).chain(wanted).collect();
        for zone in zones {
            let found = self.zone_redirects(zone).await;
            let found = found.map_err(|error| error.problem(&format!("reading the redirects of zone {zone}")))?;
            redirects.insert(zone.to_owned(), Redirects::clone(&found));
        }
        Ok(redirects)
    }
}
