//! The set of the deployment's template, and the numbers by which templates can be gone back to.

use std::sync::Arc;

use serde_json::{Value, json};

use super::rollout::{DESIRED_REPLICAS, MAX_REPLICAS, Rollout, note_sizes};
use super::{fence, progress, template};
use crate::Step;
use crate::common::condition;
use crate::common::kind::{DEPLOYMENT, REPLICA_SET, REPLICA_SETS};
use crate::common::object::{annotation, given_number, name, namespace, number};
use crate::common::owner::controller_reference;

const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Of a deployment's annotations these are not its sets'.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
];
const LONGEST_HISTORY: usize = 2000;
const LONGEST_NAME: usize = 253;

/// A set's revision: 0 where it has none, nothing where it is no number.
pub(super) fn of(set: &Value) -> Option<i64> {
    annotation(set, REVISION).map_or(Some(0), |revision| revision.parse().ok())
}

impl Rollout<'_> {
    /// Gives the new set, where there is one, the highest revision and the deployment's annotations.
    pub(super) fn sync_new(&mut self) {
        let Some(index) = self.new else { return };
        let mut set = (*self.sets[index]).clone();
        annotate(&self.deployment, &mut set, self.next_revision());
        let min_ready_seconds = number(&self.deployment, "/spec/minReadySeconds");
        if number(&set, "/spec/minReadySeconds") != min_ready_seconds {
            set_min_ready(&mut set, min_ready_seconds);
        }
        let (revision, name) = (annotation(&set, REVISION).unwrap_or_default().to_owned(), name(&set).to_owned());
        self.change(index, set);
        self.set_revision(&revision);
        if condition::find(&self.deployment["status"], progress::PROGRESSING).is_none() {
            self.note_progress("True", "FoundNewReplicaSet", format!("Found new replica set {name:?}"));
        }
    }

    /// Makes the new set; false where its name is taken by another one, which asks for another hash.
    pub(super) fn create_new(&mut self) -> bool {
        let collisions = given_number(&self.deployment, "/status/collisionCount");
        let set = self.build_new(&template::hash(&self.deployment["spec"]["template"], collisions));
        if self.view.get(REPLICA_SETS, namespace(&set), name(&set)).is_some() {
            self.deployment["status"]["collisionCount"] = json!(collisions.unwrap_or(0) + 1);
            return false;
        }
        let (name, size) = (name(&set).to_owned(), number(&set, "/spec/replicas"));
        let revision = annotation(&set, REVISION).unwrap_or_default().to_owned();
        self.steps.push(Step::Create { collection: REPLICA_SETS, object: set.clone() });
        self.new = Some(self.sets.len());
        self.sets.push(Arc::new(set));
        if size > 0 {
            self.tell_scaling(format!("Scaled up replica set {name} from 0 to {size}"));
        }
        self.set_revision(&revision);
        self.note_progress("True", "NewReplicaSetCreated", format!("Created new replica set {name:?}"));
        true
    }

    fn build_new(&self, hash: &str) -> Value {
        let deployment = &self.deployment;
        let labeled = template::with_hash(&deployment["spec"]["template"], hash);
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"][template::HASH_LABEL] = json!(hash);
        let mut set = json!({
            "apiVersion": REPLICA_SET.api_version, "kind": REPLICA_SET.name,
            "metadata": {
                "name": set_name(name(deployment), hash), "namespace": namespace(deployment),
                "labels": labeled["metadata"]["labels"],
                "ownerReferences": [controller_reference(deployment, &DEPLOYMENT)],
            },
            "spec": {"replicas": self.first_size(), "selector": selector, "template": labeled},
        });
        set_min_ready(&mut set, number(deployment, "/spec/minReadySeconds"));
        annotate(deployment, &mut set, self.next_revision());
        note_sizes(deployment, &mut set);
        set
    }

    fn first_size(&self) -> i64 {
        if fence::is_rolling(&self.deployment) { self.grown(0) } else { self.replicas() }
    }

    /// What a set of a size may grow to without too many pods.
    pub(super) fn grown(&self, size: i64) -> i64 {
        let room = fence::most_replicas(&self.deployment) - self.sum("/spec/replicas");
        if room <= 0 { size } else { size + room.min(self.replicas() - size) }
    }

    fn next_revision(&self) -> i64 {
        self.old().into_iter().filter_map(|index| of(&self.sets[index])).max().unwrap_or(0) + 1
    }

    fn set_revision(&mut self, revision: &str) {
        if annotation(&self.deployment, REVISION).unwrap_or_default() != revision {
            self.deployment["metadata"]["annotations"][REVISION] = json!(revision);
        }
    }
}

/// Zero is left out, as it is the default.
fn set_min_ready(set: &mut Value, seconds: i64) {
    if seconds > 0 {
        set["spec"]["minReadySeconds"] = json!(seconds);
    } else if let Some(spec) = set["spec"].as_object_mut() {
        spec.remove("minReadySeconds");
    }
}

/// Copies the deployment's annotations to a set, and gives it a revision where it has a smaller one.
fn annotate(deployment: &Value, set: &mut Value, revision: i64) {
    let current = annotation(set, REVISION).map(str::to_owned);
    let number = match current.as_deref() {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            // Whoever wrote this may know what it means.
            Err(_) => return,
        },
    };
    let annotations = deployment["metadata"]["annotations"].as_object().into_iter().flatten();
    for (key, value) in annotations.filter(|(key, _)| !NOT_COPIED.contains(&key.as_str())) {
        set["metadata"]["annotations"][key] = value.clone();
    }
    if number >= revision {
        return;
    }
    set["metadata"]["annotations"][REVISION] = json!(revision.to_string());
    if let Some(current) = current
        && let Some(history) = lengthened(annotation(set, REVISION_HISTORY).unwrap_or_default(), &current)
    {
        set["metadata"]["annotations"][REVISION_HISTORY] = json!(history);
    }
}

/// A history with one more revision, without the oldest ones where it would be too long.
fn lengthened(history: &str, revision: &str) -> Option<String> {
    if history.is_empty() || history.starts_with(',') {
        return Some(revision.to_owned());
    }
    let mut kept: Vec<&str> = history.split(',').collect();
    let mut length = history.len() + revision.len() + 1;
    while length > LONGEST_HISTORY && !kept.is_empty() {
        length -= kept.remove(0).len() + 1;
    }
    kept.push(revision);
    (length <= LONGEST_HISTORY).then(|| kept.join(","))
}

/// The deployment's name and the hash, the name cut so that both fit.
fn set_name(deployment: &str, hash: &str) -> String {
    let most = LONGEST_NAME - 1 - hash.len();
    format!("{}-{hash}", &deployment[..deployment.len().min(most)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_forgets_its_oldest_revisions() {
        let long = vec!["1234567890"; 181].join(",");

        let next = lengthened(&long, "2").unwrap();

        assert!(next.len() <= LONGEST_HISTORY && next.ends_with(",2"));
        assert_eq!(lengthened("1,3", "5").unwrap(), "1,3,5");
    }

    #[test]
    fn the_name_of_a_set_fits() {
        assert_eq!(set_name("web", "abc"), "web-abc");
        assert_eq!(set_name(&"w".repeat(253), "abc").len(), 253);
    }
}
