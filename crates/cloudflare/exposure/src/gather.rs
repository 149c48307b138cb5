//! Snapshots → [`Live`]: what a plan has to know, read with as few calls as possible.
//!
//! A snapshot of any age does. What it does not show although it should (a recorded id, a name that the wish uses) is looked
//! for once more in a fresh one before it counts as missing.

mod access;
mod publication;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use portolan_cloudflare_api::{ApiError, Entry, Freshness, Item, Lane, Reader, Snapshot, TypedCollection, collections};
use portolan_core::{Mark, Problem};
use portolan_publication::{Access, Desired, Footprint, Intent, Record};

use crate::app::APPS;
use crate::inventory::Inventory;
use crate::live::Live;
use crate::policy::POLICIES;
use crate::quota::Counted;
use crate::token::TOKENS;

pub(crate) use access::is_everyone;

/// How old a snapshot may be that something is said to be missing from.
const RECENT: Duration = Duration::from_secs(2);

/// How fresh and how urgent a look is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// The lane of its calls.
    pub lane: Lane,
    /// How old snapshots may be. With anything but [`Freshness::Any`], tunnel configurations are read too.
    pub age: Freshness,
}

impl Fresh {
    /// Snapshots of any age: for changes that users made.
    pub fn any() -> Self {
        Self { lane: Lane::Change, age: Freshness::Any }
    }

    /// Snapshots at most this old, in the lane of drift.
    pub fn within(age: Duration) -> Self {
        Self { lane: Lane::Drift, age: Freshness::Within(age) }
    }

    /// Everything read anew.
    pub fn after_now() -> Self {
        Self { age: Freshness::AfterNow, ..Self::any() }
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
    portolan_core::waypoint!();
    let intended = || intent.and_then(|intent| intent.account_id.clone());
    let wanted = desired.map(|desired| desired.account_id.clone());
    let account = wanted.or_else(|| recorded.account_id.clone()).or_else(intended);
    let completed = desired.map(|desired| recorded.completed_by(desired));
    let recorded = completed.as_ref().unwrap_or(recorded);
    let look = Lookup { reader, mark, desired, recorded, intent, held: Inventory::read(recorded), fresh, account };
    let tunnels = look.tunnels().await?;
    let (records, apps, tokens, policies, groups, team) =
        tokio::try_join!(look.records(), look.apps(), look.tokens(), look.policies(), look.groups(), look.team())?;
    let configurations = look.configurations(&tunnels).await?;
    let redirects = look.redirects(&records).await?;
    Ok(Live {
        tunnels,
        configurations,
        records,
        apps,
        tokens,
        policies,
        groups,
        team,
        redirects,
        credential: reader.identity().as_str().to_owned(),
        refused: look.refused(),
    })
}

struct Lookup<'a> {
    reader: &'a Reader,
    mark: &'a Mark,
    desired: Option<&'a Desired>,
    recorded: &'a Footprint,
    intent: Option<&'a Intent>,
    held: Inventory,
    fresh: Fresh,
    account: Option<String>,
}

impl Lookup<'_> {
    /// What `pick` finds, looked for again in a fresh snapshot if not everything is there.
    async fn find<T: Item>(
        &self,
        collection: &'static TypedCollection<T>,
        scope: &str,
        age: Freshness,
        pick: impl Fn(&Snapshot<T>) -> (Vec<Entry<T>>, bool),
    ) -> Result<Vec<Entry<T>>, ApiError> {
        self.find_again(collection, scope, age, Freshness::Within(RECENT), pick).await
    }

    /// The same for what is recorded: another process may have made it a moment ago, so that the second look of a change
    /// counts only if it begins now. Looks for drift share theirs.
    async fn find_recorded<T: Item>(
        &self,
        collection: &'static TypedCollection<T>,
        scope: &str,
        age: Freshness,
        pick: impl Fn(&Snapshot<T>) -> (Vec<Entry<T>>, bool),
    ) -> Result<Vec<Entry<T>>, ApiError> {
        let again = match self.fresh.age {
            Freshness::Any => Freshness::AfterNow,
            Freshness::Within(_) | Freshness::AfterNow => Freshness::Within(RECENT),
        };
        self.find_again(collection, scope, age, again, pick).await
    }

    async fn find_again<T: Item>(
        &self,
        collection: &'static TypedCollection<T>,
        scope: &str,
        age: Freshness,
        again: Freshness,
        pick: impl Fn(&Snapshot<T>) -> (Vec<Entry<T>>, bool),
    ) -> Result<Vec<Entry<T>>, ApiError> {
        let records = self.reader.records(collection, scope);
        records.refresh(self.fresh.lane, age).await?;
        let (mut found, complete) = records.with(&pick);
        if !complete {
            records.refresh(self.fresh.lane, again).await?;
            found = records.with(&pick).0;
        }
        // Whatever order the API lists in, a plan is the same.
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(found)
    }

    /// What Cloudflare refused to make more of a few minutes ago, as far as the name may need it.
    fn refused(&self) -> BTreeMap<Counted, ApiError> {
        let account = self.account();
        let access = self.access().is_some();
        let token = self.desired.is_some_and(|desired| desired.token.is_some());
        let zone = self.desired.and_then(|desired| desired.record.as_ref()).map(Record::zone_id);
        let apps = access.then(|| self.refusal(&APPS, account)).flatten();
        let policies = access.then(|| self.refusal(&POLICIES, account)).flatten();
        let tokens = token.then(|| self.refusal(&TOKENS, account)).flatten();
        let records = zone.and_then(|zone| self.refusal(&collections::DNS_RECORDS, zone));
        let all = [
            (Counted::Apps, apps),
            (Counted::Policies, policies),
            (Counted::Tokens, tokens),
            (Counted::Records, records),
        ];
        all.into_iter().filter_map(|(what, refusal)| Some((what, refusal?))).collect()
    }

    fn refusal<T: Item>(&self, collection: &'static TypedCollection<T>, scope: &str) -> Option<ApiError> {
        self.reader.records(collection, scope).refusal()
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
        self.intent.is_some()
    }

    /// Names at which something may stand: the wanted or recorded one, and those of earlier attempts.
    fn hostnames(&self) -> BTreeSet<&str> {
        let now = self.desired.map(|desired| desired.hostname.as_str()).or(self.recorded.hostname.as_deref());
        now.into_iter().chain(self.intended(|intent| &intent.hostnames)).collect()
    }

    fn intended(&self, set: impl Fn(&Intent) -> &BTreeSet<String>) -> impl Iterator<Item = &str> {
        self.intent.into_iter().flat_map(set).map(String::as_str)
    }
}
