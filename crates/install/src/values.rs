//! The values of an installation, by the names that the chart's users have: YAML and `key=value` in, checked values out.
//!
//! The doc comments here are the comments of the chart's `values.yaml`, the descriptions of its schema and the table of
//! the installation page.

#![allow(clippy::doc_markdown, reason = "readers of values.yaml know kinds by their plain names")]

use std::collections::BTreeMap;
use std::fmt;

use portolan_core::job::JobSheet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Invalid, checks, merge, schema};

/// Whatever Kubernetes takes there.
pub type AnyObject = Map<String, Value>;
/// Labels or annotations.
pub type Strings = BTreeMap<String, String>;

/// How Portolan is installed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Values {
    /// The image that runs.
    pub image: Image,
    /// Secrets to pull the image with, as `[{name: registry}]`.
    pub image_pull_secrets: Vec<AnyObject>,
    /// Another name for what is installed, in names and in the label `app.kubernetes.io/name`.
    #[schemars(regex(pattern = "^([a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?)?$"))]
    pub name_override: String,
    /// Another name for the Deployment and what belongs to it.
    #[schemars(regex(pattern = "^([a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?)?$"))]
    pub fullname_override: String,
    /// Another namespace than the release's.
    #[schemars(regex(pattern = "^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$"))]
    pub namespace_override: String,
    /// How the operator runs.
    pub operator: Operator,
    /// The jobs that run, by their names; the schema says what each does.
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub controllers: Vec<String>,
    /// How many pods there are; one leads, the others take over.
    #[schemars(range(min = 0, max = 100))]
    pub replica_count: u32,
    /// What each container may use.
    pub resources: AnyObject,
    /// The account that the pods use.
    pub service_account: ServiceAccount,
    /// Rights in the cluster.
    pub rbac: Rbac,
    /// Labels that a pod's node must have.
    pub node_selector: Strings,
    /// Taints that the pods tolerate.
    pub tolerations: Vec<AnyObject>,
    /// Which nodes the pods prefer or avoid.
    pub affinity: AnyObject,
    /// How the pods are spread over the cluster.
    pub topology_spread_constraints: Vec<AnyObject>,
    /// The pods' priority class.
    pub priority_class_name: String,
    /// Annotations of the pods.
    pub pod_annotations: Strings,
    /// Labels of the pods, besides those they are found by.
    pub pod_labels: Strings,
    /// What the pods may do on their nodes.
    pub pod_security_context: AnyObject,
    /// What the containers may do on their nodes.
    pub security_context: AnyObject,
    /// The definitions of Portolan's kinds.
    pub crds: Crds,
    /// Who may talk to the pods, and whom they may talk to.
    pub network_policy: NetworkPolicy,
    /// How many pods may be away at once when nodes are drained.
    pub pod_disruption_budget: PodDisruptionBudget,
    /// What is measured, and who is told.
    pub metrics: Metrics,
    /// The operator's own configuration as an object of the cluster.
    pub operator_config: OperatorConfig,
    /// A first tenant: account, tunnel and token that routes are published with.
    pub tenant: Tenant,
    /// Templates to look at.
    pub example_templates: ExampleTemplates,
    /// What charts that include this one say to all their parts; not used.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub global: AnyObject,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            image: Image::default(),
            image_pull_secrets: Vec::new(),
            name_override: String::new(),
            fullname_override: String::new(),
            namespace_override: String::new(),
            operator: Operator::default(),
            // Which jobs there are, and which of them are usual, is theirs to say.
            controllers: Vec::new(),
            replica_count: 1,
            resources: object(json!({
                "requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"},
            })),
            service_account: ServiceAccount::default(),
            rbac: Rbac { create: true },
            node_selector: Strings::new(),
            tolerations: Vec::new(),
            affinity: AnyObject::new(),
            topology_spread_constraints: Vec::new(),
            priority_class_name: String::new(),
            pod_annotations: Strings::new(),
            pod_labels: Strings::new(),
            pod_security_context: object(json!({
                "runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            })),
            security_context: object(json!({
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            })),
            crds: Crds { install: true, keep: true },
            network_policy: NetworkPolicy::default(),
            pod_disruption_budget: PodDisruptionBudget::default(),
            metrics: Metrics::default(),
            operator_config: OperatorConfig::default(),
            tenant: Tenant::default(),
            example_templates: ExampleTemplates::default(),
            global: AnyObject::new(),
        }
    }
}

fn object(value: Value) -> AnyObject {
    match value {
        Value::Object(object) => object,
        _ => AnyObject::new(),
    }
}

/// The image that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Image {
    /// The registry; empty for the node's default.
    pub registry: String,
    /// The image's name in it.
    #[schemars(length(min = 1))]
    pub repository: String,
    /// Its tag; the version of this release where empty.
    pub tag: String,
    /// Its digest, as `sha256:…`; wins over the tag.
    #[schemars(regex(pattern = "^(sha256:[a-f0-9]{64})?$"))]
    pub digest: String,
    /// When it is pulled.
    pub pull_policy: PullPolicy,
}

impl Default for Image {
    fn default() -> Self {
        Self {
            registry: String::new(),
            repository: "portolan-dev/portolan".to_owned(),
            tag: String::new(),
            digest: String::new(),
            pull_policy: PullPolicy::IfNotPresent,
        }
    }
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullPolicy {
    /// At every start.
    Always,
    /// Where the node does not have it.
    IfNotPresent,
    /// Never.
    Never,
}

/// How the operator runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Operator {
    /// One process for everything (`single`), or a manager that makes and keeps a Deployment for each side, with
    /// rights of its own (`roles`).
    pub mode: ProcessMode,
    /// Namespaces whose routes are looked at, with commas between them; all where empty.
    #[schemars(regex(pattern = "^[-a-z0-9, ]*$"))]
    pub watch_namespaces: String,
    /// Origins that may be published though they reach what protects the cluster, as `bastion` or `unix:/run/app.sock`,
    /// with commas between them; none where empty.
    #[schemars(regex(pattern = "^[^\"'\\n]*$"))]
    pub allow_origins: String,
    /// Seconds between two looks for what no route asks for any more.
    #[schemars(range(min = 10, max = 3600))]
    pub poll_interval_seconds: u32,
    /// Longest time in seconds between two comparisons of a name with what stands at Cloudflare, as far as 30 % of the
    /// API's budget allow it; where they allow more, names are compared every minute. 0 for never.
    #[schemars(range(min = 0, max = 604_800))]
    pub drift_resync_seconds: u32,
    /// How much is logged.
    pub log_level: LogLevel,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Another API than Cloudflare's own.
    #[schemars(regex(pattern = "^(https?://[^ ]+)?$"))]
    pub cloudflare_api_base: String,
    /// Further environment variables of the containers.
    pub extra_env: Vec<AnyObject>,
}

impl Default for Operator {
    fn default() -> Self {
        Self {
            mode: ProcessMode::Single,
            watch_namespaces: String::new(),
            allow_origins: String::new(),
            poll_interval_seconds: 60,
            drift_resync_seconds: 3600,
            log_level: LogLevel::Info,
            log_format: LogFormat::Text,
            cloudflare_api_base: String::new(),
            extra_env: Vec::new(),
        }
    }
}

/// How many processes do the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProcessMode {
    /// One for everything.
    Single,
    /// A manager, and one for each side.
    Roles,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogLevel {
    /// Every API call, the merged settings, timings.
    Debug,
    /// What was reconciled and what changed.
    Info,
    /// What may need attention.
    Warning,
    /// What failed.
    Error,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Jobs in the order in which they are installed and shown: the usual ones first.
pub(crate) fn ordered<'a>(jobs: &[&'a JobSheet]) -> Vec<&'a JobSheet> {
    let mut ordered = jobs.to_vec();
    ordered.sort_by_key(|job| !job.usual);
    ordered
}

/// The account that the pods use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ServiceAccount {
    /// Whether it is made. With `operator.mode: roles` there are three: its name, and that with `-kube-worker` and
    /// `-cloudflare-worker` behind it.
    pub create: bool,
    /// Its name; that of the Deployment where empty.
    #[schemars(regex(pattern = "^([a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?)?$"))]
    pub name: String,
    /// Its annotations.
    pub annotations: Strings,
}

impl Default for ServiceAccount {
    fn default() -> Self {
        Self { create: true, name: String::new(), annotations: Strings::new() }
    }
}

/// Rights in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Rbac {
    /// Whether roles and their bindings are made.
    pub create: bool,
}

impl Default for Rbac {
    fn default() -> Self {
        Self { create: true }
    }
}

/// The definitions of Portolan's kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Crds {
    /// Whether they are installed and kept up to date.
    pub install: bool,
    /// Whether they, and all objects of theirs, stay when the release goes.
    pub keep: bool,
}

impl Default for Crds {
    fn default() -> Self {
        Self { install: true, keep: true }
    }
}

/// Who may talk to the pods, and whom they may talk to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct NetworkPolicy {
    /// Whether there is one: metrics may be asked for; DNS and the ports below may be reached, nothing else.
    pub enabled: bool,
    /// Ports of the API server and of Cloudflare.
    #[schemars(inner(range(min = 1, max = 65535)))]
    pub egress_ports: Vec<u16>,
    /// Who may ask for metrics, as peers of a policy; everybody where empty.
    pub metrics_from: Vec<AnyObject>,
    /// Further rules for what may be reached, as in a policy.
    pub extra_egress: Vec<AnyObject>,
}

impl Default for NetworkPolicy {
    fn default() -> Self {
        Self { enabled: true, egress_ports: vec![443, 6443, 8443], metrics_from: Vec::new(), extra_egress: Vec::new() }
    }
}

/// How many pods may be away at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PodDisruptionBudget {
    /// Whether there is one.
    pub enabled: bool,
    /// That many pods of each Deployment.
    #[schemars(range(min = 0, max = 100))]
    pub max_unavailable: u32,
}

impl Default for PodDisruptionBudget {
    fn default() -> Self {
        Self { enabled: true, max_unavailable: 1 }
    }
}

/// What is measured, and who is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Metrics {
    /// Whether `/metrics` is served, and a Service leads to it.
    pub enabled: bool,
    /// For the Prometheus operator.
    pub service_monitor: ServiceMonitor,
    /// For Prometheus, by its operator.
    pub alerts: Alerts,
    /// For Grafana.
    pub dashboard: Dashboard,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            enabled: true,
            service_monitor: ServiceMonitor::default(),
            alerts: Alerts::default(),
            dashboard: Dashboard::default(),
        }
    }
}

/// For the Prometheus operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ServiceMonitor {
    /// Whether there is a ServiceMonitor.
    pub enabled: bool,
    /// How often metrics are asked for.
    #[schemars(regex(pattern = "^[0-9]+(ms|s|m|h)$"))]
    pub interval: String,
    /// Its labels, by which a Prometheus finds it.
    pub labels: Strings,
}

impl Default for ServiceMonitor {
    fn default() -> Self {
        Self { enabled: false, interval: "30s".to_owned(), labels: Strings::new() }
    }
}

/// For Prometheus, by its operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Alerts {
    /// Whether there is a PrometheusRule with alerts.
    pub enabled: bool,
    /// Its labels, by which a Prometheus finds it.
    pub labels: Strings,
}

/// For Grafana.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Dashboard {
    /// Whether there is a ConfigMap with a dashboard.
    pub enabled: bool,
    /// Its labels, by which Grafana's sidecar finds it.
    pub labels: Strings,
}

impl Default for Dashboard {
    fn default() -> Self {
        Self { enabled: false, labels: Strings::from([("grafana_dashboard".to_owned(), "1".to_owned())]) }
    }
}

/// The operator's own configuration as an object of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct OperatorConfig {
    /// Whether there is a CloudflareZeroTrustOperatorConfig `operator-config`.
    pub create: bool,
    /// Its spec.
    pub spec: AnyObject,
}

/// A first tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Tenant {
    /// Whether it is made.
    pub create: bool,
    /// Its name.
    #[schemars(regex(pattern = "^[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?$"))]
    pub instance_name: String,
    /// Its namespace; the operator's where empty.
    #[schemars(regex(pattern = "^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$"))]
    pub namespace: String,
    /// The Cloudflare account: 32 hexadecimal digits.
    #[schemars(regex(pattern = "^([a-f0-9]{32})?$"))]
    pub account_id: String,
    /// The tunnel that routes are published through: a UUID.
    #[schemars(regex(pattern = "^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?$"))]
    pub tunnel_id: String,
    /// The only zone that names may be in: 32 hexadecimal digits; any that the token sees where empty.
    #[schemars(regex(pattern = "^([a-f0-9]{32})?$"))]
    pub zone_id: String,
    /// The API token, which a Secret is made of; or name a Secret that is there.
    pub api_token: ApiToken,
    /// A Secret in the tenant's namespace that holds the API token.
    pub existing_secret: ExistingSecret,
}

impl Default for Tenant {
    fn default() -> Self {
        Self {
            create: false,
            instance_name: "default".to_owned(),
            namespace: String::new(),
            account_id: String::new(),
            tunnel_id: String::new(),
            zone_id: String::new(),
            api_token: ApiToken::default(),
            existing_secret: ExistingSecret::default(),
        }
    }
}

/// An API token, which is shown nowhere but in the Secret that is made of it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ApiToken(String);

impl ApiToken {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.is_empty() { "none" } else { "***" })
    }
}

/// A Secret that holds an API token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ExistingSecret {
    /// Its name.
    pub name: String,
    /// The token's key in it.
    #[schemars(length(min = 1))]
    pub key: String,
}

impl Default for ExistingSecret {
    fn default() -> Self {
        Self { name: String::new(), key: "token".to_owned() }
    }
}

/// Templates to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ExampleTemplates {
    /// Whether a few CloudflareZeroTrustTemplates are installed, `example-…`; nothing uses them by itself.
    pub install: bool,
}

impl Values {
    /// What holds where nobody says anything: the jobs run that are usual.
    pub fn usual(jobs: &[&JobSheet]) -> Self {
        let usual = jobs.iter().filter(|job| job.usual);
        Self { controllers: usual.map(|job| job.name.to_owned()).collect(), ..Self::default() }
    }

    /// The defaults, then files of values in order, then `key=value` settings in order, as helm lays them over each other.
    pub fn parse(jobs: &[&JobSheet], yaml: &[&str], sets: &[&str]) -> Result<Self, Invalid> {
        let mut values = serde_json::to_value(Self::usual(jobs)).expect("values are plain JSON");
        for text in yaml {
            merge::lay_over(&mut values, merge::document(text)?);
        }
        for set in sets {
            merge::set(&mut values, set)?;
        }
        schema::check(jobs, &mut values)?;
        let values: Self = serde_json::from_value(values).map_err(|error| Invalid::at("values", error.to_string()))?;
        checks::check(jobs, &values)?;
        Ok(values)
    }
}

#[cfg(test)]
mod tests;
