//! The pods of an instance, its keys and findings → its conditions and what else its status shows.

use portolan_core::condition::READY;
use portolan_core::{ConditionStatus, NewCondition, rfc3339};
use serde_json::{Value, json};

use crate::defaults;
use crate::finding::{Finding, Weight, sentence};
use crate::keys::{KeyPolicy, KeyRing};
use crate::reasons;

/// Condition: whether a server starts with what is configured.
pub const CONFIGURATION: &str = "ConfigurationValid";
/// Condition: whether every field has its effect.
pub const HONOURED: &str = "FieldsHonoured";

/// How a pod is, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodState {
    /// Its name.
    pub name: String,
    /// Tells it from an earlier pod of the same name.
    pub uid: String,
    /// Where it is reached, once it runs.
    pub address: Option<String>,
    /// The port by which it answers.
    pub dns_port: u16,
    /// The port by which it is controlled.
    pub control_port: u16,
    /// How often its server was started: one that starts reads what is there.
    pub restarts: i64,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether it ends again and again.
    pub crashing: bool,
    /// Whether it has not started.
    pub pending: bool,
}

impl PodState {
    /// How a pod is; none for one that is on its way out.
    pub fn of(pod: &Value) -> Option<Self> {
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            return None;
        }
        let conditions = pod["status"]["conditions"].as_array();
        let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        let statuses = pod["status"]["containerStatuses"].as_array();
        let crashes = |one: &Value| one["state"]["waiting"]["reason"] == "CrashLoopBackOff";
        Some(Self {
            name: pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            uid: pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            address: pod["status"]["podIP"].as_str().filter(|_| pod["status"]["phase"] == "Running").map(str::to_owned),
            dns_port: port(pod, "dns-tcp").unwrap_or(defaults::DNS_PORT),
            control_port: port(pod, "rndc").unwrap_or(defaults::CONTROL_PORT),
            restarts: statuses.into_iter().flatten().filter_map(|one| one["restartCount"].as_i64()).sum(),
            ready: conditions.into_iter().flatten().any(is_ready),
            crashing: statuses.into_iter().flatten().any(crashes),
            pending: pod["status"]["phase"].as_str().is_none_or(|phase| phase == "Pending"),
        })
    }
}

/// A port of a pod, by the name that it has there.
fn port(pod: &Value, name: &str) -> Option<u16> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut ports = containers.filter_map(|one| one["ports"].as_array()).flatten();
    let found = ports.find(|one| one["name"] == name)?;
    found["containerPort"].as_u64().and_then(|number| u16::try_from(number).ok())
}

/// How an instance stands by its pods, of which there are to be so many.
pub fn readiness(wanted: usize, pods: &[PodState]) -> NewCondition {
    let ready = pods.iter().filter(|pod| pod.ready).count();
    if ready >= wanted && pods.len() <= ready {
        return NewCondition::ready(reasons::ALL_READY, format!("All {wanted} pods are ready"));
    }
    if ready > 0 {
        return NewCondition::not_ready(reasons::PARTIALLY_READY, format!("{ready}/{wanted} pods are ready"));
    }
    if let Some(pod) = pods.iter().find(|pod| pod.crashing) {
        let message = format!("Waiting for pods to become ready: {} ends again and again, see its log", pod.name);
        return NewCondition::not_ready(reasons::NOT_READY, message);
    }
    NewCondition::not_ready(reasons::NOT_READY, "Waiting for pods to become ready")
}

/// Types of conditions of pods, as many as are told one by one.
pub const POD_TYPES: [&str; 8] = ["Pod-0", "Pod-1", "Pod-2", "Pod-3", "Pod-4", "Pod-5", "Pod-6", "Pod-7"];

/// A condition for each pod, in the order of their names.
pub fn pod_conditions(pods: &[PodState]) -> Vec<NewCondition> {
    let mut sorted: Vec<&PodState> = pods.iter().collect();
    sorted.sort();
    let condition = |(kind, pod): (&'static str, &PodState)| {
        let (status, reason, word) = match (pod.ready, pod.crashing, pod.pending) {
            (true, ..) => (ConditionStatus::True, reasons::CHILD_READY, "is ready"),
            (false, true, _) => (ConditionStatus::False, reasons::PODS_CRASHING, "ends again and again"),
            (false, false, true) => (ConditionStatus::False, reasons::PODS_PENDING, "has not started"),
            (false, false, false) => (ConditionStatus::False, reasons::NOT_READY, "is not ready"),
        };
        NewCondition::of(kind, status, reason, format!("Pod {} {word}", pod.name))
    };
    POD_TYPES.iter().copied().zip(sorted).map(condition).collect()
}

/// What is said of an instance's configuration. A configuration that no server starts with is not published, and the instance is not ready.
pub fn configuration(findings: &[Finding]) -> Vec<NewCondition> {
    let mut conditions = match sentence(findings, Weight::Refused) {
        None => vec![NewCondition::of(CONFIGURATION, ConditionStatus::True, reasons::CONFIGURATION_VALID, "")],
        Some(said) => vec![
            NewCondition::of(READY, ConditionStatus::False, reasons::CONFIGURATION_INVALID, &said),
            NewCondition::of(CONFIGURATION, ConditionStatus::False, reasons::CONFIGURATION_INVALID, said),
        ],
    };
    conditions.push(match sentence(findings, Weight::Ignored) {
        None => NewCondition::of(HONOURED, ConditionStatus::True, reasons::FIELDS_HONOURED, ""),
        Some(said) => NewCondition::of(HONOURED, ConditionStatus::False, reasons::FIELDS_IGNORED, said),
    });
    conditions
}

/// When keys were and will be renewed, as the status shows it.
pub fn rotation(ring: &KeyRing, policy: &KeyPolicy) -> Value {
    json!({
        "createdAt": rfc3339(ring.created_at), "rotateAt": ring.rotate_at(policy).map(rfc3339),
        "lastRotatedAt": ring.rotated_at.map(rfc3339), "rotationCount": ring.rotations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, ready: bool) -> PodState {
        PodState { name: name.to_owned(), ready, ..PodState::default() }
    }

    #[test]
    fn a_pod_is_reached_while_it_runs() {
        let state = |phase: &str| {
            PodState::of(&json!({"metadata": {"name": "a", "uid": "u"}, "status": {"phase": phase, "podIP": "10.0.0.7",
            "containerStatuses": [{"restartCount": 2}]}}))
            .unwrap()
        };

        assert_eq!(state("Running").address.as_deref(), Some("10.0.0.7"));
        assert_eq!((state("Pending").address, state("Running").restarts), (None, 2));
    }

    fn said(condition: &NewCondition) -> String {
        format!("{}={}/{} {}", condition.r#type, condition.status.as_str(), condition.reason, condition.message)
            .trim_end()
            .to_owned()
    }

    #[test]
    fn how_an_instance_stands_is_said_in_the_known_words() {
        assert_eq!(said(&readiness(2, &[pod("a", true), pod("b", true)])), "Ready=True/AllReady All 2 pods are ready");
        assert_eq!(
            said(&readiness(2, &[pod("a", true), pod("b", false)])),
            "Ready=False/PartiallyReady 1/2 pods are ready"
        );
        assert_eq!(said(&readiness(1, &[])), "Ready=False/NotReady Waiting for pods to become ready");
        assert_eq!(said(&readiness(0, &[])), "Ready=True/AllReady All 0 pods are ready");
        assert!(said(&readiness(1, &[PodState { crashing: true, ..pod("a", false) }])).contains("see its log"));
    }

    #[test]
    fn each_pod_has_a_condition_and_those_that_are_leaving_none() {
        let states: Vec<PodState> = [
            json!({"metadata": {"name": "b"}, "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
            json!({"metadata": {"name": "a"}, "status": {"phase": "Pending"}}),
            json!({"metadata": {"name": "c"}, "status": {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}),
            json!({"metadata": {"name": "d", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ]
        .iter()
        .filter_map(PodState::of)
        .collect();

        let said: Vec<String> = pod_conditions(&states).iter().map(said).collect();
        assert_eq!(
            said,
            [
                "Pod-0=False/PodsPending Pod a has not started",
                "Pod-1=True/Ready Pod b is ready",
                "Pod-2=False/PodsCrashing Pod c ends again and again"
            ]
        );
    }

    #[test]
    fn a_configuration_that_no_server_starts_with_is_told_field_by_field() {
        let findings = [
            Finding::refused("spec.config.allowQuery[0]", "is none"),
            Finding::ignored("spec.bindcarConfig.port", "no sidecar"),
        ];
        let told: Vec<String> = configuration(&findings).iter().map(said).collect();

        assert_eq!(
            told,
            [
                "Ready=False/ConfigurationInvalid spec.config.allowQuery[0]: is none",
                "ConfigurationValid=False/ConfigurationInvalid spec.config.allowQuery[0]: is none",
                "FieldsHonoured=False/FieldsIgnored spec.bindcarConfig.port: no sidecar",
            ]
        );
        let told: Vec<String> = configuration(&[]).iter().map(said).collect();
        assert_eq!(told, ["ConfigurationValid=True/ConfigurationValid", "FieldsHonoured=True/FieldsHonoured"]);
    }
}
