//! Rows of what runs pods, and of what scales or protects them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, human_duration, labels, seconds_between, selector, selector_or_none};
use crate::quantity::written;
use crate::value::{list_at, number_at, text, text_at};

fn count(object: &Value, pointer: &str) -> Value {
    json!(number_at(object, pointer).unwrap_or(0))
}

/// Names and images of a template's containers.
fn containers(template: &Value) -> [Value; 2] {
    let containers = list_at(template, "/spec/containers");
    let joined = |field: &str| containers.iter().map(|container| text(container, field)).collect::<Vec<_>>().join(",");
    [json!(joined("name")), json!(joined("image"))]
}

fn ready_of(object: &Value) -> Value {
    json!(format!("{}/{}", count(object, "/status/readyReplicas"), count(object, "/spec/replicas")))
}

/// Cells of a Deployment.
pub(crate) fn deployment(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let [names, images] = containers(&object["spec"]["template"]);
    let updated = count(object, "/status/updatedReplicas");
    let available = count(object, "/status/availableReplicas");
    let selector = json!(selector(&object["spec"]["selector"]));
    vec![name, ready_of(object), updated, available, age, names, images, selector]
}

/// Cells of a `ReplicaSet`.
pub(crate) fn replica_set(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let [names, images] = containers(&object["spec"]["template"]);
    let desired = count(object, "/spec/replicas");
    let current = count(object, "/status/replicas");
    let ready = count(object, "/status/readyReplicas");
    let selector = json!(selector_or_none(&object["spec"]["selector"]));
    vec![name, desired, current, ready, age, names, images, selector]
}

/// Cells of a `StatefulSet`.
pub(crate) fn stateful_set(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let [names, images] = containers(&object["spec"]["template"]);
    vec![name, ready_of(object), age, names, images]
}

/// Cells of a `DaemonSet`.
pub(crate) fn daemon_set(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let [names, images] = containers(&object["spec"]["template"]);
    let status = |field: &str| count(&object["status"], field);
    vec![
        name,
        status("/desiredNumberScheduled"),
        status("/currentNumberScheduled"),
        status("/numberReady"),
        status("/updatedNumberScheduled"),
        status("/numberAvailable"),
        json!(labels(&object["spec"]["template"]["spec"]["nodeSelector"])),
        age,
        names,
        images,
        json!(selector_or_none(&object["spec"]["selector"])),
    ]
}

/// Cells of a `ControllerRevision`.
pub(crate) fn revision(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let owners = list_at(object, "/metadata/ownerReferences");
    let controller = owners.iter().find(|owner| owner["controller"] == json!(true)).map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let group = text(owner, "apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
            let dot = if group.is_empty() { "" } else { "." };
            format!("{}{dot}{group}/{}", text(owner, "kind").to_lowercase(), text(owner, "name"))
        },
    );
    vec![name, json!(controller), count(object, "/revision"), age]
}

/// Cells of a Job.
pub(crate) fn job(object: &Value, name: Value, age: Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(&object["spec"]["template"]);
    vec![
        name,
        json!(job_status(object)),
        json!(completions(object)),
        json!(job_duration(object, now)),
        age,
        names,
        images,
        json!(selector_or_none(&object["spec"]["selector"])),
    ]
}

fn job_status(object: &Value) -> &'static str {
    let conditions = list_at(object, "/status/conditions");
    let has = |name: &str| conditions.iter().any(|c| text(c, "type") == name && text(c, "status") == "True");
    if has("Complete") {
        return "Complete";
    }
    if has("Failed") {
        return "Failed";
    }
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return "Terminating";
    }
    let others = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
    others.into_iter().find(|name| has(name)).unwrap_or("Running")
}

fn completions(object: &Value) -> String {
    let succeeded = count(object, "/status/succeeded");
    match (number_at(object, "/spec/completions"), number_at(object, "/spec/parallelism").unwrap_or(0)) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(object: &Value, now: Timestamp) -> String {
    let time = |pointer: &str| text_at(object, pointer).parse::<Timestamp>().ok();
    match (time("/status/startTime"), time("/status/completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => human_duration(seconds_between(start, end.unwrap_or(now))),
    }
}

/// Cells of a `CronJob`.
pub(crate) fn cron_job(object: &Value, name: Value, age_cell: Value, now: Timestamp) -> Vec<Value> {
    let spec = &object["spec"];
    let [names, images] = containers(&spec["jobTemplate"]["spec"]["template"]);
    let last = match &object["status"]["lastScheduleTime"] {
        Value::Null => "<none>".to_owned(),
        time => age(time, now),
    };
    let suspended = match spec["suspend"].as_bool() {
        None => "<unset>",
        Some(true) => "True",
        Some(false) => "False",
    };
    vec![
        name,
        json!(text(spec, "schedule")),
        json!(spec.get("timeZone").and_then(Value::as_str).unwrap_or("<none>")),
        json!(suspended),
        json!(list_at(object, "/status/active").len()),
        json!(last),
        age_cell,
        names,
        images,
        json!(selector_or_none(&spec["jobTemplate"]["spec"]["selector"])),
    ]
}

/// Cells of a `PodDisruptionBudget`.
pub(crate) fn budget(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let limit = |field: &str| match &object["spec"][field] {
        Value::Null => json!("N/A"),
        Value::String(percent) => json!(percent),
        number => json!(number.to_string()),
    };
    vec![name, limit("minAvailable"), limit("maxUnavailable"), count(object, "/status/disruptionsAllowed"), age]
}

/// Cells of a `HorizontalPodAutoscaler`.
pub(crate) fn autoscaler(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let spec = &object["spec"];
    let target = format!("{}/{}", text_at(spec, "/scaleTargetRef/kind"), text_at(spec, "/scaleTargetRef/name"));
    let least = number_at(spec, "/minReplicas").map_or_else(|| "<unset>".to_owned(), |least| least.to_string());
    let most = count(spec, "/maxReplicas");
    vec![name, json!(target), json!(metrics(object)), json!(least), most, count(object, "/status/currentReplicas"), age]
}

fn metrics(object: &Value) -> String {
    let specs = list_at(object, "/spec/metrics");
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    let statuses = list_at(object, "/status/currentMetrics");
    let shown: Vec<String> =
        specs.iter().enumerate().map(|(at, spec)| metric(spec, statuses.get(at).unwrap_or(&Value::Null))).collect();
    let first = shown.iter().take(2).cloned().collect::<Vec<_>>().join(", ");
    if shown.len() > 2 { format!("{first} + {} more...", shown.len() - 2) } else { first }
}

/// One metric: what is measured now, and what is wanted.
fn metric(spec: &Value, status: &Value) -> String {
    let source = match text(spec, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let (target, current) = (&spec[source]["target"], &status[source]["current"]);
    let amount = |value: &Value| written(value);
    let percent = |value: &Value| value.as_i64().map(|percent| format!("{percent}%"));
    let unknown = || "<unknown>".to_owned();
    if matches!(source, "resource" | "containerResource") {
        let name = text(&spec[source], "name");
        return match amount(&target["averageValue"]) {
            Some(wanted) => format!("{name}: {}/{wanted}", amount(&current["averageValue"]).unwrap_or_else(unknown)),
            None => format!(
                "{name}: {}/{}",
                percent(&current["averageUtilization"]).unwrap_or_else(unknown),
                percent(&target["averageUtilization"]).unwrap_or_else(|| "<auto>".to_owned())
            ),
        };
    }
    match amount(&target["averageValue"]) {
        Some(wanted) => {
            let suffix = if source == "pods" { "" } else { " (avg)" };
            format!("{}/{wanted}{suffix}", amount(&current["averageValue"]).unwrap_or_else(unknown))
        }
        None => format!(
            "{}/{}",
            amount(&current["value"]).unwrap_or_else(unknown),
            amount(&target["value"]).unwrap_or_else(unknown)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_a_number_of_completions_needs_one() {
        assert_eq!(completions(&json!({"spec": {"parallelism": 3}})), "0/1 of 3");
        assert_eq!(completions(&json!({"spec": {"completions": 5}, "status": {"succeeded": 2}})), "2/5");
    }

    #[test]
    fn more_than_two_metrics_are_counted() {
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}});
        let object = json!({"spec": {"metrics": [cpu, cpu, cpu]}});

        assert_eq!(metrics(&object), "cpu: <unknown>/50%, cpu: <unknown>/50% + 1 more...");
    }
}
