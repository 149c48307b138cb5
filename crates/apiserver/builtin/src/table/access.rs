//! Rows of role bindings, quotas and priority classes.

use serde_json::{Value, json};

use crate::quantity::written;
use crate::value::{entries, flag_at, list, number, text, text_at};

/// Cells of a `RoleBinding` or `ClusterRoleBinding`.
pub(crate) fn binding(binding: &Value, name: Value, age: Value) -> Vec<Value> {
    let role = format!("{}/{}", text_at(binding, "/roleRef/kind"), text_at(binding, "/roleRef/name"));
    let subjects = |kind: &str| {
        let named = list(binding, "subjects").iter().filter(|subject| text(subject, "kind") == kind);
        let shown = named.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
            _ => text(subject, "name").to_owned(),
        });
        json!(shown.collect::<Vec<_>>().join(", "))
    };
    vec![name, json!(role), age, subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}

/// Cells of a `ResourceQuota`.
pub(crate) fn quota(quota: &Value, name: Value, age: Value) -> Vec<Value> {
    let status = &quota["status"];
    let amount = |value: &Value| written(value).unwrap_or_else(|| "0".to_owned());
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in entries(&status["hard"]) {
        let shown = format!("{resource}: {}/{}", amount(&status["used"][resource]), amount(hard));
        if resource.starts_with("limits.") { &mut limits } else { &mut requests }.push(shown);
    }
    vec![name, json!(requests.join(", ")), json!(limits.join(", ")), age]
}

/// Cells of a `PriorityClass`.
pub(crate) fn priority(class: &Value, name: Value, age: Value) -> Vec<Value> {
    vec![
        name,
        json!(number(class, "value").unwrap_or(0)),
        json!(flag_at(class, "/globalDefault")),
        age,
        json!(text(class, "preemptionPolicy")),
    ]
}
