//! What tasks say that failed, as words that events can carry.

use portolan_core::reasons as core;
use portolan_exposure::reasons as exposure;
use portolan_zerotrust_model::{CloudflareTask, Phase, reasons};

/// Every reason that a task may give.
const KNOWN: &[&str] = &[
    reasons::ZONE_NOT_FOUND,
    reasons::ZONE_MISMATCH,
    reasons::DNS_SKIPPED,
    reasons::NO_ACCESS_POLICY,
    reasons::CREDENTIAL_NOT_FOUND,
    reasons::CREDENTIAL_KEY_MISSING,
    reasons::CREDENTIAL_INVALID,
    reasons::CLOUDFLARE_API_ERROR,
    reasons::INVALID_HOSTNAME,
    reasons::INVALID_TARGET_IP,
    reasons::PROTECTION_IMPOSSIBLE,
    core::RATE_LIMITED,
    core::QUOTA_EXCEEDED,
    core::ZERO_TRUST_NOT_ENABLED,
    core::QUOTA_NEARLY_REACHED,
    core::INVALID_CONFIG,
    core::ADOPTED,
    core::RELEASED,
    exposure::POLICY_NOT_FOUND,
    exposure::GROUP_NOT_FOUND,
    exposure::EVERYONE_ALLOWED,
    exposure::SECOND_WALL_IMPOSSIBLE,
    exposure::SERVICE_TOKEN_UNCLAIMED,
    exposure::SECOND_WALL_UNAVAILABLE,
    exposure::TUNNEL_NOT_FOUND,
    exposure::TUNNEL_LOCALLY_MANAGED,
    exposure::TUNNEL_CONFIG_CONFLICT,
    exposure::TUNNEL_CONFIG_RACED,
    exposure::TUNNEL_RULE_CONFLICT,
    exposure::DNS_RECORD_CONFLICT,
    exposure::ACCESS_APP_CONFLICT,
    exposure::HTTP_REDIRECT_NOT_MANAGED,
];

/// The reason of that name; what nobody knows is an error of the API.
pub(crate) fn named(name: &str) -> &'static str {
    KNOWN.iter().find(|known| **known == name).copied().unwrap_or(reasons::CLOUDFLARE_API_ERROR)
}

/// What a task says that failed, or that waits until Cloudflare answers again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskFailure {
    /// Why, in one word that events can carry.
    pub(crate) reason: &'static str,
    /// The same in a sentence.
    pub(crate) message: String,
    /// As the task says it: the reason first.
    pub(crate) sentence: String,
    /// Whether it waits for the rate limit, as whatever uses the credential does.
    pub(crate) limited: bool,
}

impl TaskFailure {
    /// What is wrong with a task; nothing is while it waits for its turn or is being carried out.
    pub(crate) fn of(task: &CloudflareTask) -> Option<Self> {
        let status = task.status.clone().unwrap_or_default();
        let said = status.failure_reason();
        let limited = task.phase() == Phase::InProgress && said == Some(reasons::RATE_LIMITED);
        let reason = match task.phase() {
            Phase::Failed => named(said.unwrap_or_default()),
            // The worker has it, and waits.
            Phase::InProgress if limited => reasons::CLOUDFLARE_API_ERROR,
            Phase::InProgress => named(said.filter(|said| KNOWN.contains(said))?),
            Phase::Pending | Phase::Completed => return None,
        };
        let sentence = status.message.clone().unwrap_or_else(|| "the task failed".to_owned());
        let message = status.message.as_ref().map_or(sentence.as_str(), |_| status.message_after(reason)).to_owned();
        Some(Self { reason, message, sentence, limited })
    }
}

#[cfg(test)]
mod tests {
    use portolan_zerotrust_model::{CloudflareTaskSpec, CloudflareTaskStatus};

    use super::*;

    fn of(phase: Phase, reason: Option<&str>, message: &str) -> Option<TaskFailure> {
        let mut task = CloudflareTask::new("cfzt-shop-web", CloudflareTaskSpec::default());
        task.status = Some(CloudflareTaskStatus {
            phase: Some(phase),
            reason: reason.map(str::to_owned),
            message: Some(message.to_owned()),
            ..CloudflareTaskStatus::default()
        });
        TaskFailure::of(&task)
    }

    fn told(phase: Phase, reason: Option<&str>, message: &str) -> Option<(&'static str, String)> {
        of(phase, reason, message).map(|failure| (failure.reason, failure.message))
    }

    #[test]
    fn a_failure_is_told_by_the_reason_that_came_as_a_value() {
        let text = "GroupNotFound: there is no group Engineering";

        assert_eq!(
            told(Phase::Failed, Some("GroupNotFound"), text),
            Some(("GroupNotFound", "there is no group Engineering".to_owned()))
        );
        let other = "PolicyNotFound: no policy";
        assert_eq!(told(Phase::Failed, Some("GroupNotFound"), other), Some(("GroupNotFound", other.to_owned())));
        assert_eq!(told(Phase::InProgress, None, "Claimed by w1"), None);
        assert_eq!(told(Phase::Completed, Some("GroupNotFound"), text), None);
    }

    #[test]
    fn what_workers_of_earlier_versions_said_is_told_as_before() {
        let text = "GroupNotFound: there is no group";

        assert_eq!(told(Phase::Failed, None, text), Some(("GroupNotFound", "there is no group".to_owned())));
        let unknown = "500: something broke";
        assert_eq!(told(Phase::Failed, None, unknown), Some(("CloudflareAPIError", unknown.to_owned())));
        assert_eq!(told(Phase::Failed, None, ""), Some(("CloudflareAPIError", String::new())));
        assert_eq!(told(Phase::InProgress, None, unknown), None);
    }

    #[test]
    fn a_worker_that_waits_for_the_rate_limit_waits_with_all_others() {
        let text = "CloudflareAPIError: Rate limit exceeded: 429";
        for reason in [Some("RateLimited"), None] {
            let failure = of(Phase::InProgress, reason, text).unwrap();

            assert_eq!((failure.reason, failure.limited), ("CloudflareAPIError", true));
            assert_eq!(failure.message, "Rate limit exceeded: 429");
        }
    }
}
