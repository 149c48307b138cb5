//! A pod → its row: how many containers are ready, and in one word how it is.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{age, or};
use crate::value::{flag_at, list, list_at, number, text, text_at};

/// Cells of a pod.
pub(crate) fn cells(pod: &Value, name: Value, age_cell: Value, now: Timestamp) -> Vec<Value> {
    let summary = summarize(pod);
    let restarts = match summary.last_restart {
        Some(time) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, age(&json!(time), now))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        name,
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        age_cell,
        json!(or(text_at(pod, "/status/podIPs/0/ip"), "<none>")),
        json!(or(text_at(pod, "/spec/nodeName"), "<none>")),
        json!(or(text_at(pod, "/status/nominatedNodeName"), "<none>")),
        json!(readiness_gates(pod)),
    ]
}

#[derive(Default)]
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<String>,
}

impl Summary {
    /// Counts the restarts of a container, and remembers the latest.
    fn restarted(&mut self, status: &Value) {
        self.restarts += number(status, "restartCount").unwrap_or(0);
        let ended = text_at(status, "/lastState/terminated/finishedAt");
        if !ended.is_empty() && self.last_restart.as_deref().is_none_or(|last| last < ended) {
            self.last_restart = Some(ended.to_owned());
        }
    }
}

fn summarize(pod: &Value) -> Summary {
    let status = &pod["status"];
    let phase = text(status, "phase");
    let mut summary = Summary {
        reason: or(text(status, "reason"), phase).to_owned(),
        total: list_at(pod, "/spec/containers").len(),
        ..Summary::default()
    };
    let gated = |condition: &Value| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated";
    if list(status, "conditions").iter().any(gated) {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    summary.total += list_at(pod, "/spec/initContainers").iter().filter(|container| is_sidecar(container)).count();

    let mut sidecars = Summary::default();
    let initializing = initialize(pod, &mut summary, &mut sidecars);
    if !initializing || has_condition(status, "Initialized") {
        summary.restarts = sidecars.restarts;
        summary.last_restart = sidecars.last_restart;
        run(status, &mut summary);
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        if text(status, "reason") == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

fn has_condition(status: &Value, name: &str) -> bool {
    list(status, "conditions").iter().any(|c| text(c, "type") == name && text(c, "status") == "True")
}

/// Looks at the init containers; whether one of them still holds the pod up.
fn initialize(pod: &Value, summary: &mut Summary, sidecars: &mut Summary) -> bool {
    let containers = list_at(pod, "/spec/initContainers");
    for (index, status) in list_at(pod, "/status/initContainerStatuses").iter().enumerate() {
        summary.restarted(status);
        let sidecar = containers.iter().any(|c| is_sidecar(c) && c["name"] == status["name"]);
        if sidecar {
            sidecars.restarted(status);
        }
        let ended = &status["state"]["terminated"];
        if !ended.is_null() && number(ended, "exitCode").unwrap_or(0) == 0 {
            continue;
        }
        if sidecar && flag_at(status, "/started") {
            summary.ready += usize::from(flag_at(status, "/ready"));
            continue;
        }
        let waiting = text_at(status, "/state/waiting/reason");
        summary.reason = if !ended.is_null() {
            format!("Init:{}", ending(ended))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{}", containers.len())
        };
        return true;
    }
    false
}

/// Looks at the regular containers, the first one last: its word counts.
fn run(status: &Value, summary: &mut Summary) {
    let mut running = false;
    let mut failure = None;
    for container in list(status, "containerStatuses").iter().rev() {
        summary.restarted(container);
        let ended = &container["state"]["terminated"];
        let waiting = text_at(container, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut summary.reason);
        } else if !ended.is_null() {
            summary.reason = ending(ended);
            if number(ended, "exitCode").unwrap_or(0) != 0 {
                failure = Some(summary.reason.clone());
            }
        } else if flag_at(container, "/ready") && !container["state"]["running"].is_null() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        if running && has_condition(status, "Ready") {
            "Running".clone_into(&mut summary.reason);
        } else if let Some(failure) = failure {
            summary.reason = failure;
        } else if running {
            "NotReady".clone_into(&mut summary.reason);
        }
    }
}

/// Why a container ended.
fn ending(ended: &Value) -> String {
    let reason = text(ended, "reason");
    match number(ended, "signal").unwrap_or(0) {
        _ if !reason.is_empty() => reason.to_owned(),
        0 => format!("ExitCode:{}", number(ended, "exitCode").unwrap_or(0)),
        signal => format!("Signal:{signal}"),
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list_at(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| has_condition(&pod["status"], text(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(status: &Value) -> String {
        summarize(&json!({"spec": {"containers": [{}], "initContainers": [{}, {}]}, "status": status})).reason
    }

    #[test]
    fn the_status_names_what_holds_the_pod_up() {
        assert_eq!(reason(&json!({"phase": "Pending"})), "Pending");
        let pulling = json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}});
        assert_eq!(reason(&json!({"phase": "Pending", "containerStatuses": [pulling]})), "ImagePullBackOff");
        let init = json!([{"state": {"terminated": {"exitCode": 0}}}, {"state": {"running": {}}}]);
        assert_eq!(reason(&json!({"phase": "Pending", "initContainerStatuses": init})), "Init:1/2");
        let killed = json!([{"state": {"terminated": {"exitCode": 137, "signal": 9}}}]);
        assert_eq!(reason(&json!({"phase": "Failed", "containerStatuses": killed})), "Signal:9");
    }

    #[test]
    fn restarts_tell_when_the_last_one_was() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{}]}, "status": {"phase": "Running",
            "containerStatuses": [{"restartCount": 2, "ready": true, "state": {"running": {}},
                "lastState": {"terminated": {"finishedAt": "1970-01-01T00:00:00Z"}}}]}});
        let now = Timestamp::from_second(300).unwrap();

        let cells = cells(&pod, json!("p"), json!("1d"), now);

        assert_eq!(cells[1..4], [json!("1/1"), json!("Running"), json!("2 (5m ago)")]);
    }
}
