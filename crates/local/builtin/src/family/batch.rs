//! `Job` and `CronJob`.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, label_selector, not_negative, one_of, required, same, selects};
use crate::pod::{template_defaults, validate_template};
use crate::value::{default, existing, flag_at, is_empty, list_mut, number, object, text, text_at};

/// Completions, limits and policies of a Job.
pub(crate) fn job_defaults(job: &mut Value) {
    let labels = job.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    if !is_empty(&labels) && is_empty(&job["metadata"]["labels"]) {
        job["metadata"]["labels"] = labels;
    }
    let Some(spec) = existing(job, "spec") else { return };
    let absent = |spec: &Value, field: &str| spec.get(field).is_none_or(Value::is_null);
    if absent(spec, "completions") && absent(spec, "parallelism") {
        spec["completions"] = json!(1);
    }
    default(spec, "parallelism", 1);
    let backoff = if absent(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    default(spec, "backoffLimit", backoff);
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    let replacement = if absent(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    default(spec, "podReplacementPolicy", replacement);
    if let Some(policy) = existing(spec, "podFailurePolicy") {
        for rule in list_mut(policy, "rules") {
            for condition in list_mut(rule, "onPodConditions") {
                default(condition, "status", "True");
            }
        }
    }
    if let Some(template) = existing(spec, "template") {
        template_defaults(template);
    }
}

/// Concurrency and history of a `CronJob`.
pub(crate) fn cron_job_defaults(job: &mut Value) {
    let Some(spec) = existing(job, "spec") else { return };
    default(spec, "concurrencyPolicy", "Allow");
    default(spec, "suspend", false);
    default(spec, "successfulJobsHistoryLimit", 3);
    default(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) =
        existing(spec, "jobTemplate").and_then(|job| existing(job, "spec")).and_then(|spec| existing(spec, "template"))
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
    // Where the labels came from the template, they are one map with it, and grow with it.
    let shared = job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"];
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
    if shared || is_empty(&job["metadata"]["labels"]) {
        job["metadata"]["labels"] = job.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    }
}

/// Counts, selector and template of a Job, and what may not change.
pub(crate) fn validate_job(job: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &job["spec"];
    if !flag_at(spec, "/manualSelector") {
        generated_selector(job, &path, errors);
    }
    validate_job_spec(spec, &path, errors);
    selector_matches(spec, &path, errors);
    let Some(old) = old else { return };
    selector_matches(spec, &path, errors);
    let old = &old["spec"];
    let elastic = text(spec, "completionMode") == "Indexed" && spec["completions"] == spec["parallelism"];
    if !elastic {
        same(errors, spec, old, "completions", &path);
    }
    let suspended = flag_at(old, "/suspend");
    for field in ["selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"] {
        if !(field == "template" && suspended) {
            same(errors, spec, old, field, &path);
        }
    }
}

fn selector_matches(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let labels = &spec["template"]["metadata"]["labels"];
    if !spec["selector"].is_null() && !selects(&spec["selector"], labels) {
        let detail = "`selector` does not match template `labels`";
        let path = path.field("template");
        errors.push(FieldError::invalid(&path.field("metadata").field("labels"), labels, detail));
    }
}

/// The selector that a Job gives itself.
fn generated_selector(job: &Value, path: &Path<'_>, errors: &mut Errors) {
    let wanted = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": text_at(job, "/metadata/uid")}});
    let selector = &job["spec"]["selector"];
    if *selector != wanted && !text_at(job, "/metadata/uid").is_empty() {
        errors.push(FieldError::invalid(&path.field("selector"), selector, "`selector` not auto-generated"));
    }
}

/// Counts and template, also of the jobs that a `CronJob` makes.
fn validate_job_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let counts = ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    for field in counts {
        not_negative(errors, spec, field, path);
    }
    one_of(errors, spec, "completionMode", &["NonIndexed", "Indexed"], path);
    if text(spec, "completionMode") == "Indexed" && number(spec, "completions").is_none() {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::required(&path.field("completions"), detail));
    }
    if !spec["selector"].is_null() {
        label_selector(errors, &spec["selector"], &path.field("selector"));
    }
    let template = &spec["template"];
    let path = path.field("template");
    validate_template(template, &path, errors);
    if !matches!(text_at(template, "/spec/restartPolicy"), "OnFailure" | "Never") {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(&path.field("spec").field("restartPolicy"), detail));
    }
}

/// Schedule, policies and template of a `CronJob`.
pub(crate) fn validate_cron_job(job: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &job["spec"];
    if required(errors, spec, "schedule", &path) {
        validate_schedule(text(spec, "schedule"), &path.field("schedule"), errors);
    }
    not_negative(errors, spec, "startingDeadlineSeconds", &path);
    validate_zone(spec, &path, errors);
    one_of(errors, spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], &path);
    let inner = path.field("jobTemplate");
    validate_job_spec(&spec["jobTemplate"]["spec"], &inner.field("spec"), errors);
    not_negative(errors, spec, "successfulJobsHistoryLimit", &path);
    not_negative(errors, spec, "failedJobsHistoryLimit", &path);
    // Room for the eleven characters that the names of its jobs get.
    let name = text_at(job, "/metadata/name");
    if old.is_none() && name.len() > 52 {
        let detail = "must be no more than 52 characters";
        errors.push(FieldError::invalid(&root.field("metadata").field("name"), &json!(name), detail));
    }
}

fn validate_zone(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let zone = text(spec, "timeZone");
    if !zone.is_empty() && jiff::tz::TimeZone::get(zone).is_err() {
        let detail = format!("unknown time zone {zone}");
        errors.push(FieldError::invalid(&path.field("timeZone"), &json!(zone), detail));
    }
}

const NICKNAMES: &[&str] = &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

fn validate_schedule(schedule: &str, path: &Path<'_>, errors: &mut Errors) {
    let plain = match schedule.split_once(' ') {
        Some((zone, rest)) if zone.starts_with("TZ=") || zone.starts_with("CRON_TZ=") => rest.trim(),
        _ => schedule,
    };
    let problem = if plain.starts_with('@') {
        let known = NICKNAMES.contains(&plain) || plain.starts_with("@every ");
        (!known).then(|| format!("unrecognized descriptor: {plain}"))
    } else {
        let fields: Vec<&str> = plain.split_whitespace().collect();
        let count = fields.len();
        let words = fields.join(" ");
        (count != 5)
            .then(|| format!("expected exactly 5 fields, found {count}: [{words}]"))
            .or_else(|| bad_field(&fields))
    };
    if let Some(detail) = problem {
        errors.push(FieldError::invalid(path, &json!(schedule), detail));
    }
}

/// The first field that is out of its range or no number.
fn bad_field(fields: &[&str]) -> Option<String> {
    let ranges = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
    for (field, (low, high)) in fields.iter().zip(ranges) {
        for part in field.split(',') {
            let range = part.split('/').next().unwrap_or_default();
            for value in range.split('-').filter(|value| !matches!(*value, "*" | "?")) {
                match value.parse::<u32>() {
                    Ok(number) if number < low => {
                        return Some(format!("beginning of range ({number}) below minimum ({low}): {part}"));
                    }
                    Ok(number) if number > high => {
                        return Some(format!("end of range ({number}) above maximum ({high}): {part}"));
                    }
                    Err(_) if !value.bytes().all(|b| b.is_ascii_alphabetic()) || value.len() != 3 => {
                        return Some(format!(
                            "failed to parse int from {value}: strconv.Atoi: parsing {value:?}: invalid syntax"
                        ));
                    }
                    _ => {}
                }
            }
        }
    }
    None
}
