//! A report becomes the status that is written, and only where it differs from the one there is.

use std::time::Duration;

use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::{Api, Client, Resource as _};
use portolan_core::{Condition, ObjectKey, merge, same_ignoring_times};
use serde_json::{Map, Value, json};

use crate::context::FIELD_MANAGER;
use crate::dispatch::fingerprint::key_of;
use crate::pass::report::Report;
use crate::reconcile::Object;
use crate::watch::guarded::{Guarded, GuardedBody};

/// How often a status is written against others who write the same object.
const MOST_ATTEMPTS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// How long a server may take to answer; a connection that hangs must not hold an object for good.
const PATIENCE: Duration = Duration::from_secs(30);

/// The answer to a call, or an error where there is none in time.
pub async fn in_time<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    let silent = || kube::Error::Service(format!("no answer within {} s", PATIENCE.as_secs()).into());
    tokio::time::timeout(PATIENCE, call).await.unwrap_or_else(|_| Err(silent()))
}

/// The API of one kind in one namespace, or of a kind without namespaces.
pub(crate) fn api<K: Object>(client: &Client, key: &ObjectKey) -> Api<Guarded<K>> {
    match &key.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &()),
        None => Api::all_with(client.clone(), &()),
    }
}

/// The status of an object as its type knows it, without nulls.
pub(crate) fn current<K: Object>(object: &K) -> Value {
    let mut status = serde_json::to_value(object).map_or(Value::Null, |mut object| object["status"].take());
    drop_nulls(&mut status);
    status
}

/// The conditions of a status; what is not one is passed over.
pub(crate) fn conditions(status: &Value) -> Vec<Condition> {
    let entries = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| serde_json::from_value(entry.clone()).ok()).collect()
}

/// Whether a status is kept where the report says nothing, or replaced as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Rest,
    Nothing,
}

/// The status that a report asks for; none where the report writes no status.
pub(crate) fn wanted(
    now: &Value,
    report: &Report,
    keep: Keep,
    generation: i64,
    time: jiff::Timestamp,
) -> Option<Value> {
    if report.status.is_null() && report.conditions.is_empty() {
        return None;
    }
    let mut status = match keep {
        Keep::Rest => now.as_object().cloned().unwrap_or_default(),
        Keep::Nothing => Map::new(),
    };
    overlay(&mut status, &report.status);
    let merged = merge(&conditions(now), &report.conditions, generation, time);
    status.insert("conditions".to_owned(), json!(merged));
    if report.status.get("observedGeneration").is_none() {
        status.insert("observedGeneration".to_owned(), json!(generation));
    }
    let mut status = Value::Object(status);
    drop_nulls(&mut status);
    Some(status)
}

/// Lays fields over others; a null takes a field away.
pub(crate) fn overlay(base: &mut Map<String, Value>, over: &Value) {
    for (name, value) in over.as_object().into_iter().flatten() {
        if value.is_null() {
            base.remove(name);
        } else {
            base.insert(name.clone(), value.clone());
        }
    }
}

/// A status as its type keeps it: fields that the type does not know fall away, as they would at the server.
pub(crate) fn as_typed<K: Object>(object: &K, status: Value) -> Value {
    let typed = serde_json::to_value(object).and_then(|mut whole| {
        whole["status"] = status.clone();
        serde_json::from_value::<K>(whole)
    });
    match typed {
        Ok(typed) => current(&typed),
        Err(error) => {
            tracing::error!(kind = %K::kind(&()), %error, "A report does not fit the status of its kind");
            status
        }
    }
}

/// Whether a status says something new, times apart.
pub(crate) fn differs(now: &Value, wanted: &Value) -> bool {
    !same_ignoring_times(now, wanted)
}

/// Writes a status by server-side apply, and takes away fields that somebody else left behind. Answers none where the
/// object is gone, or is another one of the same name.
///
/// Applying names no version, but a server gives up on an object that others write without a pause: then it is tried
/// again, and nobody hears of it.
pub(crate) async fn write<K: Object>(
    client: &Client,
    meta: &ObjectMeta,
    status: &Value,
) -> Result<Option<Guarded<K>>, kube::Error> {
    portolan_core::waypoint!();
    for attempt in 0..MOST_ATTEMPTS {
        let conflict = match in_time(write_once(client, meta, status)).await {
            // A status write cannot name a uid: its answer shows whose status it was.
            Ok(written) => return Ok(Some(written).filter(|written| written.meta().uid == meta.uid)),
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => return Ok(None),
            Err(kube::Error::Api(refusal)) if refusal.code == 409 => kube::Error::Api(refusal),
            Err(error) => return Err(error),
        };
        let key = key_of(meta);
        let found = in_time(api::<K>(client, &key).get_opt(&key.name)).await?;
        if found.is_none_or(|found| found.meta().uid != meta.uid) {
            return Ok(None);
        }
        if attempt + 1 == MOST_ATTEMPTS {
            return Err(conflict);
        }
        tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(attempt)).await;
    }
    Ok(None)
}

async fn write_once<K: Object>(client: &Client, meta: &ObjectMeta, status: &Value) -> Result<Guarded<K>, kube::Error> {
    let key = key_of(meta);
    let api = api::<K>(client, &key);
    let body = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()),
        "metadata": {"name": key.name, "namespace": key.namespace},
        "status": status,
    });
    let written = api.patch_status(&key.name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(body)).await?;
    let GuardedBody::Typed(typed) = &written.body else { return Ok(written) };
    let Some(leftovers) = leftovers(&current(typed.as_ref()), status) else { return Ok(written) };
    let patch = json!({"status": leftovers});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    api.patch_status(&key.name, &params, &Patch::Merge(patch)).await
}

/// A merge patch that takes away what is there and not wanted.
fn leftovers(there: &Value, wanted: &Value) -> Option<Value> {
    let (there, wanted) = (there.as_object()?, wanted.as_object()?);
    let mut patch = Map::new();
    for (name, value) in there {
        match wanted.get(name) {
            None => drop(patch.insert(name.clone(), Value::Null)),
            Some(wanted) => drop(leftovers(value, wanted).map(|inner| patch.insert(name.clone(), inner))),
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use portolan_core::{NewCondition, reasons};

    use super::*;

    fn synced(status: Value) -> Report {
        Report { status, conditions: vec![NewCondition::ready(reasons::SYNCED, "in sync")], ..Report::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_report_that_says_the_same_later_is_no_difference() {
        let first = wanted(&Value::Null, &synced(json!({"id": "1"})), Keep::Nothing, 3, at(1)).unwrap();
        let again = wanted(&first, &synced(json!({"id": "1", "gone": null})), Keep::Nothing, 3, at(99)).unwrap();

        assert_eq!(first["observedGeneration"], 3);
        assert!(!differs(&first, &again));
        let next = wanted(&first, &synced(json!({"id": "1"})), Keep::Nothing, 4, at(99)).unwrap();
        assert!(differs(&first, &next));
    }

    #[test]
    fn a_success_replaces_the_status_and_a_failure_keeps_its_ids() {
        let now = json!({"id": "1", "state": "active", "old": true});

        let success = wanted(&now, &synced(json!({"id": "2"})), Keep::Nothing, 1, at(0)).unwrap();
        let failure = wanted(&now, &synced(json!({"state": "error", "old": null})), Keep::Rest, 1, at(0)).unwrap();

        assert_eq!((&success["id"], success.get("state")), (&json!("2"), None));
        assert_eq!((&failure["id"], &failure["state"], failure.get("old")), (&json!("1"), &json!("error"), None));
    }

    #[test]
    fn a_report_may_say_itself_which_generation_was_observed() {
        let now = json!({"observedGeneration": 2});

        let kept = wanted(&now, &synced(json!({"observedGeneration": 2})), Keep::Rest, 3, at(0)).unwrap();
        let none = wanted(&now, &synced(json!({"observedGeneration": null})), Keep::Rest, 3, at(0)).unwrap();

        assert_eq!((&kept["observedGeneration"], none.get("observedGeneration")), (&json!(2), None));
    }

    #[test]
    fn a_report_of_nothing_writes_no_status() {
        assert_eq!(wanted(&json!({"id": "1"}), &Report::default(), Keep::Nothing, 1, at(0)), None);
    }

    #[test]
    fn leftovers_are_what_is_there_and_not_wanted_at_any_depth() {
        let there = json!({"a": 1, "b": {"c": 1, "d": 2}, "e": [1]});

        assert_eq!(leftovers(&there, &json!({"b": {"c": 5}, "e": []})), Some(json!({"a": null, "b": {"d": null}})));
        assert_eq!(leftovers(&there, &there), None);
    }

    #[test]
    fn entries_that_are_no_conditions_are_passed_over() {
        let status = json!({"conditions": [{"type": "Ready", "status": "True"}, "nonsense"]});

        assert_eq!(conditions(&status).len(), 1);
    }
}
