//! A pod → its name, its uid and its containers, each with the part it plays.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

/// The part that a container plays in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerRole {
    /// Runs to its end before the next one begins.
    Init,
    /// An init container that goes on: the next one begins when it has started, and it ends after the main ones.
    Sidecar,
    /// What the pod is for.
    Main,
}

/// When a container that has ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartRule {
    /// Always.
    Always,
    /// Unless it ended with 0.
    OnFailure,
    /// Never.
    Never,
}

impl RestartRule {
    fn read(text: Option<&str>) -> Option<Self> {
        match text? {
            "Always" => Some(Self::Always),
            "OnFailure" => Some(Self::OnFailure),
            "Never" => Some(Self::Never),
            _ => None,
        }
    }

    /// Whether it is started again after it ended with this code.
    pub fn restarts_after(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

/// A container with its part.
#[derive(Clone, Copy, Debug)]
pub struct PodContainer<'a> {
    /// Its part.
    pub role: ContainerRole,
    /// When it is started again.
    pub restart: RestartRule,
    /// What the pod says of it.
    pub spec: &'a Container,
}

/// The pod's containers: those that begin it in their order, then the main ones.
pub fn containers(pod: &Pod) -> Vec<PodContainer<'_>> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let initial =
        spec.init_containers.iter().flatten().map(|container| with_role(spec, container, ContainerRole::Init));
    let main = spec.containers.iter().map(|container| with_role(spec, container, ContainerRole::Main));
    initial.chain(main).collect()
}

fn with_role<'a>(pod: &PodSpec, spec: &'a Container, role: ContainerRole) -> PodContainer<'a> {
    let of_pod = RestartRule::read(pod.restart_policy.as_deref()).unwrap_or(RestartRule::Always);
    let own = RestartRule::read(spec.restart_policy.as_deref());
    match (role, own) {
        (ContainerRole::Init, Some(RestartRule::Always)) => {
            PodContainer { role: ContainerRole::Sidecar, restart: RestartRule::Always, spec }
        }
        // An init container that ended well is done, whatever the pod says.
        (ContainerRole::Init, own) => {
            let restart = match own.unwrap_or(of_pod) {
                RestartRule::Always | RestartRule::OnFailure => RestartRule::OnFailure,
                RestartRule::Never => RestartRule::Never,
            };
            PodContainer { role, restart, spec }
        }
        (ContainerRole::Sidecar | ContainerRole::Main, own) => {
            PodContainer { role, restart: own.unwrap_or(of_pod), spec }
        }
    }
}

/// The pod's name; empty where it has none.
pub fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// The pod's namespace.
pub fn namespace(pod: &Pod) -> &str {
    pod.metadata.namespace.as_deref().unwrap_or("default")
}

/// The pod's uid.
pub fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// The pod as messages name it: `NAME_NAMESPACE(UID)` (`util/format/pod.go`).
pub fn full_name(pod: &Pod) -> String {
    format!("{}_{}({})", name(pod), namespace(pod), uid(pod))
}

/// Whether the pod has ended for good: nothing of it runs, and nothing will.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// How long the pod may take to end, in seconds: what its deletion asked for, else what it says itself.
pub fn grace_seconds(pod: &Pod) -> i64 {
    let own = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    pod.metadata.deletion_grace_period_seconds.or(own).unwrap_or(30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::pod;
    use serde_json::json;

    fn parts(value: serde_json::Value) -> Vec<(String, ContainerRole, RestartRule)> {
        let pod = pod(value);
        containers(&pod).iter().map(|one| (one.spec.name.clone(), one.role, one.restart)).collect()
    }

    #[test]
    fn an_init_container_that_always_restarts_is_a_sidecar() {
        let parts = parts(json!({
            "initContainers": [{"name": "a"}, {"name": "b", "restartPolicy": "Always"}],
            "containers": [{"name": "c"}],
        }));

        assert_eq!(
            parts,
            [
                ("a".to_owned(), ContainerRole::Init, RestartRule::OnFailure),
                ("b".to_owned(), ContainerRole::Sidecar, RestartRule::Always),
                ("c".to_owned(), ContainerRole::Main, RestartRule::Always),
            ]
        );
    }

    #[test]
    fn a_pod_that_never_restarts_lets_no_init_container_try_again() {
        let parts = parts(json!({
            "restartPolicy": "Never", "initContainers": [{"name": "a"}],
            "containers": [{"name": "c"}, {"name": "d", "restartPolicy": "OnFailure"}],
        }));

        let rules: Vec<RestartRule> = parts.into_iter().map(|(_, _, rule)| rule).collect();
        assert_eq!(rules, [RestartRule::Never, RestartRule::Never, RestartRule::OnFailure]);
    }

    #[test]
    fn a_deletion_may_give_less_time_than_the_pod_asked_for() {
        let mut pod = pod(json!({"terminationGracePeriodSeconds": 60, "containers": [{"name": "c"}]}));
        assert_eq!(grace_seconds(&pod), 60);

        pod.metadata.deletion_grace_period_seconds = Some(0);

        assert_eq!(grace_seconds(&pod), 0);
    }
}
