//! One event with everything that is told of it. Pure.

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::{Event, Level};

use super::fields::LogFields;

/// What an event of the `log` crate is called here, and what its fields begin with.
const FOREIGN: &str = "log";

/// What the colour of a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Heading,
    Unchanged,
    Changed,
    Failed,
}

/// An event.
#[derive(Debug)]
pub(super) struct LogLine {
    pub(super) time: Timestamp,
    pub(super) level: Level,
    pub(super) target: String,
    pub(super) message: String,
    pub(super) tone: Tone,
    /// The event's own fields first, then those of the spans around it.
    pub(super) fields: LogFields,
    /// What follows the event's own line.
    pub(super) diff: String,
}

impl LogLine {
    pub(super) fn new(event: &Event<'_>, time: Timestamp, surroundings: &LogFields) -> Self {
        let mut fields = LogFields::default();
        event.record(&mut fields);
        let mut target = event.metadata().target().to_owned();
        if target == FOREIGN {
            target = text(fields.take("log.target")).unwrap_or(target);
            fields.retain(|name| !name.starts_with("log."));
        }
        let heading = fields.take("heading") == Some(Value::Bool(true));
        let tone = match fields.get("outcome").and_then(Value::as_str) {
            Some("unchanged") => Tone::Unchanged,
            Some("changed") => Tone::Changed,
            Some("failed") => Tone::Failed,
            _ if heading => Tone::Heading,
            _ => Tone::Plain,
        };
        Self {
            time,
            level: *event.metadata().level(),
            target,
            message: text(fields.take("message")).unwrap_or_default(),
            tone,
            diff: text(fields.take("diff")).unwrap_or_default(),
            fields: joined(fields, surroundings),
        }
    }

    pub(super) fn json(&self) -> Map<String, Value> {
        let mut object = Map::new();
        for (name, value) in self.fields.iter() {
            object.insert(name.to_owned(), value.clone());
        }
        if !self.diff.is_empty() {
            object.insert("diff".to_owned(), Value::from(self.diff.as_str()));
        }
        let own = [
            ("timestamp", format!("{:.6}", self.time)),
            ("level", self.level.to_string()),
            ("target", self.target.clone()),
            ("message", self.message.clone()),
        ];
        object.extend(own.map(|(name, value)| (name.to_owned(), Value::String(value))));
        object
    }
}

fn joined(mut own: LogFields, surroundings: &LogFields) -> LogFields {
    for (name, value) in surroundings.iter() {
        if own.get(name).is_none() {
            own.set(name, value.clone());
        }
    }
    own
}

fn text(value: Option<Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}
