//! A `StatefulSet` and the pod of a place in, the claims of that place out, and who owns them by the retention policy.

use std::sync::Arc;

use serde_json::{Value, json};

use super::identity::{in_range, ordinal};
use crate::common::diff::or_null;
use crate::common::kind::{ObjectKind, POD, STATEFUL_SET};
use crate::common::object::{is_deleting, list, name, namespace, owners, text, uid};
use crate::common::owner::controller_reference;
use crate::common::step::{change, event, exact_target};
use crate::{EventType, Step, View};

pub(super) const CLAIMS: &str = "persistentvolumeclaims";

/// As `data-web-0`.
pub(super) fn claim_name(set: &Value, template: &Value, ordinal: i64) -> String {
    format!("{}-{}-{ordinal}", name(template), name(set))
}

/// What becomes of the claims.
#[derive(Clone, Copy)]
struct ClaimPolicy {
    dies_with_set: bool,
    dies_when_scaled: bool,
}

impl ClaimPolicy {
    fn of(set: &Value) -> Self {
        let deletes =
            |field: &str| text(set, &format!("/spec/persistentVolumeClaimRetentionPolicy/{field}")) == "Delete";
        Self { dies_with_set: deletes("whenDeleted"), dies_when_scaled: deletes("whenScaled") }
    }

    fn keeps_all(self) -> bool {
        !self.dies_with_set && !self.dies_when_scaled
    }
}

/// The claims of one pod.
pub(super) struct PodClaims<'a> {
    pub(super) view: &'a dyn View,
    pub(super) set: &'a Value,
    pub(super) pod: &'a Value,
}

impl PodClaims<'_> {
    fn wanted(&self) -> Vec<Value> {
        let ordinal = ordinal(self.pod).unwrap_or_default();
        let templates = list(self.set, "/spec/volumeClaimTemplates");
        templates.iter().map(|template| new_claim(self.set, template, ordinal)).collect()
    }

    fn live(&self) -> Vec<Arc<Value>> {
        let found = |claim: Value| self.view.get(CLAIMS, namespace(self.set), name(&claim));
        self.wanted().into_iter().filter_map(found).collect()
    }

    /// Makes the claims that are missing. An error says which ones cannot be used because they are being deleted.
    pub(super) fn create(&self, steps: &mut Vec<Step>) -> Result<(), String> {
        let mut leaving = Vec::new();
        for claim in self.wanted() {
            match self.view.get(CLAIMS, namespace(self.set), name(&claim)) {
                None => {
                    let (claim_name, pod, set) = (name(&claim), name(self.pod), name(self.set));
                    let message = format!("Create Claim {claim_name} Pod {pod} in StatefulSet {set} success");
                    steps.push(Step::Create { collection: CLAIMS, object: claim });
                    steps.push(event(self.set, EventType::Normal, "SuccessfulCreate", message));
                }
                Some(there) if is_deleting(&there) => leaving.push(format!("pvc {} is being deleted", name(&there))),
                Some(_) => {}
            }
        }
        match leaving.len() {
            0 => Ok(()),
            1 => Err(leaving.remove(0)),
            _ => Err(format!("[{}]", leaving.join(", "))),
        }
    }

    /// Whether a claim still belongs to an earlier pod of this place, and goes with it.
    pub(super) fn stale(&self) -> bool {
        let policy = ClaimPolicy::of(self.set);
        policy.dies_when_scaled && self.live().iter().any(|claim| stale_owner(claim, &POD, self.pod))
    }

    /// Whether all claims have the owners that the policy gives them.
    pub(super) fn owners_match(&self) -> bool {
        self.live().iter().all(|claim| self.up_to_date(claim))
    }

    /// Gives the claims the owners of the policy.
    pub(super) fn set_owners(&self, steps: &mut Vec<Step>) {
        for claim in self.live() {
            if self.foreign_controller(&claim) {
                let message = format!(
                    "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging controller, \
                     the retention policy is ignored for this claim",
                    name(&claim)
                );
                steps.push(event(self.set, EventType::Warning, "ConflictingController", message));
            }
            if !self.up_to_date(&claim) {
                let patch = json!({"metadata": {"ownerReferences": self.owners(&claim)}});
                steps.push(change(exact_target(CLAIMS, &claim), patch));
            }
        }
    }

    fn refers_to_set(&self, owner: &Value) -> bool {
        same_object(owner, &STATEFUL_SET, self.set)
    }

    fn refers_to_pod(&self, owner: &Value) -> bool {
        same_object(owner, &POD, self.pod)
    }

    /// Whether something else cares for the claim, so that the policy cannot.
    fn foreign_controller(&self, claim: &Value) -> bool {
        let foreign = |owner: &Value| {
            if self.refers_to_set(owner) {
                owner["uid"] != uid(self.set)
            } else if self.refers_to_pod(owner) {
                owner["uid"] != uid(self.pod)
            } else {
                owner["controller"] == true
            }
        };
        !ClaimPolicy::of(self.set).keeps_all() && owners(claim).iter().any(foreign)
    }

    /// Whether set and pod own the claim, by the policy.
    fn wanted_owners(&self) -> (bool, bool) {
        let policy = ClaimPolicy::of(self.set);
        let scaled_down = !in_range(self.set, self.pod);
        let by_pod = policy.dies_when_scaled && scaled_down;
        (policy.dies_with_set && !by_pod, by_pod)
    }

    fn up_to_date(&self, claim: &Value) -> bool {
        if stale_owner(claim, &STATEFUL_SET, self.set) || stale_owner(claim, &POD, self.pod) {
            return true;
        }
        let owned_by = |object: &Value| owners(claim).iter().find(|owner| owner["uid"] == uid(object));
        let (by_set, by_pod) = (owned_by(self.set), owned_by(self.pod));
        if self.foreign_controller(claim) {
            return by_set.is_none() && by_pod.is_none();
        }
        let controls = |owner: Option<&Value>| owner.is_none_or(|owner| owner["controller"] == true);
        controls(by_set) && controls(by_pod) && self.wanted_owners() == (by_set.is_some(), by_pod.is_some())
    }

    fn owners(&self, claim: &Value) -> Value {
        let mut owners = owners(claim).to_vec();
        owners.retain(|owner| !self.refers_to_set(owner) && !self.refers_to_pod(owner));
        let (by_set, by_pod) = if self.foreign_controller(claim) { (false, false) } else { self.wanted_owners() };
        if by_set {
            owners.push(controller_reference(self.set, &STATEFUL_SET));
        }
        if by_pod {
            owners.push(controller_reference(self.pod, &POD));
        }
        or_null(owners)
    }
}

fn same_object(owner: &Value, kind: &ObjectKind, object: &Value) -> bool {
    owner["apiVersion"] == kind.api_version && owner["kind"] == kind.name && owner["name"] == name(object)
}

/// Whether an owner of this name was another object.
fn stale_owner(claim: &Value, kind: &ObjectKind, object: &Value) -> bool {
    let found = owners(claim).iter().find(|owner| same_object(owner, kind, object));
    found.is_some_and(|owner| owner["uid"] != uid(object))
}

fn new_claim(set: &Value, template: &Value, ordinal: i64) -> Value {
    let mut metadata = template["metadata"].clone();
    metadata["name"] = json!(claim_name(set, template, ordinal));
    metadata["namespace"] = json!(namespace(set));
    let mut labels = template["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    labels.extend(set["spec"]["selector"]["matchLabels"].as_object().cloned().unwrap_or_default());
    if !labels.is_empty() {
        metadata["labels"] = json!(labels);
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template["spec"],
    })
}
