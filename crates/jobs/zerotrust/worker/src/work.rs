//! What a task asks for, as `exposure` understands it: a name to publish, or one to withdraw.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;
use portolan_cloudflare_api::{Freshness, Reader};
use portolan_core::{Mark, OwnerId, Problem, reasons as core};
use portolan_exposure::{Desired, Exposure, Footprint, Fresh, Intent, Live, Notes, Record};
use portolan_zerotrust_model::task::Action;
use portolan_zerotrust_model::{CloudflareTask, Phase, TaskResult, annotations, reasons};

use crate::progress::Handed;
use crate::reason;
use crate::retry::Aim;

/// Who queued a task because of a difference looked at Cloudflare just before.
const RECENT: Duration = Duration::from_secs(60);

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A name is to be as its route says.
    Publish(Box<Desired>),
    /// What stands for a name is to go.
    Withdraw(Mark),
}

impl Work {
    /// What a task asks for.
    pub(crate) fn of(task: &CloudflareTask, owner: &OwnerId) -> Result<Self, Problem> {
        match task.spec.action() {
            Action::Reconcile => match task.spec.desired(owner) {
                Ok(desired) => Ok(Self::Publish(Box::new(desired))),
                Err(problem) => Err(unreadable(problem)),
            },
            Action::Delete => {
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

    /// The wish, where there is one.
    pub(crate) fn desired(&self) -> Option<&Desired> {
        match self {
            Self::Publish(desired) => Some(desired),
            Self::Withdraw(_) => None,
        }
    }

    /// What has to be stored before the first call.
    pub(crate) fn intent(&self, earlier: Option<&Intent>, now: Timestamp) -> Option<Intent> {
        self.desired().map(|desired| Intent::before(desired, earlier, now))
    }

    /// The request for new credentials.
    pub(crate) fn rotation(&self) -> Option<String> {
        let token = self.desired()?.token.as_ref()?;
        token.rotate.as_ref().map(|rotate| rotate.request.clone())
    }

    /// What trying again is for.
    pub(crate) fn aim(task: &CloudflareTask) -> Aim {
        match task.spec.action() {
            Action::Reconcile => Aim::Publish,
            Action::Delete => Aim::Withdraw,
        }
    }

    pub(crate) async fn gather(
        &self,
        reader: &Reader,
        recorded: &Footprint,
        intent: Option<&Intent>,
        fresh: Fresh,
    ) -> Result<Live, Problem> {
        portolan_exposure::gather_with(reader, self.mark(), self.desired(), recorded, intent, fresh).await
    }

    fn mark(&self) -> &Mark {
        match self {
            Self::Publish(desired) => &desired.mark,
            Self::Withdraw(mark) => mark,
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

    /// The tunnel configurations that it may write.
    pub(crate) fn documents(&self, recorded: &Footprint) -> BTreeSet<String> {
        let wanted = self.desired().and_then(|desired| desired.rule.as_ref()).map(|rule| rule.tunnel_id.as_str());
        let former = recorded.former.iter().filter_map(|former| former.tunnel_id.as_deref());
        let held = recorded.tunnel_id.as_deref().filter(|_| recorded.has_rule);
        wanted.into_iter().chain(held).chain(former).map(|tunnel| format!("tunnels/{tunnel}/configuration")).collect()
    }

    pub(crate) fn plan(&self, recorded: &Footprint, live: &Live, notes: &Notes) -> Result<Exposure, Problem> {
        match self {
            Self::Publish(desired) => portolan_exposure::plan(desired, recorded, live, notes),
            Self::Withdraw(mark) => portolan_exposure::withdraw(mark, recorded, live, notes),
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
    let message = status.message.as_deref().unwrap_or_default();
    let only_missing = status.intent().is_none() && reason::is_of_something_missing(message);
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
