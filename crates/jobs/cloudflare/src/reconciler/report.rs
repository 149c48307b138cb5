//! What an object's user gets to see after a pass.

use portolan_cloudflare_api::{Entry, Item, NearlyFull};
use portolan_core::ownership::{Ownership, RemoteWrite, unseen};
use portolan_core::{Class, NewCondition, Problem, condition, reasons, text};
use portolan_engine::{Notice, PassFailure, Report};
use serde_json::Value;

use super::{FoundThere, Inputs, KindReconciler, Steps};
use crate::kind::{Kind, Management, StatusView};
use crate::reasons::SCOPE_GONE;
use crate::sheet::IntentStatus;

impl<K: Kind> KindReconciler<K> {
    pub(super) fn well(
        &self,
        object: &K,
        inputs: &Inputs<K::Body>,
        plan: &Steps<K::Body>,
        present: &[Entry<K::Body>],
        events: Vec<Notice>,
    ) -> Report {
        portolan_core::waypoint!();
        let view = StatusView {
            resolved: Some(&inputs.resolved),
            present,
            problem: None,
            checked_at: Some(&inputs.checked_at),
        };
        let (reason, message) = object.well(&inputs.resolved);
        let mut conditions = vec![NewCondition::ready(reason, message)];
        conditions.push(self.stalled(present));
        let mut status = object.status(&view);
        if K::SHEET.ownership == Ownership::Intent {
            lay_over(&mut status, remembered(object, inputs, plan, present));
        }
        let report = Report { status, conditions, events, again: K::SHEET.resync, problem: None };
        Self::beside(&plan.here.beside, report)
    }

    /// An object that stands as wanted is not well while something of others stands beside it.
    fn beside(beside: &[Entry<K::Body>], mut report: Report) -> Report {
        let Some(entry) = beside.first() else { return report };
        let message = format!(
            "the {} {} is published as asked for, but another one that is not ours stands beside it (id {}): visitors \
             get either. Delete one of the two, or bear it with the annotation cloudflare-operator.io/adopt: \"true\"",
            K::NOUN,
            entry.item.label(),
            entry.id
        );
        let (kept, _): (Vec<_>, Vec<_>) =
            report.conditions.drain(..).partition(|condition| condition.r#type != condition::READY);
        report.conditions = kept;
        report.conditions.insert(0, NewCondition::not_ready(reasons::CONFLICT_ERROR, &message));
        report.events.push(Notice::warning(reasons::ADOPTION_CONFLICT, message));
        report
    }

    /// `Stalled` while deletions in the scope that this object stands for are held.
    pub(super) fn stalled(&self, present: &[Entry<K::Body>]) -> NewCondition {
        let held: Vec<String> = match K::MANAGEMENT {
            Management::Observed => present.iter().flat_map(|entry| self.shared.deletions.held(&entry.id)).collect(),
            Management::Owned | Management::Singleton => Vec::new(),
        };
        if held.is_empty() {
            return NewCondition::not_stalled();
        }
        NewCondition::stalled(reasons::DELETION_BUDGET_EXCEEDED, held.join(" "))
    }

    pub(super) fn failed(object: &K, failure: &PassFailure<'_, Self>) -> Report {
        let problem = failure.problem;
        let view = StatusView { resolved: None, present: &[], problem: Some(problem), checked_at: None };
        let reason = if problem.reason == reasons::API_ERROR { K::SHEET.error_reason } else { problem.reason };
        let mut report = Report::failed(problem);
        let mut conditions = vec![NewCondition::not_ready(reason, &problem.message)];
        conditions.push(match problem.class {
            Class::Invalid => NewCondition::stalled(reason, &problem.message),
            Class::Waiting | Class::Transient | Class::Denied => NewCondition::not_stalled(),
        });
        if problem.reason == reasons::CONFLICT_ERROR {
            report.events = vec![Notice::warning(reasons::ADOPTION_CONFLICT, &problem.message)];
        }
        report.conditions = conditions;
        report.status = object.status(&view);
        let noted = K::SHEET.ownership == Ownership::Intent;
        if noted && failure.planned.is_some_and(|(_, plan)| is_refused_creation(plan, problem)) {
            report.status["creating"] = Value::Null;
        }
        report
    }
}

/// What the status of a kind without a mark remembers of what stands there now.
fn remembered<K: Kind>(
    object: &K,
    inputs: &Inputs<K::Body>,
    plan: &Steps<K::Body>,
    present: &[Entry<K::Body>],
) -> IntentStatus {
    let before = object.recorded().intent.adopted_id;
    let now = plan.here.steps.iter().find_map(|step| match step {
        RemoteWrite::Adopt { id, .. } => Some(id.clone()),
        RemoteWrite::Create { .. }
        | RemoteWrite::Update { .. }
        | RemoteWrite::Delete { .. }
        | RemoteWrite::Release { .. } => None,
    });
    let stands = |id: &String| present.iter().any(|entry| entry.id == *id);
    let unseen = inputs.wanted.first().and_then(unseen);
    IntentStatus { creating: None, adopted_id: now.or(before).filter(stands), unseen }
}

fn lay_over(status: &mut Value, intent: IntentStatus) {
    let intent = serde_json::to_value(intent).expect("notes are plain JSON");
    if let (Value::Object(status), Value::Object(intent)) = (status, intent) {
        status.extend(intent);
    }
}

/// Whether it is known that a noted creation made nothing. Where a pass does more than one thing, another one may have failed.
fn is_refused_creation<B>(plan: &Steps<B>, problem: &Problem) -> bool {
    let alone = matches!(plan.here.steps.as_slice(), [RemoteWrite::Create { .. }]) && plan.former.is_empty();
    alone && matches!(problem.class, Class::Invalid | Class::Denied)
}

pub(super) fn notices<K: Kind>(plan: &Steps<K::Body>, inputs: &Inputs<K::Body>) -> Vec<Notice> {
    let steps = plan.here.steps.iter().chain(&plan.former);
    let mut notices: Vec<Notice> = steps.map(|step| notice(step, K::NOUN)).collect();
    notices.extend(left_behind(inputs));
    notices
}

/// A step as an event, once it is done.
fn notice<B: Item>(step: &RemoteWrite<B>, noun: &str) -> Notice {
    let label = step.label();
    match step {
        RemoteWrite::Create { .. } => Notice::normal(reasons::CREATED, format!("created the {noun} {label}")),
        RemoteWrite::Update { .. } => Notice::normal(reasons::UPDATED, format!("updated the {noun} {label}")),
        RemoteWrite::Adopt { id, .. } => {
            Notice::normal(reasons::ADOPTED, format!("adopted the {noun} {label} (id {id})"))
        }
        RemoteWrite::Delete { .. } => Notice::normal(reasons::DELETED, format!("deleted the {noun} {label}")),
        RemoteWrite::Release { id, .. } => {
            let message =
                format!("released the {noun} {label} (id {id}), which existed before: it stays at Cloudflare");
            Notice::normal(reasons::RELEASED, message)
        }
    }
}

/// The limit that an object brought near, told by the first one that does.
pub(super) fn near_limit<K: Kind>(found: &FoundThere<K::Body>) -> Option<Notice> {
    let NearlyFull { used, limit } = found.remote.nearly_full()?;
    let message = format!(
        "{} has {used} {}s, and may have {limit} as far as known: delete some that are not needed, ask Cloudflare for a higher \
         limit, or tell of one that it granted with --cloudflare-limits",
        found.place.label,
        K::NOUN
    );
    Some(Notice::warning(reasons::QUOTA_NEARLY_REACHED, message))
}

/// What an object that goes leaves others with.
pub(super) fn left_behind<B: Item>(inputs: &Inputs<B>) -> Vec<Notice> {
    let mut notices = Vec::new();
    if let Some(place) = &inputs.gone {
        let message = format!("{} is gone, and everything that was in it: nothing was left to remove", place.label);
        notices.push(Notice::normal(SCOPE_GONE, message));
    }
    if !inputs.left_behind.is_empty() {
        let ids = text::join_and(&inputs.left_behind);
        let message = format!("finalizer removed by force; left behind at Cloudflare: {ids}");
        notices.push(Notice::warning(reasons::FORCED_CLEANUP, message));
    }
    if inputs.still_used > 0 {
        let others = text::count(inputs.still_used, "object");
        let message = format!("deleted while {others} still needed it; they wait until it is there again");
        notices.push(Notice::warning(reasons::DEPENDENCY_ERROR, message));
    }
    notices
}
