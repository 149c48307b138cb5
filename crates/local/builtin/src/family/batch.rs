//! `Job` and `CronJob`.

use serde_json::{Value, json};

use crate::pod::template_defaults;
use crate::value::{default, existing, flag_at, is_empty, object, text_at};

/// Completions, limits and policies of a Job.
pub(crate) fn job_defaults(job: &mut Value) {
    let labels = job
        .pointer("/spec/template/metadata/labels")
        .cloned()
        .unwrap_or_default();
    if !is_empty(&labels) && is_empty(&job["metadata"]["labels"]) {
        job["metadata"]["labels"] = labels;
    }
    let Some(spec) = existing(job, "spec") else { return };
    let absent = |spec: &Value, field: &str| spec.get(field).is_none_or(Value::is_null);
    if absent(spec, "completions") && absent(spec, "parallelism") {
        spec["completions"] = json!(1);
    }
    default(spec, "parallelism", 1);
    let backoff = if absent(spec, "backoffLimitPerIndex") {
        6
    } else {
        i32::MAX
    };
    default(spec, "backoffLimit", backoff);
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    let replacement = if absent(spec, "podFailurePolicy") {
        "TerminatingOrFailed"
    } else {
        "Failed"
    };
    default(spec, "podReplacementPolicy", replacement);
    if let Some(template) = existing(spec, "template") {
        template_defaults(template);
    }
}

/// Concurrency and history of a CronJob.
pub(crate) fn cron_job_defaults(job: &mut Value) {
    let Some(spec) = existing(job, "spec") else { return };
    default(spec, "concurrencyPolicy", "Allow");
    default(spec, "suspend", false);
    default(spec, "successfulJobsHistoryLimit", 3);
    default(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = existing(spec, "jobTemplate")
        .and_then(|job| existing(job, "spec"))
        .and_then(|spec| existing(spec, "template"))
    {
        template_defaults(template);
    }
}

/// Selects a Job's pods by its own uid, unless the user selects them.
pub(crate) fn prepare_job(job: &mut Value) {
    job["status"] = json!({});
    if flag_at(job, "/spec/manualSelector") {
        return;
    }
    let uid = json!(text_at(job, "/metadata/uid"));
    let name = json!(text_at(job, "/metadata/name"));
    let Some(spec) = existing(job, "spec") else { return };
    let labels = spec
        .pointer_mut("/template")
        .and_then(|template| object(template, "metadata"))
        .and_then(|metadata| object(metadata, "labels"));
    if let Some(labels) = labels {
        labels["batch.kubernetes.io/controller-uid"] = uid.clone();
        labels["controller-uid"] = uid.clone();
        labels["batch.kubernetes.io/job-name"] = name.clone();
        labels["job-name"] = name;
    }
    if let Some(labels) = object(spec, "selector").and_then(|selector| object(selector, "matchLabels")) {
        labels["batch.kubernetes.io/controller-uid"] = uid;
    }
    if is_empty(&job["metadata"]["labels"]) {
        job["metadata"]["labels"] = job
            .pointer("/spec/template/metadata/labels")
            .cloned()
            .unwrap_or_default();
    }
}
