//! A Deployment's status → whether its pods run as its spec says, and if not, why.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};
use portolan_core::text;

/// How far a Deployment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rollout {
    /// All pods are the newest and ready.
    Complete,
    /// Not yet, for this reason.
    Waiting(String),
}

/// How far a Deployment is; none is not far.
pub(crate) fn rollout(deployment: Option<&Deployment>) -> Rollout {
    let Some(deployment) = deployment else { return Rollout::Waiting("it does not exist".to_owned()) };
    match missing(deployment) {
        None => Rollout::Complete,
        Some(missing) => {
            let why: Vec<String> = [missing].into_iter().chain(complaints(deployment)).collect();
            Rollout::Waiting(why.join("; "))
        }
    }
}

/// What is missing, in a few words.
fn missing(deployment: &Deployment) -> Option<String> {
    let status = deployment.status.clone().unwrap_or_default();
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let generation = deployment.metadata.generation.unwrap_or_default();
    if status.observed_generation.unwrap_or_default() < generation {
        return Some("its change has not been taken up yet".to_owned());
    }
    let [updated, all, ready] =
        [status.updated_replicas, status.replicas, status.ready_replicas].map(Option::unwrap_or_default);
    if updated < wanted {
        return Some(format!("{updated} of {wanted} pods are of the newest version"));
    }
    if all > updated {
        let older = usize::try_from(all - updated).unwrap_or_default();
        return Some(format!("{} of an earlier version still there", text::count(older, "pod")));
    }
    (ready < wanted).then(|| format!("{ready} of {wanted} pods are ready"))
}

/// What the Deployment's conditions complain about.
fn complaints(deployment: &Deployment) -> Vec<String> {
    let conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.filter(|one| is_complaint(one)).map(told).collect()
}

fn is_complaint(condition: &DeploymentCondition) -> bool {
    let said = (condition.type_.as_deref(), condition.status.as_deref());
    matches!(said, (Some("Progressing"), Some("False")) | (Some("ReplicaFailure"), Some("True")))
}

fn told(condition: &DeploymentCondition) -> String {
    let reason = condition.reason.as_deref().or(condition.type_.as_deref()).unwrap_or_default();
    match condition.message.as_deref().unwrap_or_default() {
        "" => reason.to_owned(),
        message => format!("{reason}: {}", message.trim_end_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(status: Value) -> Rollout {
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "generation": 3},
            "spec": {"replicas": 2, "selector": {}, "template": {}}, "status": status,
        });
        rollout(Some(&serde_json::from_value(deployment).unwrap()))
    }

    fn why(status: Value) -> String {
        match at(status) {
            Rollout::Complete => "complete".to_owned(),
            Rollout::Waiting(why) => why,
        }
    }

    fn status(updated: i32, all: i32, ready: i32) -> Value {
        json!({"observedGeneration": 3, "updatedReplicas": updated, "replicas": all, "readyReplicas": ready})
    }

    #[test]
    fn a_rollout_is_complete_when_every_pod_is_the_newest_and_ready() {
        assert_eq!(at(status(2, 2, 2)), Rollout::Complete);
        assert_eq!(why(status(1, 2, 2)), "1 of 2 pods are of the newest version");
        assert_eq!(why(status(2, 3, 2)), "1 pod of an earlier version still there");
        assert_eq!(why(status(2, 2, 0)), "0 of 2 pods are ready");
    }

    #[test]
    fn a_status_of_an_earlier_generation_says_nothing() {
        let mut old = status(2, 2, 2);
        old["observedGeneration"] = json!(2);

        assert_eq!(why(old), "its change has not been taken up yet");
        assert_eq!(rollout(None), Rollout::Waiting("it does not exist".to_owned()));
    }

    #[test]
    fn a_deadline_that_passed_is_named() {
        let mut late = status(2, 2, 0);
        late["conditions"] = json!([
            {"type": "Available", "status": "False"},
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "ReplicaSet \"a\" has timed out progressing."}]);

        let wanted = "0 of 2 pods are ready; ProgressDeadlineExceeded: ReplicaSet \"a\" has timed out progressing";
        assert_eq!(why(late), wanted);
    }
}
