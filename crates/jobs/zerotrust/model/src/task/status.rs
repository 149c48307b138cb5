//! How far a task came.

use portolan_core::{Condition, Notice, rfc3339, schema};
use portolan_publication::Intent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TaskResult;
use crate::reasons;

/// What a worker says that waits for the rate limit.
pub const RATE_LIMIT_EXCEEDED: &str = "Rate limit exceeded";

/// How far a task came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct CloudflareTaskStatus {
    /// Where it stands; pending where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What happened last, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32_768))]
    pub message: Option<String>,
    /// Why it failed, or what its worker waits for, in one word that programs can rely on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// When the phase last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    /// The worker that has it, or had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub worker_pod: Option<String>,
    /// Which life of that worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub epoch: Option<String>,
    /// What stands now, as far as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<TaskResult>,
    /// The generation that is being executed, or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The hash of the inputs that are being executed, or were.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub annotation_hash: Option<String>,
    /// The hash of inputs that Cloudflare refused as invalid: they are not sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub refused_hash: Option<String>,
    /// How often it was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub next_attempt_time: Option<String>,
    /// When the worker took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub claimed_at: Option<String>,
    /// When its worker was last seen at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub heartbeat_time: Option<String>,
    /// Since when things may stand at Cloudflare that only this task knows of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub intended_at: Option<String>,
    /// What an attempt was about to do since then, for the next one to recognise its work by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_object")]
    pub intent: Option<Value>,
    /// The operations that are done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 253)), transform = schema::no_default)]
    pub completed_operations: Vec<String>,
    /// The operation that is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pending_operation: Option<String>,
    /// What was changed at Cloudflare, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), inner(length(max = 4096)), transform = schema::no_default)]
    pub changes: Vec<String>,
    /// What is known of its health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
}

impl CloudflareTaskStatus {
    /// Why it failed, or what its worker waits for, in one word.
    ///
    /// Workers of earlier versions wrote the word in front of their message and nowhere else, and a cluster whose definition
    /// is not replaced yet drops the field. There, and nowhere else, it is read from the message.
    pub fn failure_reason(&self) -> Option<&str> {
        self.reason.as_deref().or_else(|| self.reason_of_earlier_versions())
    }

    fn reason_of_earlier_versions(&self) -> Option<&str> {
        let (word, rest) = self.message.as_deref()?.split_once(": ")?;
        let waits = self.phase == Some(Phase::InProgress);
        if waits && word == reasons::CLOUDFLARE_API_ERROR && rest.starts_with(RATE_LIMIT_EXCEEDED) {
            return Some(reasons::RATE_LIMITED);
        }
        (!word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric())).then_some(word)
    }

    /// The message without a reason that it begins with.
    pub fn message_after(&self, reason: &str) -> &str {
        let message = self.message.as_deref().unwrap_or_default();
        message.strip_prefix(reason).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(message)
    }

    /// What an earlier attempt was about to do.
    pub fn intent(&self) -> Option<Intent> {
        serde_json::from_value(self.intent.clone()?).ok()
    }

    /// Notes what an attempt is about to do.
    pub fn set_intent(&mut self, intent: &Intent) {
        self.intended_at = Some(rfc3339(intent.since));
        self.intent = serde_json::to_value(intent).ok();
    }
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// It waits for a worker.
    #[default]
    Pending,
    /// A worker has it.
    InProgress,
    /// It is done and waits to be collected.
    Completed,
    /// It failed; the message says why, and when it is tried again.
    Failed,
}

impl Phase {
    /// As statuses and metrics write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::InProgress => "InProgress",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
        }
    }
}

/// Something that the route's owner should be told; it becomes an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct TaskNotice {
    /// `Normal` or `Warning`.
    #[schemars(length(max = 16), transform = schema::no_default)]
    pub r#type: String,
    /// One word that programs can rely on.
    #[schemars(length(max = 128), transform = schema::no_default)]
    pub reason: String,
    /// A sentence for people.
    #[schemars(length(max = 4096), transform = schema::no_default)]
    pub message: String,
}

impl From<&Notice> for TaskNotice {
    fn from(notice: &Notice) -> Self {
        let r#type = notice.severity.as_str().to_owned();
        Self { r#type, reason: notice.reason.to_owned(), message: notice.message.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(phase: Phase, message: &str) -> CloudflareTaskStatus {
        let (phase, message) = (Some(phase), Some(message.to_owned()));
        CloudflareTaskStatus { phase, message, ..CloudflareTaskStatus::default() }
    }

    #[test]
    fn a_reason_is_a_value_whatever_the_message_says() {
        let reason = Some("GroupNotFound".to_owned());
        let status = CloudflareTaskStatus { reason, ..said(Phase::Failed, "CredentialInvalid: is no group") };

        assert_eq!(status.failure_reason(), Some("GroupNotFound"));
        assert_eq!(status.message_after("GroupNotFound"), "CredentialInvalid: is no group");
    }

    #[test]
    fn statuses_of_earlier_versions_are_understood_by_their_message() {
        let read = |phase, message| said(phase, message).failure_reason().map(str::to_owned);

        assert_eq!(read(Phase::Failed, "GroupNotFound: no group Staff").as_deref(), Some("GroupNotFound"));
        assert_eq!(read(Phase::Failed, "CloudflareAPIError: Rate limit").as_deref(), Some("CloudflareAPIError"));
        assert_eq!(
            read(Phase::InProgress, "CloudflareAPIError: Rate limit exceeded: 429").as_deref(),
            Some("RateLimited")
        );
        assert_eq!(read(Phase::InProgress, "CloudflareAPIError: 503").as_deref(), Some("CloudflareAPIError"));
        for nothing in ["Claimed by w1", "Reconciled web.example.com: 2 created", "Released by w1, which stops", ""] {
            assert_eq!(read(Phase::InProgress, nothing), None, "{nothing}");
        }
        assert_eq!(said(Phase::Failed, "GroupNotFound: no group").message_after("GroupNotFound"), "no group");
    }
}
