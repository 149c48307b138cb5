//! `Role`, `ClusterRole` and their bindings.

use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use crate::check::{Errors, label_selector, selector_is_valid, showing};
use crate::meta::invalid;
use crate::names;
use crate::validation::subdomain;
use crate::value::{default, existing, is_empty, list, list_mut, text};

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// API groups of the role and the subjects.
pub(crate) fn binding_defaults(binding: &mut Value) {
    if let Some(role) = existing(binding, "roleRef").filter(|role| text(role, "apiGroup").is_empty()) {
        role["apiGroup"] = json!(GROUP);
    }
    for subject in list_mut(binding, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            default(subject, "apiGroup", GROUP);
        }
    }
}

/// Rules of a Role.
pub(crate) fn validate_role(role: &Value, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("rules");
    for (index, rule) in list(role, "rules").iter().enumerate() {
        validate_rule(rule, RuleScope::Namespace, &path.index(index), errors);
    }
}

/// Rules and aggregation of a `ClusterRole`.
pub(crate) fn validate_cluster_role(role: &Value, errors: &mut Errors) {
    let root = Path::root();
    for (index, rule) in list(role, "rules").iter().enumerate() {
        validate_rule(rule, RuleScope::Cluster, &root.field("rules").index(index), errors);
    }
    let aggregation = &role["aggregationRule"];
    if aggregation.is_null() {
        return;
    }
    let path = root.field("aggregationRule");
    let path = path.field("clusterRoleSelectors");
    if is_empty(&aggregation["clusterRoleSelectors"]) {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, detail));
    }
    for (index, selector) in list(aggregation, "clusterRoleSelectors").iter().enumerate() {
        label_selector(errors, selector, &path.index(index));
        if !selector_is_valid(selector) {
            errors.push(FieldError::invalid(&path.index(index), &Value::Null, "invalid label selector."));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleScope {
    Namespace,
    Cluster,
}

fn validate_rule(rule: &Value, scope: RuleScope, path: &Path<'_>, errors: &mut Errors) {
    if is_empty(&rule["verbs"]) {
        errors.push(FieldError::required(&path.field("verbs"), "verbs must contain at least one value"));
    }
    let urls = &rule["nonResourceURLs"];
    if !is_empty(urls) {
        let names_resources = !is_empty(&rule["apiGroups"]) || !is_empty(&rule["resources"]);
        if scope == RuleScope::Namespace {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(&path.field("nonResourceURLs"), urls, detail));
        }
        if names_resources || !is_empty(&rule["resourceNames"]) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(&path.field("nonResourceURLs"), urls, detail));
        }
        return;
    }
    if is_empty(&rule["apiGroups"]) {
        let detail = "resource rules must supply at least one api group";
        errors.push(FieldError::required(&path.field("apiGroups"), detail));
    }
    if is_empty(&rule["resources"]) {
        let detail = "resource rules must supply at least one resource";
        errors.push(FieldError::required(&path.field("resources"), detail));
    }
}

/// The role and the subjects of a binding; the role never changes.
pub(crate) fn validate_binding(binding: &Value, old: Option<&Value>, roles: &[&str], errors: &mut Errors) {
    let root = Path::root();
    validate_reference(&binding["roleRef"], roles, &root.field("roleRef"), errors);
    for (index, subject) in list(binding, "subjects").iter().enumerate() {
        let scope = if roles.contains(&"Role") { RuleScope::Namespace } else { RuleScope::Cluster };
        validate_subject(subject, scope, &root.field("subjects").index(index), errors);
    }
    if let Some(old) = old
        && binding["roleRef"] != old["roleRef"]
    {
        let role = &binding["roleRef"];
        let fields = [("APIGroup", &role["apiGroup"]), ("Kind", &role["kind"]), ("Name", &role["name"])];
        let error = FieldError::invalid(&root.field("roleRef"), role, "cannot change roleRef");
        errors.push(showing(error, &fields));
    }
}

fn validate_reference(role: &Value, roles: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if text(role, "apiGroup") != GROUP {
        errors.push(FieldError::not_supported(&path.field("apiGroup"), &role["apiGroup"], &[GROUP]));
    }
    if !roles.contains(&text(role, "kind")) {
        errors.push(FieldError::not_supported(&path.field("kind"), &json!(text(role, "kind")), roles));
    }
    let name = text(role, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.field("name"), ""));
    } else {
        invalid(errors, &path.field("name"), name, names::path_segment(name));
    }
}

fn validate_subject(subject: &Value, scope: RuleScope, path: &Path<'_>, errors: &mut Errors) {
    let name = text(subject, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.field("name"), ""));
    }
    let group = match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                subdomain(errors, name, &path.field("name"));
            }
            ""
        }
        "User" | "Group" => GROUP,
        other => {
            let supported = &["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.field("kind"), &json!(other), supported));
            return;
        }
    };
    if text(subject, "apiGroup") != group {
        errors.push(FieldError::not_supported(&path.field("apiGroup"), &json!(text(subject, "apiGroup")), &[group]));
    }
    if scope == RuleScope::Cluster && group.is_empty() && text(subject, "namespace").is_empty() {
        errors.push(FieldError::required(&path.field("namespace"), ""));
    }
}
