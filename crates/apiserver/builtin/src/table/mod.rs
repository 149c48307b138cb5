//! A built-in kind's columns and an object's cells, as `kubectl get` shows them.

mod access;
mod duration;
mod network;
mod node;
mod pod;
mod storage;
mod workload;

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Kind;
use crate::value::{entries, list, text, text_at};

pub(crate) use duration::seconds_between;
pub use duration::{age, human_duration};

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// The heading.
    pub name: String,
    /// `OpenAPI` type, as `string`.
    pub type_: String,
    /// `OpenAPI` format, as `name`.
    pub format: String,
    /// What stands in the column.
    pub description: String,
    /// `0` is always shown, others in wide tables.
    pub priority: i64,
}

/// The columns of a kind.
pub fn columns(kind: &Kind) -> Vec<TableColumn> {
    static TABLES: LazyLock<HashMap<String, Vec<TableColumn>>> = LazyLock::new(read);
    TABLES.get(&format!("{}/{}", kind.api_version(), kind.kind)).cloned().unwrap_or_else(generic)
}

/// Name and age, for kinds without a table of their own.
fn generic() -> Vec<TableColumn> {
    let column = |name: &str, format: &str| TableColumn {
        name: name.to_owned(),
        type_: "string".to_owned(),
        format: format.to_owned(),
        description: String::new(),
        priority: 0,
    };
    vec![column("Name", "name"), column("Age", "")]
}

fn read() -> HashMap<String, Vec<TableColumn>> {
    type Row = (String, String, String, String, i64);
    let tables: HashMap<String, Vec<Row>> =
        serde_json::from_str(include_str!("../../data/columns.json")).expect("the recorded columns are JSON");
    let column =
        |(name, type_, format, description, priority): Row| TableColumn { name, type_, format, description, priority };
    tables.into_iter().map(|(kind, rows)| (kind, rows.into_iter().map(column).collect())).collect()
}

/// The cells of an object, one for each of [`columns`].
pub fn cells(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = json!(text_at(object, "/metadata/name"));
    let created = &object["metadata"]["creationTimestamp"];
    let age = json!(age(created, now));
    match kind.kind {
        "ConfigMap" => {
            let count = entries(&object["data"]).count() + entries(&object["binaryData"]).count();
            vec![name, json!(count), age]
        }
        "Secret" => vec![name, object["type"].clone(), json!(entries(&object["data"]).count()), age],
        "Namespace" => vec![name, object["status"]["phase"].clone(), age],
        "Lease" => vec![name, json!(text_at(object, "/spec/holderIdentity")), age],
        "Pod" => pod::cells(object, name, age, now),
        "Node" => node::cells(object, name, age),
        "Event" => node::event_cells(kind, object, name, now),
        "Service" => network::service(object, name, age),
        "Endpoints" => vec![name, json!(network::endpoints(object)), age],
        "EndpointSlice" => network::slice(object, name, age),
        "Ingress" => network::ingress(object, name, age),
        "IngressClass" => network::ingress_class(object, age),
        "NetworkPolicy" => vec![name, json!(selector_or_none(&object["spec"]["podSelector"])), age],
        "Deployment" => workload::deployment(object, name, age),
        "ReplicaSet" => workload::replica_set(object, name, age),
        "StatefulSet" => workload::stateful_set(object, name, age),
        "DaemonSet" => workload::daemon_set(object, name, age),
        "ControllerRevision" => workload::revision(object, name, age),
        "Job" => workload::job(object, name, age, now),
        "CronJob" => workload::cron_job(object, name, age, now),
        "HorizontalPodAutoscaler" => workload::autoscaler(object, name, age),
        "PodDisruptionBudget" => workload::budget(object, name, age),
        "PersistentVolume" => storage::volume(object, name, age),
        "PersistentVolumeClaim" => storage::claim(object, name, age),
        "StorageClass" => storage::class(object, age),
        "VolumeAttachment" => storage::attachment(object, name, age),
        "CSIDriver" => storage::driver(object, name, age),
        "CSINode" => vec![name, json!(list(&object["spec"], "drivers").len()), age],
        "ResourceQuota" => access::quota(object, name, age),
        "RoleBinding" | "ClusterRoleBinding" => access::binding(object, name, age),
        "PriorityClass" => access::priority(object, name, age),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            vec![name, json!(list(object, "webhooks").len()), age]
        }
        "Role" | "ClusterRole" | "LimitRange" | "CustomResourceDefinition" => vec![name, created.clone()],
        _ => vec![name, age],
    }
}

/// The conditions of an object's row: pods that have ended say so.
pub fn row_conditions(kind: &Kind, object: &Value) -> Option<Value> {
    let (reason, message) = match (kind.kind, text_at(object, "/status/phase")) {
        ("Pod", "Succeeded") => ("Succeeded", "The pod has completed successfully."),
        ("Pod", "Failed") => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// `a=b,c=d`; `<none>` where there are none.
pub(crate) fn labels(labels: &Value) -> String {
    let pairs: Vec<String> =
        entries(labels).map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A label selector as text, sorted by key; empty where it selects everything.
pub(crate) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = entries(&selector["matchLabels"])
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in list(selector, "matchExpressions") {
        parts.push((text(expression, "key").to_owned(), requirement(expression)));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

/// The same with `<none>` for an empty one.
pub(crate) fn selector_or_none(value: &Value) -> String {
    let text = selector(value);
    if text.is_empty() { "<none>".to_owned() } else { text }
}

fn requirement(expression: &Value) -> String {
    let key = text(expression, "key");
    let mut values: Vec<&str> = list(expression, "values").iter().filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = values.join(",");
    match text(expression, "operator") {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}

/// At most three items, and how many there are beside them.
pub(crate) fn first_three(items: &[String], total: usize) -> String {
    let shown = items.iter().take(3).cloned().collect::<Vec<_>>().join(",");
    if total > 3 { format!("{shown} + {} more...", total - 3) } else { shown }
}

/// Text, or what stands for its absence.
pub(crate) fn or<'a>(text: &'a str, absent: &'a str) -> &'a str {
    if text.is_empty() { absent } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KINDS;

    #[test]
    fn every_kind_has_as_many_cells_as_columns() {
        let now = Timestamp::UNIX_EPOCH;

        for kind in KINDS {
            let cells = cells(kind, &json!({"metadata": {"name": "x"}}), now);
            assert_eq!(cells.len(), columns(kind).len(), "{}", kind.kind);
        }
    }

    #[test]
    fn selectors_are_written_in_the_order_of_their_keys() {
        let value = json!({"matchLabels": {"b": "1"}, "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "DoesNotExist"}]});

        assert_eq!(selector(&value), "a in (x,y),b=1,!c");
        assert_eq!(selector_or_none(&json!({})), "<none>");
    }
}
