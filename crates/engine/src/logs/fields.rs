//! The fields of an event or a span as values.

use std::error::Error;
use std::fmt;

use portolan_core::job::LogScope;
use serde_json::Value;
use tracing::field::{Field, Visit};

use super::levels::SCOPE;

/// Names and values, in the order in which they came. A name is there once, with its last value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LogFields(Vec<(&'static str, Value)>);

impl LogFields {
    pub(super) fn set(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Gives the fields of a log scope the words of a job.
    pub(super) fn name_scope(&mut self, scope: LogScope) {
        for (name, _) in &mut self.0 {
            *name = match *name {
                plain if plain == SCOPE.name => scope.name,
                plain if plain == SCOPE.namespace => scope.namespace,
                other => other,
            };
        }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let place = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(place).1)
    }

    pub(super) fn extend(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            self.set(name, value.clone());
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|(name, _)| keep(name));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }
}

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), Value::from(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.set(field.name(), Value::String(value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), Value::from(value));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        let value = u64::try_from(value).map_or_else(|_| Value::String(value.to_string()), Value::from);
        self.set(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), Value::from(value));
    }
}
