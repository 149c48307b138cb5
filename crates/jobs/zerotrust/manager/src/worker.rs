//! The manager's own Deployment → the Deployments of its workers, which inherit everything that they do not have to have
//! of their own: role, account, labels by which their pods are found.

use std::collections::BTreeMap;

use portolan_core::{Change, Problem};
use portolan_zerotrust_model::reasons;
use serde_json::{Map, Value, json};

use crate::deployment_change::{container_of, target};
use crate::json_equivalence;

/// The annotation of the workers' pods that tells which image the manager runs, so that a tag that was pushed anew
/// rolls them.
pub const IMAGE_DIGEST: &str = "cfzt.cloudflare.com/image-digest";

const NAME: &str = "app.kubernetes.io/name";
const INSTANCE: &str = "app.kubernetes.io/instance";
const COMPONENT: &str = "app.kubernetes.io/component";
const OPERATOR: &str = "cloudflare-zero-trust-operator";
/// When somebody asked for a restart of the pods; that wish is the worker's own.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";
/// What a worker is told otherwise than the manager.
const OWN_VARIABLES: [&str; 5] =
    ["ROLE", "POD_NAME", "OPERATOR_NAMESPACE", "KUBE_WORKER_SERVICE_ACCOUNT", "CLOUDFLARE_WORKER_SERVICE_ACCOUNT"];
/// Variables whose values may be shown.
const SHOWN: [&str; 5] = ["ROLE", "LOG_LEVEL", "LOG_FORMAT", "POLL_INTERVAL_SECONDS", "WATCH_NAMESPACES"];

/// A worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerKind {
    /// Turns routes into tasks.
    Kube,
    /// Carries tasks out.
    Cloudflare,
}

impl WorkerKind {
    /// Both workers.
    pub const ALL: [Self; 2] = [Self::Kube, Self::Cloudflare];

    /// The name of its Deployment.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kube => "cloudflare-zero-trust-kube-worker",
            Self::Cloudflare => "cloudflare-zero-trust-cloudflare-worker",
        }
    }

    /// The name of its container, and its component.
    pub fn component(self) -> &'static str {
        match self {
            Self::Kube => "kube-worker",
            Self::Cloudflare => "cloudflare-worker",
        }
    }

    /// Its role, as the environment names it.
    pub fn role(self) -> &'static str {
        match self {
            Self::Kube => "kube_worker",
            Self::Cloudflare => "cloudflare_worker",
        }
    }
}

/// What a worker is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerOrigin<'a> {
    /// The manager's Deployment, shaped.
    pub(crate) own: &'a Value,
    /// The worker's account; the manager's where none is named.
    pub(crate) account: Option<&'a str>,
    /// The digest of the image that the manager runs, where it is known.
    pub(crate) digest: Option<&'a str>,
}

/// What is to be done about a worker's Deployment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WorkerStep {
    /// It stands as it should.
    Keep,
    /// It is made.
    Create(Value),
    /// It is written over.
    Replace { before: Value, after: Value },
    /// It cannot be touched.
    Blocked(Problem),
}

impl WorkerStep {
    /// What changes, as everyone sees it.
    pub(crate) fn change(&self) -> Option<Change> {
        match self {
            Self::Keep | Self::Blocked(_) => None,
            Self::Create(after) => Some(Change::create(target(after), shown(after), "inherits from the manager")),
            Self::Replace { before, after } => {
                Some(Change::update(target(after), shown(before), shown(after), "inherits from the manager"))
            }
        }
    }
}

/// What is to be done about a worker that should run.
pub(crate) fn keep(kind: WorkerKind, origin: WorkerOrigin<'_>, there: Option<&Value>) -> WorkerStep {
    let Some(there) = there else { return WorkerStep::Create(made(kind, origin)) };
    if let Some(problem) = blocked(there, origin.own) {
        return WorkerStep::Blocked(problem);
    }
    replaced(there, taken_over(kind, origin, there))
}

/// What is to be done about a worker of an earlier time, where one process does everything now: it must not run beside
/// that, and belongs to us only if we made it.
pub(crate) fn rest(own: &Value, there: Option<&Value>) -> WorkerStep {
    let Some(there) = there.filter(|there| matches!(owner(there, own), WorkerOwner::Ours)) else {
        return WorkerStep::Keep;
    };
    let mut after = there.clone();
    after["spec"]["replicas"] = json!(0);
    replaced(there, after)
}

fn replaced(before: &Value, after: Value) -> WorkerStep {
    let part = |value: &Value, name: &str| value["metadata"].get(name).cloned();
    let same = json_equivalence::same(before.get("spec"), after.get("spec"))
        && ["labels", "ownerReferences"]
            .iter()
            .all(|name| json_equivalence::same(part(before, name).as_ref(), part(&after, name).as_ref()));
    if same { WorkerStep::Keep } else { WorkerStep::Replace { before: before.clone(), after } }
}

/// Whose a worker's Deployment is.
enum WorkerOwner {
    Ours,
    Nobody,
    Other(String),
}

fn owner(worker: &Value, own: &Value) -> WorkerOwner {
    let controller = worker["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    match controller.into_iter().find(|one| one["controller"] == true) {
        None => WorkerOwner::Nobody,
        Some(one) if one["uid"] == own["metadata"]["uid"] => WorkerOwner::Ours,
        Some(one) => {
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            WorkerOwner::Other(format!("{} {}", text("kind"), text("name")))
        }
    }
}

/// Why a worker's Deployment cannot be touched now.
fn blocked(there: &Value, own: &Value) -> Option<Problem> {
    let name = there["metadata"]["name"].as_str().unwrap_or_default();
    if !there["metadata"]["deletionTimestamp"].is_null() {
        let message = format!("Deployment {name} is being deleted; it is made anew when it is gone");
        return Some(Problem::waiting(reasons::DEPLOYMENT_NOT_READY, message));
    }
    let WorkerOwner::Other(other) = owner(there, own) else { return None };
    let message = format!(
        "Deployment {name} belongs to {other}, which is not this operator: run one operator in a namespace, or delete it"
    );
    Some(Problem::waiting(reasons::DEPLOYMENT_NOT_READY, message))
}

/// A new worker.
fn made(kind: WorkerKind, origin: WorkerOrigin<'_>) -> Value {
    let labels = labels(kind, origin.own);
    let names = [NAME, INSTANCE, COMPONENT];
    let selector: Map<String, Value> =
        names.iter().filter_map(|name| Some(((*name).to_owned(), json!(labels.get(*name)?)))).collect();
    let spec = spec(kind, origin, labels.clone(), json!({ "matchLabels": selector }), &Value::Null);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": kind.name(), "namespace": origin.own["metadata"]["namespace"],
            "labels": own_labels(&labels), "ownerReferences": [reference(origin.own)],
        },
        "spec": spec,
    })
}

/// A worker that is there: its selector cannot be changed, so that its pods keep the labels that it looks for.
fn taken_over(kind: WorkerKind, origin: WorkerOrigin<'_>, there: &Value) -> Value {
    let mut labels = labels(kind, origin.own);
    let selector = there["spec"]["selector"].clone();
    for (name, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        labels.insert(name.clone(), value.as_str().unwrap_or_default().to_owned());
    }
    let mut after = there.clone();
    json_equivalence::at(&mut after, &["metadata", "labels"])
        .extend(own_labels(&labels).into_iter().map(|(name, value)| (name, json!(value))));
    if matches!(owner(there, origin.own), WorkerOwner::Nobody) {
        let mut owners = there["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.push(reference(origin.own));
        after["metadata"]["ownerReferences"] = Value::Array(owners);
    }
    after["spec"] = spec(kind, origin, labels, selector, &there["spec"]["template"]);
    after
}

/// The manager controls the worker, which goes with it. Nothing waits for that, so that no further right is needed.
fn reference(own: &Value) -> Value {
    let meta = &own["metadata"];
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": meta["name"], "uid": meta["uid"], "controller": true })
}

/// The labels of a worker's pods: the manager's, its own component, and none that the manager's selector would find.
fn labels(kind: WorkerKind, own: &Value) -> BTreeMap<String, String> {
    let texts = |value: &Value| -> BTreeMap<String, String> {
        let all = value.as_object().into_iter().flatten();
        all.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    };
    let mut labels = texts(&own["spec"]["template"]["metadata"]["labels"]);
    labels.entry(NAME.to_owned()).or_insert_with(|| OPERATOR.to_owned());
    let name = own["metadata"]["name"].as_str().unwrap_or(OPERATOR);
    labels.entry(INSTANCE.to_owned()).or_insert_with(|| name.to_owned());
    labels.insert(COMPONENT.to_owned(), kind.component().to_owned());
    let selector = texts(&own["spec"]["selector"]["matchLabels"]);
    let found = !selector.is_empty() && selector.iter().all(|(name, value)| labels.get(name) == Some(value));
    if found {
        // A Deployment of an older chart does not ask for the component.
        let told_apart = [NAME].into_iter().chain(selector.keys().map(String::as_str));
        if let Some(label) = told_apart.into_iter().find(|label| selector.contains_key(*label)) {
            labels.insert(label.to_owned(), kind.name().to_owned());
        }
    }
    labels
}

/// Labels of the Deployment itself.
fn own_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels
        .iter()
        .filter(|(name, _)| [NAME, INSTANCE, COMPONENT].contains(&name.as_str()))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect()
}

fn spec(
    kind: WorkerKind,
    origin: WorkerOrigin<'_>,
    labels: BTreeMap<String, String>,
    selector: Value,
    there: &Value,
) -> Value {
    let mut spec = origin.own["spec"].clone();
    let mut template = spec["template"].take();
    let metadata = json_equivalence::at(&mut template, &["metadata"]);
    metadata.remove("creationTimestamp");
    metadata.insert("labels".to_owned(), json!(labels));
    annotate(&mut template, origin.digest, there);
    outfit(&mut template["spec"], kind, origin);
    let fields = json_equivalence::at(&mut spec, &[]);
    fields.remove("paused");
    fields.insert("replicas".to_owned(), json!(1));
    fields.insert("selector".to_owned(), selector);
    fields.insert("template".to_owned(), template);
    spec
}

/// The digest of the image; the one that is there stays while none is known. A restart that was asked for stays too.
fn annotate(template: &mut Value, digest: Option<&str>, there: &Value) {
    let there = &there["metadata"]["annotations"];
    let digest = digest.or_else(|| there[IMAGE_DIGEST].as_str());
    let annotations = json_equivalence::at(template, &["metadata", "annotations"]);
    if let Some(digest) = digest {
        annotations.insert(IMAGE_DIGEST.to_owned(), json!(digest));
    }
    let inherited = annotations.get(RESTARTED).and_then(Value::as_str);
    let latest = inherited.into_iter().chain(there[RESTARTED].as_str()).max().map(str::to_owned);
    if let Some(latest) = latest {
        annotations.insert(RESTARTED.to_owned(), json!(latest));
    }
    if annotations.is_empty() {
        json_equivalence::at(template, &["metadata"]).remove("annotations");
    }
}

/// Account, container and environment of a worker's pod.
fn outfit(pod: &mut Value, kind: WorkerKind, origin: WorkerOrigin<'_>) {
    if let Some(account) = origin.account {
        // The server keeps the older name of the field beside the newer one.
        for field in ["serviceAccountName", "serviceAccount"] {
            pod[field] = json!(account);
        }
    }
    let own = container_of(origin.own);
    let containers = pod["containers"].as_array_mut().into_iter().flatten();
    for container in containers.filter(|one| one["name"] == own.as_str()) {
        container["name"] = json!(kind.component());
        container["env"] = Value::Array(environment(kind, &own, container));
        without_role(container);
    }
}

fn environment(kind: WorkerKind, own: &str, container: &Value) -> Vec<Value> {
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } });
    let mut env = vec![
        json!({ "name": "ROLE", "value": kind.role() }),
        field("POD_NAME", "metadata.name"),
        field("OPERATOR_NAMESPACE", "metadata.namespace"),
    ];
    let inherited = container["env"].as_array().into_iter().flatten();
    let inherited = inherited.filter(|entry| !OWN_VARIABLES.iter().any(|name| entry["name"] == *name));
    env.extend(inherited.cloned().map(|mut entry| {
        if entry["valueFrom"]["resourceFieldRef"]["containerName"] == own {
            entry["valueFrom"]["resourceFieldRef"]["containerName"] = json!(kind.component());
        }
        entry
    }));
    env
}

/// A role in the arguments would count more than the one in the environment.
fn without_role(container: &mut Value) {
    for list in ["command", "args"] {
        let Some(words) = container[list].as_array() else { continue };
        let mut kept = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                Some("--role") => drop(rest.next()),
                Some(word) if word.starts_with("--role=") => {}
                Some(_) | None => kept.push(word.clone()),
            }
        }
        container[list] = Value::Array(kept);
    }
}

/// A Deployment's spec as plans and logs show it: values of the environment may be secrets.
fn shown(deployment: &Value) -> Value {
    let mut spec = deployment["spec"].clone();
    for list in ["containers", "initContainers"] {
        let containers = spec["template"]["spec"][list].as_array_mut().into_iter().flatten();
        let entries = containers.flat_map(|one| one["env"].as_array_mut().into_iter().flatten());
        for entry in entries.filter(|entry| !SHOWN.iter().any(|name| entry["name"] == *name)) {
            if entry["value"].is_string() {
                entry["value"] = json!("(not shown)");
            }
        }
    }
    spec
}

#[cfg(test)]
mod tests;
