//! A field that a configuration can set → where it stands in a Deployment: read, write, compare.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::{json_equivalence, quantity};

const TEMPLATE: &str = "/spec/template";
const POD: &[&str] = &["spec", "template", "spec"];

/// A field that a configuration can set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConfigField {
    Replicas,
    Resources,
    ImagePullPolicy,
    Affinity,
    NodeSelector,
    Tolerations,
    PriorityClassName,
    /// One variable of the container's environment.
    Env(String),
    PodLabel(String),
    PodAnnotation(String),
}

/// As a record names it, and as a plan shows it.
impl fmt::Display for ConfigField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replicas => out.write_str("replicas"),
            Self::Resources => out.write_str("resources"),
            Self::ImagePullPolicy => out.write_str("imagePullPolicy"),
            Self::Affinity => out.write_str("affinity"),
            Self::NodeSelector => out.write_str("nodeSelector"),
            Self::Tolerations => out.write_str("tolerations"),
            Self::PriorityClassName => out.write_str("priorityClassName"),
            Self::Env(name) => write!(out, "env:{name}"),
            Self::PodLabel(name) => write!(out, "podLabels:{name}"),
            Self::PodAnnotation(name) => write!(out, "podAnnotations:{name}"),
        }
    }
}

impl ConfigField {
    /// Reads what [`Display`](fmt::Display) wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let named = |(kind, name): (&str, &str)| match kind {
            "env" => Some(Self::Env(name.to_owned())),
            "podLabels" => Some(Self::PodLabel(name.to_owned())),
            "podAnnotations" => Some(Self::PodAnnotation(name.to_owned())),
            _ => None,
        };
        match text {
            "replicas" => Some(Self::Replicas),
            "resources" => Some(Self::Resources),
            "imagePullPolicy" => Some(Self::ImagePullPolicy),
            "affinity" => Some(Self::Affinity),
            "nodeSelector" => Some(Self::NodeSelector),
            "tolerations" => Some(Self::Tolerations),
            "priorityClassName" => Some(Self::PriorityClassName),
            other => other.split_once(':').and_then(named),
        }
    }

    /// The field's value in a Deployment, of whose containers one is meant.
    pub(crate) fn read(&self, deployment: &Value, container: &str) -> Option<Value> {
        let pod = &deployment.pointer(TEMPLATE)?["spec"];
        let own = || containers(pod).find(|one| one["name"] == container);
        let value = match self {
            Self::Replicas => deployment["spec"]["replicas"].clone(),
            Self::Resources => own()?["resources"].clone(),
            Self::ImagePullPolicy => own()?["imagePullPolicy"].clone(),
            Self::Affinity => pod["affinity"].clone(),
            Self::NodeSelector => pod["nodeSelector"].clone(),
            Self::Tolerations => pod["tolerations"].clone(),
            Self::PriorityClassName => pod["priorityClassName"].clone(),
            // Of several entries the last one counts.
            Self::Env(name) => entries(own()?, name).last()?.clone(),
            Self::PodLabel(name) => deployment.pointer("/spec/template/metadata/labels")?[name.as_str()].clone(),
            Self::PodAnnotation(name) => {
                deployment.pointer("/spec/template/metadata/annotations")?[name.as_str()].clone()
            }
        };
        json_equivalence::stored(&value).map(|_| value)
    }

    /// Sets the field in a Deployment, or takes it out.
    pub(crate) fn write(&self, deployment: &mut Value, container: &str, value: Option<&Value>) {
        match self {
            Self::Replicas => set(json_equivalence::at(deployment, &["spec"]), "replicas", value),
            Self::Affinity => set(json_equivalence::at(deployment, POD), "affinity", value),
            Self::NodeSelector => set(json_equivalence::at(deployment, POD), "nodeSelector", value),
            Self::Tolerations => set(json_equivalence::at(deployment, POD), "tolerations", value),
            Self::PriorityClassName => set(json_equivalence::at(deployment, POD), "priorityClassName", value),
            Self::Resources => set(container_of(deployment, container), "resources", value),
            Self::ImagePullPolicy => set(container_of(deployment, container), "imagePullPolicy", value),
            Self::Env(name) => set_env(container_of(deployment, container), name, value),
            Self::PodLabel(name) => {
                set(json_equivalence::at(deployment, &["spec", "template", "metadata", "labels"]), name, value);
            }
            Self::PodAnnotation(name) => {
                set(json_equivalence::at(deployment, &["spec", "template", "metadata", "annotations"]), name, value);
            }
        }
    }

    /// Whether two values of the field mean the same.
    pub(crate) fn same(&self, a: Option<&Value>, b: Option<&Value>) -> bool {
        match self {
            Self::Resources => same_resources(a, b),
            Self::Env(_) => json_equivalence::same(a.map(as_stored).as_ref(), b.map(as_stored).as_ref()),
            Self::Replicas
            | Self::ImagePullPolicy
            | Self::Affinity
            | Self::NodeSelector
            | Self::Tolerations
            | Self::PriorityClassName
            | Self::PodLabel(_)
            | Self::PodAnnotation(_) => json_equivalence::same(a, b),
        }
    }

    /// Whether applying the field over what a Deployment has leaves nothing else of it. A server merges objects that
    /// are applied, and what stood in them beside the new would stay.
    pub(crate) fn is_replaced_by_applying(&self, deployment: &Value, container: &str, value: &Value) -> bool {
        match self {
            Self::Replicas
            | Self::ImagePullPolicy
            | Self::PriorityClassName
            | Self::PodLabel(_)
            | Self::PodAnnotation(_) => true,
            Self::NodeSelector | Self::Tolerations => json_equivalence::stored(value).is_some(),
            Self::Resources | Self::Affinity => self.read(deployment, container).is_none(),
            Self::Env(name) => {
                let pod = &deployment["spec"]["template"]["spec"];
                let own = containers(pod).find(|one| one["name"] == container);
                let there: Vec<&Value> = own.into_iter().flat_map(|own| entries(own, name)).collect();
                there.len() < 2 && there.iter().all(|entry| entry["valueFrom"].is_null())
            }
        }
    }
}

/// The containers of a pod.
pub(crate) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["containers"].as_array().into_iter().flatten()
}

fn entries<'a>(container: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    container["env"].as_array().into_iter().flatten().filter(move |entry| entry["name"] == name)
}

/// A variable as a server stores it: an empty value is none.
fn as_stored(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if entry["value"] == "" {
        entry["value"] = Value::Null;
    }
    entry
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    match value {
        Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
        None => drop(fields.remove(name)),
    }
}

/// A container by its name, made where there is none.
fn container_of<'a>(deployment: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    let list = json_equivalence::at(deployment, POD).entry("containers").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let list = list.as_array_mut().expect("it was just made a list");
    let place = list.iter().position(|one| one["name"] == name).unwrap_or_else(|| {
        list.push(json!({ "name": name }));
        list.len() - 1
    });
    json_equivalence::at(&mut list[place], &[])
}

/// Leaves exactly one entry, where the first one stood, or none.
fn set_env(container: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    let list = container.remove("env").and_then(|list| list.as_array().cloned()).unwrap_or_default();
    let place = list.iter().position(|entry| entry["name"] == name).unwrap_or(list.len());
    let mut kept: Vec<Value> = list.into_iter().filter(|entry| entry["name"] != name).collect();
    if let Some(value) = value {
        kept.insert(place.min(kept.len()), value.clone());
    }
    if !kept.is_empty() {
        container.insert("env".to_owned(), Value::Array(kept));
    }
}

/// Resources of a container, with their amounts as they are meant.
fn same_resources(a: Option<&Value>, b: Option<&Value>) -> bool {
    let part = |value: Option<&Value>, name: &str| value.map(|value| value[name].clone()).unwrap_or_default();
    let amounts = ["requests", "limits"].iter().all(|name| {
        let (a, b) = (part(a, name), part(b, name));
        let (none, empty) = (Map::new(), Map::new());
        let (a, b) = (a.as_object().unwrap_or(&none), b.as_object().unwrap_or(&empty));
        a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| quantity::same(a, b)))
    });
    amounts && json_equivalence::same(Some(&part(a, "claims")), Some(&part(b, "claims")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        json!({"spec": {"replicas": 1, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
            {"name": "sidecar"},
            {"name": "operator", "resources": {}, "env": [
                {"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}]}}}})
    }

    fn all() -> Vec<(ConfigField, Value)> {
        vec![
            (ConfigField::Replicas, json!(3)),
            (ConfigField::Resources, json!({"limits": {"cpu": "1"}})),
            (ConfigField::ImagePullPolicy, json!("Always")),
            (ConfigField::Affinity, json!({"nodeAffinity": {}, "podAffinity": {"x": 1}})),
            (ConfigField::NodeSelector, json!({"disk": "ssd"})),
            (ConfigField::Tolerations, json!([{"key": "a"}])),
            (ConfigField::PriorityClassName, json!("high")),
            (ConfigField::Env("LOG_LEVEL".to_owned()), json!({"name": "LOG_LEVEL", "value": "DEBUG"})),
            (ConfigField::PodLabel("team".to_owned()), json!("edge")),
            (ConfigField::PodAnnotation("a/b".to_owned()), json!("c")),
        ]
    }

    #[test]
    fn what_is_written_is_read_and_taken_out_again() {
        for (field, value) in all() {
            let mut changed = deployment();

            field.write(&mut changed, "operator", Some(&value));
            assert_eq!(field.read(&changed, "operator"), Some(value), "{field}");

            field.write(&mut changed, "operator", None);
            assert_eq!(field.read(&changed, "operator"), None, "{field}");
        }
    }

    #[test]
    fn every_field_is_known_by_its_name() {
        for (field, _) in all() {
            assert_eq!(ConfigField::parse(&field.to_string()), Some(field));
        }
        assert_eq!(ConfigField::parse("spec"), None);
        assert_eq!(ConfigField::parse("volumes:a"), None);
    }

    #[test]
    fn of_several_entries_of_a_variable_the_last_counts_and_one_is_left_in_the_first_place() {
        let (field, mut changed) = (ConfigField::Env("A".to_owned()), deployment());
        assert_eq!(field.read(&changed, "operator"), Some(json!({"name": "A", "value": "3"})));

        field.write(&mut changed, "operator", Some(&json!({"name": "A", "value": "4"})));

        let env = &changed["spec"]["template"]["spec"]["containers"][1]["env"];
        assert_eq!(*env, json!([{"name": "A", "value": "4"}, {"name": "B", "value": "2"}]));
    }

    #[test]
    fn amounts_are_compared_as_they_are_meant() {
        let field = ConfigField::Resources;
        let (asked, stored) = (json!({"limits": {"cpu": "1000m"}}), json!({"limits": {"cpu": "1"}, "requests": {}}));

        assert!(field.same(Some(&asked), Some(&stored)));
        assert!(!field.same(Some(&asked), Some(&json!({"limits": {"cpu": "1", "memory": "1Gi"}}))));
        assert!(field.same(None, Some(&json!({}))));
    }

    #[test]
    fn an_empty_value_of_a_variable_is_stored_as_none() {
        let field = ConfigField::Env("A".to_owned());

        assert!(field.same(Some(&json!({"name": "A", "value": ""})), Some(&json!({"name": "A"}))));
        assert!(!field.same(Some(&json!({"name": "A", "value": ""})), None), "an entry without a value is an entry");
    }

    #[test]
    fn what_a_server_would_merge_is_told() {
        let mut there = deployment();
        let replaced =
            |there: &Value, field: &ConfigField, value: Value| field.is_replaced_by_applying(there, "operator", &value);
        let variable = ConfigField::Env("A".to_owned());
        assert!(!replaced(&there, &variable, json!({})), "there are two entries");
        assert!(replaced(&there, &ConfigField::Env("B".to_owned()), json!({})));
        assert!(replaced(&there, &ConfigField::Resources, json!({"limits": {}})));

        ConfigField::Resources.write(&mut there, "operator", Some(&json!({"requests": {"cpu": "1"}})));
        variable.write(&mut there, "operator", Some(&json!({"name": "A", "valueFrom": {"fieldRef": {}}})));

        assert!(!replaced(&there, &ConfigField::Resources, json!({"limits": {"cpu": "2"}})));
        assert!(
            !replaced(&there, &variable, json!({"name": "A", "value": "1"})),
            "a source would stay beside the value"
        );
    }
}
