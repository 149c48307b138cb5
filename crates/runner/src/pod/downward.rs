//! A pod's own fields and the resources of its containers → text, for variables and for files of the downward API.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ObjectFieldSelector, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as QuantityText;
use portolan_builtin::quantity::Quantity;

use super::containers::{containers, name, namespace, uid};
use super::references::PodSources;

/// Why a field has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DownwardError {
    /// The API server should have refused the path.
    #[error("unsupported fieldPath: {0}")]
    UnknownField(String),
    /// The API server should have refused the resource.
    #[error("unsupported container resource : {0}")]
    UnknownResource(String),
    /// No container of the pod has the name.
    #[error("container {0} not found")]
    UnknownContainer(String),
    /// The divisor is no quantity, or zero.
    #[error("divisor {0} is no quantity that can divide")]
    Divisor(String),
}

/// What a node has, for limits that a container does not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCapacity {
    /// As `2`.
    pub cpu: String,
    /// As `8147532Ki`.
    pub memory: String,
}

/// The text of one of the pod's fields.
pub fn field_text(pod: &Pod, selector: &ObjectFieldSelector, sources: &PodSources) -> Result<String, DownwardError> {
    let spec = pod.spec.as_ref();
    let text = match selector.field_path.as_str() {
        "metadata.name" => name(pod).to_owned(),
        "metadata.namespace" => namespace(pod).to_owned(),
        "metadata.uid" => uid(pod).to_owned(),
        "metadata.labels" => lines(pod.metadata.labels.as_ref()),
        "metadata.annotations" => lines(pod.metadata.annotations.as_ref()),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default(),
        "status.hostIP" | "status.hostIPs" => sources.host_address.clone(),
        "status.podIP" | "status.podIPs" => sources.pod_address.clone().unwrap_or_default(),
        path => of_map(pod, path).ok_or_else(|| DownwardError::UnknownField(path.to_owned()))?,
    };
    Ok(text)
}

/// `metadata.labels['KEY']` and the same of annotations; a key that is not there has an empty text.
fn of_map(pod: &Pod, path: &str) -> Option<String> {
    let (map, key) = path.strip_suffix("']")?.split_once("['")?;
    let map = match map {
        "metadata.labels" => &pod.metadata.labels,
        "metadata.annotations" => &pod.metadata.annotations,
        _ => return None,
    };
    Some(map.iter().find_map(|map| map.get(key)).cloned().unwrap_or_default())
}

/// A line `KEY="VALUE"` for each, in order of the keys (`pkg/fieldpath/fieldpath.go`, `FormatMap`).
fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<String> = map.into_iter().flatten().map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}

/// The text of a container's resource, in units of the divisor, rounded up. A limit that is not set is what the node has
/// (`pkg/kubelet/kubelet_resources.go`).
pub fn resource_text(
    pod: &Pod,
    own: &Container,
    selector: &ResourceFieldSelector,
    node: &NodeCapacity,
) -> Result<String, DownwardError> {
    let container = match selector.container_name.as_deref().filter(|name| !name.is_empty()) {
        None => own,
        Some(wanted) => containers(pod)
            .into_iter()
            .map(|container| container.spec)
            .find(|container| container.name == wanted)
            .ok_or_else(|| DownwardError::UnknownContainer(wanted.to_owned()))?,
    };
    let amount = amount(container, &selector.resource, node)?;
    let divisor = selector.divisor.as_ref().map_or("1", |divisor| divisor.0.as_str());
    let divisor = if divisor == "0" { "1" } else { divisor };
    let parsed = Quantity::parse(divisor).ok_or_else(|| DownwardError::Divisor(divisor.to_owned()))?;
    let parts = amount.parts_of(&parsed).ok_or_else(|| DownwardError::Divisor(divisor.to_owned()))?;
    Ok(parts.to_string())
}

fn amount(container: &Container, resource: &str, node: &NodeCapacity) -> Result<Quantity, DownwardError> {
    let unknown = || DownwardError::UnknownResource(resource.to_owned());
    let (sort, name) = resource.split_once('.').ok_or_else(unknown)?;
    let resources = container.resources.as_ref();
    let limit = resources.and_then(|resources| resources.limits.as_ref()?.get(name));
    let request = resources.and_then(|resources| resources.requests.as_ref()?.get(name));
    let whole = match name {
        "cpu" => Some(node.cpu.as_str()),
        "memory" => Some(node.memory.as_str()),
        "ephemeral-storage" => None,
        _ if name.starts_with("hugepages-") => None,
        _ => return Err(unknown()),
    };
    let given: Option<&QuantityText> = match sort {
        "limits" => limit,
        "requests" => request,
        _ => return Err(unknown()),
    };
    let text = given.map(|quantity| quantity.0.as_str()).or_else(|| whole.filter(|_| sort == "limits")).unwrap_or("0");
    Quantity::parse(text).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::json;

    fn field(path: &str) -> Result<String, DownwardError> {
        let mut pod = pod(json!({"nodeName": "here", "serviceAccountName": "sailor", "containers": [{"name": "c"}]}));
        pod.metadata.labels = Some([("app", "web"), ("tier", "a \"b\"")].map(|(k, v)| (k.into(), v.into())).into());
        let sources = PodSources {
            host_address: "127.0.0.1".into(),
            pod_address: Some("127.77.0.2".into()),
            ..Default::default()
        };
        field_text(&pod, &ObjectFieldSelector { field_path: path.into(), api_version: None }, &sources)
    }

    #[test]
    fn fields_of_the_pod_are_its_names_labels_and_addresses() {
        let paths = ["metadata.name", "metadata.namespace", "spec.nodeName", "spec.serviceAccountName", "status.podIP"];
        let texts = paths.map(|path| field(path).unwrap());

        assert_eq!(texts, ["web", "harbour", "here", "sailor", "127.77.0.2"]);
        assert_eq!(field("metadata.labels['app']").unwrap(), "web");
        assert_eq!(field("metadata.annotations['none']").unwrap(), "");
    }

    #[test]
    fn all_labels_are_one_line_each_with_quoted_values() {
        assert_eq!(field("metadata.labels").unwrap(), "app=\"web\"\ntier=\"a \\\"b\\\"\"");
    }

    #[test]
    fn other_fields_are_refused_by_name() {
        assert_eq!(field("spec.containers").unwrap_err().to_string(), "unsupported fieldPath: spec.containers");
    }

    fn resource(resource: &str, divisor: &str) -> Result<String, DownwardError> {
        let pod = pod(json!({"containers": [{"name": "c", "resources": {
            "limits": {"cpu": "1500m", "memory": "100Mi"}, "requests": {"cpu": "250m"}}}, {"name": "d"}]}));
        let spec = pod.spec.as_ref().unwrap();
        let selector = ResourceFieldSelector {
            resource: resource.into(),
            divisor: Some(QuantityText(divisor.into())),
            container_name: None,
        };
        let node = NodeCapacity { cpu: "2".into(), memory: "8Gi".into() };
        let own = &spec.containers[usize::from(resource.ends_with("ephemeral-storage"))];
        resource_text(&pod, own, &selector, &node)
    }

    #[test]
    fn resources_are_counted_in_parts_of_the_divisor_and_rounded_up() {
        assert_eq!(resource("limits.cpu", "0").unwrap(), "2");
        assert_eq!(resource("limits.cpu", "1m").unwrap(), "1500");
        assert_eq!(resource("limits.memory", "1Mi").unwrap(), "100");
        assert_eq!(resource("requests.cpu", "1").unwrap(), "1");
    }

    #[test]
    fn a_request_that_is_not_made_is_zero_and_a_limit_what_the_node_has() {
        assert_eq!(resource("requests.memory", "1").unwrap(), "0");
        assert_eq!(resource("limits.ephemeral-storage", "1").unwrap(), "0");
        assert!(resource("limits.goats", "1").is_err());
    }
}
