//! The tunnel's rule. Its step reads the configuration itself: a plan made without knowing it is decided there.

use portolan_core::{Action, Change, Claim, Hostname, Notice, Problem, reasons as core_reasons};
use portolan_publication::{Rule, reasons};
use serde_json::{Value, json};

use super::Planner;
use crate::changes;
use crate::inventory::{Inventory, RecordKind, RuleHeld};
use crate::live::Live;
use crate::plan_context::PlanContext;
use crate::record::PublishedRecord as _;
use crate::rules;
use crate::step::{ExposureStep, RuleClaim, Work};
use crate::wall::Wall;

/// The step that writes the rule.
pub(super) struct RuleStep {
    pub(super) step: ExposureStep,
    /// Whether it lets requests through that did not pass before; a rule of ours that only asks for more does not.
    pub(super) publishes: bool,
}

impl Planner<'_> {
    /// Finds the rule of the name, whatever it asks of requests, or refuses.
    pub(super) fn find_rule(&mut self) -> Result<(), Problem> {
        portolan_core::waypoint!();
        find_rules(&mut self.held, self.live, self.context);
        let Some(rule) = &self.desired.rule else { return Ok(()) };
        let hostname = self.hostname();
        let known = self.live.configurations.get(&rule.tunnel_id);
        let Some(found) = known.and_then(|content| rules::find(&content.value, hostname)) else { return Ok(()) };
        let claim = self.rule_claim(hostname, &rule.tunnel_id);
        let ours = is_ours(found, hostname, &rule.tunnel_id, &claim);
        let same = rules::matches_but_wall(found, rule);
        // Whether somebody's rule that asks for a token is the wanted one shows when the application is known.
        let unclear = rules::is_walled(found) && self.desired.access.is_some();
        if same && (ours || !rules::is_walled(found)) {
            self.hold_rule(rule, !ours);
        } else if !(ours || self.desired.adopt || same && unclear) {
            return Err(conflict(hostname, &rule.tunnel_id, found));
        }
        Ok(())
    }

    pub(super) fn rule(&mut self, wall: &Wall) -> Result<Option<RuleStep>, Problem> {
        let Some(rule) = &self.desired.rule else { return Ok(None) };
        let hostname = self.hostname().clone();
        let claim = RuleClaim { adopt: self.desired.adopt, ..self.rule_claim(&hostname, &rule.tunnel_id) };
        let target = changes::rule(&rule.tunnel_id, &hostname);
        let known = self.live.configurations.get(&rule.tunnel_id);
        let found = known.and_then(|content| rules::find(&content.value, &hostname));
        let wanted = wall.on(rule, found);
        let after = rules::body(&hostname, &wanted);
        let change = match known.map(|content| decide(&content.value, &hostname, &wanted, &claim)) {
            Some(RuleOwnership::Equal { adopted }) => {
                self.hold_rule(rule, adopted);
                return Ok(None);
            }
            Some(RuleOwnership::Foreign(found)) => return Err(conflict(&hostname, &rule.tunnel_id, &found)),
            Some(RuleOwnership::Adopt(before)) => {
                self.notices.push(adopted(&hostname, &rule.tunnel_id));
                Change::update(target, before, after, "it existed before").as_action(Action::Adopt)
            }
            Some(RuleOwnership::Update(before)) => Change::update(target, before, after, ""),
            Some(RuleOwnership::Create) => Change::create(target, after, ""),
            None if claim.ours => {
                Change::update(target, json!({}), after, "the tunnel's configuration was not read yet")
            }
            None => Change::create(target, after, "the tunnel's configuration was not read yet"),
        };
        let asks_more = matches!(wall, Wall::Team { .. });
        let publishes = !(asks_more && self.stood && found.is_some_and(|found| rules::matches_but_wall(found, rule)));
        let work = Work::EnsureRule { hostname, rule: rule.clone(), wall: wall.clone(), claim };
        Ok(Some(RuleStep { step: ExposureStep::new(change, work), publishes }))
    }

    /// Notes a rule as ours that stands already.
    fn hold_rule(&mut self, rule: &Rule, adopted: bool) {
        let name = self.name();
        let held = |held: &RuleHeld| held.tunnel_id == rule.tunnel_id && held.hostname == name;
        if !self.held.rules.iter().any(held) {
            let (tunnel_id, hostname) = (rule.tunnel_id.clone(), name.to_owned());
            self.held.rules.push(RuleHeld { tunnel_id, hostname, adopted });
        }
    }

    /// What makes a rule for a name ours: it is recorded, the name's CNAME to this tunnel is recorded or carries our mark, or
    /// it is just what an earlier attempt was about to write.
    pub(super) fn rule_claim(&self, hostname: &Hostname, tunnel_id: &str) -> RuleClaim {
        let name = hostname.as_str();
        let recorded = self.held.rules.iter().any(|held| held.tunnel_id == tunnel_id && held.hostname == name);
        let mark = &self.desired.mark;
        let marked = self.live.records.values().flatten().any(|entry| {
            *entry.item.name == *name
                && entry.item.held_kind() == Some(RecordKind::Cname)
                && entry.item.value().starts_with(tunnel_id)
                && (entry.item.claim(mark) == Claim::Ours { adopted: false } || self.made(&entry.id))
        });
        let intended = self.context.intent.iter().flat_map(|intent| intent.rules.iter().cloned()).collect();
        RuleClaim { ours: recorded || marked, intended, adopt: false }
    }
}

impl Planner<'_> {
    /// Whether a record is recorded as one that we made.
    fn made(&self, id: &str) -> bool {
        self.held.records.iter().any(|held| held.id == id && !held.adopted)
    }
}

/// Rules that an earlier attempt wrote without recording them are ours: just what it was about to write.
pub(crate) fn find_rules(held: &mut Inventory, live: &Live, context: &PlanContext) {
    let Some(intent) = &context.intent else { return };
    for (tunnel_id, content) in &live.configurations {
        for hostname in intent.hostnames.iter().filter_map(|name| Hostname::parse(name).ok()) {
            let name = hostname.as_str();
            let known = held.rules.iter().any(|held| held.tunnel_id == *tunnel_id && held.hostname == name);
            let found = rules::find(&content.value, &hostname).filter(|_| !known);
            if found.is_some_and(|found| intent.rules.contains(&rules::digest_found(tunnel_id, &hostname, found))) {
                let (tunnel_id, hostname) = (tunnel_id.clone(), name.to_owned());
                held.rules.push(RuleHeld { tunnel_id, hostname, adopted: false });
            }
        }
    }
}

/// What the rule at our hostname is to us.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RuleOwnership {
    /// There is none.
    Create,
    /// It is as wanted.
    Equal {
        /// Whether it existed before us.
        adopted: bool,
    },
    /// It is ours and has to change.
    Update(Value),
    /// It is somebody's, and may be taken over.
    Adopt(Value),
    /// It is somebody's.
    Foreign(Value),
}

/// Looks at a configuration.
pub(crate) fn decide(config: &Value, hostname: &Hostname, rule: &Rule, claim: &RuleClaim) -> RuleOwnership {
    let Some(found) = rules::find(config, hostname) else { return RuleOwnership::Create };
    let ours = is_ours(found, hostname, &rule.tunnel_id, claim);
    // Somebody's rule that is as wanted may be made to ask for more, never for less.
    let asks_more = !rules::is_walled(found) && rules::matches_but_wall(found, rule);
    match (rules::matches(found, rule), ours, claim.adopt || asks_more) {
        (true, ours, _) => RuleOwnership::Equal { adopted: !ours },
        (false, true, _) => RuleOwnership::Update(found.clone()),
        (false, false, true) => RuleOwnership::Adopt(found.clone()),
        (false, false, false) => RuleOwnership::Foreign(found.clone()),
    }
}

/// Whether the rule that stands at our hostname is ours.
pub(crate) fn is_ours(found: &Value, hostname: &Hostname, tunnel_id: &str, claim: &RuleClaim) -> bool {
    claim.ours || claim.intended.contains(&rules::digest_found(tunnel_id, hostname, found))
}

pub(crate) fn conflict(hostname: &Hostname, tunnel_id: &str, found: &Value) -> Problem {
    let service = found.get("service").and_then(Value::as_str).unwrap_or_default();
    Problem::denied(
        reasons::TUNNEL_RULE_CONFLICT,
        format!(
            "tunnel {tunnel_id} has a rule for {hostname} (to {service}) that is not managed here; remove it, or say adopt: \"true\" to take it over"
        ),
    )
}

pub(crate) fn adopted(hostname: &Hostname, tunnel_id: &str) -> Notice {
    Notice::normal(
        core_reasons::ADOPTED,
        format!(
            "the rule for {hostname} in tunnel {tunnel_id} existed already and is now managed; it will not be deleted"
        ),
    )
}
