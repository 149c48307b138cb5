//! `OperatorConfig` → what it asks for, field by field. What is absent is not asked for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, Toleration};
use portolan_core::Problem;
use portolan_zerotrust_model::{
    CloudflareZeroTrustOperatorConfigSpec as Spec, OperatorEnvironment, OperatorResources, reasons,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::field::ConfigField;
use crate::{json_equivalence, quantity};

/// What a configuration asks for, checked as far as can be without asking the server.
pub(crate) fn asked_fields(spec: &Spec, deployment: &Value) -> Result<BTreeMap<ConfigField, Value>, Problem> {
    let mut asked = BTreeMap::new();
    let plain = [
        (ConfigField::Replicas, spec.replicas.map(|replicas| json!(replicas))),
        (ConfigField::Resources, spec.resources.as_ref().map(resources).transpose()?),
        (ConfigField::ImagePullPolicy, text(spec.image_pull_policy.as_deref())),
        (ConfigField::Affinity, spec.affinity.as_ref().map(|value| known::<Affinity>("affinity", value)).transpose()?),
        (ConfigField::NodeSelector, spec.node_selector.as_ref().map(|labels| json!(labels))),
        (ConfigField::Tolerations, tolerations(spec.tolerations.as_deref())?),
        (ConfigField::PriorityClassName, text(spec.priority_class_name.as_deref())),
    ];
    asked.extend(plain.into_iter().filter_map(|(field, value)| Some((field, value?))));
    asked.extend(spec.environment_variables.iter().flat_map(environment));
    for (name, value) in spec.pod_labels.iter().flatten() {
        not_of_the_selector(name, value, deployment)?;
        asked.insert(ConfigField::PodLabel(name.clone()), json!(value));
    }
    let annotations = spec.pod_annotations.iter().flatten();
    asked.extend(annotations.map(|(name, value)| (ConfigField::PodAnnotation(name.clone()), json!(value))));
    Ok(asked)
}

fn text(value: Option<&str>) -> Option<Value> {
    value.map(str::trim).filter(|value| !value.is_empty()).map(|value| json!(value))
}

fn environment(variables: &OperatorEnvironment) -> Vec<(ConfigField, Value)> {
    let level = variables.log_level.map(|level| json!(level).as_str().unwrap_or_default().to_owned());
    let all = [
        ("POLL_INTERVAL_SECONDS", variables.poll_interval_seconds.map(|seconds| seconds.to_string())),
        ("LOG_LEVEL", level),
        ("WATCH_NAMESPACES", variables.watch_namespaces.clone()),
    ];
    let entry = |(name, value): (&str, Option<String>)| {
        Some((ConfigField::Env(name.to_owned()), json!({ "name": name, "value": value? })))
    };
    all.into_iter().filter_map(entry).collect()
}

/// Resources whose amounts can be read.
fn resources(asked: &OperatorResources) -> Result<Value, Problem> {
    let parts = [("requests", &asked.requests), ("limits", &asked.limits)];
    for (part, (name, amount)) in parts.iter().flat_map(|(part, all)| all.iter().flatten().map(move |one| (part, one)))
    {
        if !quantity::is_quantity(amount) {
            let message = format!("spec.resources.{part}.{name} is {amount}: write an amount as \"100m\" or \"256Mi\"");
            return Err(refused(message));
        }
    }
    Ok(json!(asked))
}

fn tolerations(asked: Option<&[Value]>) -> Result<Option<Value>, Problem> {
    let Some(asked) = asked else { return Ok(None) };
    let each = asked.iter().enumerate();
    let checked: Result<Vec<Value>, Problem> =
        each.map(|(place, value)| known::<Toleration>(&format!("tolerations[{place}]"), value)).collect();
    checked.map(|checked| Some(Value::Array(checked)))
}

/// A value whose fields a pod knows, all of them.
fn known<T: Serialize + DeserializeOwned>(place: &str, value: &Value) -> Result<Value, Problem> {
    let read: T = serde_json::from_value(value.clone())
        .map_err(|error| refused(format!("spec.{place} is not as in a pod: {error}")))?;
    if json_equivalence::same(Some(&json!(read)), Some(value)) {
        return Ok(value.clone());
    }
    Err(refused(format!(
        "spec.{place} has fields that a pod does not know: compare it with `kubectl explain pod.spec`"
    )))
}

/// A label by which the Deployment finds its pods cannot become another one.
fn not_of_the_selector(name: &str, value: &str, deployment: &Value) -> Result<(), Problem> {
    match deployment["spec"]["selector"]["matchLabels"][name].as_str() {
        Some(fixed) if fixed != value => Err(refused(format!(
            "spec.podLabels.{name} cannot be {value:?}: the Deployment finds its pods by {name}={fixed}; take the label out"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// The configuration cannot be applied until it is changed.
fn refused(message: String) -> Problem {
    Problem::invalid(reasons::APPLY_FAILED, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(spec: Value) -> Spec {
        serde_json::from_value(spec).unwrap()
    }

    fn deployment() -> Value {
        json!({"spec": {"selector": {"matchLabels": {"app": "operator"}}}})
    }

    fn asked(value: Value) -> Vec<String> {
        asked_fields(&spec(value), &deployment()).unwrap().keys().map(ToString::to_string).collect()
    }

    fn refusal(value: Value) -> String {
        asked_fields(&spec(value), &deployment()).unwrap_err().message
    }

    #[test]
    fn only_what_is_said_is_asked_for() {
        assert_eq!(asked(json!({})), Vec::<String>::new());
        assert_eq!(asked(json!({"environmentVariables": {"logLevel": "DEBUG"}})), ["env:LOG_LEVEL"]);
        assert_eq!(asked(json!({"priorityClassName": ""})), Vec::<String>::new());
        assert_eq!(asked(json!({"nodeSelector": {}, "replicas": 2})), ["replicas", "nodeSelector"]);
    }

    #[test]
    fn an_empty_list_of_namespaces_is_said() {
        let asked =
            asked_fields(&spec(json!({"environmentVariables": {"watchNamespaces": ""}})), &deployment()).unwrap();

        let entry = json!({"name": "WATCH_NAMESPACES", "value": ""});
        assert_eq!(asked.get(&ConfigField::Env("WATCH_NAMESPACES".to_owned())), Some(&entry));
    }

    #[test]
    fn what_no_pod_knows_is_refused_with_its_place() {
        let message = refusal(json!({"affinity": {"nodeAffinty": {}, "podAffinty": {"a": 1}}}));
        assert!(message.starts_with("spec.affinity has fields that a pod does not know"), "{message}");
        let message = refusal(json!({"tolerations": [{"key": "a"}, {"tolerationSeconds": "soon"}]}));
        assert!(message.starts_with("spec.tolerations[1] is not as in a pod"), "{message}");
        let message = refusal(json!({"resources": {"limits": {"memory": "lots"}}}));
        assert_eq!(message, "spec.resources.limits.memory is \"lots\": write an amount as \"100m\" or \"256Mi\"");
    }

    #[test]
    fn a_label_of_the_selector_may_be_repeated_and_not_changed() {
        assert_eq!(asked(json!({"podLabels": {"app": "operator"}})), ["podLabels:app"]);

        let message = refusal(json!({"podLabels": {"app": "mine"}}));
        assert!(message.contains("the Deployment finds its pods by app=operator"), "{message}");
    }
}
