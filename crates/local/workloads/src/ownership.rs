//! An owner with a selector in, the objects that are its own out, with the steps that adopt strays and let others go.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::common::object::{
    controller_of, controller_reference, exact_target, is_deleting, name, namespace, text, uid,
};
use crate::objects::{list, selects};
use crate::{Name, Part, Step, View};

/// Who owns, and what its own objects look like.
pub(crate) struct Owner<'a> {
    /// The object.
    pub(crate) object: &'a Value,
    /// As `apps/v1`.
    pub(crate) api_version: &'static str,
    /// As `StatefulSet`.
    pub(crate) kind: &'static str,
    /// Held on every object of its own, and let go with it.
    pub(crate) finalizer: Option<&'static str>,
}

impl Owner<'_> {
    /// Its reference in what it cares for.
    pub(crate) fn reference(&self) -> Value {
        controller_reference(self.object, self.api_version, self.kind)
    }

    fn selects(&self, one: &Value) -> bool {
        selects(self.object, one)
    }

    /// What it owns once the steps are done: its own that belong to it, without the others, and with the strays.
    pub(crate) fn claim(
        &self,
        view: &dyn View,
        collection: &'static str,
        belongs: &dyn Fn(&Value) -> bool,
        steps: &mut Vec<Step>,
    ) -> Vec<Arc<Value>> {
        let own = view.controlled_by(collection, namespace(self.object), uid(self.object));
        let (mut kept, others): (Vec<_>, Vec<_>) = own.into_iter().partition(|one| self.selects(one) && belongs(one));
        if is_deleting(self.object) {
            return kept;
        }
        steps.extend(others.iter().map(|one| self.release(collection, one)));
        let strays = self.strays(view, collection).into_iter().filter(|one| !is_deleting(one) && belongs(one));
        kept.extend(strays.map(|one| self.adopt(collection, &one, steps)));
        kept
    }

    /// What it selects and nobody cares for.
    pub(crate) fn strays(&self, view: &dyn View, collection: &str) -> Vec<Arc<Value>> {
        let mut strays = view.controlled_by(collection, namespace(self.object), "");
        strays.retain(|one| self.selects(one));
        strays
    }

    /// The object as it is once it is adopted.
    pub(crate) fn adopt(&self, collection: &'static str, one: &Value, steps: &mut Vec<Step>) -> Arc<Value> {
        let adopted = self.adopted(one);
        let mut patch = json!({"ownerReferences": adopted["metadata"]["ownerReferences"]});
        if self.finalizer.is_some() {
            patch["finalizers"] = adopted["metadata"]["finalizers"].clone();
        }
        let patch = json!({"metadata": patch});
        steps.push(Step::Patch { target: exact_target(collection, one), part: Part::Main, patch });
        Arc::new(adopted)
    }

    fn adopted(&self, one: &Value) -> Value {
        let mut owners = list(one, "/metadata/ownerReferences").to_vec();
        owners.retain(|owner| owner["uid"] != uid(self.object));
        owners.push(self.reference());
        let mut adopted = one.clone();
        adopted["metadata"]["ownerReferences"] = json!(owners);
        if let Some(finalizer) = self.finalizer {
            let mut finalizers = list(one, "/metadata/finalizers").to_vec();
            finalizers.retain(|held| held != finalizer);
            finalizers.push(json!(finalizer));
            adopted["metadata"]["finalizers"] = json!(finalizers);
        }
        adopted
    }

    fn release(&self, collection: &'static str, one: &Value) -> Step {
        let mut owners = list(one, "/metadata/ownerReferences").to_vec();
        owners.retain(|owner| owner["uid"] != uid(self.object));
        let mut patch = json!({"ownerReferences": or_null(owners)});
        if let Some(finalizer) = self.finalizer {
            patch["finalizers"] = without_finalizer(one, finalizer);
        }
        Step::Patch { target: exact_target(collection, one), part: Part::Main, patch: json!({"metadata": patch}) }
    }
}

/// The owners of a kind that a change of an object concerns: the one that cares for it, or those that `wants` it where
/// nobody does. An owner that is gone is named too, so that what it left can be put right.
pub(crate) fn concerned(
    view: &dyn View,
    owners: &str,
    kind: &str,
    object: &Value,
    wants: impl Fn(&Value) -> bool,
) -> Vec<Name> {
    let space = namespace(object);
    let name_of = |owner: &str| Name { namespace: space.to_owned(), name: owner.to_owned() };
    match controller_of(object) {
        Some(owner) if owner["kind"] == kind => {
            let found = view.get(owners, space, text(owner, "/name"));
            let mine = found.is_none_or(|found| owner["uid"] == uid(&found));
            mine.then(|| name_of(text(owner, "/name"))).into_iter().collect()
        }
        Some(_) => Vec::new(),
        None => {
            view.list(owners, space).iter().filter(|owner| wants(owner)).map(|owner| name_of(name(owner))).collect()
        }
    }
}

/// The finalizers of an object but one, as a patch says them.
pub(crate) fn without_finalizer(object: &Value, finalizer: &str) -> Value {
    let mut finalizers = list(object, "/metadata/finalizers").to_vec();
    finalizers.retain(|held| held != finalizer);
    or_null(finalizers)
}

fn or_null(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { json!(list) }
}
