//! A `StatefulSet` and the revisions there are in, the current and the wanted one out, with the steps that write history.

use std::sync::Arc;

use serde_json::{Value, json};

use super::identity::revision_of;
use crate::common::kind::STATEFUL_SET;
use crate::common::letters::safe_letters;
use crate::common::object::{controller_of, given_number, is_deleting, name, namespace, number, text, time};
use crate::common::owner::{OwningController, controller_reference};
use crate::common::step::{change, delete, target};
use crate::{Step, View};

pub(super) const REVISIONS: &str = "controllerrevisions.apps";
const HASH: &str = "controller.kubernetes.io/hash";

/// One state of the template.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Revision {
    pub(super) name: String,
    pub(super) template: Value,
}

/// What the history of a set says.
pub(super) struct RevisionHistory {
    pub(super) current: Revision,
    pub(super) update: Revision,
    pub(super) collisions: i64,
    known: Vec<Arc<Value>>,
}

impl Revision {
    fn of(object: &Value) -> Self {
        let mut template = object["data"]["spec"]["template"].clone();
        if let Some(fields) = template.as_object_mut() {
            fields.remove("$patch");
        }
        Self { name: name(object).to_owned(), template }
    }
}

impl RevisionHistory {
    /// Reads the history and adds the steps that bring it up to the template of today.
    pub(super) fn read(view: &dyn View, set: &Value, owner: &OwningController<'_>, steps: &mut Vec<Step>) -> Self {
        let known = known(view, set, owner, steps);
        let (update, collisions) = updated(view, set, &known, steps);
        let now = text(set, "/status/currentRevision");
        let current = known.iter().find(|one| name(one) == now).map_or_else(|| update.clone(), |one| Revision::of(one));
        Self { current, update, collisions, known }
    }

    /// Deletes the oldest revisions that no pod needs, beyond the limit of the set.
    pub(super) fn truncate(&self, set: &Value, pods: &[Arc<Value>], steps: &mut Vec<Step>) {
        let needed = |one: &Arc<Value>| {
            let one = name(one);
            one == self.current.name || one == self.update.name || pods.iter().any(|pod| revision_of(pod) == one)
        };
        let unused: Vec<&Arc<Value>> = self.known.iter().filter(|one| !needed(one)).collect();
        let limit = given_number(set, "/spec/revisionHistoryLimit").unwrap_or(10);
        let Ok(limit) = usize::try_from(limit) else { return };
        let surplus = unused.len().saturating_sub(limit);
        steps.extend(unused[..surplus].iter().map(|one| delete(target(REVISIONS, one))));
    }
}

/// The set's own revisions and those that nobody owns, oldest first. A set that goes reads these without adopting them.
fn known(view: &dyn View, set: &Value, owner: &OwningController<'_>, steps: &mut Vec<Step>) -> Vec<Arc<Value>> {
    let mut known = owner.candidates(view, REVISIONS);
    known.retain(|one| owner.selects(one));
    if !is_deleting(set) {
        for stray in known.iter_mut().filter(|one| controller_of(one).is_none()) {
            *stray = owner.adopt(REVISIONS, stray, steps);
        }
    }
    known.sort_by_key(|one| (number(one, "/revision"), time(one, "/metadata/creationTimestamp"), name(one).to_owned()));
    known
}

/// The revision of the template of today: one that is there, moved to the end, or a new one.
fn updated(view: &dyn View, set: &Value, known: &[Arc<Value>], steps: &mut Vec<Step>) -> (Revision, i64) {
    let data = data(set);
    let collisions = number(set, "/status/collisionCount");
    let next = known.last().map_or(0, |last| number(last, "/revision")) + 1;
    match known.iter().rev().find(|one| one["data"] == data) {
        Some(same) => {
            if known.last().is_none_or(|last| last["data"] != data) {
                steps.push(change(target(REVISIONS, same), json!({"revision": next})));
            }
            (Revision::of(same), collisions)
        }
        None => created(view, set, &data, next, collisions, steps),
    }
}

/// A new revision; a name that another state has makes the set count a collision.
fn created(
    view: &dyn View,
    set: &Value,
    data: &Value,
    revision: i64,
    mut collisions: i64,
    steps: &mut Vec<Step>,
) -> (Revision, i64) {
    loop {
        let hash = hash(data, collisions);
        let prefix: String = name(set).chars().take(223).collect();
        let mut object = new_revision(set, data, revision, &hash);
        object["metadata"]["name"] = json!(format!("{prefix}-{hash}"));
        match view.get(REVISIONS, namespace(set), name(&object)) {
            Some(there) if there["data"] == *data => return (Revision::of(&there), collisions),
            Some(_) => collisions += 1,
            None => {
                let made = Revision::of(&object);
                steps.push(Step::Create { collection: REVISIONS, object });
                return (made, collisions);
            }
        }
    }
}

fn new_revision(set: &Value, data: &Value, revision: i64, hash: &str) -> Value {
    let mut metadata = json!({
        "namespace": namespace(set),
        "ownerReferences": [controller_reference(set, &STATEFUL_SET)],
        "labels": set.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).unwrap_or(&json!({})),
    });
    metadata["labels"][HASH] = json!(hash);
    if let Some(annotations) = set.pointer("/metadata/annotations").filter(|all| all.is_object()) {
        metadata["annotations"] = annotations.clone();
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data,
        "revision": revision,
    })
}

/// What a revision keeps: the template, as a patch that replaces it.
fn data(set: &Value) -> Value {
    let mut template = set["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

/// FNV-1 over the text that Go writes for the data, and the number of collisions.
fn hash(data: &Value, collisions: i64) -> String {
    let text = go_text(data) + &collisions.to_string();
    let sum = text.bytes().fold(0x811c_9dc5_u32, |sum, byte| sum.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    safe_letters(&sum.to_string())
}

/// JSON with the characters escaped that Go escapes for the sake of HTML.
fn go_text(data: &Value) -> String {
    let escaped = |text: String, (from, to): &(char, &str)| text.replace(*from, to);
    let html = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    html.iter().fold(data.to_string(), escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_has_the_name_that_kubernetes_gives_it() {
        let container = json!({
            "args": ["a<b", "&"],
            "env": [{"name": "A", "value": "b"}],
            "image": "nginx:1",
            "imagePullPolicy": "IfNotPresent",
            "name": "main",
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        });
        let spec = json!({
            "containers": [container],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        });
        let set = json!({"spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}}});

        // As kube-controller-manager 1.36.3 names it.
        assert_eq!(hash(&data(&set), 0), "78c95bd6cd");
        assert_ne!(hash(&data(&set), 1), "78c95bd6cd");
    }
}
