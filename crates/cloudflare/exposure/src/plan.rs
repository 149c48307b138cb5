//! Wish, record and world → the ordered steps that make the wish true. Pure.
//!
//! What protects a name is written before what publishes it. When a protected name moves, its old place is left before the
//! application follows, and only then is the new place taken: at no instant does either name stand open.

mod app;
mod policies;
mod records;
mod redirect;
mod retire;
mod rule;
mod token;
mod wall;

pub(crate) use app::unrecorded_app;
pub(crate) use records::find_records;
pub(crate) use redirect::{find_redirects, not_managed};
pub(crate) use retire::{old_apps_gone, policy_gone, removal, rule_gone};
pub(crate) use rule::{RuleOwnership, adopted as rule_adopted, conflict as rule_conflict, decide, find_rules, is_ours};
pub(crate) use token::{released, token_gone, unrecorded_token};
pub(crate) use wall::{open_below, unavailable};

use std::collections::BTreeSet;

use portolan_core::{Hostname, Mark, Notice, Problem};
use portolan_publication::{Desired, Footprint, Record};

use crate::app::AppWish;
use crate::inventory::{Inventory, ZoneAndTunnel};
use crate::live::Live;
use crate::plan_context::PlanContext;
use crate::quota::{self, Counted};
use crate::step::{Course, Exposure, ExposureStep};

/// What to do so that the name becomes what is desired. Fails, and then nothing is to be written, where something that is
/// needed is missing or stands in the way.
pub fn plan(desired: &Desired, recorded: &Footprint, live: &Live, context: &PlanContext) -> Result<Exposure, Problem> {
    portolan_core::waypoint!();
    let mut planner = Planner::new(desired, recorded, live, context);
    planner.check_tunnel()?;
    let wish = planner.app_wish()?;
    let (token, records) = (planner.token()?, planner.records()?);
    planner.find_rule()?;
    let redirect = planner.redirect();
    let app = planner.app(wish.as_ref())?;
    let wall = planner.wall(wish.as_ref(), &app)?;
    let rule = planner.rule(&wall)?;
    let parts = StepsByPart { token, app, rule, records, redirect };
    let steps = planner.in_order(parts, wish.as_ref())?;
    Ok(planner.finish(steps))
}

/// The steps of each part, still without their order.
struct StepsByPart {
    token: Vec<ExposureStep>,
    app: app::AppMatch,
    rule: Option<rule::RuleStep>,
    records: Vec<ExposureStep>,
    redirect: Vec<ExposureStep>,
}

struct Planner<'a> {
    desired: &'a Desired,
    live: &'a Live,
    context: &'a PlanContext,
    held: Inventory,
    place: ZoneAndTunnel,
    /// Whether the name was published before.
    stood: bool,
    /// The application that was recorded before.
    recorded_app: Option<String>,
    /// Names that were ours, or were about to be.
    names: BTreeSet<String>,
    notices: Vec<Notice>,
}

impl<'a> Planner<'a> {
    fn new(desired: &'a Desired, recorded: &Footprint, live: &'a Live, context: &'a PlanContext) -> Self {
        // What is recorded in another account is for whoever holds that account's credential.
        let elsewhere = recorded.account_id.as_ref().is_some_and(|account| *account != desired.account_id);
        let held = if elsewhere { Inventory::default() } else { Inventory::read(&recorded.completed_by(desired)) };
        let recorded_zone = || recorded.zone_id.clone().filter(|_| !elsewhere);
        let place = ZoneAndTunnel {
            account_id: Some(desired.account_id.clone()),
            hostname: Some(desired.hostname.as_str().to_owned()),
            tunnel_id: desired.rule.as_ref().map(|rule| rule.tunnel_id.clone()),
            zone_id: desired.record.as_ref().map(|record| record.zone_id().to_owned()).or_else(recorded_zone),
        };
        let names = known_names(recorded, context);
        let stood = held.publishes(desired.hostname.as_str());
        let recorded_app = held.app.as_ref().map(|app| app.id.clone());
        Self { desired, live, context, held, place, stood, recorded_app, names, notices: Vec::new() }
    }

    fn hostname(&self) -> &'a Hostname {
        &self.desired.hostname
    }

    fn name(&self) -> &'a str {
        self.desired.hostname.as_str()
    }

    fn account(&self) -> &'a str {
        &self.desired.account_id
    }

    fn zone(&self) -> Option<&'a str> {
        self.desired.record.as_ref().map(Record::zone_id)
    }

    /// The mark as it stands on something that existed before us, or that we make.
    fn mark(&self, adopted: bool) -> Mark {
        Mark { adopted, ..self.desired.mark.clone() }
    }

    fn check_tunnel(&self) -> Result<(), Problem> {
        let Some(rule) = &self.desired.rule else { return Ok(()) };
        self.live.tunnels.get(&rule.tunnel_id).map_or(Ok(()), |state| state.check(&rule.tunnel_id))
    }

    /// Whether another one may be asked for: not for a while after Cloudflare refused one.
    fn check_room(&self, what: Counted) -> Result<(), Problem> {
        self.live.refused.get(&what).map_or(Ok(()), |refusal| Err(quota::exceeded(what, refusal)))
    }

    /// Whether something of ours answers for another name than the wanted one.
    fn leaves_a_name(&self) -> bool {
        self.held.hostnames().iter().any(|held| *held != self.name())
    }

    fn in_order(&mut self, parts: StepsByPart, wish: Option<&AppWish>) -> Result<Vec<ExposureStep>, Problem> {
        let StepsByPart { token, app, rule, records, redirect } = parts;
        let (own, own_ids) = self.own_policies(wish)?;
        let early = self.early_app(&app, wish, !token.is_empty() || !own.is_empty());
        let follows = app.follows(self.name());
        let publishes = rule.as_ref().is_some_and(|rule| rule.publishes) || records.iter().any(ExposureStep::publishes);
        let confirm = self.confirmation(&app, wish, publishes);
        let protect = self.app_steps(app, wish, early.is_some(), &own_ids).or(confirm);
        let publish = rule.into_iter().map(|rule| rule.step).chain(records).chain(redirect);
        let retire = self.retire();
        let named = self.name_token(&token);
        let mut steps: Vec<ExposureStep> = early.into_iter().chain(token).chain(own).collect();
        match (wish.is_some() && self.leaves_a_name(), follows) {
            (true, true) => {
                steps.extend(retire);
                steps.extend(protect);
                steps.extend(publish);
            }
            (true, false) => {
                steps.extend(protect);
                steps.extend(retire);
                steps.extend(publish);
            }
            (false, _) => {
                steps.extend(protect);
                steps.extend(publish);
                steps.extend(retire);
            }
        }
        steps.extend(self.unprotect(wish));
        steps.extend(named);
        Ok(steps)
    }

    fn finish(self, steps: Vec<ExposureStep>) -> Exposure {
        Exposure {
            steps,
            notices: self.notices,
            account_id: self.desired.account_id.clone(),
            mark: self.desired.mark.clone(),
            held: self.held,
            place: self.place,
            course: Course::Publish,
        }
    }
}

/// Names that were ours, or were about to be.
pub(crate) fn known_names(recorded: &Footprint, context: &PlanContext) -> BTreeSet<String> {
    let recorded_names = [&recorded.hostname, &recorded.app_hostname].into_iter().flatten();
    let former = recorded.former.iter().map(|former| &former.hostname);
    let intended = context.intent.iter().flat_map(|intent| &intent.hostnames);
    recorded_names.chain(former).chain(intended).cloned().collect()
}

/// Whether a text is an id of the API rather than a name.
pub(crate) fn is_id(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let hex = |part: &&str| part.bytes().all(|b| b.is_ascii_hexdigit());
    let lengths: Vec<usize> = groups.iter().map(|part| part.len()).collect();
    groups.iter().all(hex) && lengths == [8, 4, 4, 4, 12]
}
