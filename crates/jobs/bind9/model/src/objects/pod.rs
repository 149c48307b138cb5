//! What holds for a server → its pods: one container, hardened, whose configuration is folders that follow their objects.

use serde_json::{Value, json};

use crate::defaults;
use crate::kinds::server::ConfigMapRefs;
use crate::names;
use crate::objects::{ObjectSet, ReadyWhen, labels, secret_name, selector};
use crate::settings::ServerSettings;
use kube::ResourceExt as _;

/// The template of a server's pods. A workload that was there before may select by more labels; pods have those too.
pub(crate) fn template(set: &ObjectSet<'_>) -> Value {
    let mut labels = labels(set.instance);
    labels.extend(set.selector.clone().unwrap_or_default());
    json!({
        "metadata": {"labels": labels, "annotations": {(names::ROLLOUT_DIGEST): set.files.rollout}},
        "spec": spec(set),
    })
}

fn spec(set: &ObjectSet<'_>) -> Value {
    let mut spec = json!({
        "serviceAccountName": names::SERVICE_ACCOUNT,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": defaults::USER, "runAsGroup": defaults::USER, "fsGroup": defaults::USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(set)],
        "volumes": volumes(set),
        "topologySpreadConstraints": spread(set),
    });
    if let Some(secrets) = &set.settings.image.image_pull_secrets {
        spec["imagePullSecrets"] = secrets.iter().map(|name| json!({ "name": name })).collect();
    }
    if set.gate == ReadyWhen::ZonesLoaded {
        spec["readinessGates"] = json!([{"conditionType": names::ZONES_LOADED}]);
    }
    spec
}

/// The image with its version; a version that an image's own name says goes before.
pub(crate) fn image(settings: &ServerSettings) -> String {
    let version = settings.version.as_deref().unwrap_or(defaults::VERSION);
    match settings.image.image.as_deref() {
        None => format!("{}:{version}", defaults::IMAGE),
        Some(image) if image.contains('@') || image.rsplit('/').next().is_some_and(|last| last.contains(':')) => {
            image.to_owned()
        }
        Some(image) => format!("{image}:{version}"),
    }
}

fn container(set: &ObjectSet<'_>) -> Value {
    let settings = set.settings;
    let probe = |delay: i32, period: i32, timeout: i32| {
        json!({
            "tcpSocket": {"port": defaults::DNS_PORT}, "initialDelaySeconds": delay, "periodSeconds": period,
            "timeoutSeconds": timeout, "failureThreshold": 3,
        })
    };
    json!({
        "name": "bind9",
        "image": image(settings),
        "imagePullPolicy": settings.image.image_pull_policy.as_deref().unwrap_or(defaults::PULL_POLICY),
        "command": ["named"],
        // In the foreground, and logging as configured: `-g` would ignore that (tried with 9.18.49).
        "args": ["-c", format!("{}/named.conf", defaults::CONFIG_DIRECTORY), "-f"],
        "workingDir": defaults::DIRECTORY,
        "env": [{"name": "TZ", "value": "UTC"}, {"name": "MALLOC_CONF", "value": "dirty_decay_ms:0,muzzy_decay_ms:0"}],
        "ports": [
            {"name": "dns-tcp", "containerPort": defaults::DNS_PORT, "protocol": "TCP"},
            {"name": "dns-udp", "containerPort": defaults::DNS_PORT, "protocol": "UDP"},
            {"name": "rndc", "containerPort": defaults::CONTROL_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": probe(30, 10, 5),
        "readinessProbe": probe(1, 5, 3),
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
            "runAsUser": defaults::USER, "runAsGroup": defaults::USER, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounts(settings),
    })
}

/// Folders follow their objects; single files do not, so only those of the user's are mounted as such.
fn mounts(settings: &ServerSettings) -> Value {
    let mut all = vec![
        json!({"name": "zones", "mountPath": "/etc/bind/zones"}),
        json!({"name": "cache", "mountPath": defaults::DIRECTORY}),
        json!({"name": "config", "mountPath": defaults::CONFIG_DIRECTORY, "readOnly": true}),
        json!({"name": "rndc-key", "mountPath": defaults::KEYS_DIRECTORY, "readOnly": true}),
    ];
    for (volume, file, _) in given(&settings.files) {
        all.push(json!({"name": volume, "mountPath": format!("/etc/bind/{file}"), "subPath": file, "readOnly": true}));
    }
    if settings.files.named_conf.is_some() && settings.files.named_conf_options.is_none() {
        let file = "named.conf.options";
        all.push(
            json!({"name": "config", "mountPath": format!("/etc/bind/{file}"), "subPath": file, "readOnly": true}),
        );
    }
    all.extend(settings.mounts.iter().cloned());
    Value::Array(all)
}

/// The user's own files: volume, name of the file, `ConfigMap`.
pub(crate) fn given(files: &ConfigMapRefs) -> Vec<(&'static str, &'static str, &str)> {
    let all = [
        ("named-conf", "named.conf", files.named_conf.as_deref()),
        ("named-conf-options", "named.conf.options", files.named_conf_options.as_deref()),
        ("named-conf-zones", "named.conf.zones", files.named_conf_zones.as_deref()),
    ];
    all.into_iter().filter_map(|(volume, file, name)| Some((volume, file, name?))).collect()
}

fn volumes(set: &ObjectSet<'_>) -> Value {
    let name = set.instance.name_any();
    let mut all = vec![
        json!({"name": "zones", "emptyDir": {}}),
        json!({"name": "config", "configMap": {"name": names::config_map(&name)}}),
        json!({"name": "rndc-key", "secret": {"secretName": secret_name(&name, &set.settings.keys), "defaultMode": 0o440}}),
    ];
    all.extend(cache(set));
    for (volume, _, config_map) in given(&set.settings.files) {
        all.push(json!({"name": volume, "configMap": {"name": config_map}}));
    }
    all.extend(set.settings.volumes.iter().cloned());
    Value::Array(all)
}

/// Where zones are; none where the workload makes a disk for each pod.
fn cache(set: &ObjectSet<'_>) -> Option<Value> {
    let storage = &set.settings.storage;
    let empty = storage.empty_dir.clone().filter(Value::is_object).unwrap_or_else(|| json!({}));
    match super::workload_of(storage) {
        super::Workload::Transient => Some(json!({"name": "cache", "emptyDir": empty})),
        super::Workload::OneDisk(claim) => {
            Some(json!({"name": "cache", "persistentVolumeClaim": {"claimName": claim}}))
        }
        super::Workload::DiskForEach => None,
    }
}

/// Servers of a cluster are spread over nodes and zones as far as there are some.
fn spread(set: &ObjectSet<'_>) -> Value {
    let cluster = set.instance.labels().get(names::CLUSTER);
    let of = match cluster {
        Some(cluster) => json!({ (names::CLUSTER): cluster }),
        None => json!(selector(&set.instance.name_any())),
    };
    let over = |key: &str| json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": of}});
    json!([over("kubernetes.io/hostname"), over("topology.kubernetes.io/zone")])
}
