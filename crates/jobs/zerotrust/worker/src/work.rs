//! What a task asks for, as `exposure` understands it: a name to publish, or one to withdraw.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;
use portolan_cloudflare_api::Freshness;
use portolan_core::{Mark, OwnerId, Problem, reasons as core};
use portolan_exposure::{Desired, ExposureGoal, Footprint, Fresh, Intent, Record, intend};
use portolan_zerotrust_model::task::TaskAction;
use portolan_zerotrust_model::{CloudflareTask, Phase, TaskResult, annotations, reasons};

use crate::reason;
use crate::retry::Aim;
use crate::task_status::Handed;

/// Who queued a task because of a difference looked at Cloudflare just before.
const RECENT: Duration = Duration::from_secs(60);

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) enum TaskWork {
    /// A name is to be as its route says.
    Publish(Box<Desired>),
    /// What stands for a name is to go.
    Withdraw(Mark),
}

impl TaskWork {
    /// What a task asks for.
    pub(crate) fn of(task: &CloudflareTask, owner: &OwnerId) -> Result<Self, Problem> {
        portolan_core::waypoint!();
        match task.spec.action() {
            TaskAction::Reconcile => match task.spec.desired(owner) {
                Ok(desired) => Ok(Self::Publish(Box::new(desired))),
                Err(problem) => Err(unreadable(problem)),
            },
            TaskAction::Delete => {
                // Delete tasks of older operators name no route: then nothing carries a mark of ours.
                let unnamed =
                    || Mark { kind: "HTTPRoute".to_owned(), key: task.key(), owner: owner.clone(), adopted: false };
                Ok(Self::Withdraw(task.spec.mark(owner).unwrap_or_else(|_| unnamed())))
            }
        }
    }

    /// What is recorded as ours: as the task itself came to know it, else as it was told.
    pub(crate) fn recorded(&self, task: &CloudflareTask, handed: Option<&Handed>) -> Footprint {
        let result = task.status.as_ref().and_then(|status| status.result.as_ref());
        let told = || match self {
            Self::Publish(_) => task.spec.existing(),
            Self::Withdraw(_) => task.spec.to_delete(),
        };
        let mut recorded = result.map_or_else(told, TaskResult::footprint);
        if let Some(handed) = handed {
            recorded.service_token_id = Some(handed.token_id.clone());
            recorded.service_token_client_id = Some(handed.client_id.clone());
            recorded.service_token_rotation = handed.rotation.clone().or(recorded.service_token_rotation);
        }
        recorded
    }

    /// What is to become of the name.
    pub(crate) fn goal(&self) -> ExposureGoal<'_> {
        match self {
            Self::Publish(desired) => ExposureGoal::Publish(desired),
            Self::Withdraw(mark) => ExposureGoal::Withdraw(mark),
        }
    }

    /// The wish, where there is one.
    pub(crate) fn desired(&self) -> Option<&Desired> {
        self.goal().desired()
    }

    /// What has to be stored before the first call.
    pub(crate) fn intent(&self, earlier: Option<&Intent>, now: Timestamp) -> Option<Intent> {
        self.desired().map(|desired| intend(desired, earlier, now))
    }

    /// The request for new credentials.
    pub(crate) fn rotation(&self) -> Option<String> {
        let token = self.desired()?.token.as_ref()?;
        token.rotate.as_ref().map(|rotate| rotate.request.clone())
    }

    /// What trying again is for.
    pub(crate) fn aim(task: &CloudflareTask) -> Aim {
        match task.spec.action() {
            TaskAction::Reconcile => Aim::Publish,
            TaskAction::Delete => Aim::Withdraw,
        }
    }

    /// Account, tunnel and zone that it is about, as far as it writes there.
    pub(crate) fn place<'a>(&'a self, recorded: &'a Footprint) -> (&'a str, Option<&'a str>, Option<&'a str>) {
        match self {
            Self::Publish(desired) => {
                let tunnel = desired.rule.as_ref().map(|rule| rule.tunnel_id.as_str());
                (&desired.account_id, tunnel, desired.record.as_ref().map(Record::zone_id))
            }
            Self::Withdraw(_) => {
                let account = recorded.account_id.as_deref().unwrap_or_default();
                let zone = recorded.zone_id.as_deref().filter(|_| recorded.record_ids().next().is_some());
                (account, recorded.tunnel_id.as_deref().filter(|_| recorded.has_rule), zone)
            }
        }
    }
}

/// A spec that says nothing that can be done, told apart from a request that Cloudflare refuses.
fn unreadable(problem: Problem) -> Problem {
    let reason = if problem.reason == core::INVALID_CONFIG { reasons::INVALID_SPEC } else { problem.reason };
    Problem { reason, ..problem }
}

/// How old what is known of Cloudflare may be. What an earlier attempt left behind, or stood in its way, is not to be seen
/// in a snapshot from before it; a difference that somebody else saw may not be in one of ours at all. A policy or group
/// that is missing is looked for anew in any case, and nothing else then.
pub(crate) fn freshness(task: &CloudflareTask) -> Fresh {
    let status = task.status.clone().unwrap_or_default();
    let tried = status.attempts.is_some_and(|attempts| attempts > 0) && task.phase() != Phase::Completed;
    let only_missing = status.intent().is_none() && reason::is_of_something_missing(&status);
    let drifted = task.annotations().get(&annotations::name("queued-for")).is_some_and(|why| why == "drift");
    match (tried && !only_missing, drifted) {
        (true, _) => Fresh::after_now(),
        (false, true) => Fresh { age: Freshness::Within(RECENT), ..Fresh::any() },
        (false, false) => Fresh::any(),
    }
}

/// Whether the credentials of the recorded token are somewhere: on their way, or where they belong.
pub(crate) fn has_credentials(task: &CloudflareTask, recorded: &Footprint, handed: Option<&Handed>) -> bool {
    let Some(token) = &recorded.service_token_id else { return false };
    if handed.is_some_and(|handed| handed.token_id == *token) {
        return true;
    }
    let operation = task.spec.operations.as_ref().and_then(|operations| operations.service_token.as_ref());
    let present = operation.and_then(|operation| operation.secret_present).unwrap_or(true);
    present && task.spec.existing().service_token_id.as_ref() == Some(token)
}

#[cfg(test)]
mod tests {
    use portolan_zerotrust_model::task::{ExistingIds, Operations, TokenOperation};
    use portolan_zerotrust_model::{CloudflareTaskSpec, CloudflareTaskStatus};

    use super::*;

    fn task(existing: Option<&str>, secret_present: Option<bool>) -> CloudflareTask {
        let operation = TokenOperation { secret_present, ..TokenOperation::default() };
        let spec = CloudflareTaskSpec {
            operations: Some(Operations { service_token: Some(operation), ..Operations::default() }),
            existing_ids: existing.map(|token| ExistingIds::from(&footprint(Some(token)))),
            ..CloudflareTaskSpec::default()
        };
        CloudflareTask::new("cfzt-shop-web", spec)
    }

    fn footprint(token: Option<&str>) -> Footprint {
        Footprint { service_token_id: token.map(str::to_owned), ..Footprint::default() }
    }

    fn handed(token: &str) -> Handed {
        Handed { name: "s".into(), token_id: token.into(), client_id: "c".into(), rotation: Some("r1".into()) }
    }

    fn after(status: CloudflareTaskStatus) -> Fresh {
        let mut task = task(None, None);
        task.status = Some(status);
        freshness(&task)
    }

    #[test]
    fn credentials_are_there_while_they_are_on_their_way() {
        assert!(has_credentials(&task(None, None), &footprint(Some("t1")), Some(&handed("t1"))));
        assert!(!has_credentials(&task(None, None), &footprint(Some("t2")), Some(&handed("t1"))));
        assert!(!has_credentials(&task(None, None), &footprint(None), None));
    }

    #[test]
    fn credentials_of_a_known_token_are_where_they_belong_unless_the_task_says_otherwise() {
        let known = footprint(Some("t1"));

        assert!(has_credentials(&task(Some("t1"), None), &known, None));
        assert!(!has_credentials(&task(Some("t1"), Some(false)), &known, None));
        assert!(
            !has_credentials(&task(Some("t1"), None), &footprint(Some("t2")), None),
            "made since, and not handed over"
        );
    }

    #[test]
    fn what_lies_ready_is_recorded_though_the_status_does_not_know_it() {
        let work = TaskWork::Withdraw(Mark {
            kind: "HTTPRoute".to_owned(),
            key: portolan_core::ObjectKey::namespaced("shop", "web"),
            owner: OwnerId::derive("test"),
            adopted: false,
        });

        let recorded = work.recorded(&task(None, None), Some(&handed("t1")));

        assert_eq!(recorded.service_token_id.as_deref(), Some("t1"));
        assert_eq!(recorded.service_token_rotation.as_deref(), Some("r1"));
    }

    #[test]
    fn after_a_failure_everything_is_looked_at_anew_unless_only_a_group_is_missing() {
        let failed = |message: &str| CloudflareTaskStatus {
            phase: Some(Phase::Failed),
            attempts: Some(1),
            message: Some(message.to_owned()),
            ..CloudflareTaskStatus::default()
        };

        assert_eq!(after(CloudflareTaskStatus::default()), Fresh::any());
        assert_eq!(after(failed("CloudflareAPIError: 503")), Fresh::after_now());
        assert_eq!(after(failed("GroupNotFound: no group Staff")), Fresh::any());
        let completed = CloudflareTaskStatus { phase: Some(Phase::Completed), ..failed("") };
        assert_eq!(after(completed), Fresh::any());
    }

    #[test]
    fn a_task_that_was_queued_for_drift_trusts_only_a_recent_look() {
        let mut task = task(None, None);
        task.metadata.annotations = Some([(annotations::name("queued-for"), "drift".to_owned())].into());

        assert_eq!(freshness(&task).age, Freshness::Within(RECENT));
    }
}
