//! `CloudflareZeroTrustOperatorConfig`: how the operator itself runs. What is absent is left as it was deployed.

use std::collections::BTreeMap;

use kube::CustomResource;
use portolan_core::Condition;
use portolan_core::schema::{self, AnyObject, IntOrString};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tenant::TenantLogLevel;

/// How the operator itself runs.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "cfzt.cloudflare.com", version = "v1alpha1", kind = "CloudflareZeroTrustOperatorConfig", namespaced)]
#[kube(plural = "cloudflarezerotrustoperatorconfigs", singular = "cloudflarezerotrustoperatorconfig")]
#[kube(shortname = "cfztconfig", shortname = "operatorconfig", category = "cloudflare")]
#[kube(status = "OperatorConfigStatus", doc = "How the operator itself runs.")]
#[kube(printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}"#)]
#[kube(printcolumn = r#"{"name":"CPU Request","type":"string","jsonPath":".spec.resources.requests.cpu"}"#)]
#[kube(printcolumn = r#"{"name":"Memory Request","type":"string","jsonPath":".spec.resources.requests.memory"}"#)]
#[kube(printcolumn = r#"{"name":"Ready","type":"boolean","jsonPath":".status.deploymentReady"}"#)]
#[kube(printcolumn = r#"{"name":"Last Applied","type":"date","jsonPath":".status.lastAppliedTime"}"#)]
#[kube(printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct CloudflareZeroTrustOperatorConfigSpec {
    /// How many managers run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: Option<i32>,
    /// What each container may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<OperatorResources>,
    /// Which nodes the pods prefer or avoid, as in a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_object")]
    pub affinity: Option<Value>,
    /// Labels that a pod's node must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Taints that pods tolerate, as in a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<AnyObject>>")]
    pub tolerations: Option<Vec<Value>>,
    /// The pods' priority class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub priority_class_name: Option<String>,
    /// When images are pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotPresent", "Never"]))]
    pub image_pull_policy: Option<String>,
    /// What the operator is told by its environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_variables: Option<OperatorEnvironment>,
    /// Annotations of the pods, besides those that are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_annotations: Option<BTreeMap<String, String>>,
    /// Labels of the pods, besides those that are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_labels: Option<BTreeMap<String, String>>,
}

/// What each container may use; any resource by name, as `100m` or `256Mi`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct OperatorResources {
    /// What is set aside for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, IntOrString>>")]
    pub requests: Option<BTreeMap<String, Value>>,
    /// What it may not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, IntOrString>>")]
    pub limits: Option<BTreeMap<String, Value>>,
}

/// What the operator is told by its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct OperatorEnvironment {
    /// Seconds between two looks at everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 3600))]
    pub poll_interval_seconds: Option<i32>,
    /// How much is logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<TenantLogLevel>,
    /// Namespaces whose routes are looked at, separated by commas; all where empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub watch_namespaces: Option<String>,
}

/// What became of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct OperatorConfigStatus {
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When something was last changed because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_applied_time: Option<String>,
    /// Whether all pods run as configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment_ready: Option<bool>,
    /// Whether it was applied, and whether the operator is ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
}
