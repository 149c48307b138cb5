//! The tunnel's rule: decided on the configuration as it was just read, together with everybody else's edits.

use std::sync::{Arc, Mutex, PoisonError};

use portolan_cloudflare_api::document::{Committed, TUNNEL_CONFIGURATION};
use portolan_cloudflare_api::{Effect, ErrorClass, collections};
use portolan_core::{Change, Hostname, Notice, Problem, WriteGate};
use portolan_publication::{Rule, reasons};
use serde_json::Value;

use super::{Fault, StepEffect, StepRun};
use crate::app::App;
use crate::changes;
use crate::inventory::RuleHeld;
use crate::journal::Journal;
use crate::plan::{RuleOwnership, decide, is_ours, open_below, rule_adopted, rule_conflict, unavailable};
use crate::rules::{self, RuleEdits};
use crate::step::RuleClaim;
use crate::wall::Wall;

/// What an edit found.
type RuleEdit<T> = Arc<Mutex<Option<T>>>;

fn put<T>(found: &RuleEdit<T>, value: T) {
    *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

/// The first look tells what our write changed; a later one only matters if somebody else came in between.
fn note(first: &RuleEdit<RuleOwnership>, verdict: RuleOwnership) {
    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
    if first.is_none() || matches!(verdict, RuleOwnership::Foreign(_)) {
        *first = Some(verdict);
    }
}

fn get<T>(found: &RuleEdit<T>) -> Option<T> {
    found.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl<J: Journal> StepRun<'_, J> {
    pub(super) async fn ensure_rule(
        &mut self,
        hostname: &Hostname,
        rule: &Rule,
        wall: &Wall,
        claim: &RuleClaim,
    ) -> Result<StepEffect, Fault> {
        portolan_core::waypoint!();
        let wall = self.known_wall(hostname, wall)?;
        let first: RuleEdit<RuleOwnership> = Arc::default();
        let edit = {
            let (first, hostname, rule, wall) = (Arc::clone(&first), hostname.clone(), rule.clone(), wall.clone());
            let mut claim = claim.clone();
            // What we write ourselves is ours when it is merged again.
            claim.intended.push(rules::digest(&hostname, &rule));
            move |config: &mut Value| {
                let wanted = wall.on(&rule, rules::find(config, &hostname));
                let verdict = decide(config, &hostname, &wanted, &claim);
                let writes = !matches!(verdict, RuleOwnership::Foreign(_) | RuleOwnership::Equal { .. });
                note(&first, verdict);
                if writes {
                    rules::merge(config, &[RuleEdits::Ensure { hostname: hostname.clone(), rule: wanted }]);
                }
            }
        };
        let seen = self.seen;
        let committed = self.edit(&rule.tunnel_id, hostname, &seen.gate(), edit).await;
        let committed = committed.map_err(|fault| seen.fault_of(fault, hostname.as_str()))?;
        let found = rules::find(&committed.content.value, hostname);
        let wanted = wall.on(rule, found);
        let written = found.is_some_and(|found| rules::matches(found, &wanted));
        self.settle_rule(hostname, &wanted, claim, get(&first), written)
    }

    /// The wall with the audience of the application as it was seen in this run: a new application has a new one.
    fn known_wall(&mut self, hostname: &Hostname, wall: &Wall) -> Result<Wall, Fault> {
        let wall = wall.of(self.app.as_ref().and_then(App::audience));
        let unknown = match &wall {
            Wall::Team { audience, .. } | Wall::Kept { audience } => audience.is_none(),
            Wall::Open | Wall::Untouched => false,
        };
        if !unknown {
            return Ok(wall);
        }
        if hostname.is_wildcard() && !self.held.publishes(hostname.as_str()) {
            return Err(open_below(hostname.as_str()).into());
        }
        self.notices.push(unavailable(hostname.as_str()));
        Ok(Wall::Untouched)
    }

    fn settle_rule(
        &mut self,
        hostname: &Hostname,
        rule: &Rule,
        claim: &RuleClaim,
        verdict: Option<RuleOwnership>,
        written: bool,
    ) -> Result<StepEffect, Fault> {
        let target = changes::rule(&rule.tunnel_id, hostname);
        let after = rules::body(hostname, rule);
        let (adopted, done) = match verdict {
            Some(RuleOwnership::Foreign(found)) => return Err(rule_conflict(hostname, &rule.tunnel_id, &found).into()),
            _ if !written => return Err(lost(hostname, &rule.tunnel_id).into()),
            Some(RuleOwnership::Equal { .. }) => (!self.wrote_before(hostname, rule, claim), StepEffect::Nothing),
            Some(RuleOwnership::Adopt(before)) => {
                self.notices.push(rule_adopted(hostname, &rule.tunnel_id));
                (true, StepEffect::Changed(Change::update(target, before, after, "it existed before")))
            }
            Some(RuleOwnership::Update(before)) => {
                (false, StepEffect::Changed(Change::update(target, before, after, "")))
            }
            Some(RuleOwnership::Create) | None => (false, StepEffect::Changed(Change::create(target, after, ""))),
        };
        let held = RuleHeld { tunnel_id: rule.tunnel_id.clone(), hostname: hostname.as_str().to_owned(), adopted };
        match self
            .held
            .rules
            .iter()
            .position(|other| other.tunnel_id == held.tunnel_id && other.hostname == held.hostname)
        {
            Some(_) => {}
            None => self.held.rules.push(held),
        }
        Ok(done)
    }

    /// Whether a rule that is as wanted is so because of us.
    fn wrote_before(&self, hostname: &Hostname, rule: &Rule, claim: &RuleClaim) -> bool {
        claim.ours || claim.intended.contains(&rules::digest(hostname, rule))
    }

    pub(super) async fn remove_rule(
        &mut self,
        hostname: &Hostname,
        tunnel_id: &str,
        claim: &RuleClaim,
    ) -> Result<StepEffect, Fault> {
        let found: RuleEdit<Option<Value>> = Arc::default();
        let edit = {
            let (found, hostname, claim, tunnel) =
                (Arc::clone(&found), hostname.clone(), claim.clone(), tunnel_id.to_owned());
            move |config: &mut Value| {
                let ours = rules::find(config, &hostname).filter(|rule| is_ours(rule, &hostname, &tunnel, &claim));
                let ours = ours.cloned();
                if ours.is_some() {
                    rules::merge(config, &[RuleEdits::Remove(hostname.clone())]);
                }
                put(&found, ours);
            }
        };
        self.edit(tunnel_id, hostname, &WriteGate::default(), edit).await?;
        self.held.rules.retain(|held| held.tunnel_id != tunnel_id || held.hostname != hostname.as_str());
        Ok(match get(&found).flatten() {
            Some(before) => {
                StepEffect::Changed(Change::delete(changes::rule(tunnel_id, hostname), before, "no longer wanted"))
            }
            None => StepEffect::Nothing,
        })
    }

    async fn edit(
        &mut self,
        tunnel_id: &str,
        hostname: &Hostname,
        gate: &WriteGate,
        edit: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Result<Committed, Fault> {
        let document = self.client.document(&TUNNEL_CONFIGURATION, self.account(), tunnel_id);
        // Nobody waits for an edit that waits for others itself.
        drop(self.expected_edits.remove(tunnel_id));
        let document = document.within(&self.journal.begins(tunnel_id).await?.and(gate));
        let source = format!("{} {hostname}", self.exposure.mark.key);
        let committed = document.edit(self.lane(), &source, edit).await;
        match committed {
            Ok(committed) => {
                self.notices.extend(committed.raced.map(|raced| {
                    Notice::warning(
                        reasons::TUNNEL_CONFIG_RACED,
                        format!(
                            "somebody else wrote the configuration of tunnel {tunnel_id} at the same time: version {} was read, and our write became version {}; their edit may be lost",
                            raced.read, raced.became
                        ),
                    )
                }));
                Ok(committed)
            }
            Err(error) if error.class == ErrorClass::Conflict && error.effect == Effect::Unknown => {
                Err(lost(hostname, tunnel_id).into())
            }
            Err(error) => {
                let mut fault: Fault =
                    error.problem(&format!("writing the configuration of tunnel {tunnel_id}")).into();
                if error.class == ErrorClass::NotFound {
                    fault.problem.reason = reasons::TUNNEL_NOT_FOUND;
                    // Whoever plans next is to see that, too.
                    self.client.records(&collections::TUNNELS, self.account()).invalidate();
                }
                Err(fault)
            }
        }
    }
}

fn lost(hostname: &Hostname, tunnel_id: &str) -> Problem {
    Problem::transient(
        reasons::TUNNEL_CONFIG_CONFLICT,
        format!(
            "somebody else keeps writing the configuration of tunnel {tunnel_id}, and the rule for {hostname} is not in it"
        ),
    )
}
