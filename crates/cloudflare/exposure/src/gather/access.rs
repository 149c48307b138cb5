//! What protects names: applications, service tokens, reusable policies, groups.

use portolan_cloudflare_api::objects::AccessGroup;
use portolan_cloudflare_api::{ACCESS_ORGANIZATION, Entry, ErrorClass, Snapshot, collections};
use portolan_core::Problem;

use super::Lookup;
use crate::app::{APPS, App};
use crate::inventory::AppHeld;
use crate::plan::is_id;
use crate::policy::{POLICIES, ReusablePolicy, is_marked};
use crate::token::{ServiceToken, TOKENS};
use crate::wall::team_of;

/// What stands for all in a list of groups.
const EVERYONE: &str = "everyone";

impl Lookup<'_> {
    pub(super) async fn apps(&self) -> Result<Vec<Entry<App>>, Problem> {
        portolan_core::waypoint!();
        let held: Vec<&AppHeld> = self.held.app.iter().chain(&self.held.old_apps).collect();
        let ids: Vec<&str> = held.iter().map(|app| app.id.as_str()).collect();
        if self.account.is_none() || ids.is_empty() && self.access().is_none() && !self.searches() {
            return Ok(Vec::new());
        }
        let pick = |apps: &Snapshot<App>| {
            let recorded: Vec<&Entry<App>> = ids.iter().filter_map(|id| apps.get(id)).collect();
            // One that is shown at another name may have been moved by another process since the snapshot was taken.
            let complete =
                held.iter().all(|app| apps.get(&app.id).is_some_and(|entry| self.is_at_its_name(app, entry)));
            let named = self.hostnames().into_iter().flat_map(|name| apps.by_key(name));
            let others = named.filter(|entry| !ids.contains(&entry.id.as_str()));
            (recorded.into_iter().chain(others).cloned().collect(), complete)
        };
        let unsure = self.intent.is_some() && self.desired.is_none() && ids.is_empty();
        let found = self.find_recorded(&APPS, self.account(), self.age_if(unsure), pick).await;
        found.map_err(|error| error.problem("listing Access applications"))
    }

    /// Whether an application stands for the name that is recorded for it, or for one that it is about to have.
    fn is_at_its_name(&self, held: &AppHeld, entry: &Entry<App>) -> bool {
        let domain = entry.item.domain();
        held.hostname.as_ref().is_none_or(|name| *name == domain)
            || self.hostnames().into_iter().any(|name| name == domain)
    }

    pub(super) async fn tokens(&self) -> Result<Vec<Entry<ServiceToken>>, Problem> {
        let id = self.held.token.as_ref().map(|token| token.id.as_str());
        let wanted = self.desired.and_then(|desired| desired.token.as_ref());
        if self.account.is_none() || id.is_none() && wanted.is_none() && !self.searches() {
            return Ok(Vec::new());
        }
        let pick = |tokens: &Snapshot<ServiceToken>| {
            let recorded = id.and_then(|id| tokens.get(id));
            // What an earlier attempt may have made carries our mark, or has a name that only its intent knows.
            let older = self.intent.and_then(|intent| intent.older_token.as_ref());
            let named = |entry: &&Entry<ServiceToken>| {
                let name = &entry.item.name;
                wanted.is_some_and(|wanted| *name == wanted.name) || Some(name) == older || is_marked(name, self.mark)
            };
            let others = tokens.iter().filter(|entry| Some(entry.id.as_str()) != id).filter(named);
            let found: Vec<_> = recorded.into_iter().chain(others).cloned().collect();
            (found, id.is_none() || recorded.is_some())
        };
        // The API makes a second token of the same name without a word.
        let unsure = self.intent.is_some_and(|intent| intent.token.is_some()) && id.is_none();
        let found = self.find_recorded(&TOKENS, self.account(), self.age_if(unsure), pick).await;
        found.map_err(|error| error.problem("listing service tokens"))
    }

    pub(super) async fn policies(&self) -> Result<Vec<Entry<ReusablePolicy>>, Problem> {
        let names = self.access().map(|access| access.policy_names.as_slice()).unwrap_or_default();
        let ids = self.access().map(|access| access.policy_ids.as_slice()).unwrap_or_default();
        let own = self.held.reusable.as_slice();
        let needed = !names.is_empty() || !ids.is_empty() || !own.is_empty() || self.searches();
        if self.account.is_none() || !needed {
            return Ok(Vec::new());
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
        let found = self.find(&POLICIES, self.account(), self.fresh.age, pick).await;
        found.map_err(|error| error.problem("listing reusable Access policies"))
    }

    pub(super) async fn groups(&self) -> Result<Vec<Entry<AccessGroup>>, Problem> {
        let groups = self.access().map(|access| access.groups.as_slice()).unwrap_or_default();
        // A group that has the name of all is looked for, too: then nobody can tell which of the two is meant.
        let (all, names): (Vec<&String>, Vec<&String>) =
            groups.iter().filter(|group| !is_id(group)).partition(|group| is_everyone(group));
        if all.is_empty() && names.is_empty() {
            return Ok(Vec::new());
        }
        let pick = |groups: &Snapshot<AccessGroup>| {
            let found: Vec<_> = names.iter().chain(&all).flat_map(|name| groups.by_key(name)).cloned().collect();
            let complete = names.iter().all(|name| found.iter().any(|entry| *entry.item.name == ***name));
            (found, complete)
        };
        let found = self.find(&collections::ACCESS_GROUPS, self.account(), self.fresh.age, pick).await;
        match found {
            // Who wrote the literal alone needs no permission to see groups.
            Err(error) if error.class == ErrorClass::Auth && names.is_empty() => Ok(Vec::new()),
            found => found.map_err(|error| error.problem("listing Access groups")),
        }
    }
}

impl Lookup<'_> {
    /// The team that the rule of a protected name has to name; none where it may not be read.
    pub(super) async fn team(&self) -> Result<Option<String>, Problem> {
        if self.desired.is_none_or(|desired| desired.access.is_none() || desired.rule.is_none()) {
            return Ok(None);
        }
        match self.reader.rarely(self.fresh.lane, self.fresh.age, &ACCESS_ORGANIZATION, self.account()).await {
            Ok(organization) => Ok(organization.as_deref().and_then(team_of)),
            Err(error) => Err(error.problem("reading the Zero Trust organization")),
        }
    }
}

/// The group that stands for all: the literal alone. Accounts have groups named `Everyone` that mean their staff.
pub(crate) fn is_everyone(group: &str) -> bool {
    group == EVERYONE
}
