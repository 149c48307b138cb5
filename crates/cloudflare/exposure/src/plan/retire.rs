//! What is ours and no longer wanted: first what publishes (DNS, then rules), the redirect, and last what protects.

use std::collections::BTreeMap;

use portolan_cloudflare_api::Entry;
use portolan_cloudflare_api::objects::DnsRecord;
use portolan_core::{Action, Change, Claim, Hostname, Mark, Notice, user_text};
use portolan_publication::Part;
use serde_json::json;

use super::Planner;
use crate::app::{AppWish, Policies};
use crate::changes;
use crate::inventory::{AppHeld, Inventory, RecordHeld, RecordKind, RuleHeld};
use crate::live::Live;
use crate::policy::{ReusablePolicy, is_marked};
use crate::record::{PublishedRecord as _, label};
use crate::rules;
use crate::step::{ExposureStep, RecordWork, RuleClaim, Work};

const WHY: &str = "no longer wanted";

impl Planner<'_> {
    /// Removes what stands at places that the name has left, or that it no longer needs.
    pub(super) fn retire(&mut self) -> Vec<ExposureStep> {
        portolan_core::waypoint!();
        let mut steps = self.retire_records();
        steps.extend(self.retire_rules());
        steps.extend(self.retire_redirects());
        steps
    }

    /// Whether a record is part of the wish: it stands in the wanted zone at the wanted name, or it is a CNAME at the
    /// wanted name whose zone is not known at the moment.
    fn is_wanted(&self, held: &RecordHeld) -> bool {
        let here = held.hostname == self.name();
        match self.zone() {
            Some(zone) => here && held.zone_id == zone,
            None => here && self.desired.rule.is_some() && held.kind == RecordKind::Cname,
        }
    }

    fn retire_records(&mut self) -> Vec<ExposureStep> {
        let mut places: BTreeMap<(String, String), ExposureStep> = BTreeMap::new();
        let unwanted: Vec<RecordHeld> =
            self.held.records.iter().filter(|held| !self.is_wanted(held)).cloned().collect();
        for held in unwanted {
            let Some(entry) = self.live.record(&held.zone_id, &held.id) else { continue };
            if held.adopted {
                self.notices.push(super::released(Part::Record, &held.id));
            }
            let (change, work) = removal(&self.desired.mark, &held, entry);
            let step = places.entry((held.zone_id.clone(), held.hostname.clone())).or_insert_with(|| ExposureStep {
                changes: Vec::new(),
                work: Work::Records { zone_id: held.zone_id, hostname: held.hostname, work: Vec::new() },
            });
            step.changes.extend(change);
            if let Work::Records { work: all, .. } = &mut step.work {
                all.push(work);
            }
        }
        places.into_values().collect()
    }

    fn retire_rules(&mut self) -> Vec<ExposureStep> {
        let name = self.name();
        let tunnel = self.desired.rule.as_ref().map(|rule| rule.tunnel_id.as_str());
        let unwanted = |hostname: &str, id: &str| hostname != name || Some(id) != tunnel;
        let held: Vec<_> =
            self.held.rules.iter().filter(|held| unwanted(&held.hostname, &held.tunnel_id)).cloned().collect();
        let mut steps = Vec::new();
        for held in held {
            if held.adopted {
                self.notices.push(super::released(Part::Rule, &held.hostname));
                self.held.rules.retain(|other| *other != held);
                continue;
            }
            let Ok(hostname) = Hostname::parse(&held.hostname) else { continue };
            let claim = self.rule_claim(&hostname, &held.tunnel_id);
            steps.extend(rule_gone(self.live, &held, claim, WHY));
        }
        steps
    }

    fn retire_redirects(&mut self) -> Vec<ExposureStep> {
        let zone = self.zone().filter(|_| self.desired.redirect);
        let name = self.name();
        let unwanted =
            self.held.redirects.iter().filter(|held| held.hostname != name || Some(held.zone_id.as_str()) != zone);
        let steps = unwanted.map(|held| {
            let target = changes::redirect(&held.zone_id, &held.hostname, Some(&held.rule_id));
            let work = Work::DeleteRedirect {
                zone_id: held.zone_id.clone(),
                ruleset_id: held.ruleset_id.clone(),
                rule_id: held.rule_id.clone(),
            };
            ExposureStep::new(Change::delete(target, json!({"hostname": held.hostname}), WHY), work)
        });
        steps.collect()
    }

    /// Removes what protected, once nothing needs it any more.
    pub(super) fn unprotect(&mut self, wish: Option<&AppWish>) -> Vec<ExposureStep> {
        let mut steps = Vec::new();
        if wish.is_none() {
            steps.extend(self.remove_app());
        }
        let (account, live) = (self.account(), self.live);
        steps.extend(old_apps_gone(account, live, &mut self.held, &mut self.notices));
        let wanted: Vec<String> = wish
            .filter(|wish| matches!(wish.policies, Policies::Linked { .. }))
            .map(|wish| wish.policies.own().iter().map(|own| own.marked_name(&self.desired.mark)).collect())
            .unwrap_or_default();
        let unused = self.live.policies.iter().filter(|entry| {
            self.held.reusable.contains(&entry.id)
                && is_marked(entry.item.name(), &self.desired.mark)
                && !wanted.iter().any(|name| name == entry.item.name())
        });
        steps.extend(unused.map(|entry| policy_gone(self.account(), entry)));
        steps.extend(self.remove_token());
        steps
    }

    fn remove_app(&mut self) -> Option<ExposureStep> {
        let held = self.held.app.clone()?;
        let entry = self.live.app(&held.id)?;
        if !held.adopted {
            return Some(ExposureStep::new(
                changes::app_gone(self.account(), entry, WHY),
                Work::DeleteApp { id: held.id },
            ));
        }
        self.notices.push(super::released(Part::App, &held.id));
        self.held.app = None;
        let token_id = self.held.token.as_ref().filter(|_| self.desired.token.is_none())?.id.clone();
        let body = entry.item.without_token(&token_id)?;
        let target = changes::app(self.account(), &entry.item.domain(), Some(&entry.id));
        let change = Change::update(target, entry.item.shown(), body, "the token goes");
        Some(ExposureStep::new(change, Work::DetachToken { app_id: entry.id.clone(), token_id }))
    }
}

/// Applications of names that were left.
pub(crate) fn old_apps_gone(
    account_id: &str,
    live: &Live,
    held: &mut Inventory,
    notices: &mut Vec<Notice>,
) -> Vec<ExposureStep> {
    let released: Vec<AppHeld> = held.old_apps.iter().filter(|app| app.adopted).cloned().collect();
    notices.extend(released.iter().map(|app| super::released(Part::App, &app.id)));
    held.old_apps.retain(|app| !app.adopted);
    let entries = held.old_apps.iter().filter_map(|app| live.app(&app.id));
    entries
        .map(|entry| {
            ExposureStep::new(changes::app_gone(account_id, entry, WHY), Work::DeleteApp { id: entry.id.clone() })
        })
        .collect()
}

/// A rule of ours that goes.
pub(crate) fn rule_gone(live: &Live, held: &RuleHeld, claim: RuleClaim, why: &str) -> Option<ExposureStep> {
    let hostname = Hostname::parse(&held.hostname).ok()?;
    let tunnel_id = held.tunnel_id.clone();
    let known = live.configurations.get(&tunnel_id).and_then(|content| rules::find(&content.value, &hostname));
    let before = known.cloned().unwrap_or_else(|| json!({"hostname": held.hostname}));
    let change = Change::delete(changes::rule(&tunnel_id, &hostname), before, why);
    Some(ExposureStep::new(change, Work::RemoveRule { hostname, tunnel_id, claim }))
}

/// A reusable policy of ours that goes.
pub(crate) fn policy_gone(account_id: &str, entry: &Entry<ReusablePolicy>) -> ExposureStep {
    let target = changes::policy(account_id, user_text(entry.item.name()), Some(&entry.id));
    ExposureStep::new(Change::delete(target, entry.item.shown(), WHY), Work::DeletePolicy { id: entry.id.clone() })
}

/// What is done to a record that is no longer wanted: deleted, or, if it existed before us, left without our mark.
pub(crate) fn removal(mark: &Mark, held: &RecordHeld, entry: &Entry<DnsRecord>) -> (Option<Change>, RecordWork) {
    if !held.adopted {
        let change = changes::record_gone(&held.zone_id, entry, WHY);
        return (Some(change), RecordWork::Delete { id: held.id.clone() });
    }
    let marked = matches!(entry.item.claim(mark), Claim::Ours { .. });
    let body = marked.then(|| entry.item.unmarked());
    let target = changes::record(&held.zone_id, label(entry), Some(&held.id));
    let change = Change::delete(target, entry.item.shown(), "it existed before").as_action(Action::Release);
    (marked.then_some(change), RecordWork::Release { id: held.id.clone(), body })
}
