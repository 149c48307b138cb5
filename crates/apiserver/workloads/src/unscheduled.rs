//! A pod that waits for a node → why, as a scheduler says it: a condition and an event.
//!
//! For servers beside which nothing runs pods; where something does, it binds them before this has anything to say.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::common::condition;
use crate::common::kind::PODS;
use crate::common::object::{is_deleting, list, seconds, text, time};
use crate::common::step::{change_status, event, exact_target};
use crate::{Controller, EventType, ObjectName, Plan, View};

const NODES: &str = "nodes";
/// What binds pods may take so long to come to it.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);
/// Who should bind pods that name nobody.
const SCHEDULER: &str = "default-scheduler";

/// Says of pods that nothing binds why they are pending.
pub struct UnscheduledPods;

impl Controller for UnscheduledPods {
    fn component(&self) -> &'static str {
        SCHEDULER
    }

    fn collection(&self) -> &'static str {
        PODS
    }

    fn watches(&self) -> &'static [&'static str] {
        &[NODES]
    }

    fn concerned(&self, _view: &dyn View, _collection: &str, _node: &Value) -> Vec<ObjectName> {
        // A pod that has been told why it waits is told nothing new by a node that comes or goes.
        Vec::new()
    }

    fn plan(&self, view: &dyn View, pod: &Value) -> Plan {
        if !waits(pod) || is_told(pod) {
            return Plan::default();
        }
        let waited = time(pod, "/metadata/creationTimestamp").map(|made| view.now().duration_since(made));
        if let Some(left) = waited.map(|waited| PATIENCE - waited).filter(SignedDuration::is_positive) {
            return Plan { steps: Vec::new(), again_after: Duration::try_from(left).ok() };
        }
        tell(pod, &why(view), view.now())
    }
}

/// Whether it is the scheduler's turn.
fn waits(pod: &Value) -> bool {
    let is_ours = matches!(text(pod, "/spec/schedulerName"), "" | SCHEDULER);
    let is_gated = !list(pod, "/spec/schedulingGates").is_empty();
    is_ours && !is_gated && text(pod, "/spec/nodeName").is_empty() && !is_deleting(pod)
}

fn is_told(pod: &Value) -> bool {
    condition::find(&pod["status"], "PodScheduled").is_some_and(|told| told["reason"] == "Unschedulable")
}

fn why(view: &dyn View) -> String {
    let next = "nothing on this server runs pods, `portolan up` does";
    match view.list(NODES, "").len() {
        0 => format!("no nodes available to schedule pods: {next}"),
        nodes => format!("0/{nodes} nodes are available: {next}"),
    }
}

fn tell(pod: &Value, why: &str, now: Timestamp) -> Plan {
    let mut status = json!({"conditions": list(pod, "/status/conditions")});
    let told = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
        "lastProbeTime": null, "lastTransitionTime": seconds(now),
    });
    condition::set(&mut status, told);
    let patch = change_status(exact_target(PODS, pod), status);
    [patch, event(pod, EventType::Warning, "FailedScheduling", why.to_owned())].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestObjects, in_shop};

    fn world(spec: Value) -> TestObjects {
        let mut world = TestObjects::default();
        world.put(PODS, json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}));
        world
    }

    fn told(world: &TestObjects) -> Vec<&str> {
        world.events.iter().map(|event| event.message.as_str()).collect()
    }

    #[test]
    fn a_pod_that_nothing_binds_is_told_why_once_it_has_waited() {
        let mut world = world(json!({}));
        let pod = |world: &TestObjects| world.get(PODS, "shop", "web").unwrap();
        let first = UnscheduledPods.plan(&world, &pod(&world));
        assert_eq!((first.steps.len(), first.again_after), (0, Some(Duration::from_secs(5))));

        world.now = world.now.saturating_add(PATIENCE).unwrap();
        world.settle(&UnscheduledPods);

        let why = "no nodes available to schedule pods: nothing on this server runs pods, `portolan up` does";
        assert_eq!(told(&world), [why]);
        let condition = &pod(&world)["status"]["conditions"][0];
        assert_eq!((&condition["reason"], &condition["message"]), (&json!("Unschedulable"), &json!(why)));
        assert_eq!(UnscheduledPods.plan(&world, &pod(&world)), Plan::default());
    }

    #[test]
    fn nodes_that_nobody_binds_to_are_counted() {
        let mut world = world(json!({"schedulerName": SCHEDULER}));
        world.put(NODES, json!({"metadata": {"name": "here"}}));
        world.now = world.now.saturating_add(PATIENCE).unwrap();

        world.settle(&UnscheduledPods);

        assert!(told(&world)[0].starts_with("0/1 nodes are available: "), "{:?}", told(&world));
    }

    #[test]
    fn pods_that_wait_for_something_else_or_for_nothing_are_left_alone() {
        let specs = [
            json!({"nodeName": "here"}),
            json!({"schedulerName": "own"}),
            json!({"schedulingGates": [{"name": "quota"}]}),
        ];
        for spec in specs {
            let mut world = world(spec.clone());
            world.now = world.now.saturating_add(PATIENCE).unwrap();
            world.settle(&UnscheduledPods);
            assert!(world.events.is_empty(), "{spec}");
        }
        let mut world = world(json!({}));
        world.now = world.now.saturating_add(PATIENCE).unwrap();
        world.delete(PODS, &in_shop("web"));
        world.settle(&UnscheduledPods);
        assert!(world.events.is_empty());
    }
}
