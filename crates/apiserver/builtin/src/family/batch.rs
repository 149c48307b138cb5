//! `Job` and `CronJob`.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::job::validate_job_spec;
use crate::check::{Errors, label_selector, not_negative, one_of, required, same, selector_is_valid, selects};
use crate::cron;
use crate::names;
use crate::pod::template_defaults;
use crate::value::{
    copy, default, entries, existing, flag_at, is_empty, list, list_at, list_mut, number, object, remove, text, text_at,
};

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
    template_and_conditions(spec);
}

/// Pods of a Job, and which of their conditions count as failures.
fn template_and_conditions(spec: &mut Value) {
    if let Some(policy) = existing(spec, "podFailurePolicy") {
        for rule in list_mut(policy, "rules") {
            for condition in list_mut(rule, "onPodConditions").iter_mut().filter(|c| text(c, "status").is_empty()) {
                condition["status"] = json!("True");
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
    if let Some(spec) = existing(spec, "jobTemplate").and_then(|job| existing(job, "spec")) {
        template_and_conditions(spec);
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
    generated_selector(job, &path, errors);
    validate_selected_spec(spec, &path, errors);
    validate_hostnames(job, errors);
    let Some(old) = old else { return };
    // The real server checks the whole spec twice.
    validate_selected_spec(spec, &path, errors);
    let suspended = flag_at(&old["spec"], "/suspend") && idle(old);
    let old = &old["spec"];
    validate_completions(spec, old, &path, errors);
    same(errors, spec, old, "selector", &path);
    validate_template_change(spec, old, suspended, &path, errors);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        same(errors, spec, old, field, &path);
    }
}

/// Whether a suspended Job has not started, or has stopped again.
fn idle(job: &Value) -> bool {
    let stopped = |condition: &Value| text(condition, "type") == "Suspended" && text(condition, "status") == "True";
    let status = &job["status"];
    number(status, "active").unwrap_or(0) == 0
        && (status["startTime"].is_null() || list(status, "conditions").iter().any(stopped))
}

/// Pods of an indexed Job are named after it and their index.
fn validate_hostnames(job: &Value, errors: &mut Errors) {
    let spec = &job["spec"];
    let Some(count) = number(spec, "completions").filter(|count| *count > 0) else {
        return;
    };
    let name = text_at(job, "/metadata/name");
    let longest = format!("{name}-{}", count - 1);
    if text(spec, "completionMode") == "Indexed" && !names::dns_label(&longest).is_empty() {
        let root = Path::root();
        let detail = format!("will not able to create pod with invalid DNS label: {longest}");
        errors.push(FieldError::invalid(&root.field("metadata").field("name"), &json!(name), detail));
    }
}

/// The spec, and a selector that selects the template's pods.
fn validate_selected_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_job_spec(spec, path, errors);
    let selector = &spec["selector"];
    if selector.is_null() {
        errors.push(FieldError::required(&path.field("selector"), ""));
    } else {
        label_selector(errors, selector, &path.field("selector"));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if selector_is_valid(selector) && !selects(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        let path = path.field("template");
        errors.push(FieldError::invalid(&path.field("metadata").field("labels"), labels, detail));
    }
}

/// Indexed Jobs may grow and shrink, all at once.
fn validate_completions(spec: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(spec, "completionMode") != "Indexed" {
        same(errors, spec, old, "completions", path);
        return;
    }
    let (new, before) = (&spec["completions"], &old["completions"]);
    if new != before && !new.is_null() && *new != spec["parallelism"] {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(&path.field("completions"), new, detail));
    }
}

/// While a Job is suspended its pods may still be placed elsewhere and get other resources.
fn validate_template_change(spec: &Value, old: &Value, suspended: bool, path: &Path<'_>, errors: &mut Errors) {
    let template = &spec["template"];
    let mut before = old["template"].clone();
    if suspended {
        allow_placing(&mut before, template);
    }
    if !suspended || !flag_at(old, "/suspend") {
        if *template != before {
            errors.push(FieldError::invalid(&path.field("template"), template, "field is immutable"));
        }
        return;
    }
    for field in ["containers", "initContainers"] {
        let (new, old) = (list_at(template, &format!("/spec/{field}")), &mut before["spec"]);
        let old = list_mut(old, field);
        for (container, new) in old.iter_mut().zip(new).filter(|(old, new)| old["name"] == new["name"]) {
            copy(container, new, "resources");
        }
    }
    if template["spec"] != before["spec"] {
        errors.push(FieldError::invalid(&path.field("template.spec"), &template["spec"], "field is immutable"));
    }
}

/// Takes over from the new template what decides about nodes.
fn allow_placing(before: &mut Value, template: &Value) {
    if let Some(metadata) = object(before, "metadata") {
        for field in ["annotations", "labels"] {
            copy(metadata, &template["metadata"], field);
        }
    }
    let (new, Some(spec)) = (&template["spec"], existing(before, "spec")) else {
        return;
    };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy(spec, new, field);
    }
    let nodes = new["affinity"].get("nodeAffinity").cloned();
    match (new["affinity"].is_null(), spec["affinity"].is_null()) {
        (true, false) => {
            remove(&mut spec["affinity"], "nodeAffinity");
            if is_empty(&spec["affinity"]) {
                remove(spec, "affinity");
            }
        }
        (false, _) => {
            if let (Some(affinity), Some(nodes)) = (object(spec, "affinity"), nodes) {
                affinity["nodeAffinity"] = nodes;
            } else {
                remove(&mut spec["affinity"], "nodeAffinity");
            }
        }
        (true, true) => {}
    }
    if spec["affinity"].is_null() {
        remove(spec, "affinity");
    }
}

/// The selector and labels that a Job gives itself.
fn generated_selector(job: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = &job["spec"]["selector"];
    let (uid, name) = (text_at(job, "/metadata/uid"), text_at(job, "/metadata/name"));
    if flag_at(job, "/spec/manualSelector") || selector.is_null() || uid.is_empty() {
        return;
    }
    let at = path.field("template");
    let at = at.field("metadata");
    let wanted = json!({
        "controller-uid": uid, "job-name": name,
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
    });
    let labels = &job["spec"]["template"]["metadata"]["labels"];
    for (key, value) in entries(&wanted) {
        let at = at.field("labels");
        match labels.get(key) {
            None => errors
                .push(FieldError::required(&at.key(key), format!("must be '{}'", value.as_str().unwrap_or_default()))),
            Some(given) if given != value => {
                let detail = format!("must be '{}'", value.as_str().unwrap_or_default());
                errors.push(FieldError::invalid(&at.key(key), labels, detail));
            }
            Some(_) => {}
        }
    }
    if selector_is_valid(selector) && !selects(selector, &wanted) {
        errors.push(FieldError::invalid(&path.field("selector"), selector, "`selector` not auto-generated"));
    }
}

/// Schedule, policies and template of a `CronJob`.
pub(crate) fn validate_cron_job(job: &Value, old: Option<&Value>, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("spec");
    let spec = &job["spec"];
    if required(errors, spec, "schedule", &path) {
        let zoned = old.is_some_and(|old| text_at(old, "/spec/schedule").contains("TZ"));
        validate_schedule(spec, zoned, &path.field("schedule"), errors);
    }
    not_negative(errors, spec, "startingDeadlineSeconds", &path);
    if old.is_none_or(|old| old["spec"]["timeZone"] != spec["timeZone"]) {
        validate_zone(&spec["timeZone"], &path.field("timeZone"), errors);
    }
    one_of(errors, spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], &path);
    let inner = path.field("jobTemplate");
    let inner = inner.field("spec");
    let template = &spec["jobTemplate"]["spec"];
    validate_job_spec(template, &inner, errors);
    if !template["selector"].is_null() {
        let detail = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(&inner.field("selector"), &template["selector"], detail));
    }
    if flag_at(template, "/manualSelector") {
        let value = &template["manualSelector"];
        errors.push(FieldError::not_supported(&inner.field("manualSelector"), value, &["nil", "false"]));
    }
    not_negative(errors, spec, "successfulJobsHistoryLimit", &path);
    not_negative(errors, spec, "failedJobsHistoryLimit", &path);
    // Room for the eleven characters that the names of its jobs get.
    let name = text_at(job, "/metadata/name");
    if old.is_none() && name.len() > 52 {
        let detail = "must be no more than 52 characters";
        errors.push(FieldError::invalid(&root.field("metadata").field("name"), &json!(name), detail));
    }
}

fn validate_schedule(spec: &Value, zoned: bool, path: &Path<'_>, errors: &mut Errors) {
    let schedule = text(spec, "schedule");
    let mut refuse = |detail: String| errors.push(FieldError::invalid(path, &json!(schedule), detail));
    if let Some(problem) = cron::problem(schedule) {
        refuse(problem);
    }
    if !schedule.contains("TZ") {
        return;
    }
    if !zoned {
        refuse("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".to_owned());
    } else if !spec["timeZone"].is_null() {
        refuse("cannot use both timeZone field and TZ or CRON_TZ in schedule".to_owned());
    }
}

fn validate_zone(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(zone) = value.as_str() else { return };
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path, value, detail));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    let sound = |part: &str| {
        let plain = !part.starts_with('-') && (1..=14).contains(&part.len()) && part.bytes().all(allowed);
        plain && !matches!(part, "." | "..")
    };
    if zone.is_empty() {
        refuse("timeZone must be nil or non-empty string");
    } else if !zone.split('/').all(sound) {
        refuse(&format!("unknown time zone {zone}"));
    } else {
        if zone.eq_ignore_ascii_case("Local") {
            refuse("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
        }
        if !cron::is_zone(zone) {
            refuse(&format!("unknown time zone {zone}"));
        }
    }
}
