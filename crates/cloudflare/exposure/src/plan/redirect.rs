//! The redirect to HTTPS: where the credential may edit it; where it may not, the user is told.

use portolan_core::{Change, Mark, Notice};
use portolan_publication::reasons;

use super::Planner;
use crate::changes;
use crate::inventory::{Inventory, RedirectHeld};
use crate::live::Live;
use crate::redirect::{self, Redirects, RefusedRedirect};
use crate::step::{ExposureStep, Work};

impl Planner<'_> {
    pub(super) fn redirect(&mut self) -> Vec<ExposureStep> {
        portolan_core::waypoint!();
        let live = self.live;
        find_redirects(&mut self.held, live, &self.desired.mark);
        let Some(zone) = self.zone().filter(|_| self.desired.redirect) else {
            self.held.redirect_refusal = None;
            return Vec::new();
        };
        match live.redirects.get(zone) {
            Some(Redirects::Ruleset(ruleset)) => {
                let step = self.ensure_redirect(zone, ruleset);
                step.filter(|_| !self.is_refused(zone)).into_iter().collect()
            }
            Some(Redirects::Denied(why)) => {
                self.held.redirect_refusal = None;
                self.notices.push(not_managed(self.name(), why));
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Whether Cloudflare refused the same rule a while ago: then nobody asks again, and the user knows why. What was refused
    /// otherwise is forgotten.
    fn is_refused(&mut self, zone: &str) -> bool {
        let wanted = redirect::body(self.hostname(), &self.desired.mark);
        let digest = redirect::digest(zone, &wanted, &self.live.credential);
        let refusal = self.held.redirect_refusal.as_deref().and_then(RefusedRedirect::parse);
        if let Some(refusal) = refusal.filter(|refusal| refusal.holds(&digest, self.context.now)) {
            self.notices.push(not_managed(self.name(), &refusal.why));
            return true;
        }
        self.held.redirect_refusal = None;
        false
    }

    fn ensure_redirect(&mut self, zone: &str, ruleset: &serde_json::Value) -> Option<ExposureStep> {
        let wanted = redirect::body(self.hostname(), &self.desired.mark);
        let ruleset_id = redirect::id(ruleset);
        let held = self.held.redirects.iter().find(|held| held.zone_id == zone && held.hostname == self.name());
        let recorded = held.and_then(|held| redirect::by_id(ruleset, &held.rule_id, &self.desired.mark));
        let found = recorded.or_else(|| redirect::find(ruleset, &self.desired.mark));
        let (Some(found), Some(ruleset_id)) = (found, ruleset_id.clone()) else {
            self.held.redirects.retain(|held| held.zone_id != zone);
            let target = changes::redirect(zone, self.name(), None);
            let change = Change::create(target, wanted.clone(), "");
            let (zone_id, hostname) = (zone.to_owned(), self.name().to_owned());
            return Some(ExposureStep::new(
                change,
                Work::CreateRedirect { zone_id, hostname, ruleset_id, body: wanted },
            ));
        };
        let rule_id = redirect::id(found)?;
        self.held.redirects.retain(|held| held.rule_id != rule_id);
        self.held.redirects.push(RedirectHeld {
            zone_id: zone.to_owned(),
            hostname: self.name().to_owned(),
            ruleset_id: ruleset_id.clone(),
            rule_id: rule_id.clone(),
            adopted: false,
        });
        if redirect::is(found, &wanted) {
            self.held.redirect_refusal = None;
            return None;
        }
        let target = changes::redirect(zone, self.name(), Some(&rule_id));
        let change = Change::update(target, found.clone(), wanted.clone(), "");
        let work = Work::UpdateRedirect { zone_id: zone.to_owned(), ruleset_id, rule_id, body: wanted };
        Some(ExposureStep::new(change, work))
    }
}

/// Recorded redirects that are gone are forgotten; unrecorded ones with our mark are ours, for whatever name.
pub(crate) fn find_redirects(held: &mut Inventory, live: &Live, mark: &Mark) {
    held.redirects.retain(|held| match live.redirects.get(&held.zone_id) {
        Some(Redirects::Ruleset(ruleset)) => redirect::by_id(ruleset, &held.rule_id, mark).is_some(),
        Some(Redirects::Denied(_)) | None => true,
    });
    for (zone_id, redirects) in &live.redirects {
        let Redirects::Ruleset(ruleset) = redirects else { continue };
        let found = redirect::find(ruleset, mark).and_then(redirect::id).zip(redirect::id(ruleset));
        let Some((rule_id, ruleset_id)) = found else { continue };
        if !held.redirects.iter().any(|held| held.rule_id == rule_id) {
            let (zone_id, hostname) = (zone_id.clone(), String::new());
            held.redirects.push(RedirectHeld { zone_id, hostname, ruleset_id, rule_id, adopted: false });
        }
    }
}

pub(crate) fn not_managed(hostname: &str, why: &str) -> Notice {
    Notice::warning(
        reasons::HTTP_REDIRECT_NOT_MANAGED,
        format!(
            "requests to http://{hostname} are not redirected here: {why}; give the token the permission to edit redirect rules, or switch on Always Use HTTPS in the zone"
        ),
    )
}
