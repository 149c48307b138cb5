//! The operator's Deployment: hardened, probed, told by its environment what to do.

use portolan_core::job::JobRole;
use serde_json::{Map, Value, json};

use super::{Installation, set};
use crate::values::ProcessMode;

/// Variables that the installation sets itself.
pub(crate) const VARIABLES: [&str; 15] = [
    "ROLE",
    "POD_NAME",
    "POD_NAMESPACE",
    "OPERATOR_NAMESPACE",
    "WATCH_NAMESPACES",
    "ALLOW_ORIGINS",
    "POLL_INTERVAL_SECONDS",
    "DRIFT_RESYNC_SECONDS",
    "LOG_LEVEL",
    "LOG_FORMAT",
    "METRICS_ADDR",
    "HEALTH_ADDR",
    "CLOUDFLARE_API_BASE",
    "KUBE_WORKER_SERVICE_ACCOUNT",
    "CLOUDFLARE_WORKER_SERVICE_ACCOUNT",
];

pub(super) const METRICS_PORT: u16 = 8080;
const HEALTH_PORT: u16 = 8081;
/// A worker ends what is under way, at most 25 s.
const GRACE_SECONDS: u32 = 30;

impl Installation<'_> {
    /// The Deployment of the one process, or of the manager.
    pub(super) fn deployment(&self) -> Value {
        let selector = self.pods_of(JobRole::OPERATOR);
        let spec = json!({
            "replicas": self.values.replica_count,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": selector},
            "template": {"metadata": self.pod_metadata(selector), "spec": self.pod()},
        });
        self.object("apps/v1", "Deployment", self.full_name(), json!({"spec": spec}))
    }

    fn pod_metadata(&self, mut labels: Value) -> Value {
        if let Some(labels) = labels.as_object_mut() {
            labels.extend(self.values.pod_labels.iter().map(|(name, value)| (name.clone(), json!(value))));
        }
        let mut metadata = Map::from_iter([("labels".to_owned(), labels)]);
        set(&mut metadata, "annotations", json!(self.values.pod_annotations));
        Value::Object(metadata)
    }

    fn pod(&self) -> Value {
        let values = self.values;
        let mut pod = Map::new();
        set(&mut pod, "serviceAccountName", json!(self.account_name(JobRole::OPERATOR)));
        set(&mut pod, "imagePullSecrets", json!(values.image_pull_secrets));
        set(&mut pod, "securityContext", json!(values.pod_security_context));
        set(&mut pod, "terminationGracePeriodSeconds", json!(GRACE_SECONDS));
        set(&mut pod, "priorityClassName", json!(values.priority_class_name));
        set(&mut pod, "nodeSelector", json!(values.node_selector));
        set(&mut pod, "tolerations", json!(values.tolerations));
        set(&mut pod, "affinity", json!(values.affinity));
        set(&mut pod, "topologySpreadConstraints", json!(values.topology_spread_constraints));
        set(&mut pod, "containers", json!([self.container()]));
        // The root filesystem is read-only.
        set(&mut pod, "volumes", json!([{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]));
        Value::Object(pod)
    }

    fn container(&self) -> Value {
        let values = self.values;
        let mut container = Map::new();
        set(&mut container, "name", json!("operator"));
        set(&mut container, "image", json!(self.image()));
        set(&mut container, "imagePullPolicy", json!(values.image.pull_policy));
        set(&mut container, "args", json!(["run", format!("--controllers={}", values.controllers.join(","))]));
        set(&mut container, "env", Value::Array(self.environment()));
        set(&mut container, "ports", Value::Array(self.ports()));
        set(&mut container, "startupProbe", probe("/livez", 2, 30));
        set(&mut container, "livenessProbe", probe("/livez", 10, 3));
        set(&mut container, "readinessProbe", probe("/readyz", 5, 3));
        set(&mut container, "resources", json!(values.resources));
        set(&mut container, "securityContext", json!(values.security_context));
        set(&mut container, "volumeMounts", json!([{"name": "tmp", "mountPath": "/tmp"}]));
        Value::Object(container)
    }

    fn image(&self) -> String {
        let image = &self.values.image;
        let name = match image.registry.as_str() {
            "" => image.repository.clone(),
            registry => format!("{registry}/{}", image.repository),
        };
        match image.digest.as_str() {
            "" => format!("{name}:{}", super::first(&[&image.tag, &self.release.version])),
            digest => format!("{name}@{digest}"),
        }
    }

    fn environment(&self) -> Vec<Value> {
        let operator = &self.values.operator;
        let plain = |name: &str, value: String| json!({"name": name, "value": value});
        // As the server completes it, so that who applies it next finds nothing changed.
        let reference = |path: &str| json!({"fieldRef": {"apiVersion": "v1", "fieldPath": path}});
        let field = |name: &str, path: &str| json!({"name": name, "valueFrom": reference(path)});
        let metrics = if self.values.metrics.enabled { format!(":{METRICS_PORT}") } else { "0".to_owned() };
        let mut all = vec![
            plain("ROLE", if operator.mode == ProcessMode::Single { "all" } else { "manager" }.to_owned()),
            field("POD_NAME", "metadata.name"),
            field("OPERATOR_NAMESPACE", "metadata.namespace"),
            plain("POLL_INTERVAL_SECONDS", operator.poll_interval_seconds.to_string()),
            plain("DRIFT_RESYNC_SECONDS", operator.drift_resync_seconds.to_string()),
            plain("LOG_LEVEL", text(&json!(operator.log_level))),
            plain("LOG_FORMAT", text(&json!(operator.log_format))),
            plain("METRICS_ADDR", metrics),
            plain("HEALTH_ADDR", format!(":{HEALTH_PORT}")),
        ];
        if !operator.watch_namespaces.is_empty() {
            all.push(plain("WATCH_NAMESPACES", operator.watch_namespaces.clone()));
        }
        if !operator.allow_origins.is_empty() {
            all.push(plain("ALLOW_ORIGINS", operator.allow_origins.clone()));
        }
        if !operator.cloudflare_api_base.is_empty() {
            all.push(plain("CLOUDFLARE_API_BASE", operator.cloudflare_api_base.clone()));
        }
        all.extend(self.jobs.iter().flat_map(|job| job.pod_fields).map(|(name, path)| field(name, path)));
        for component in self.components().into_iter().filter(|component| *component != JobRole::OPERATOR) {
            let variable = format!("{}_SERVICE_ACCOUNT", component.to_uppercase().replace('-', "_"));
            all.push(plain(&variable, self.account_name(component)));
        }
        all.extend(operator.extra_env.iter().map(|variable| json!(variable)));
        all
    }

    fn ports(&self) -> Vec<Value> {
        let port = |name: &str, number: u16| json!({"name": name, "containerPort": number, "protocol": "TCP"});
        let metrics = self.values.metrics.enabled.then(|| port("metrics", METRICS_PORT));
        metrics.into_iter().chain([port("health", HEALTH_PORT)]).collect()
    }
}

fn probe(path: &str, period_seconds: u32, failures: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": period_seconds, "timeoutSeconds": 5, "failureThreshold": failures,
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
