//! A container and the objects that it names → its variables, command and arguments (`kubelet_pods.go`,
//! `makeEnvironmentVariables`).

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVarSource, Pod};

use super::containers::{name, namespace};
use super::downward::{DownwardError, NodeCapacity, field_text, resource_text};
use super::expand::expanded;
use super::references::PodSources;

/// Why a container cannot be configured: it waits with `CreateContainerConfigError` until that changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// A `ConfigMap` that is not there.
    #[error("configmap {0:?} not found")]
    NoConfigMap(String),
    /// A Secret that is not there.
    #[error("secret {0:?} not found")]
    NoSecret(String),
    /// A key that is not there.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        /// The object's namespace.
        namespace: String,
        /// The object's name.
        name: String,
        /// The key.
        key: String,
    },
    /// A field or resource that has no text.
    #[error(transparent)]
    Downward(#[from] DownwardError),
}

/// What a container is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerCommand {
    /// Its `command`; empty where the program's own is meant.
    pub command: Vec<String>,
    /// Its `args`.
    pub arguments: Vec<String>,
    /// All its variables.
    pub environment: BTreeMap<String, String>,
}

/// Command, arguments and variables, with their references replaced.
pub fn container_command(
    pod: &Pod,
    container: &Container,
    sources: &PodSources,
    node: &NodeCapacity,
) -> Result<ContainerCommand, EnvironmentError> {
    let environment = environment(pod, container, sources, node)?;
    let value_of = |name: &str| environment.get(name).map(String::as_str);
    let all = |texts: &Option<Vec<String>>| texts.iter().flatten().map(|text| expanded(text, value_of)).collect();
    let (command, arguments) = (all(&container.command), all(&container.args));
    Ok(ContainerCommand { command, arguments, environment })
}

/// The variables: those of services, then whole objects, then one by one, each over what was there before.
fn environment(
    pod: &Pod,
    container: &Container,
    sources: &PodSources,
    node: &NodeCapacity,
) -> Result<BTreeMap<String, String>, EnvironmentError> {
    let mut own: BTreeMap<String, String> = BTreeMap::new();
    for source in container.env_from.iter().flatten() {
        own.extend(whole_object(source, sources)?);
    }
    for variable in container.env.iter().flatten() {
        let value = match (variable.value.as_deref().filter(|value| !value.is_empty()), &variable.value_from) {
            (Some(text), _) => Some(expanded(text, |name| known(name, &own, &sources.services))),
            (None, Some(source)) => single(pod, container, source, sources, node)?,
            (None, None) => Some(String::new()),
        };
        // An optional key that is not there leaves what an earlier source said.
        own.extend(value.map(|value| (variable.name.clone(), value)));
    }
    let mut all = sources.services.clone();
    all.insert("HOSTNAME".to_owned(), host_name(pod));
    all.extend(own);
    Ok(all)
}

fn known<'a>(name: &str, own: &'a BTreeMap<String, String>, services: &'a BTreeMap<String, String>) -> Option<&'a str> {
    own.get(name).or_else(|| services.get(name)).map(String::as_str)
}

/// What the pod calls itself: `spec.hostname`, else its name, as far as a host name goes.
fn host_name(pod: &Pod) -> String {
    let own = pod.spec.as_ref().and_then(|spec| spec.hostname.as_deref()).filter(|name| !name.is_empty());
    own.unwrap_or(name(pod)).chars().take(63).collect::<String>().trim_end_matches(['-', '.']).to_owned()
}

fn whole_object(source: &EnvFromSource, sources: &PodSources) -> Result<Vec<(String, String)>, EnvironmentError> {
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    if let Some(reference) = &source.config_map_ref {
        match sources.config_maps.get(&reference.name) {
            Some(map) => found.extend(map.data.clone().unwrap_or_default()),
            None if reference.optional == Some(true) => {}
            None => return Err(EnvironmentError::NoConfigMap(reference.name.clone())),
        }
    }
    if let Some(reference) = &source.secret_ref {
        match sources.secrets.get(&reference.name) {
            Some(secret) => found.extend(secret.data.iter().flatten().map(|(key, value)| (key.clone(), text(value)))),
            None if reference.optional == Some(true) => {}
            None => return Err(EnvironmentError::NoSecret(reference.name.clone())),
        }
    }
    // A name that no process could be given would keep the container from starting.
    let usable = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
    Ok(found.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value)).filter(|(key, _)| usable(key)).collect())
}

/// The value of one variable; none where it is optional and not there.
fn single(
    pod: &Pod,
    container: &Container,
    source: &EnvVarSource,
    sources: &PodSources,
    node: &NodeCapacity,
) -> Result<Option<String>, EnvironmentError> {
    if let Some(field) = &source.field_ref {
        return Ok(Some(field_text(pod, field, sources)?));
    }
    if let Some(resource) = &source.resource_field_ref {
        return Ok(Some(resource_text(pod, container, resource, node)?));
    }
    if let Some(reference) = &source.config_map_key_ref {
        let Some(map) = sources.config_maps.get(&reference.name) else {
            return absent(reference.optional, || EnvironmentError::NoConfigMap(reference.name.clone()));
        };
        let value = map.data.as_ref().and_then(|data| data.get(&reference.key)).cloned();
        let missing = || no_key(pod, "ConfigMap", &reference.name, &reference.key);
        return value.map_or_else(|| absent(reference.optional, missing), |value| Ok(Some(value)));
    }
    if let Some(reference) = &source.secret_key_ref {
        let Some(secret) = sources.secrets.get(&reference.name) else {
            return absent(reference.optional, || EnvironmentError::NoSecret(reference.name.clone()));
        };
        let value = secret.data.as_ref().and_then(|data| data.get(&reference.key)).map(text);
        let missing = || no_key(pod, "Secret", &reference.name, &reference.key);
        return value.map_or_else(|| absent(reference.optional, missing), |value| Ok(Some(value)));
    }
    Ok(Some(String::new()))
}

fn absent(
    optional: Option<bool>,
    error: impl FnOnce() -> EnvironmentError,
) -> Result<Option<String>, EnvironmentError> {
    if optional == Some(true) { Ok(None) } else { Err(error()) }
}

fn no_key(pod: &Pod, kind: &'static str, name: &str, key: &str) -> EnvironmentError {
    EnvironmentError::NoKey { kind, namespace: namespace(pod).to_owned(), name: name.to_owned(), key: key.to_owned() }
}

fn text(value: &ByteString) -> String {
    String::from_utf8_lossy(&value.0).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::{Value, json};

    fn sources() -> PodSources {
        let object = |value: Value| serde_json::from_value(value).unwrap();
        let map = object(json!({"data": {"colour": "red", "size": "2", "a=b": "unusable"}}));
        let secret = serde_json::from_value(json!({"data": {"password": "aHVudGVy"}})).unwrap();
        let services = [("PORT".to_owned(), "8080".to_owned())].into();
        PodSources {
            config_maps: [("map".to_owned(), map)].into(),
            secrets: [("secret".to_owned(), secret)].into(),
            services,
            ..PodSources::default()
        }
    }

    fn started(container: Value) -> Result<ContainerCommand, EnvironmentError> {
        let mut named = json!({"name": "c"});
        named.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        let pod = pod(json!({"containers": [named]}));
        let node = NodeCapacity { cpu: "2".into(), memory: "8Gi".into() };
        container_command(&pod, &pod.spec.as_ref().unwrap().containers[0], &sources(), &node)
    }

    fn variable(container: Value, name: &str) -> Option<String> {
        started(container).unwrap().environment.remove(name)
    }

    #[test]
    fn whole_objects_become_variables_with_their_prefix_and_single_ones_win() {
        let container = json!({
            "envFrom": [{"prefix": "MY_", "configMapRef": {"name": "map"}}, {"secretRef": {"name": "secret"}}],
            "env": [{"name": "MY_size", "value": "3"}],
        });

        let environment = started(container).unwrap().environment;

        assert_eq!(environment["MY_colour"], "red");
        assert_eq!(environment["MY_size"], "3");
        assert_eq!(environment["password"], "hunter");
        assert!(environment.keys().all(|name| !name.contains('=')), "{environment:?}");
    }

    #[test]
    fn values_refer_to_variables_that_stand_above_and_to_services() {
        let container = json!({"env": [
            {"name": "LATER", "value": "$(A)"}, {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(PORT)-$$(A)"}]});

        let environment = started(container).unwrap().environment;

        assert_eq!((environment["LATER"].as_str(), environment["B"].as_str()), ("$(A)", "1-8080-$(A)"));
    }

    #[test]
    fn commands_and_arguments_refer_to_all_variables() {
        let container = json!({
            "command": ["serve", "--port=$(PORT)"], "args": ["$(COLOUR)", "$(NONE)"],
            "env": [{"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "map", "key": "colour"}}}],
        });

        let started = started(container).unwrap();

        assert_eq!(started.command, ["serve", "--port=8080"]);
        assert_eq!(started.arguments, ["red", "$(NONE)"]);
    }

    #[test]
    fn fields_of_the_pod_are_values() {
        let container = json!({"env": [{"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]});

        assert_eq!(variable(container, "ME").unwrap(), "web");
        assert_eq!(variable(json!({}), "HOSTNAME").unwrap(), "web");
    }

    #[test]
    fn what_is_not_there_is_named_in_the_kubelets_words() {
        let of_key = |kind: &str, name: &str, key: &str| json!({"env": [{"name": "A", "valueFrom": {kind: {"name": name, "key": key}}}]});
        let told = |container| started(container).unwrap_err().to_string();

        assert_eq!(told(json!({"envFrom": [{"configMapRef": {"name": "none"}}]})), "configmap \"none\" not found");
        assert_eq!(told(of_key("secretKeyRef", "none", "k")), "secret \"none\" not found");
        assert_eq!(told(of_key("configMapKeyRef", "map", "k")), "couldn't find key k in ConfigMap harbour/map");
    }

    #[test]
    fn what_is_optional_and_not_there_leaves_no_variable() {
        let container = json!({"env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "map", "key": "k", "optional": true}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "none", "key": "k", "optional": true}}}]});

        let environment = started(container).unwrap().environment;

        assert!(!environment.contains_key("A") && !environment.contains_key("B"), "{environment:?}");
    }
}
