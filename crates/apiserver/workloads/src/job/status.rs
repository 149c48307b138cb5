//! The status of a Job, read and written.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::common::object::{given_number, list, number, seconds, text, time};

/// As the object carries it, with the counts that are easier to work with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Status {
    pub(super) conditions: Vec<Value>,
    pub(super) start: Option<Timestamp>,
    pub(super) completion: Option<Timestamp>,
    pub(super) active: i64,
    pub(super) ready: Option<i64>,
    pub(super) terminating: Option<i64>,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    pub(super) completed_indexes: String,
    pub(super) failed_indexes: Option<String>,
    /// Uids of pods that have ended, are not in the counts yet, and keep their finalizer until they are.
    pub(super) uncounted: Uncounted,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Uncounted {
    pub(super) succeeded: Vec<String>,
    pub(super) failed: Vec<String>,
}

fn texts(object: &Value, pointer: &str) -> Vec<String> {
    list(object, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Status {
    pub(super) fn read(job: &Value) -> Self {
        let status = &job["status"];
        Self {
            conditions: list(status, "/conditions").to_vec(),
            start: time(status, "/startTime"),
            completion: time(status, "/completionTime"),
            active: number(status, "/active"),
            ready: given_number(status, "/ready"),
            terminating: given_number(status, "/terminating"),
            succeeded: number(status, "/succeeded"),
            failed: number(status, "/failed"),
            completed_indexes: text(status, "/completedIndexes").to_owned(),
            failed_indexes: status.get("failedIndexes").and_then(Value::as_str).map(str::to_owned),
            uncounted: Uncounted {
                succeeded: texts(status, "/uncountedTerminatedPods/succeeded"),
                failed: texts(status, "/uncountedTerminatedPods/failed"),
            },
        }
    }

    /// As the API shows it: without what is empty.
    pub(super) fn written(&self) -> Value {
        let mut status = json!({"uncountedTerminatedPods": {}});
        let lists = [("succeeded", &self.uncounted.succeeded), ("failed", &self.uncounted.failed)];
        for (field, uids) in lists.iter().filter(|(_, uids)| !uids.is_empty()) {
            status["uncountedTerminatedPods"][field] = json!(uids);
        }
        let counts = [("active", self.active), ("succeeded", self.succeeded), ("failed", self.failed)];
        for (field, count) in counts.iter().filter(|(_, count)| *count != 0) {
            status[field] = json!(count);
        }
        let optional = [
            ("ready", self.ready.map(Value::from)),
            ("terminating", self.terminating.map(Value::from)),
            ("startTime", self.start.map(seconds).map(Value::from)),
            ("completionTime", self.completion.map(seconds).map(Value::from)),
            ("failedIndexes", self.failed_indexes.clone().map(Value::from)),
            ("completedIndexes", Some(json!(self.completed_indexes)).filter(|text| *text != "")),
            ("conditions", Some(json!(self.conditions)).filter(|all| *all != json!([]))),
        ];
        for (field, value) in optional {
            if let Some(value) = value {
                status[field] = value;
            }
        }
        status
    }

    /// Whether a condition is true.
    pub(super) fn is(&self, kind: &str) -> Option<&Value> {
        self.conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == "True")
    }

    /// Whether the Job is over.
    pub(super) fn finished(&self) -> Option<&Value> {
        self.is("Complete").or_else(|| self.is("Failed"))
    }

    /// Moves pods that have lost their finalizer into the counts. True if there was one.
    pub(super) fn count(&mut self, held: impl Fn(&str) -> bool) -> bool {
        let lists =
            [(&mut self.uncounted.succeeded, &mut self.succeeded), (&mut self.uncounted.failed, &mut self.failed)];
        let mut counted = 0;
        for (uids, count) in lists {
            let before = uids.len();
            uids.retain(|uid| held(uid));
            let gone = i64::try_from(before - uids.len()).unwrap_or(i64::MAX);
            *count += gone;
            counted += gone;
        }
        counted > 0
    }

    /// Adds a condition or changes it. One that was never true is not added as false. True if it did.
    pub(super) fn ensure(&mut self, condition: Value) -> bool {
        let fields = ["status", "reason", "message"];
        match self.conditions.iter_mut().find(|one| one["type"] == condition["type"]) {
            Some(there) if fields.iter().all(|field| there[field] == condition[field]) => false,
            Some(there) => {
                *there = condition;
                true
            }
            None if condition["status"] == "False" => false,
            None => {
                self.conditions.push(condition);
                true
            }
        }
    }
}

/// A condition that changes now.
pub(super) fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    json!({
        "type": kind,
        "status": status,
        "lastProbeTime": seconds(now),
        "lastTransitionTime": seconds(now),
        "reason": reason,
        "message": message,
    })
}
