//! What a pass tells the user: status, conditions, events, and when to look again.

use std::time::Duration;

use portolan_core::{Class, NewCondition, Problem};
use serde_json::Value;

/// What the user gets to see after a pass.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The kind's own status fields, without `conditions`. Null writes no status at all. `observedGeneration` is the
    /// object's own unless it is said here.
    pub status: Value,
    /// Conditions to set; others stay as they are.
    pub conditions: Vec<NewCondition>,
    /// What happened, in events.
    pub events: Vec<Notice>,
    /// When to run again though nothing changed.
    pub again: Option<Duration>,
    /// Something that still failed after a part was applied: its class decides when to try again.
    pub problem: Option<Problem>,
}

impl Report {
    /// The report of a failed step: `Ready=False` with the problem's reason, and a warning that carries its message.
    ///
    /// Waiting for something that is not there yet is no warning.
    pub fn failed(problem: &Problem) -> Self {
        let events = match problem.class {
            Class::Waiting => Vec::new(),
            Class::Invalid | Class::Transient | Class::Denied => {
                vec![Notice::warning(problem.reason, &problem.message)]
            }
        };
        Self {
            status: Value::Object(serde_json::Map::new()),
            conditions: vec![NewCondition::not_ready(problem.reason, &problem.message)],
            events,
            ..Self::default()
        }
    }
}

/// Whether an event is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something was done.
    Normal,
    /// Something needs attention.
    Warning,
}

impl Severity {
    /// The word that events carry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// One event to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it is good news.
    pub severity: Severity,
    /// One word, as `SyncFailed`.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Notice {
    /// Something was done.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Normal, reason, message: message.into() }
    }

    /// Something needs attention.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, reason, message: message.into() }
    }
}
