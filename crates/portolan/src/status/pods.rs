//! Pods and what they use → their part of the tree.

use serde::Serialize;

use super::tree::NamedHealth;
use crate::health_view::HealthView;
use crate::pods_page::{PodUse, PodsPage};

/// The pods of the embedded API.
#[derive(Debug, Serialize)]
pub(crate) struct PodsBranch {
    pub(crate) total: usize,
    pub(crate) ready: usize,
    /// What all of them use.
    #[serde(rename = "memoryBytes")]
    pub(crate) memory_bytes: u64,
    pub(crate) pods: Vec<PodLeaf>,
}

/// A pod.
#[derive(Debug, Serialize)]
pub(crate) struct PodLeaf {
    #[serde(flatten)]
    pub(crate) state: NamedHealth,
    /// Resident memory of its processes; none where it has none.
    #[serde(rename = "memoryBytes", skip_serializing_if = "Option::is_none")]
    pub(crate) memory_bytes: Option<u64>,
    /// What its processes computed since they began.
    #[serde(rename = "cpuSeconds", skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_seconds: Option<f64>,
    /// Whether it is Ready without running.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) simulated: bool,
}

impl PodsBranch {
    /// The pods with what the page says of them.
    pub(super) fn of(pods: &[HealthView], page: &PodsPage) -> Self {
        let leaf = |seen: &HealthView| {
            let is_it = |used: &&PodUse| used.name == seen.name() && used.namespace == seen.text("/metadata/namespace");
            let used = page.pods.iter().find(is_it);
            PodLeaf {
                state: NamedHealth::of(seen),
                memory_bytes: used.map(|used| used.memory_bytes),
                cpu_seconds: used.map(|used| used.cpu_seconds),
                simulated: seen.condition("Ready").is_some_and(|ready| ready["reason"] == "Simulated"),
            }
        };
        let leaves: Vec<PodLeaf> = pods.iter().map(leaf).collect();
        Self {
            total: leaves.len(),
            ready: leaves.iter().filter(|leaf| leaf.state.why.is_none()).count(),
            memory_bytes: leaves.iter().filter_map(|leaf| leaf.memory_bytes).sum(),
            pods: leaves,
        }
    }
}

/// `12.3 MiB`.
pub(super) fn mebibytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people, to one digit")]
    let mebibytes = bytes as f64 / (1024.0 * 1024.0);
    format!("{mebibytes:.1} MiB")
}

impl PodLeaf {
    /// `12.3 MiB, 0.4 s CPU`.
    pub(super) fn used(&self) -> Option<String> {
        let (memory, cpu) = (self.memory_bytes?, self.cpu_seconds?);
        Some(format!("{}, {cpu:.1} s CPU", mebibytes(memory)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pods_page::RunnerFacts;

    #[test]
    fn a_pod_has_what_the_page_says_of_the_pod_of_its_name_and_namespace() {
        let seen = |namespace: &str, reason: &str| HealthView {
            kind: "Pod".to_owned(),
            object: json!({
                "metadata": {"name": "web", "namespace": namespace},
                "status": {"conditions": [{"type": "Ready", "status": "True", "reason": reason}]},
            }),
        };
        let runner = RunnerFacts {
            pods: "run".into(),
            user: 0,
            folder: String::new(),
            closed: None,
            programs: Vec::new(),
            ..RunnerFacts::default()
        };
        let used = PodUse {
            namespace: "apps".into(),
            name: "web".into(),
            memory_bytes: 3 << 20,
            cpu_seconds: 0.25,
            processes: 1,
        };

        let branch =
            PodsBranch::of(&[seen("apps", ""), seen("other", "Simulated")], &PodsPage { runner, pods: vec![used] });

        assert_eq!((branch.total, branch.ready, branch.memory_bytes), (2, 2, 3 << 20));
        assert_eq!(branch.pods[0].used().as_deref(), Some("3.0 MiB, 0.2 s CPU"));
        assert_eq!((branch.pods[1].used(), branch.pods[1].simulated), (None, true));
    }
}
