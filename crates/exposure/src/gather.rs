//! Snapshots → [`Live`]: what a plan has to know, read with as few calls as possible.
//!
//! A snapshot of any age does. What it does not show although it should (a recorded id, a name that the wish uses) is looked
//! for once more in a fresh one before it counts as missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use portolan_cloudflare_api::document::{Content, TUNNEL_CONFIGURATION};
use portolan_cloudflare_api::{
    ApiError, Collection, Entry, ErrorClass, Freshness, Item, Lane, Reader, Request, Snapshot, collections,
};
use portolan_core::{Mark, Problem};

use crate::app::App;
use crate::desired::{Access, Desired, Record};
use crate::footprint::Footprint;
use crate::holdings::Holdings;
use crate::live::Live;
use crate::notes::Intent;
use crate::plan::is_id;
use crate::policy::{Group, ReusablePolicy, is_marked};
use crate::record::DnsRecord;
use crate::redirect::{self, Redirects, may_pass};
use crate::rules;
use crate::token::ServiceToken;
use crate::tunnel::{Tunnel, TunnelState};

/// How old a snapshot may be that something is said to be missing from.
const RECENT: Duration = Duration::from_secs(2);
/// How old a zone's snapshot may be before a record is made that the API would make twice.
const BEFORE_CREATE: Duration = Duration::from_secs(30);

/// How fresh, how urgent and how thorough a look is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// The lane of its calls.
    pub lane: Lane,
    /// How old snapshots may be. With anything but [`Freshness::Any`], tunnel configurations are read too.
    pub age: Freshness,
    /// Whether it also looks for what was made and never recorded.
    pub search: Search,
}

/// What a look is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// What is recorded, and what stands at the name.
    Recorded,
    /// Also what an earlier attempt may have made without recording it.
    Everything,
}

impl Fresh {
    /// Snapshots of any age: for changes that users made.
    pub fn any() -> Self {
        Self { lane: Lane::Change, age: Freshness::Any, search: Search::Recorded }
    }

    /// Snapshots at most this old, in the lane of drift.
    pub fn within(age: Duration) -> Self {
        Self { lane: Lane::Drift, age: Freshness::Within(age), ..Self::any() }
    }

    /// Everything read anew.
    pub fn after_now() -> Self {
        Self { age: Freshness::AfterNow, ..Self::any() }
    }

    /// The same, also looking for what was never recorded.
    pub fn thoroughly(self) -> Self {
        Self { search: Search::Everything, ..self }
    }
}

/// Reads what a plan for `desired`, or a withdrawal without it, has to know.
pub async fn gather(
    reader: &Reader,
    mark: &Mark,
    desired: Option<&Desired>,
    recorded: &Footprint,
    fresh: Fresh,
) -> Result<Live, Problem> {
    gather_with(reader, mark, desired, recorded, None, fresh).await
}

/// The same, also where an earlier attempt may have made something that nobody recorded.
pub async fn gather_with(
    reader: &Reader,
    mark: &Mark,
    desired: Option<&Desired>,
    recorded: &Footprint,
    intent: Option<&Intent>,
    fresh: Fresh,
) -> Result<Live, Problem> {
    let intended = || intent.and_then(|intent| intent.account_id.clone());
    let wanted = desired.map(|desired| desired.account_id.clone());
    let account = wanted.or_else(|| recorded.account_id.clone()).or_else(intended);
    let completed = desired.map(|desired| recorded.completed_by(desired));
    let recorded = completed.as_ref().unwrap_or(recorded);
    let look = Look { reader, mark, desired, recorded, intent, held: Holdings::read(recorded), fresh, account };
    let (tunnels, records, redirects) = tokio::try_join!(look.tunnels(), look.records(), look.redirects())?;
    let (apps, tokens, policies, groups) =
        tokio::try_join!(look.apps(), look.tokens(), look.policies(), look.groups())?;
    let configurations = look.configurations(&tunnels).await?;
    Ok(Live {
        tunnels,
        configurations,
        records,
        apps: apps.0,
        app_count: apps.1,
        tokens: tokens.0,
        token_count: tokens.1,
        policies: policies.0,
        policy_count: policies.1,
        groups: groups.0,
        redirects,
    })
}

/// Objects that may matter, and how many there are in all.
type Found<T> = (Vec<Entry<T>>, usize);

struct Look<'a> {
    reader: &'a Reader,
    mark: &'a Mark,
    desired: Option<&'a Desired>,
    recorded: &'a Footprint,
    intent: Option<&'a Intent>,
    held: Holdings,
    fresh: Fresh,
    account: Option<String>,
}

impl Look<'_> {
    /// What `pick` finds, looked for again in a fresh snapshot if not everything is there.
    async fn find<T: Item>(
        &self,
        collection: &'static Collection,
        scope: &str,
        age: Freshness,
        pick: impl Fn(&Snapshot<T>) -> (Vec<Entry<T>>, bool),
    ) -> Result<Found<T>, ApiError> {
        let records = self.reader.records::<T>(collection, scope);
        records.refresh(self.fresh.lane, age).await?;
        let (found, complete) = records.with(&pick);
        if complete {
            return Ok((found, records.with(Snapshot::len)));
        }
        records.refresh(self.fresh.lane, Freshness::Within(RECENT)).await?;
        Ok((records.with(&pick).0, records.with(Snapshot::len)))
    }

    /// A snapshot of any age is not enough where an earlier attempt of another process may have made something.
    fn age_if(&self, unsure: bool) -> Freshness {
        match self.fresh.age {
            Freshness::Any if unsure => Freshness::Within(RECENT),
            age => age,
        }
    }

    fn account(&self) -> &str {
        self.account.as_deref().unwrap_or_default()
    }

    fn access(&self) -> Option<&Access> {
        self.desired.and_then(|desired| desired.access.as_ref())
    }

    fn searches(&self) -> bool {
        self.fresh.search == Search::Everything || self.intent.is_some()
    }

    /// Names at which something may stand: the wanted or recorded one, and those of earlier attempts.
    fn hostnames(&self) -> BTreeSet<&str> {
        let now = self.desired.map(|desired| desired.hostname.as_str()).or(self.recorded.hostname.as_deref());
        now.into_iter().chain(self.intended(|intent| &intent.hostnames)).collect()
    }

    fn intended(&self, set: impl Fn(&Intent) -> &BTreeSet<String>) -> impl Iterator<Item = &str> {
        self.intent.into_iter().flat_map(set).map(String::as_str)
    }

    async fn tunnels(&self) -> Result<BTreeMap<String, TunnelState>, Problem> {
        let Some(rule) = self.desired.and_then(|desired| desired.rule.as_ref()) else { return Ok(BTreeMap::new()) };
        let id = rule.tunnel_id.as_str();
        let pick = |tunnels: &Snapshot<Tunnel>| {
            let found: Vec<_> = tunnels.get(id).cloned().into_iter().collect();
            let usable = found.iter().any(|entry| TunnelState::of(&entry.item) == TunnelState::Usable);
            (found, usable)
        };
        let state = match self.find(&collections::TUNNELS, self.account(), self.fresh.age, pick).await {
            Ok((found, _)) => match found.first() {
                Some(entry) => Some(TunnelState::of(&entry.item)),
                None => self.one_tunnel(id).await?,
            },
            // The credential may write configurations and still not see the list.
            Err(error) if matches!(error.class, ErrorClass::Auth | ErrorClass::NotFound) => None,
            Err(error) => return Err(error.problem("listing tunnels")),
        };
        Ok(state.into_iter().map(|state| (id.to_owned(), state)).collect())
    }

    /// A tunnel that no list shows; none where nothing can be said of it.
    async fn one_tunnel(&self, id: &str) -> Result<Option<TunnelState>, Problem> {
        let request = collections::TUNNELS.get(self.account(), id);
        match self.reader.get(self.fresh.lane, &request).await {
            Ok(tunnel) => Ok(Entry::<Tunnel>::read(tunnel).map(|entry| TunnelState::of(&entry.item))),
            Err(error) if error.class == ErrorClass::NotFound => {
                let request = Request::get(TUNNEL_CONFIGURATION.template, &[self.account(), id]);
                let known = self.reader.get(self.fresh.lane, &request).await.is_ok();
                Ok(if known { None } else { Some(TunnelState::Missing) })
            }
            Err(error) if error.class == ErrorClass::Auth => Ok(None),
            Err(error) => Err(error.problem(&format!("reading tunnel {id}"))),
        }
    }

    /// Configurations that are known; read only where freshness is asked for, where a rule of somebody else seems to stand
    /// at the name, or where a name moves and its old place is left before the new one is taken.
    async fn configurations(
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
        moves || found.is_some_and(|found| !held && !rules::matches(found, rule))
    }

    async fn records(&self) -> Result<BTreeMap<String, Vec<Entry<DnsRecord>>>, Problem> {
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
        Ok(self.find(&collections::DNS_RECORDS, zone, age, pick).await?.0)
    }

    async fn apps(&self) -> Result<Found<App>, Problem> {
        let ids: Vec<&str> = self.held.app.iter().chain(&self.held.old_apps).map(|app| app.id.as_str()).collect();
        if self.account.is_none() || ids.is_empty() && self.access().is_none() && !self.searches() {
            return Ok((Vec::new(), 0));
        }
        let pick = |apps: &Snapshot<App>| {
            let recorded: Vec<&Entry<App>> = ids.iter().filter_map(|id| apps.get(id)).collect();
            let complete = recorded.len() == ids.len();
            let named = self.hostnames().into_iter().flat_map(|name| apps.by_key(name));
            let others = named.filter(|entry| !ids.contains(&entry.id.as_str()));
            (recorded.into_iter().chain(others).cloned().collect(), complete)
        };
        let unsure = self.intent.is_some() && self.desired.is_none() && ids.is_empty();
        let found = self.find(&collections::ACCESS_APPS, self.account(), self.age_if(unsure), pick).await;
        found.map_err(|error| error.problem("listing Access applications"))
    }

    async fn tokens(&self) -> Result<Found<ServiceToken>, Problem> {
        let id = self.held.token.as_ref().map(|token| token.id.as_str());
        let wanted = self.desired.and_then(|desired| desired.token.as_ref());
        if self.account.is_none() || id.is_none() && wanted.is_none() && !self.searches() {
            return Ok((Vec::new(), 0));
        }
        let pick = |tokens: &Snapshot<ServiceToken>| {
            let recorded = id.and_then(|id| tokens.get(id));
            // What an earlier attempt may have made has a name that only its intent knows.
            let named = |entry: &&Entry<ServiceToken>| match wanted {
                Some(wanted) => entry.item.name == wanted.name,
                None => self.searches(),
            };
            let others = tokens.iter().filter(|entry| Some(entry.id.as_str()) != id).filter(named);
            let found: Vec<_> = recorded.into_iter().chain(others).cloned().collect();
            (found, id.is_none() || recorded.is_some())
        };
        // The API makes a second token of the same name without a word.
        let unsure = self.intent.is_some_and(|intent| intent.token.is_some()) && id.is_none();
        let found = self.find(&collections::SERVICE_TOKENS, self.account(), self.age_if(unsure), pick).await;
        found.map_err(|error| error.problem("listing service tokens"))
    }

    async fn policies(&self) -> Result<Found<ReusablePolicy>, Problem> {
        let names = self.access().map(|access| access.policy_names.as_slice()).unwrap_or_default();
        let ids = self.access().map(|access| access.policy_ids.as_slice()).unwrap_or_default();
        let own = self.held.reusable.as_slice();
        let needed = !names.is_empty() || !ids.is_empty() || !own.is_empty() || self.searches();
        if self.account.is_none() || !needed {
            return Ok((Vec::new(), 0));
        }
        let pick = |policies: &Snapshot<ReusablePolicy>| {
            let matters = |entry: &&Entry<ReusablePolicy>| {
                let name = entry.item.name();
                names.iter().any(|wanted| wanted == name)
                    || ids.contains(&entry.id)
                    || own.contains(&entry.id)
                    || is_marked(name, self.mark)
            };
            let found: Vec<_> = policies.iter().filter(matters).cloned().collect();
            let has_id = |id: &String| found.iter().any(|entry| entry.id == *id);
            let has_name = |name: &String| found.iter().any(|entry| entry.item.name() == name);
            let complete = names.iter().all(has_name) && own.iter().all(has_id) && ids.iter().all(has_id);
            (found, complete)
        };
        let found = self.find(&collections::ACCESS_POLICIES, self.account(), self.fresh.age, pick).await;
        found.map_err(|error| error.problem("listing reusable Access policies"))
    }

    async fn groups(&self) -> Result<Found<Group>, Problem> {
        let groups = self.access().map(|access| access.groups.as_slice()).unwrap_or_default();
        let names: Vec<&String> = groups.iter().filter(|group| !is_id(group) && !is_everyone(group)).collect();
        if names.is_empty() {
            return Ok((Vec::new(), 0));
        }
        let pick = |groups: &Snapshot<Group>| {
            let found: Vec<_> = names.iter().flat_map(|name| groups.by_key(name)).cloned().collect();
            let complete = names.iter().all(|name| found.iter().any(|entry| entry.item.name == **name));
            (found, complete)
        };
        let found = self.find(&collections::ACCESS_GROUPS, self.account(), self.fresh.age, pick).await;
        found.map_err(|error| error.problem("listing Access groups"))
    }

    /// A recorded redirect is looked at only where freshness is asked for.
    fn trusts_redirect(&self, zone: &str) -> bool {
        let recorded =
            self.held.redirects.iter().any(|held| held.zone_id == zone && self.hostnames().contains(&*held.hostname));
        recorded && self.fresh.age == Freshness::Any
    }

    async fn redirects(&self) -> Result<BTreeMap<String, Redirects>, Problem> {
        let mut redirects = BTreeMap::new();
        let wanted = self.desired.filter(|desired| desired.redirect).and_then(|desired| desired.record.as_ref());
        let wanted = wanted.map(Record::zone_id).filter(|zone| !self.trusts_redirect(zone));
        let held = self.held.redirects.iter().map(|redirect| redirect.zone_id.as_str());
        let held = held.filter(|zone| !self.trusts_redirect(zone));
        let intended = self.intended(|intent| &intent.redirects);
        let zones: BTreeSet<&str> = held.chain(intended).chain(wanted).collect();
        for zone in zones {
            let found = match self.reader.get(self.fresh.lane, &redirect::read(zone)).await {
                Ok(ruleset) => Redirects::Ruleset(ruleset),
                Err(error) if error.class == ErrorClass::NotFound => Redirects::Ruleset(serde_json::Value::Null),
                Err(error) if may_pass(&error) => {
                    return Err(error.problem(&format!("reading the redirects of zone {zone}")));
                }
                Err(error) => Redirects::Denied(error.message),
            };
            redirects.insert(zone.to_owned(), found);
        }
        Ok(redirects)
    }
}

/// The group that stands for all.
pub(crate) fn is_everyone(group: &str) -> bool {
    group.eq_ignore_ascii_case("everyone")
}
