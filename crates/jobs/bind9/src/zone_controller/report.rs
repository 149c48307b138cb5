//! How a pass over a zone went → its status, its conditions in the words of its phases, and when the next pass is due. Pure.
//!
//! A zone whose spec is new goes through its phases one by one, so that a watcher sees each; one that has been through them is told as it is.

use std::time::Duration;

use jiff::Timestamp;
use portolan_bind9_model::deletion::{Farewell, Orphan, farewell};
use portolan_bind9_model::kinds::{DNSZone, ZoneStatus};
use portolan_bind9_model::phases::{PROGRESSING, ZonePhase};
use portolan_bind9_model::zone_plan::{ZoneState, ZoneStep};
use portolan_bind9_model::zone_status::ZoneFacts;
use portolan_bind9_model::{names, reasons};
use portolan_core::{ConditionStatus, Problem, condition, merge};
use portolan_engine::{Notice, Report};
use serde_json::{Value, json};

use crate::zone_controller::ZoneStepPlan;
use crate::zone_controller::apply::StepFailures;
use crate::zone_controller::inputs::ZoneInputs;

/// The next pass follows at once.
const AT_ONCE: Duration = Duration::from_millis(20);
/// A follower is given time.
const SOON: Duration = Duration::from_millis(250);
/// Something is wrong that no event will tell of when it is right.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);
/// Nothing is wrong, and servers are looked at now and then.
const SETTLED: Duration = Duration::from_secs(300);

fn status_of(zone: &DNSZone) -> ZoneStatus {
    zone.status.clone().unwrap_or_default()
}

/// The phase that a zone is in by its status: the reason for which it progresses; none where it does not.
fn under_way(zone: &DNSZone) -> Option<String> {
    let status = zone.status.as_ref()?;
    let found = condition::find(&status.conditions, PROGRESSING)?;
    (found.status == ConditionStatus::True).then(|| found.reason.clone())
}

/// Whether the zone goes through its phases: its spec is new, or it is at it.
fn shows_phases(zone: &DNSZone) -> bool {
    let observed = zone.status.as_ref().and_then(|status| status.observed_generation);
    observed != zone.metadata.generation || under_way(zone).is_some()
}

/// What is stored before steps are taken: what is about to be done, where that is to be seen; and the servers, so that none is forgotten
/// that got the zone.
pub(crate) fn intent(zone: &DNSZone, inputs: &ZoneInputs, plan: &ZoneStepPlan) -> Option<Value> {
    if zone.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = status_of(zone);
    let now = inputs.now.unwrap_or_default();
    let facts = inputs.facts.status(&status, now);
    let mut intent = json!({"bind9Instances": facts["bind9Instances"], "primaries": facts["primaries"]});
    let writes = plan.steps.iter().any(|step| {
        matches!(step, ZoneStep::Seed | ZoneStep::SeedAgain | ZoneStep::Open | ZoneStep::Discard | ZoneStep::Update)
    });
    if shows_phases(zone) && writes && inputs.refusal.is_none() {
        let new = ZonePhase::PrimaryReconciling.conditions();
        let generation = zone.metadata.generation.unwrap_or_default();
        intent["conditions"] = json!(merge(&status.conditions, &new, generation, now));
    }
    Some(intent)
}

/// Steps were taken: another pass sees what came of them.
pub(crate) fn taken(zone: &DNSZone, inputs: &ZoneInputs, plan: &ZoneStepPlan, failures: &StepFailures) -> Report {
    let mut facts = inputs.facts.clone();
    for (server, why) in failures {
        facts.found.entry(server.clone()).or_default().error = Some(why.clone());
    }
    if zone.metadata.deletion_timestamp.is_some() {
        return staying("its servers are losing it", AT_ONCE.max(pause(inputs)));
    }
    let nudges = |step: &ZoneStep| matches!(step, ZoneStep::Refresh(_) | ZoneStep::Retransfer(_));
    if !failures.is_empty() || inputs.repeated > 3 || plan.steps.iter().all(nudges) {
        return ended(zone, inputs, &facts);
    }
    let status =
        if inputs.refusal.is_some() { json!({}) } else { carried(zone, &facts, inputs.now.unwrap_or_default()) };
    // Without a condition of our own: those that are there stay.
    let conditions = match (&inputs.refusal, shows_phases(zone), under_way(zone)) {
        (None, true, None) => ZonePhase::PrimaryReconciling.conditions(),
        _ => Vec::new(),
    };
    Report { status: keeping(zone, status), conditions, again: Some(AT_ONCE.max(pause(inputs))), ..Report::default() }
}

/// A report replaces the status, so that what it does not say is gone: what stays is said again.
fn keeping(zone: &DNSZone, mut status: Value) -> Value {
    let before = json!(status_of(zone));
    for field in [
        "bind9Instances",
        "primaries",
        "secondaries",
        "serial",
        "bind9InstancesCount",
        "secondaryIps",
        "records",
        "recordsCount",
        "recordCount",
        "dnssec",
    ] {
        if status.get(field).is_none() && !before[field].is_null() {
            status[field] = before[field].clone();
        }
    }
    status
}

fn carried(zone: &DNSZone, facts: &ZoneFacts, now: Timestamp) -> Value {
    keeping(zone, facts.status(&status_of(zone), now))
}

/// Steps that have no effect are taken ever more seldom.
fn pause(inputs: &ZoneInputs) -> Duration {
    Duration::from_millis(50 * u64::from(inputs.repeated) * 4_u64.pow(inputs.repeated.min(5)))
        .min(Duration::from_secs(30))
}

/// There was nothing to do.
pub(crate) fn rested(zone: &DNSZone, inputs: &ZoneInputs) -> Report {
    if zone.metadata.deletion_timestamp.is_some() {
        return leaving(zone, inputs);
    }
    if let Some(phase) = &inputs.refusal {
        return refused(zone, inputs, phase);
    }
    match next_phase(zone, inputs) {
        Some((phase, again)) => {
            let status = carried(zone, &inputs.facts, inputs.now.unwrap_or_default());
            Report { status, conditions: phase.conditions(), again: Some(again), ..Report::default() }
        }
        None => ended(zone, inputs, &inputs.facts),
    }
}

/// The phase to be seen next, while a zone goes through its phases; none once it is through, or something is wrong.
fn next_phase(zone: &DNSZone, inputs: &ZoneInputs) -> Option<(ZonePhase, Duration)> {
    if !shows_phases(zone) {
        return None;
    }
    let (primaries, secondaries) = match inputs.facts.phase() {
        ZonePhase::Succeeded { primaries, secondaries } => (primaries, Some(secondaries)),
        ZonePhase::SecondaryFailed { primaries, .. } if inputs.waits && inputs.view.late.is_empty() => {
            (primaries, None)
        }
        // The other primaries follow as secondaries do, and are given the same time.
        ZonePhase::Partial { .. } if inputs.waits && inputs.view.late.is_empty() => {
            return Some((ZonePhase::PrimaryReconciling, SOON));
        }
        _ => return None,
    };
    match (under_way(zone).as_deref(), secondaries) {
        (Some(reasons::PRIMARY_RECONCILED), _) => Some((ZonePhase::SecondaryReconciling { primaries }, AT_ONCE)),
        (Some(reasons::SECONDARY_RECONCILING), Some(secondaries)) => {
            Some((ZonePhase::SecondaryReconciled { secondaries }, AT_ONCE))
        }
        (Some(reasons::SECONDARY_RECONCILING), None) => Some((ZonePhase::SecondaryReconciling { primaries }, SOON)),
        (Some(reasons::SECONDARY_RECONCILED), Some(_)) => None,
        _ => Some((ZonePhase::PrimaryReconciled { primaries }, AT_ONCE)),
    }
}

/// How it stands, once nothing is under way.
fn ended(zone: &DNSZone, inputs: &ZoneInputs, facts: &ZoneFacts) -> Report {
    if let Some(phase) = &inputs.refusal {
        return refused(zone, inputs, phase);
    }
    let phase = facts.phase();
    let problem = match &phase {
        ZonePhase::PrimaryFailed { error } => {
            let message = format!("Failed to configure zone on primaries: {error}");
            Some(Problem::transient(reasons::PRIMARY_FAILED, message))
        }
        _ => None,
    };
    let again = match &phase {
        _ if inputs.waits || loses(inputs) => SOON,
        ZonePhase::Succeeded { .. } if facts.leaving.is_empty() => SETTLED,
        _ => AFTER_TROUBLE,
    };
    let conditions = phase.conditions();
    Report {
        status: carried(zone, facts, inputs.now.unwrap_or_default()),
        events: news(zone, &phase),
        conditions,
        again: Some(again),
        problem,
    }
}

/// Whether a server that answers is about to lose the zone.
fn loses(inputs: &ZoneInputs) -> bool {
    let answers = |server| inputs.view.leaving.get(server).is_some_and(|state| *state != ZoneState::Unknown);
    inputs.facts.leaving.iter().any(answers)
}

fn refused(zone: &DNSZone, inputs: &ZoneInputs, phase: &ZonePhase) -> Report {
    let status = match phase {
        ZonePhase::Invalid { .. } => keeping(zone, json!({})),
        _ => inputs.facts.status(&status_of(zone), inputs.now.unwrap_or_default()),
    };
    let again = if loses(inputs) { Some(SOON) } else { (!inputs.facts.leaving.is_empty()).then_some(AFTER_TROUBLE) };
    let again = again.filter(|_| !matches!(phase, ZonePhase::Invalid { .. }));
    Report { status, conditions: phase.conditions(), events: news(zone, phase), again, ..Report::default() }
}

/// An event where the phase ended otherwise than the one before.
fn news(zone: &DNSZone, phase: &ZonePhase) -> Vec<Notice> {
    let conditions = phase.conditions();
    let Some(ready) = conditions.first() else { return Vec::new() };
    let before = zone.status.as_ref().and_then(|status| condition::find(&status.conditions, condition::READY));
    if before.is_some_and(|before| before.reason == ready.reason && before.message == ready.message) {
        return Vec::new();
    }
    vec![match phase {
        ZonePhase::Succeeded { .. } => Notice::normal(ready.reason, &ready.message),
        _ => Notice::warning(ready.reason, &ready.message),
    }]
}

/// Whether a zone that is being deleted may go.
fn leaving(zone: &DNSZone, inputs: &ZoneInputs) -> Report {
    let now = inputs.now.unwrap_or_default();
    let since = zone.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let asked = zone.metadata.annotations.as_ref().and_then(|all| all.get(names::ORPHAN));
    let orphan = if asked.is_some_and(|text| text == "true") { Orphan::Yes } else { Orphan::No };
    match farewell(&inputs.view, since, now, orphan) {
        Farewell::Now if followed(inputs) => staying("its secondaries are losing it", SOON),
        Farewell::Now => Report::default(),
        Farewell::AfterSteps => staying("its servers are losing it", SOON),
        Farewell::WaitsUntil(until) => {
            let message = format!(
                "servers do not answer; it is waited for them until {until}, or annotate the zone with {}: \"true\"",
                names::ORPHAN
            );
            let wait = Duration::try_from(until.duration_since(now)).unwrap_or_default();
            staying(&message, wait.clamp(Duration::from_secs(1), Duration::from_secs(30)))
        }
    }
}

/// Whether some server that answers still follows: its catalog has let go of the zone, and it will notice within seconds.
fn followed(inputs: &ZoneInputs) -> bool {
    let follows = |state: &ZoneState| matches!(state, ZoneState::Following(_));
    !inputs.view.late.is_empty() || (inputs.waits && inputs.view.leaving.values().any(follows))
}

fn staying(why: &str, again: Duration) -> Report {
    let mut problem = Problem::waiting(reasons::PRIMARY_RECONCILING, format!("The zone is not gone yet: {why}"));
    problem.retry_after = Some(again);
    Report { problem: Some(problem), ..Report::default() }
}
