//! A pod of a Job in, what the Job reads from it out; and a Job in, its next pod out.

use serde_json::{Value, json};

use super::policies::{Meaning, meaning};
use crate::common::kind::JOB;
use crate::common::object::{annotation, has, is_deleting, list, name, text};
use crate::common::pod::{from_template, phase};

pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// The longest name that gets letters of its own.
const LONGEST_PREFIX: usize = 58;

pub(super) fn is_tracked(pod: &Value) -> bool {
    list(pod, "/metadata/finalizers").iter().any(|finalizer| finalizer == FINALIZER)
}

/// Whether only pods that have ended are replaced, not those that are being deleted.
pub(super) fn replaces_only_failed(job: &Value) -> bool {
    text(job, "/spec/podReplacementPolicy") == "Failed" || has(job, "/spec/podFailurePolicy")
}

/// Whether a pod has failed. One that is being deleted has, unless it goes with its Job.
pub(super) fn is_failed(job: &Value, pod: &Value) -> bool {
    let alone = || is_deleting(pod) && !is_deleting(job);
    let leaving = || !replaces_only_failed(job) && alone() && phase(pod) != "Succeeded";
    phase(pod) == "Failed" || leaving()
}

fn annotated(pod: &Value, key: &str) -> Option<i64> {
    annotation(pod, key)?.parse().ok().filter(|number| *number >= 0)
}

/// The index that it works on.
pub(super) fn index_of(pod: &Value) -> Option<i64> {
    annotated(pod, INDEX)
}

/// How often its index had failed before it.
pub(super) fn failures_of_index(pod: &Value) -> i64 {
    annotated(pod, FAILURES).unwrap_or(0)
}

/// How often its index had failed before it in ways that do not count.
pub(super) fn ignored_failures_of_index(pod: &Value) -> i64 {
    annotated(pod, IGNORED_FAILURES).unwrap_or(0)
}

/// A pod without a name of its own yet; with an index where the Job has them.
pub(super) fn new_pod(job: &Value, index: Option<i64>, replaces: Option<&Value>) -> Value {
    let mut pod = from_template(&job["spec"]["template"], job, &JOB);
    let mut finalizers = list(&pod, "/metadata/finalizers").to_vec();
    if !is_tracked(&pod) {
        finalizers.push(json!(FINALIZER));
    }
    pod["metadata"]["finalizers"] = json!(finalizers);
    if let Some(index) = index {
        give_index(&mut pod, job, index);
        if has(job, "/spec/backoffLimitPerIndex") {
            give_failures(&mut pod, job, replaces);
        }
    }
    pod
}

fn give_index(pod: &mut Value, job: &Value, index: i64) {
    let text = index.to_string();
    pod["metadata"]["annotations"][INDEX] = json!(text);
    pod["metadata"]["labels"][INDEX] = json!(text);
    pod["metadata"]["generateName"] = json!(indexed_prefix(name(job), index));
    pod["spec"]["hostname"] = json!(format!("{}-{index}", name(job)));
    for containers in ["initContainers", "containers"] {
        for container in pod["spec"][containers].as_array_mut().into_iter().flatten() {
            give_index_variable(container);
        }
    }
    // Asking for a field of what is not there makes it null.
    if pod["spec"]["initContainers"].is_null() {
        pod["spec"].as_object_mut().map(|spec| spec.remove("initContainers"));
    }
}

fn give_index_variable(container: &mut Value) {
    const VARIABLE: &str = "JOB_COMPLETION_INDEX";
    let mut variables = list(container, "/env").to_vec();
    if variables.iter().all(|variable| variable["name"] != VARIABLE) {
        let field = json!({"fieldPath": format!("metadata.labels['{INDEX}']")});
        variables.push(json!({"name": VARIABLE, "valueFrom": {"fieldRef": field}}));
        container["env"] = json!(variables);
    }
}

fn give_failures(pod: &mut Value, job: &Value, replaces: Option<&Value>) {
    let (mut failures, mut ignored) = (0, 0);
    if let Some(before) = replaces {
        let counts = meaning(job, before) != Meaning::Ignore;
        failures = failures_of_index(before) + i64::from(counts);
        ignored = ignored_failures_of_index(before) + i64::from(!counts);
    }
    pod["metadata"]["annotations"][FAILURES] = json!(failures.to_string());
    if ignored > 0 {
        pod["metadata"]["annotations"][IGNORED_FAILURES] = json!(ignored.to_string());
    }
}

fn indexed_prefix(job: &str, index: i64) -> String {
    let end = format!("-{index}-");
    let room = LONGEST_PREFIX.saturating_sub(end.len());
    format!("{}{end}", job.chars().take(room).collect::<String>())
}
