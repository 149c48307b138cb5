//! Where a pod wants to be: affinity and spreading → what is wrong with it.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, label_selector};
use crate::meta::invalid;
use crate::names;
use crate::value::{entries, list, number, text, texts};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Nodes and pods that a pod wants to be near to, or far from.
pub(super) fn validate_affinity(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_nodes(&affinity["nodeAffinity"], &path.field("nodeAffinity"), errors);
    for field in ["podAffinity", "podAntiAffinity"] {
        let path = path.field(field);
        for (index, term) in list(&affinity[field], REQUIRED).iter().enumerate() {
            validate_term(term, &path.field(REQUIRED).index(index), errors);
        }
        for (index, term) in list(&affinity[field], PREFERRED).iter().enumerate() {
            let path = path.field(PREFERRED);
            let path = path.index(index);
            validate_weight(term, &path, errors);
            validate_term(&term["podAffinityTerm"], &path.field("podAffinityTerm"), errors);
        }
    }
}

fn validate_weight(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let weight = number(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(&path.field("weight"), &json!(weight), "must be in the range 1-100"));
    }
}

fn validate_nodes(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    let required = &affinity[REQUIRED];
    if !required.is_null() {
        validate_node_selector(required, &path.field(REQUIRED), errors);
    }
    for (index, term) in list(affinity, PREFERRED).iter().enumerate() {
        let path = path.field(PREFERRED);
        let path = path.index(index);
        validate_weight(term, &path, errors);
        validate_node_term(&term["preference"], Values::Any, &path.field("preference"), errors);
    }
}

/// Terms of which a node must fulfil one.
pub(crate) fn validate_node_selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field("nodeSelectorTerms");
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    for (index, term) in terms.iter().enumerate() {
        validate_node_term(term, Values::Checked, &path.index(index), errors);
    }
}

/// Whether values must be such as labels can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Checked,
    Any,
}

fn validate_node_term(term: &Value, values: Values, path: &Path<'_>, errors: &mut Errors) {
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        validate_node_labels(requirement, values, &path.field("matchExpressions").index(index), errors);
    }
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        validate_node_fields(requirement, &path.field("matchFields").index(index), errors);
    }
}

fn validate_node_labels(requirement: &Value, values: Values, path: &Path<'_>, errors: &mut Errors) {
    let given = texts(requirement, "values");
    let at = path.field("values");
    match text(requirement, "operator") {
        "In" | "NotIn" if given.is_empty() => {
            errors.push(FieldError::required(&at, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !given.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&at, detail));
        }
        "Gt" | "Lt" if given.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&at, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.field("operator"), &json!(other), detail));
        }
    }
    let key = text(requirement, "key");
    invalid(errors, &path.field("key"), key, names::qualified_name(key));
    if values == Values::Checked {
        for (index, value) in given.iter().enumerate() {
            invalid(errors, &at.index(index), value, names::label_value(value));
        }
    }
}

fn validate_node_fields(requirement: &Value, path: &Path<'_>, errors: &mut Errors) {
    let given = texts(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" if given.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(&path.field("values"), detail));
        }
        "In" | "NotIn" => {}
        other => {
            let detail = "not a valid selector operator";
            errors.push(FieldError::invalid(&path.field("operator"), &json!(other), detail));
        }
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        errors.push(FieldError::invalid(&path.field("key"), &json!(key), "not a valid field selector key"));
        return;
    }
    for (index, value) in given.iter().enumerate() {
        invalid(errors, &path.field("values").index(index), value, names::dns_subdomain(value));
    }
}

fn validate_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        label_selector(errors, &term[field], &path.field(field));
    }
    for name in texts(term, "namespaces") {
        invalid(errors, &path.field("namespace"), name, names::dns_label(name));
    }
    validate_keys(term, path, errors);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&path.field("topologyKey"), "can not be empty"));
    }
    invalid(errors, &path.field("topologyKey"), key, names::qualified_name(key));
}

/// Keys whose values the pod's own labels give.
fn validate_keys(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = &term["labelSelector"];
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let path = path.field(field);
        let keys = texts(term, field);
        if !keys.is_empty() && selector.is_null() {
            errors.push(FieldError::forbidden(&path, "must not be specified when labelSelector is not set"));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            invalid(errors, &path.index(index), key, names::qualified_name(key));
        }
    }
    let keys = texts(term, "matchLabelKeys");
    let mut selecting: Vec<&str> = entries(&selector["matchLabels"]).map(|(key, _)| key.as_str()).collect();
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        if let Some(index) = keys.iter().rposition(|known| *known == key)
            && selecting.contains(&key)
        {
            // The real server leaves out the list's name.
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(&path.index(index), &json!(key), detail));
        }
        selecting.push(key);
    }
    let others = texts(term, "mismatchLabelKeys");
    for (index, key) in keys.iter().enumerate().filter(|(_, key)| others.contains(key)) {
        let path = path.field("matchLabelKeys");
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(FieldError::invalid(&path.index(index), &json!(key), detail));
    }
}

/// How evenly pods are spread.
pub(super) fn validate_spreading(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let constraints = list(spec, "topologySpreadConstraints");
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        positive(errors, constraint, "maxSkew", &path);
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            errors.push(FieldError::required(&path.field("topologyKey"), "can not be empty"));
        }
        let action = text(constraint, "whenUnsatisfiable");
        let supported = &["DoNotSchedule", "ScheduleAnyway"];
        if !supported.contains(&action) {
            errors.push(FieldError::not_supported(&path.field("whenUnsatisfiable"), &json!(action), supported));
        }
        let same = |other: &Value| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action;
        if constraints[index + 1..].iter().any(same) {
            let path = path.field("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(&path, &json!(format!("{{{key}, {action}}}"))));
        }
        validate_domains(constraint, action, &path, errors);
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            crate::check::one_of(errors, constraint, field, &["Honor", "Ignore"], &path);
        }
        validate_keys(constraint, &path, errors);
        label_selector(errors, &constraint["labelSelector"], &path.field("labelSelector"));
    }
}

fn positive(errors: &mut Errors, object: &Value, field: &str, path: &Path<'_>) {
    let value = number(object, field).unwrap_or(0);
    if value <= 0 {
        errors.push(FieldError::invalid(&path.field(field), &json!(value), "must be greater than zero"));
    }
}

fn validate_domains(constraint: &Value, action: &str, path: &Path<'_>, errors: &mut Errors) {
    if constraint["minDomains"].is_null() {
        return;
    }
    positive(errors, constraint, "minDomains", path);
    if action != "DoNotSchedule" {
        let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.push(FieldError::invalid(&path.field("minDomains"), &constraint["minDomains"], detail));
    }
}
