//! Who may pass: names of groups and policies resolved, and our own reusable policies.

use std::collections::BTreeSet;

use portolan_core::{Change, Notice, Problem};
use portolan_publication::{Access, reasons};

use super::{Planner, is_id};
use crate::app::{AppWish, Policies};
use crate::changes;
use crate::gather::is_everyone;
use crate::policy::{Grant, OwnPolicy, PolicyRole, is_marked};
use crate::quota::Counted;
use crate::step::{ExposureStep, Work};

impl Planner<'_> {
    pub(super) fn own_wishes(&mut self, access: &Access) -> Result<Vec<OwnPolicy>, Problem> {
        let mut grants: Vec<Grant> = access.groups.iter().map(|group| self.group(group)).collect::<Result<_, _>>()?;
        grants.extend(access.emails.iter().map(|address| Grant::Email(address.clone())));
        let mut seen = BTreeSet::new();
        grants.retain(|grant| seen.insert(grant.clone()));
        if grants.contains(&Grant::Everyone) {
            self.notices.push(everyone_allowed(self.name()));
        }
        let allow = OwnPolicy { role: PolicyRole::Allow, name: access.policy_name.clone(), grants };
        let service = OwnPolicy {
            role: PolicyRole::Service,
            name: access.service_policy_name.clone(),
            grants: vec![Grant::Token],
        };
        let allow = (!allow.grants.is_empty()).then_some(allow);
        Ok(allow.into_iter().chain(self.desired.token.is_some().then_some(service)).collect())
    }

    fn group(&self, group: &str) -> Result<Grant, Problem> {
        if is_id(group) {
            return Ok(Grant::Group(group.to_owned()));
        }
        let mut found = self.live.groups.iter().filter(|entry| *entry.item.name == *group);
        if is_everyone(group) {
            return found.next().map_or(Ok(Grant::Everyone), |entry| Err(ambiguous(&entry.id)));
        }
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(Grant::Group(entry.id.clone())),
            (None, _) => Err(Problem::waiting(
                reasons::GROUP_NOT_FOUND,
                format!("the account has no Access group {group:?}; create it, or correct allowGroups"),
            )),
            (Some(_), Some(_)) => Err(Problem::waiting(
                reasons::GROUP_NOT_FOUND,
                format!("the account has several Access groups {group:?}; write the id of the one you mean"),
            )),
        }
    }

    /// Reusable policies of others: ids first, then names, each once.
    pub(super) fn linked_policies(&self, access: &Access) -> Result<Vec<String>, Problem> {
        let mut links: Vec<String> = Vec::new();
        for id in &access.policy_ids {
            if !self.live.policies.iter().any(|entry| entry.id == *id) {
                return Err(Problem::waiting(
                    reasons::POLICY_NOT_FOUND,
                    format!("the account has no reusable Access policy with the id {id}; correct existingPolicyIds"),
                ));
            }
            links.push(id.clone());
        }
        for name in &access.policy_names {
            links.push(self.policy_named(name)?);
        }
        let mut seen = BTreeSet::new();
        links.retain(|id| seen.insert(id.clone()));
        Ok(links)
    }

    fn policy_named(&self, name: &str) -> Result<String, Problem> {
        let mut found = self.live.policies.iter().filter(|entry| entry.item.name() == name);
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(entry.id.clone()),
            (None, _) => Err(Problem::waiting(
                reasons::POLICY_NOT_FOUND,
                format!(
                    "the account has no reusable Access policy {name:?}; create it, or correct existingPolicyNames"
                ),
            )),
            (Some(_), Some(_)) => Err(Problem::waiting(
                reasons::POLICY_NOT_FOUND,
                format!("the account has several reusable Access policies {name:?}; write the id of the one you mean"),
            )),
        }
    }

    /// Our own reusable policies: made, changed, or kept, with their ids as far as known.
    pub(super) fn own_policies(
        &mut self,
        wish: Option<&AppWish>,
    ) -> Result<(Vec<ExposureStep>, Vec<Option<String>>), Problem> {
        portolan_core::waypoint!();
        self.find_own_policies();
        let Some(AppWish { policies: Policies::Linked { own, .. }, .. }) = wish else {
            return Ok((Vec::new(), Vec::new()));
        };
        let (mut steps, mut ids) = (Vec::new(), Vec::new());
        for own in own {
            let name = own.marked_name(&self.desired.mark);
            let found = self
                .live
                .policies
                .iter()
                .find(|entry| entry.item.name() == name && self.held.reusable.contains(&entry.id));
            let token_id = self.held.token.as_ref().map(|token| token.id.as_str());
            let after = own.reusable(&self.desired.mark, token_id);
            match found {
                Some(entry) if own.is_reusable(&entry.item.0, &self.desired.mark, token_id) => {
                    ids.push(Some(entry.id.clone()));
                }
                Some(entry) => {
                    ids.push(Some(entry.id.clone()));
                    let target = changes::policy(self.account(), &own.name, Some(&entry.id));
                    let change = Change::update(target, entry.item.shown(), after, "");
                    steps
                        .push(ExposureStep::new(change, Work::UpdatePolicy { id: entry.id.clone(), own: own.clone() }));
                }
                None => {
                    self.check_room(Counted::Policies)?;
                    ids.push(None);
                    let change = Change::create(changes::policy(self.account(), &own.name, None), after, "");
                    steps.push(ExposureStep::new(change, Work::CreatePolicy { own: own.clone() }));
                }
            }
        }
        Ok((steps, ids))
    }

    /// Recorded ones that are gone are forgotten; unrecorded ones with our mark are ours.
    fn find_own_policies(&mut self) {
        let live = self.live;
        self.held.reusable.retain(|id| live.policies.iter().any(|entry| entry.id == *id));
        for entry in &live.policies {
            if is_marked(entry.item.name(), &self.desired.mark) && !self.held.reusable.contains(&entry.id) {
                self.held.reusable.push(entry.id.clone());
            }
        }
    }
}

fn everyone_allowed(hostname: &str) -> Notice {
    Notice::warning(
        reasons::EVERYONE_ALLOWED,
        format!("whoever logs in by any method may pass at {hostname}: allowGroups says everyone"),
    )
}

fn ambiguous(group_id: &str) -> Problem {
    Problem::waiting(
        reasons::GROUP_NOT_FOUND,
        format!(
            "everyone in allowGroups stands for all, but the account has an Access group of that name; write the group's id {group_id}, or rename it"
        ),
    )
}
