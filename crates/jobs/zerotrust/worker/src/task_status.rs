//! What a task's status says at each turn of its life. Pure: a status and what happened in, the next status out.

use jiff::Timestamp;
use portolan_cloudflare_api::{ApiError, ErrorClass};
use portolan_core::{Class, Notice, Plan, Problem, reasons as core, rfc3339, text};
use portolan_exposure::{Footprint, Intent};
use portolan_zerotrust_model::task::{RATE_LIMIT_EXCEEDED, TaskNotice};
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskStatus, Phase, TaskResult, reasons};

use crate::reason;
use crate::settings::Settings;

/// Most lines of changes, and longest line, that a status holds.
const MOST_CHANGES: usize = 200;
const LONGEST_LINE: usize = 1024;
const LONGEST_MESSAGE: usize = 4096;

/// A worker takes the task.
pub(crate) fn claimed(
    task: &CloudflareTask,
    settings: &Settings,
    intent: Option<&Intent>,
    now: Timestamp,
) -> CloudflareTaskStatus {
    portolan_core::waypoint!();
    let mut status = observed(task);
    if let Some(intent) = intent {
        status.set_intent(intent);
    }
    status.worker_pod = Some(settings.identity.clone());
    status.epoch = Some(settings.epoch.clone()).filter(|epoch| !epoch.is_empty());
    status.claimed_at = Some(rfc3339(now));
    status.next_attempt_time = None;
    status.changes = Vec::new();
    status.completed_operations = Vec::new();
    into_phase(status, Phase::InProgress, format!("Claimed by {}", settings.identity), now)
}

/// Cloudflare does not answer, and the worker waits for that to pass.
pub(crate) fn waiting(status: CloudflareTaskStatus, error: &ApiError) -> CloudflareTaskStatus {
    let (reason, why) = if error.class == ErrorClass::RateLimit {
        (reasons::RATE_LIMITED, format!("{RATE_LIMIT_EXCEEDED}: "))
    } else {
        (reasons::CLOUDFLARE_API_ERROR, String::new())
    };
    let message = format!("{}: {why}{error}", reasons::CLOUDFLARE_API_ERROR);
    let message = Some(text::truncate(&message, LONGEST_MESSAGE).to_owned());
    CloudflareTaskStatus { message, reason: Some(reason.to_owned()), ..status }
}

/// An operation is done, and what came of it must not be forgotten.
pub(crate) fn reached(status: &CloudflareTaskStatus, operation: &str, result: TaskResult) -> CloudflareTaskStatus {
    let mut status = status.clone();
    status.completed_operations.push(operation.to_owned());
    status.result = Some(result);
    status
}

/// Everything is as the spec asks.
pub(crate) fn completed(
    status: CloudflareTaskStatus,
    message: String,
    result: TaskResult,
    changes: &Plan,
    now: Timestamp,
) -> CloudflareTaskStatus {
    let status = CloudflareTaskStatus {
        result: Some(result),
        changes: lines(changes),
        next_attempt_time: None,
        pending_operation: None,
        ..status
    };
    into_phase(status, Phase::Completed, message, now)
}

/// What is said besides of what Cloudflare refused as invalid.
const RESTS: &str = "it is not sent again until what the route asks for changes, or the task is deleted";

/// It could not be done, and is tried again at `next`, if ever by itself. Inputs that Cloudflare refused as invalid are
/// remembered: nobody sends the same again.
pub(crate) fn failed(
    status: CloudflareTaskStatus,
    problem: &Problem,
    result: Option<TaskResult>,
    next: Option<Timestamp>,
    now: Timestamp,
) -> CloudflareTaskStatus {
    let refused = next.is_none() && problem.class == Class::Invalid && problem.reason == core::INVALID_CONFIG;
    let status = CloudflareTaskStatus {
        result: result.or(status.result),
        next_attempt_time: next.map(rfc3339),
        pending_operation: None,
        refused_hash: status.annotation_hash.clone().filter(|_| refused),
        ..status
    };
    let message = if refused { format!("{}; {RESTS}", failure(problem)) } else { failure(problem) };
    let status = into_phase(status, Phase::Failed, text::truncate(&message, LONGEST_MESSAGE).to_owned(), now);
    CloudflareTaskStatus { reason: Some(reason::of(problem).to_owned()), ..status }
}

/// What a task says that failed: `Reason: what happened`.
pub(crate) fn failure(problem: &Problem) -> String {
    let message = format!("{}: {}", reason::of(problem), problem.message);
    text::truncate(&message, LONGEST_MESSAGE).to_owned()
}

/// The worker stops, and another may go on.
pub(crate) fn released(
    status: CloudflareTaskStatus,
    result: Option<TaskResult>,
    now: Timestamp,
) -> CloudflareTaskStatus {
    let message = format!("Released by {}, which stops", status.worker_pod.as_deref().unwrap_or_default());
    let status = CloudflareTaskStatus {
        result: result.or(status.result),
        worker_pod: Some(String::new()),
        epoch: None,
        pending_operation: None,
        ..status
    };
    into_phase(status, Phase::Pending, message, now)
}

/// The status with the spec that is now looked at, and one attempt more; a new spec starts counting anew.
pub(crate) fn observed(task: &CloudflareTask) -> CloudflareTaskStatus {
    let before = task.status.clone().unwrap_or_default();
    let attempts = before.attempts.filter(|_| task.is_current()).unwrap_or_default();
    CloudflareTaskStatus {
        observed_generation: task.metadata.generation,
        annotation_hash: task.hash().map(str::to_owned),
        attempts: Some(attempts.saturating_add(1)),
        refused_hash: None,
        ..before
    }
}

/// What stands now, as the task tells it.
pub(crate) fn result(footprint: &Footprint, notices: &[Notice], handed: Option<&Handed>) -> TaskResult {
    TaskResult {
        service_token_created: handed.map(|_| true),
        service_token_secret_name: handed.map(|handed| handed.name.clone()),
        notices: notices.iter().map(TaskNotice::from).collect(),
        ..TaskResult::from(footprint)
    }
}

/// New credentials of a token that lie ready in a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handed {
    /// The Secret.
    pub(crate) name: String,
    /// The token that they open with.
    pub(crate) token_id: String,
    /// Their public half.
    pub(crate) client_id: String,
    /// The request for new credentials that they answer.
    pub(crate) rotation: Option<String>,
}

/// How often in a row the task failed, this time included.
pub(crate) fn failures(status: &CloudflareTaskStatus) -> u32 {
    u32::try_from(status.attempts.unwrap_or(1)).unwrap_or(u32::MAX)
}

/// What was changed, a line each.
fn lines(changes: &Plan) -> Vec<String> {
    let line = |change: &portolan_core::Change| {
        let target = &change.target;
        let line = format!("{} {} {}", change.action.as_str(), target.kind, target.name);
        text::truncate(&line, LONGEST_LINE).to_owned()
    };
    changes.changes.iter().take(MOST_CHANGES).map(line).collect()
}

fn into_phase(status: CloudflareTaskStatus, phase: Phase, message: String, now: Timestamp) -> CloudflareTaskStatus {
    let moved = status.phase != Some(phase) || status.last_transition_time.is_none();
    let last_transition_time = if moved { Some(rfc3339(now)) } else { status.last_transition_time };
    CloudflareTaskStatus { phase: Some(phase), message: Some(message), reason: None, last_transition_time, ..status }
}

#[cfg(test)]
mod tests {
    use portolan_core::reasons;
    use portolan_zerotrust_model::CloudflareTaskSpec;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn task(generation: i64, status: CloudflareTaskStatus) -> CloudflareTask {
        let mut task = CloudflareTask::new("cfzt-shop-web", CloudflareTaskSpec::default());
        task.metadata.generation = Some(generation);
        task.status = Some(status);
        task
    }

    fn settings() -> Settings {
        Settings::new("w1", "e1")
    }

    fn footprint(token: &str) -> Footprint {
        Footprint { service_token_id: Some(token.to_owned()), ..Footprint::default() }
    }

    #[test]
    fn a_claim_names_its_worker_its_life_and_the_spec_and_counts_the_attempt() {
        let status = claimed(&task(4, CloudflareTaskStatus::default()), &settings(), None, at(0));

        assert_eq!(status.phase, Some(Phase::InProgress));
        assert_eq!((status.worker_pod.as_deref(), status.epoch.as_deref()), (Some("w1"), Some("e1")));
        assert_eq!((status.observed_generation, status.attempts), (Some(4), Some(1)));
        assert_eq!((status.claimed_at.clone(), status.last_transition_time), (Some(rfc3339(at(0))), status.claimed_at));
    }

    #[test]
    fn attempts_at_the_same_spec_add_up_and_a_new_spec_begins_anew() {
        let first = claimed(&task(4, CloudflareTaskStatus::default()), &settings(), None, at(0));

        assert_eq!(observed(&task(4, first.clone())).attempts, Some(2));
        assert_eq!(observed(&task(5, first)).attempts, Some(1));
    }

    #[test]
    fn an_intent_of_the_first_attempt_is_kept_by_later_ones() {
        let intent = |second| -> Intent {
            serde_json::from_value(json!({ "since": at(second), "rules": ["r"], "token": "t" })).unwrap()
        };
        let first = claimed(&task(1, CloudflareTaskStatus::default()), &settings(), Some(&intent(0)), at(0));

        assert_eq!(first.intent(), Some(intent(0)));
        assert_eq!(claimed(&task(1, first), &settings(), None, at(60)).intent(), Some(intent(0)));
    }

    #[test]
    fn a_failure_keeps_what_was_reached_and_says_why_and_when_again() {
        let claimed = claimed(&task(1, CloudflareTaskStatus::default()), &settings(), None, at(0));
        let reached = reached(&claimed, "createServiceToken", result(&footprint("t1"), &[], None));
        let problem = Problem::transient(reasons::API_ERROR, "creating the application: 503");

        let status = failed(reached, &problem, None, Some(at(15)), at(1));

        assert_eq!(status.message.as_deref(), Some("CloudflareAPIError: creating the application: 503"));
        assert_eq!(status.reason.as_deref(), Some("CloudflareAPIError"));
        assert_eq!((status.phase, status.next_attempt_time), (Some(Phase::Failed), Some(rfc3339(at(15)))));
        assert_eq!(status.completed_operations, ["createServiceToken"]);
        assert_eq!(status.result.unwrap().footprint(), footprint("t1"));
    }

    #[test]
    fn finding_28_inputs_that_cloudflare_refused_as_invalid_are_remembered_until_the_next_attempt() {
        let status = CloudflareTaskStatus { annotation_hash: Some("h1".to_owned()), ..CloudflareTaskStatus::default() };
        let refused = Problem::invalid(reasons::INVALID_CONFIG, "creating the application: 400");

        let rests = failed(status.clone(), &refused, None, None, at(0));
        assert_eq!(rests.refused_hash.as_deref(), Some("h1"));
        assert!(rests.message.as_deref().is_some_and(|message| message.contains("it is not sent again until")));
        assert_eq!(observed(&task(1, rests)).refused_hash, None);
        let removal = failed(status.clone(), &refused, None, Some(at(300)), at(0));
        let ours = failed(status, &Problem::invalid("ProtectionImpossible", "no"), None, None, at(0));
        assert_eq!((removal.refused_hash, ours.refused_hash), (None, None));
    }

    #[test]
    fn a_task_that_is_given_back_is_nobodys_and_keeps_what_was_reached() {
        let claimed = claimed(&task(1, CloudflareTaskStatus::default()), &settings(), None, at(0));

        let status = released(claimed, Some(result(&footprint("t1"), &[], None)), at(5));

        assert_eq!((status.phase, status.worker_pod.as_deref()), (Some(Phase::Pending), Some("")));
        assert_eq!(status.result.unwrap().footprint(), footprint("t1"));
        assert_eq!(status.message.as_deref(), Some("Released by w1, which stops"));
        assert_eq!(status.reason, None);
    }

    #[test]
    fn a_phase_that_stays_keeps_its_time() {
        let problem = Problem::waiting("GroupNotFound", "no group Staff");
        let first = failed(CloudflareTaskStatus::default(), &problem, None, None, at(0));

        let second = failed(first.clone(), &problem, None, None, at(60));

        assert_eq!(second.last_transition_time, first.last_transition_time);
        assert_eq!(second.message.as_deref(), Some("GroupNotFound: no group Staff"));
    }

    #[test]
    fn a_result_names_the_secret_that_holds_new_credentials_and_nothing_of_them() {
        let handed = Handed {
            name: "cfzt-shop-web-credentials".to_owned(),
            token_id: "t1".to_owned(),
            client_id: "id.access".to_owned(),
            rotation: None,
        };

        let with = result(&footprint("t1"), &[Notice::warning("NoAccessPolicy", "nobody passes")], Some(&handed));
        let without = result(&footprint("t1"), &[], None);

        assert_eq!(with.service_token_secret_name.as_deref(), Some("cfzt-shop-web-credentials"));
        assert_eq!((with.service_token_created, with.notices.len()), (Some(true), 1));
        assert_eq!((without.service_token_secret_name, without.service_token_created), (None, None));
    }
}
