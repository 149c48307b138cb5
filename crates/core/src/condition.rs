//! Conditions: what a reconcile found goes in, the list for `status.conditions` comes out.
//!
//! `Ready` is always there. `Reconciling` and `Stalled` are there only while they are true, as `kubectl wait` and
//! kstatus expect.

use std::borrow::Cow;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{clock::rfc3339, text};

/// The type of the condition that says whether all is well.
pub const READY: &str = "Ready";
/// The type of the condition that says that changes are being made.
pub const RECONCILING: &str = "Reconciling";
/// The type of the condition that says that nothing will happen until a user acts.
pub const STALLED: &str = "Stalled";

/// The API server's limit on a condition's message.
const LONGEST_MESSAGE: usize = 32_768;

/// True, false, or not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Nobody can tell.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// As Kubernetes writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl JsonSchema for ConditionStatus {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ConditionStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["True", "False", "Unknown"] })
    }
}

/// One entry of `status.conditions`, as `metav1.Condition`. Entries that lack something are read too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, as `Ready`.
    #[schemars(length(max = 316))]
    pub r#type: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// One word that programs can rely on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    #[schemars(length(max = 32_768))]
    pub message: String,
    /// The generation of the object that this was found for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
}

/// A condition as a reconcile states it, before it meets the earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// What the condition is about.
    pub r#type: &'static str,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// One of [`mod@crate::reasons`].
    pub reason: &'static str,
    /// A sentence for people, free of secrets.
    pub message: String,
}

impl NewCondition {
    /// Any condition; the common ones have constructors of their own.
    pub fn of(r#type: &'static str, status: ConditionStatus, reason: &'static str, message: impl Into<String>) -> Self {
        Self { r#type, status, reason, message: message.into() }
    }

    /// `Ready=True`: all is as asked for.
    pub fn ready(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(READY, ConditionStatus::True, reason, message)
    }

    /// `Ready=False`: something is missing or wrong.
    pub fn not_ready(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(READY, ConditionStatus::False, reason, message)
    }

    /// `Ready=Unknown`: nobody has looked yet.
    pub fn unknown(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(READY, ConditionStatus::Unknown, reason, message)
    }

    /// No more `Reconciling`.
    pub fn settled() -> Self {
        Self::of(RECONCILING, ConditionStatus::False, crate::reasons::SYNCED, "")
    }

    /// `Stalled=True`: nothing happens until a user acts.
    pub fn stalled(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(STALLED, ConditionStatus::True, reason, message)
    }

    /// No more `Stalled`.
    pub fn not_stalled() -> Self {
        Self::of(STALLED, ConditionStatus::False, crate::reasons::SYNCED, "")
    }

    /// Whether it only takes a condition away that is shown while true.
    fn clears(&self) -> bool {
        self.status == ConditionStatus::False && matches!(self.r#type, RECONCILING | STALLED)
    }

    fn over(&self, old: Option<&Condition>, generation: i64, now: Timestamp) -> Condition {
        let since = old.filter(|old| old.status == self.status && !old.last_transition_time.is_empty());
        Condition {
            r#type: self.r#type.to_owned(),
            status: self.status,
            reason: self.reason.to_owned(),
            message: text::shorten(&self.message, LONGEST_MESSAGE).into_owned(),
            observed_generation: Some(generation),
            last_transition_time: since.map_or_else(|| rfc3339(now), |old| old.last_transition_time.clone()),
        }
    }
}

/// The new conditions over the old ones: `lastTransitionTime` moves only when the status flips, types that are not
/// stated stay as they are, and `Reconciling=False` or `Stalled=False` takes that condition away.
pub fn merge(old: &[Condition], new: &[NewCondition], generation: i64, now: Timestamp) -> Vec<Condition> {
    let mut merged = old.to_vec();
    for condition in new {
        let place = merged.iter().position(|there| there.r#type == condition.r#type);
        match place {
            Some(place) if condition.clears() => drop(merged.remove(place)),
            Some(place) => merged[place] = condition.over(Some(&merged[place]), generation, now),
            None if condition.clears() => {}
            None => merged.push(condition.over(None, generation, now)),
        }
    }
    merged
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], r#type: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type == r#type)
}

/// Whether the conditions say `Ready=True`.
pub fn is_ready(conditions: &[Condition]) -> bool {
    find(conditions, READY).is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Whether two statuses say the same, times apart: fields named `last…Time` are not compared at any depth, and a field
/// that is null is as good as absent.
pub fn same_ignoring_times(a: &Value, b: &Value) -> bool {
    same_ignoring(a, b, &[])
}

/// As [`same_ignoring_times`], with the names of further fields that are not compared.
pub fn same_ignoring(a: &Value, b: &Value, fields: &[&str]) -> bool {
    let ignored = |name: &str| (name.starts_with("last") && name.ends_with("Time")) || fields.contains(&name);
    same(a, b, &ignored)
}

fn same(a: &Value, b: &Value, ignored: &dyn Fn(&str) -> bool) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => a.keys().chain(b.keys()).all(|name| {
            let (a, b) = (a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null));
            ignored(name) || same(a, b, ignored)
        }),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, ignored)),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests;
