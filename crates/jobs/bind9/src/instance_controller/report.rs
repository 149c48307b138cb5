//! What a pass found of an instance → its status. Pure.

use std::time::Duration;

use portolan_bind9_model::finding::Weight;
use portolan_bind9_model::instance_status::{POD_TYPES, configuration, pod_conditions, readiness, rotation};
use portolan_bind9_model::kinds::Bind9Instance;
use portolan_bind9_model::reasons;
use portolan_core::{ConditionStatus, NewCondition, condition};
use portolan_engine::{Notice, Report};
use serde_json::json;

use crate::instance_controller::inputs::InstanceInputs;
use crate::instance_controller::plan::InstancePlan;

/// How long after servers that do not run with their files are asked again: a node takes up to a minute to bring them.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// A pass that went to its end; `behind` are the servers that do not run with their files yet.
pub(crate) fn told(
    instance: &Bind9Instance,
    inputs: &InstanceInputs,
    plan: &InstancePlan,
    behind: &[String],
) -> Report {
    let wanted = usize::try_from(instance.replicas()).unwrap_or_default();
    let mut conditions = configuration(&plan.findings);
    let refused = plan.findings.iter().any(|one| one.weight == Weight::Refused);
    if !refused {
        conditions.insert(0, readiness(wanted, &inputs.pods));
    }
    conditions.extend(pods(instance, inputs));
    let service = inputs.found("Service", &instance.key());
    let address =
        service.and_then(|service| service["spec"]["clusterIP"].as_str()).filter(|address| *address != "None");
    let rotation = match (&plan.ring, &inputs.keys) {
        (Some(ring), Some(policy)) => rotation(ring, policy),
        _ => json!(instance.status.as_ref().and_then(|status| status.rndc_key_rotation.clone())),
    };
    Report {
        status: json!({
            "observedParentGeneration": inputs.parent.as_ref().map(|(_, generation)| generation),
            "clusterRef": inputs.parent.as_ref().map(|(reference, _)| reference),
            "serviceAddress": address, "rndcKeyRotation": rotation,
            "zones": instance.status.as_ref().map(|status| status.zones.clone()).unwrap_or_default(),
            "zonesCount": instance.status.as_ref().and_then(|status| status.zones_count).unwrap_or_default(),
        }),
        conditions,
        events: events(instance, inputs, plan),
        again: if behind.is_empty() { again(inputs, plan) } else { Some(ASK_AGAIN) },
        problem: None,
    }
}

/// Conditions of pods; one of a pod that is there no longer says so.
fn pods(instance: &Bind9Instance, inputs: &InstanceInputs) -> Vec<NewCondition> {
    let mut shown = pod_conditions(&inputs.pods);
    let known =
        |kind: &str| instance.status.as_ref().is_some_and(|status| condition::find(&status.conditions, kind).is_some());
    let stale = POD_TYPES[shown.len()..].iter().copied().filter(|kind| known(kind));
    let gone =
        |kind| NewCondition::of(kind, ConditionStatus::False, reasons::PODS_PENDING, "There is no such pod any more");
    let stale: Vec<NewCondition> = stale.map(gone).collect();
    shown.extend(stale);
    shown
}

fn events(instance: &Bind9Instance, inputs: &InstanceInputs, plan: &InstancePlan) -> Vec<Notice> {
    let mut events = Vec::new();
    if plan.rotates {
        events.push(Notice::normal(
            reasons::KEYS_ROTATED,
            "The keys were renewed; those before stay valid until every server knows them",
        ));
    }
    if inputs.orphan {
        let name = instance.cluster_name().unwrap_or_default();
        let message =
            format!("There is no Bind9Cluster or ClusterBind9Provider {name}: the instance goes by its own spec alone");
        events.push(Notice::warning(reasons::CLUSTER_NOT_FOUND, message));
    }
    if let Some(said) = portolan_bind9_model::finding::sentence(&plan.findings, Weight::Refused) {
        events.push(Notice::warning(reasons::CONFIGURATION_INVALID, said));
    }
    events
}

/// When keys are due, nothing else would make it run.
fn again(inputs: &InstanceInputs, plan: &InstancePlan) -> Option<Duration> {
    let wait = plan.again?.duration_since(inputs.now?);
    Some(Duration::try_from(wait).unwrap_or(Duration::from_secs(1)).max(Duration::from_secs(1)))
}
