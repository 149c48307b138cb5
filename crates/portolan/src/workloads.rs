//! Workloads of the embedded API and their pods → how they are, and the sentence of the pod that is not ready.

use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::health_view::{Health, HealthView};
use crate::kinds::segment;
use crate::server::{Server, ServerRequest};

/// How many objects are asked for at once.
const PAGE: usize = 500;

/// Tells of an object how far it is.
type ProgressOf = fn(&Value) -> WorkloadProgress;

/// Kinds whose pods are waited for: where each is, and how it is judged.
const WORKLOADS: [(&str, &str, ProgressOf); 3] = [
    ("Deployment", "/apis/apps/v1/deployments", deployment),
    ("StatefulSet", "/apis/apps/v1/statefulsets", stateful_set),
    ("Job", "/apis/batch/v1/jobs", job),
];

/// How far a workload is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WorkloadProgress {
    Done,
    /// It is on its way, or it stands still: its pods tell.
    Waits(String),
    /// It has failed for good.
    Failed(String),
}

/// All workloads, and the pods that belong to none.
pub(crate) async fn seen(server: &Server) -> Outcome<Vec<HealthView>> {
    let mut seen = Vec::new();
    let pods = list(server, "/api/v1/pods").await?;
    for (kind, path, judge) in WORKLOADS {
        for object in list(server, path).await? {
            seen.push(workload_view(kind, &object, judge(&object), &pods));
        }
    }
    seen.extend(pods.iter().filter(|pod| !has_owner(pod)).map(pod_view));
    Ok(seen)
}

/// All pods.
pub(crate) async fn pods(server: &Server) -> Outcome<Vec<HealthView>> {
    Ok(list(server, "/api/v1/pods").await?.iter().map(pod_view).collect())
}

async fn list(server: &Server, path: &str) -> Outcome<Vec<Value>> {
    let (mut objects, mut next) = (Vec::new(), String::new());
    loop {
        let mut page = server.call(ServerRequest::get(&format!("{path}?limit={PAGE}{next}"))).await?.body;
        if let Some(items) = page["items"].as_array_mut() {
            objects.append(items);
        }
        match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={}", segment(token)),
            None => return Ok(objects),
        }
    }
}

fn has_owner(pod: &Value) -> bool {
    pod["metadata"]["ownerReferences"].as_array().is_some_and(|owners| !owners.is_empty())
}

/// An object that says in one condition how it is, as the objects of our own kinds do.
fn view(kind: &str, object: &Value, health: Health, why: &str) -> HealthView {
    let status = match health {
        Health::Ready => "True",
        Health::NotReady => "False",
        Health::Pending | Health::Deleting => "Unknown",
    };
    let (reason, message) = why.split_once(": ").unwrap_or((why, ""));
    let ready = json!({"type": "Ready", "status": status, "reason": reason, "message": message});
    let object = json!({"metadata": object["metadata"], "status": {"conditions": [ready]}});
    HealthView { kind: kind.to_owned(), object }
}

fn workload_view(kind: &str, object: &Value, progress: WorkloadProgress, pods: &[Value]) -> HealthView {
    match progress {
        WorkloadProgress::Done => view(kind, object, Health::Ready, ""),
        WorkloadProgress::Failed(why) => view(kind, object, Health::NotReady, &why),
        WorkloadProgress::Waits(why) => {
            let unwell = pods.iter().filter(|pod| selects(object, pod)).find_map(|pod| Some((pod, pod_trouble(pod)?)));
            match unwell {
                Some((pod, trouble)) => {
                    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                    view(kind, object, trouble.0, &format!("{why}; pod {name}: {}", trouble.1))
                }
                None => view(kind, object, Health::Pending, &why),
            }
        }
    }
}

/// Whether a workload's selector, which names labels one by one as nearly all do, fits a pod of its namespace.
fn selects(workload: &Value, pod: &Value) -> bool {
    let labels = &pod["metadata"]["labels"];
    let selector = workload["spec"]["selector"]["matchLabels"].as_object();
    workload["metadata"]["namespace"] == pod["metadata"]["namespace"]
        && selector.is_some_and(|selector| selector.iter().all(|(name, value)| labels[name] == *value))
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn is_observed(object: &Value) -> bool {
    number(object, "/status/observedGeneration") >= number(object, "/metadata/generation")
}

/// As `kubectl rollout status` has it.
fn deployment(object: &Value) -> WorkloadProgress {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let (updated, all) = (number(object, "/status/updatedReplicas"), number(object, "/status/replicas"));
    let available = number(object, "/status/availableReplicas");
    if is_observed(object) && updated >= wanted && all <= updated && available >= updated {
        return WorkloadProgress::Done;
    }
    WorkloadProgress::Waits(format!("{available} of {wanted} pods are available"))
}

fn stateful_set(object: &Value) -> WorkloadProgress {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let (ready, updated) = (number(object, "/status/readyReplicas"), number(object, "/status/updatedReplicas"));
    let is_on_delete = object["spec"]["updateStrategy"]["type"] == "OnDelete";
    if is_observed(object) && ready >= wanted && (is_on_delete || updated >= wanted) {
        return WorkloadProgress::Done;
    }
    WorkloadProgress::Waits(format!("{ready} of {wanted} pods are ready"))
}

fn job(object: &Value) -> WorkloadProgress {
    let conditions = object["status"]["conditions"].as_array();
    let holds =
        |wanted: &str| conditions.into_iter().flatten().find(|one| one["type"] == wanted && one["status"] == "True");
    if holds("Complete").is_some() || object["spec"]["suspend"] == true {
        return WorkloadProgress::Done;
    }
    if let Some(failed) = holds("Failed") {
        let text = |field: &str| failed[field].as_str().unwrap_or_default();
        return WorkloadProgress::Failed(format!("{}: {}", text("reason"), text("message")));
    }
    let wanted = object["spec"]["completions"].as_i64().unwrap_or(1);
    WorkloadProgress::Waits(format!("{} of {wanted} pods have succeeded", number(object, "/status/succeeded")))
}

fn pod_view(pod: &Value) -> HealthView {
    match pod_trouble(pod) {
        None => view("Pod", pod, Health::Ready, pod["status"]["reason"].as_str().unwrap_or_default()),
        Some((health, why)) => view("Pod", pod, health, &why),
    }
}

/// Why a pod is not ready; nothing where it is, or where it has ended well.
fn pod_trouble(pod: &Value) -> Option<(Health, String)> {
    let status = &pod["status"];
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let condition = |wanted: &str| status["conditions"].as_array()?.iter().find(|one| one["type"] == wanted);
    if status["phase"] == "Succeeded" || condition("Ready").is_some_and(|ready| ready["status"] == "True") {
        return None;
    }
    let health = if status["phase"] == "Failed" { Health::NotReady } else { Health::Pending };
    if let Some((health, why)) = container_trouble(status) {
        return Some((health, why));
    }
    if !text(status, "reason").is_empty() {
        return Some((health, format!("{}: {}", text(status, "reason"), text(status, "message"))));
    }
    let unmet = condition("PodScheduled").filter(|one| one["status"] != "True").or_else(|| condition("Ready"));
    let why = unmet.map(|one| format!("{}: {}", text(one, "reason"), text(one, "message"))).filter(|why| why != ": ");
    Some((health, why.unwrap_or_else(|| "no node has taken it yet".to_owned())))
}

/// What the first container says that neither runs nor is about to.
fn container_trouble(status: &Value) -> Option<(Health, String)> {
    let all = ["initContainerStatuses", "containerStatuses"].into_iter().filter_map(|field| status[field].as_array());
    all.flatten().find_map(|container| {
        let name = container["name"].as_str().unwrap_or_default();
        let said = |state: &Value| {
            let reason = state["reason"].as_str().unwrap_or_default();
            let code = state["exitCode"].as_i64().map(|code| format!(" (exit code {code})")).unwrap_or_default();
            let message = state["message"].as_str().unwrap_or_default();
            format!("container {name}: {reason}{code} {message}").trim_end().to_owned()
        };
        let (waiting, terminated) = (&container["state"]["waiting"], &container["state"]["terminated"]);
        match waiting["reason"].as_str() {
            // They are about to.
            Some("ContainerCreating" | "PodInitializing") => None,
            Some(_) => Some((Health::NotReady, said(waiting))),
            None if terminated.is_object() && terminated["exitCode"] != 0 => Some((Health::NotReady, said(terminated))),
            None => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: &Value) -> Value {
        json!({"metadata": {"name": "web-1", "namespace": "apps", "labels": {"app": "web"}}, "status": status})
    }

    fn web(status: &Value) -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "apps", "generation": 2},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}, "status": status,
        })
    }

    fn waiting(reason: &str, message: &str) -> Value {
        let state = json!({"waiting": {"reason": reason, "message": message}});
        json!({"phase": "Pending", "containerStatuses": [{"name": "a", "state": state}]})
    }

    #[test]
    fn a_rollout_is_done_when_all_pods_are_of_the_new_sort_and_available() {
        let done = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert_eq!(deployment(&web(&done)), WorkloadProgress::Done);
        for (field, value) in
            [("observedGeneration", 1), ("replicas", 3), ("updatedReplicas", 1), ("availableReplicas", 1)]
        {
            let mut other = done.clone();
            other[field] = json!(value);
            assert!(matches!(deployment(&web(&other)), WorkloadProgress::Waits(_)), "{field}");
        }
    }

    #[test]
    fn a_deployment_says_what_its_pod_says_that_is_not_ready() {
        let web = web(&json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2}));
        let mut other = pod(&waiting("ErrImagePull", "no"));
        other["metadata"]["namespace"] = json!("elsewhere");
        let pods = [other, pod(&waiting("NoLocalProgram", "no program of this machine stands for image \"nginx\""))];

        let view = workload_view("Deployment", &web, deployment(&web), &pods);

        assert_eq!(view.health(), Health::NotReady);
        let expected = "0 of 2 pods are available; pod web-1: container a: NoLocalProgram no program of this machine stands for image \"nginx\"";
        assert_eq!(view.reason(), expected);
    }

    #[test]
    fn pods_that_start_are_pending_and_those_that_ended_well_are_ready() {
        let health = |status: Value| pod_view(&pod(&status)).health();

        assert_eq!(health(waiting("ContainerCreating", "")), Health::Pending);
        assert_eq!(health(json!({})), Health::Pending);
        assert_eq!(health(json!({"phase": "Succeeded"})), Health::Ready);
        let ready = json!([{"type": "Ready", "status": "True"}]);
        assert_eq!(health(json!({"phase": "Running", "conditions": ready})), Health::Ready);
        let ended = json!([{"name": "a", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]);
        let failed = pod_view(&pod(&json!({"phase": "Failed", "containerStatuses": ended})));
        assert_eq!((failed.health(), failed.reason().as_str()), (Health::NotReady, "container a: Error (exit code 3)"));
    }

    #[test]
    fn jobs_are_done_when_they_are_complete_and_failed_when_they_say_so() {
        let with = |kind: &str| {
            let condition = json!({"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "message": "m"});
            job(&json!({"spec": {}, "status": {"conditions": [condition]}}))
        };

        assert_eq!(with("Complete"), WorkloadProgress::Done);
        assert_eq!(with("Failed"), WorkloadProgress::Failed("BackoffLimitExceeded: m".to_owned()));
        assert_eq!(job(&json!({"spec": {}})), WorkloadProgress::Waits("0 of 1 pods have succeeded".to_owned()));
    }
}
