//! What the checks came to. Pure.

use serde::Serialize;
use serde_json::{Value, json};

use super::check::Check;

/// How a check ended; later ones are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum CheckResult {
    /// In order.
    Ok,
    /// It could not be found out.
    NotKnown,
    /// It works, and may not for long or not for everything.
    Warning,
    /// Something does not work.
    Failed,
}

impl CheckResult {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Ok, Self::Warning, Self::Failed, Self::NotKnown];

    /// The words for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::NotKnown => "not known",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// One check's result for one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) check: &'static Check,
    /// What was looked at: `cluster`, `tenant default/prod`, `name app.example.com`.
    pub(crate) subject: String,
    pub(crate) verdict: CheckResult,
    /// What was seen.
    pub(crate) message: String,
    /// What to do next; nothing where it is in order.
    pub(crate) next: Option<String>,
}

impl Finding {
    /// What was found; what to do next is the check's remedy unless said otherwise.
    pub(crate) fn new(check: &'static Check, subject: &str, verdict: CheckResult, message: impl Into<String>) -> Self {
        let next = matches!(verdict, CheckResult::Warning | CheckResult::Failed).then(|| check.remedy.to_owned());
        Self { check, subject: subject.to_owned(), verdict, message: message.into(), next }
    }

    /// Says what to do next.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    fn to_json(&self) -> Value {
        json!({
            "check": self.check.id, "title": self.check.title, "subject": self.subject, "result": self.verdict,
            "message": self.message, "next": self.next,
        })
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct DoctorReport(pub(crate) Vec<Finding>);

impl DoctorReport {
    /// How many checks ended so.
    pub(crate) fn count(&self, verdict: CheckResult) -> usize {
        self.0.iter().filter(|finding| finding.verdict == verdict).count()
    }

    /// Whether anything failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.count(CheckResult::Failed) > 0
    }

    /// The whole report for programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "ok": self.count(CheckResult::Ok), "warnings": self.count(CheckResult::Warning),
            "failed": self.count(CheckResult::Failed), "notKnown": self.count(CheckResult::NotKnown),
            "findings": self.0.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }
}
