//! What a pass tells the user: status, conditions, events, and when to look again.

use std::time::Duration;

use portolan_core::{Class, NewCondition, Notice, Problem};
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
