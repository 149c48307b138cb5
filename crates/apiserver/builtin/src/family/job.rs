//! What a Job's spec says about completion, failure and success, also in a `CronJob`'s template → what is wrong with it.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::network::domain_path;
use crate::check::{Errors, not_negative, ordered};
use crate::meta::invalid;
use crate::names;
use crate::pod::validate_template;
use crate::value::{list, number, text, text_at};

const COUNTS: &[&str] = &[
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
];

/// Counts, policies and template.
pub(super) fn validate_job_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in COUNTS {
        not_negative(errors, spec, field, path);
    }
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.field("backoffLimitPerIndex"), detail));
    }
    if let Some(manager) = spec["managedBy"].as_str() {
        domain_path(errors, manager, &path.field("managedBy"));
        if manager.len() > 63 {
            errors.push(FieldError::too_long(&path.field("managedBy"), 63));
        }
    }
    validate_mode(spec, path, errors);
    if !spec["podFailurePolicy"].is_null() {
        validate_failures(spec, &path.field("podFailurePolicy"), errors);
    }
    if !spec["successPolicy"].is_null() {
        validate_success(spec, &path.field("successPolicy"), errors);
    }
    validate_replacement(spec, &path.field("podReplacementPolicy"), errors);
    let at = path.field("template");
    validate_template(&spec["template"], &at, errors);
    validate_restarts(spec, &at.field("spec"), errors);
}

fn is_indexed(spec: &Value) -> bool {
    text(spec, "completionMode") == "Indexed"
}

fn validate_mode(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mode = text(spec, "completionMode");
    if !spec["completionMode"].is_null() && !matches!(mode, "NonIndexed" | "Indexed") {
        let supported = &["NonIndexed", "Indexed"];
        errors.push(FieldError::not_supported(&path.field("completionMode"), &json!(mode), supported));
    }
    if is_indexed(spec) {
        validate_indexed(spec, path, errors);
    } else if matches!(mode, "" | "NonIndexed") {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if !spec[field].is_null() {
                let detail = "requires indexed completion mode";
                errors.push(FieldError::invalid(&path.field(field), &spec[field], detail));
            }
        }
    }
}

fn validate_indexed(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let completions = number(spec, "completions");
    if completions.is_none() {
        errors.push(FieldError::required(&path.field("completions"), "when completion mode is Indexed"));
    }
    let many = completions.is_some_and(|count| count > 100_000) && !spec["backoffLimitPerIndex"].is_null();
    let failed = number(spec, "maxFailedIndexes");
    let high = "when completions are above 100000 and used with backoff limit per index";
    let mut limit = |field: &str, over: bool, detail: String| {
        if over {
            errors.push(FieldError::invalid(&path.field(field), &spec[field], detail));
        }
    };
    let parallel = number(spec, "parallelism").unwrap_or(0);
    let detail = "must be less than or equal to 100000 when completion mode is Indexed".to_owned();
    limit("parallelism", parallel > 100_000, detail);
    let over = failed.is_some_and(|failed| completions.is_some_and(|count| failed > count));
    limit("maxFailedIndexes", over, "must be less than or equal to completions".to_owned());
    let over = failed.is_some_and(|failed| failed > 100_000);
    limit("maxFailedIndexes", over, "must be less than or equal to 100000".to_owned());
    limit("parallelism", many && parallel > 10_000, format!("must be less than or equal to 10000 {high}"));
    let over = many && failed.is_some_and(|failed| failed > 10_000);
    limit("maxFailedIndexes", over, format!("must be less than or equal to 10000 {high}"));
    if many && failed.is_none() {
        let detail = "must be specified when completions is above 100000";
        errors.push(FieldError::required(&path.field("maxFailedIndexes"), detail));
    }
}

fn validate_replacement(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(policy) = spec["podReplacementPolicy"].as_str() else {
        return;
    };
    let supported: &[&str] =
        if spec["podFailurePolicy"].is_null() { &["Failed", "TerminatingOrFailed"] } else { &["Failed"] };
    if !supported.contains(&policy) {
        errors.push(FieldError::not_supported(path, &json!(policy), supported));
    }
}

fn validate_restarts(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("restartPolicy");
    match text_at(spec, "/template/spec/restartPolicy") {
        "" | "Always" => {
            errors.push(FieldError::required(&path, "valid values: \"OnFailure\", \"Never\""));
        }
        "Never" => {}
        policy @ "OnFailure" => {
            if !spec["podFailurePolicy"].is_null() {
                let detail = "only \"Never\" is supported when podFailurePolicy is specified";
                errors.push(FieldError::invalid(&path, &json!(policy), detail));
            }
        }
        other => errors.push(FieldError::not_supported(&path, &json!(other), &["OnFailure", "Never"])),
    }
}

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];

fn validate_failures(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("rules");
    let rules = list(&spec["podFailurePolicy"], "rules");
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&path, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        let action = text(rule, "action");
        match action {
            "" => {
                let detail = r#"valid values: ["Count" "FailIndex" "FailJob" "Ignore"]"#;
                errors.push(FieldError::required(&path.field("action"), detail));
            }
            "FailIndex" if spec["backoffLimitPerIndex"].is_null() => {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.push(FieldError::invalid(&path.field("action"), &json!(action), detail));
            }
            action if !ACTIONS.contains(&action) => {
                errors.push(FieldError::not_supported(&path.field("action"), &json!(action), ACTIONS));
            }
            _ => {}
        }
        let (codes, conditions) = (&rule["onExitCodes"], list(rule, "onPodConditions"));
        if !codes.is_null() {
            validate_exit_codes(spec, codes, &path.field("onExitCodes"), errors);
        }
        validate_conditions(conditions, &path.field("onPodConditions"), errors);
        match (codes.is_null(), conditions.is_empty()) {
            (false, false) => {
                errors.push(unshown(&path, "specifying both OnExitCodes and OnPodConditions is not supported"));
            }
            (true, true) => {
                errors.push(unshown(&path, "specifying one of OnExitCodes and OnPodConditions is required"));
            }
            _ => {}
        }
    }
}

/// An error that leaves the value out.
fn unshown(path: &Path<'_>, detail: &str) -> FieldError {
    let mut error = FieldError::invalid(path, &Value::Null, detail);
    error.value = None;
    error
}

fn validate_conditions(conditions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if conditions.len() > 20 {
        errors.push(FieldError::too_many(path, conditions.len(), 20));
    }
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let kind = text(condition, "type");
        invalid(errors, &path.field("type"), kind, names::qualified_name(kind));
        let status = text(condition, "status");
        let supported = &["False", "True", "Unknown"];
        if !supported.contains(&status) {
            errors.push(FieldError::not_supported(&path.field("status"), &json!(status), supported));
        }
    }
}

fn validate_exit_codes(spec: &Value, codes: &Value, path: &Path<'_>, errors: &mut Errors) {
    let operator = text(codes, "operator");
    if operator.is_empty() {
        errors.push(FieldError::required(&path.field("operator"), r#"valid values: ["In" "NotIn"]"#));
    } else if !matches!(operator, "In" | "NotIn") {
        errors.push(FieldError::not_supported(&path.field("operator"), &json!(operator), &["In", "NotIn"]));
    }
    if let Some(name) = codes["containerName"].as_str() {
        let pod = &spec["template"]["spec"];
        let known = |field: &str| list(pod, field).iter().any(|container| text(container, "name") == name);
        if !known("containers") && !known("initContainers") {
            let detail = "must be one of the container or initContainer names in the pod template";
            errors.push(FieldError::invalid(&path.field("containerName"), &json!(name), detail));
        }
    }
    let at = path.field("values");
    let values: Vec<i64> = list(codes, "values").iter().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        errors.push(FieldError::invalid(&at, &json!([]), "at least one value is required"));
    } else if values.len() > 255 {
        errors.push(FieldError::too_many(&at, values.len(), 255));
    }
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            errors.push(FieldError::invalid(&at.index(index), &json!(0), "must not be 0 for the In operator"));
        }
        if values[..index].contains(value) {
            errors.push(FieldError::duplicate(&at.index(index), &json!(value)));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(&at, &codes["values"], "must be ordered"));
    }
}

fn validate_success(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policy = &spec["successPolicy"];
    if !is_indexed(spec) {
        let mut error = FieldError::invalid(path, policy, "requires indexed completion mode");
        let rule = |rule: &Value| {
            let (indexes, count) = (&rule["succeededIndexes"], &rule["succeededCount"]);
            ordered(&[("SucceededIndexes", indexes), ("SucceededCount", count)])
        };
        let rules = policy["rules"].as_array().map(|rules| rules.iter().map(rule).collect::<Vec<String>>().join(","));
        let rules = rules.map_or("null".to_owned(), |rules| format!("[{rules}]"));
        error.value = Some(format!("{{\"Rules\":{rules}}}"));
        errors.push(error);
        return;
    }
    let path = path.field("rules");
    let rules = list(policy, "rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, detail));
    }
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&path, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        validate_success_rule(spec, rule, &path.index(index), errors);
    }
}

fn validate_success_rule(spec: &Value, rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let completions = number(spec, "completions").unwrap_or(0);
    let indexes = rule["succeededIndexes"].as_str();
    let mut named = 0;
    if let Some(text) = indexes {
        match count_indexes(text, completions) {
            Ok(count) => named = count,
            Err(problem) => {
                let detail = format!("error parsing succeededIndexes: {problem}");
                errors.push(FieldError::invalid(&path.field("succeededIndexes"), &json!(text), detail));
            }
        }
    }
    let Some(count) = number(rule, "succeededCount") else {
        if indexes.is_none() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(FieldError::required(path, detail));
        }
        return;
    };
    not_negative(errors, rule, "succeededCount", path);
    let mut limit = |over: bool, detail: String| {
        if over {
            errors.push(FieldError::invalid(&path.field("succeededCount"), &json!(count), detail));
        }
    };
    let most = format!("must be less than or equal to {completions} (the number of specified completions)");
    limit(count > completions, most);
    let most = format!(
        "must be less than or equal to {named} (the number of indexes in the specified succeededIndexes field)"
    );
    limit(indexes.is_some() && count > named, most);
}

/// How many indexes `1,3-5` names.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let mut last: Option<i64> = None;
    let mut total = 0;
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = parse_interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn parse_interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let parts: Vec<&str> = text.split('-').collect();
    if parts.len() > 2 {
        return Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts separated \
             by '-'"
        ));
    }
    let index = |text: &str| -> Result<i64, String> {
        let index = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if index >= completions { Err(format!("too large index: {text:?}")) } else { Ok(index) }
    };
    let first = index(parts[0])?;
    let Some(end) = parts.get(1) else {
        return Ok((first, first));
    };
    let end = index(end)?;
    if first >= end {
        return Err(format!("non-increasing order, previous: {first}, current: {end}"));
    }
    Ok((first, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_in_order() {
        assert_eq!(count_indexes("0,2-4", 10), Ok(4));
        assert_eq!(count_indexes("", 10), Ok(0));
        assert_eq!(count_indexes("3,1", 10).unwrap_err(), "non-increasing order, previous: 3, current: 1");
        assert_eq!(count_indexes("12", 10).unwrap_err(), "too large index: \"12\"");
    }
}
