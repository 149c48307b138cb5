//! A Deployment, as the API server has it → how far it has rolled out, and what is missing. Pure.

use std::fmt;

use serde_json::Value;

use crate::text;

/// How far a Deployment has rolled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// Whether the Deployment's controller has seen its spec as it stands.
    is_seen: bool,
    wanted: i64,
    /// Pods of the newest version.
    updated: i64,
    /// Pods of any version.
    all: i64,
    /// Pods of any version that are ready.
    ready: i64,
    complaints: Vec<String>,
}

impl Rollout {
    /// How far this Deployment is. One that is not there has no pods.
    pub fn of(deployment: &Value) -> Self {
        let status = &deployment["status"];
        let count = |name: &str| status[name].as_i64().unwrap_or_default();
        let conditions = status["conditions"].as_array().into_iter().flatten();
        Self {
            is_seen: count("observedGeneration") >= deployment["metadata"]["generation"].as_i64().unwrap_or_default(),
            wanted: deployment["spec"]["replicas"].as_i64().unwrap_or(1),
            updated: count("updatedReplicas"),
            all: count("replicas"),
            ready: count("readyReplicas"),
            complaints: conditions.filter(|one| is_complaint(one)).map(told).collect(),
        }
    }

    /// Whether enough pods of the newest version are ready; pods of earlier ones may still be there.
    pub fn is_ready(&self) -> bool {
        self.is_seen && self.newest_ready() >= self.wanted
    }

    /// Why it is not complete, with what its conditions complain about; nothing where all pods are the newest and ready.
    pub fn lacks(&self) -> Option<String> {
        let missing = self.missing()?;
        let why: Vec<String> = std::iter::once(missing).chain(self.complaints.iter().cloned()).collect();
        Some(why.join("; "))
    }

    /// What is missing, in a few words.
    fn missing(&self) -> Option<String> {
        let Self { wanted, updated, all, ready, .. } = *self;
        if !self.is_seen {
            return Some("its change has not been taken up yet".to_owned());
        }
        if updated < wanted {
            return Some(format!("{updated} of {wanted} pods are of the newest version"));
        }
        if all > updated {
            let older = usize::try_from(all - updated).unwrap_or_default();
            return Some(format!("{} of an earlier version still there", text::count(older, "pod")));
        }
        (ready < wanted).then(|| format!("{ready} of {wanted} pods are ready"))
    }

    /// Pods of an earlier version do not count.
    fn newest_ready(&self) -> i64 {
        self.ready.min(self.updated)
    }
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pods are ready", self.newest_ready(), self.wanted)
    }
}

fn is_complaint(condition: &Value) -> bool {
    let said = (condition["type"].as_str(), condition["status"].as_str());
    matches!(said, (Some("Progressing"), Some("False")) | (Some("ReplicaFailure"), Some("True")))
}

fn told(condition: &Value) -> String {
    let reason = condition["reason"].as_str().or(condition["type"].as_str()).unwrap_or_default();
    match condition["message"].as_str().unwrap_or_default() {
        "" => reason.to_owned(),
        message => format!("{reason}: {}", message.trim_end_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(status: Value) -> Rollout {
        Rollout::of(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "generation": 3},
            "spec": {"replicas": 2, "selector": {}, "template": {}}, "status": status,
        }))
    }

    fn why(status: Value) -> String {
        at(status).lacks().unwrap_or_else(|| "complete".to_owned())
    }

    fn status(updated: i32, all: i32, ready: i32) -> Value {
        json!({"observedGeneration": 3, "updatedReplicas": updated, "replicas": all, "readyReplicas": ready})
    }

    #[test]
    fn a_rollout_is_complete_when_every_pod_is_the_newest_and_ready() {
        assert_eq!(at(status(2, 2, 2)).lacks(), None);
        assert_eq!(why(status(1, 2, 2)), "1 of 2 pods are of the newest version");
        assert_eq!(why(status(2, 3, 2)), "1 pod of an earlier version still there");
        assert_eq!(why(status(2, 2, 0)), "0 of 2 pods are ready");
    }

    #[test]
    fn a_status_of_an_earlier_generation_says_nothing() {
        let mut old = status(2, 2, 2);
        old["observedGeneration"] = json!(2);

        assert_eq!(why(old), "its change has not been taken up yet");
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

    #[test]
    fn a_deployment_is_ready_when_the_latest_pods_are() {
        let deployment = |observed: i64, updated: i64, ready: i64| {
            let status = json!({"observedGeneration": observed, "updatedReplicas": updated, "readyReplicas": ready});
            Rollout::of(&json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status}))
        };

        assert!(deployment(2, 2, 2).is_ready());
        assert!(!deployment(1, 2, 2).is_ready(), "the change was not seen yet");
        assert!(!deployment(2, 1, 2).is_ready(), "one is of the earlier template");
        assert_eq!(deployment(2, 2, 1).to_string(), "1 of 2 pods are ready");
        assert!(!Rollout::of(&Value::Null).is_ready());
    }
}
