//! An owner with a selector and candidates in, the objects that are its own out, with the steps that adopt and let go.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::diff::or_null;
use super::kind::ObjectKind;
use super::object::{controller_of, is_deleting, labels, list, name, name_of, namespace, owners, text, uid};
use super::selector::Selector;
use super::step::{change, exact_target};
use crate::{ObjectName, Step, View};

/// Who owns, and what its own objects look like.
pub(crate) struct OwningController<'a> {
    object: &'a Value,
    kind: &'static ObjectKind,
    selector: Selector,
    finalizer: Option<&'static str>,
}

impl<'a> OwningController<'a> {
    /// `None` where the selector of the object cannot be read: then nothing is taken and nothing let go.
    pub(crate) fn of(object: &'a Value, kind: &'static ObjectKind) -> Option<Self> {
        let selector = Selector::parse(&object["spec"]["selector"])?;
        Some(Self { object, kind, selector, finalizer: None })
    }

    /// With a finalizer that is held on everything it adopts, and let go with it.
    pub(crate) fn holding(self, finalizer: &'static str) -> Self {
        Self { finalizer: Some(finalizer), ..self }
    }

    pub(crate) fn selects(&self, one: &Value) -> bool {
        self.selector.matches(labels(one))
    }

    pub(crate) fn selects_all(&self) -> bool {
        self.selector.is_empty()
    }

    /// What it controls, and after that what nothing does and it may select.
    pub(crate) fn candidates(&self, view: &dyn View, collection: &str) -> Vec<Arc<Value>> {
        let mut all = view.controlled_by(collection, namespace(self.object), uid(self.object));
        let nothing = Map::new();
        let wanted = self.object["spec"]["selector"]["matchLabels"].as_object().unwrap_or(&nothing);
        all.extend(view.strays(collection, namespace(self.object), wanted));
        all
    }

    /// What it owns once the steps are done: of its own those that it selects and that belong to it, and strays that do.
    /// An owner that goes neither takes nor lets go.
    pub(crate) fn claim(
        &self,
        collection: &'static str,
        candidates: Vec<Arc<Value>>,
        belongs: &dyn Fn(&Value) -> bool,
        steps: &mut Vec<Step>,
    ) -> Vec<Arc<Value>> {
        let stays = !is_deleting(self.object);
        let mut kept = Vec::new();
        for one in candidates {
            let wanted = self.selects(&one) && belongs(&one);
            match (controller_of(&one), wanted) {
                (Some(_), true) => kept.push(one),
                (Some(_), false) if stays => steps.push(self.release(collection, &one)),
                (None, true) if stays && !is_deleting(&one) => kept.push(self.adopt(collection, &one, steps)),
                (Some(_) | None, _) => {}
            }
        }
        kept
    }

    /// The object as it is once it is adopted.
    pub(crate) fn adopt(&self, collection: &'static str, one: &Value, steps: &mut Vec<Step>) -> Arc<Value> {
        let mut patch = json!({"ownerReferences": self.other_owners(one)});
        if let Some(references) = patch["ownerReferences"].as_array_mut() {
            references.push(controller_reference(self.object, self.kind));
        }
        if let Some(finalizer) = self.finalizer {
            let mut finalizers = other_finalizers(one, finalizer);
            finalizers.push(json!(finalizer));
            patch["finalizers"] = json!(finalizers);
        }
        let mut adopted = one.clone();
        for (field, value) in patch.as_object().into_iter().flatten() {
            adopted["metadata"][field] = value.clone();
        }
        steps.push(change(exact_target(collection, one), json!({"metadata": patch})));
        Arc::new(adopted)
    }

    fn release(&self, collection: &'static str, one: &Value) -> Step {
        let mut patch = json!({"ownerReferences": or_null(self.other_owners(one))});
        if let Some(finalizer) = self.finalizer {
            patch["finalizers"] = without_finalizer(one, finalizer);
        }
        change(exact_target(collection, one), json!({"metadata": patch}))
    }

    fn other_owners(&self, one: &Value) -> Vec<Value> {
        owners(one).iter().filter(|owner| owner["uid"] != uid(self.object)).cloned().collect()
    }
}

/// The reference by which an object of this kind controls others.
pub(crate) fn controller_reference(owner: &Value, kind: &ObjectKind) -> Value {
    json!({
        "apiVersion": kind.api_version, "kind": kind.name, "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// The object that controls another one, if it is of this kind and still the same.
pub(crate) fn owner_of(view: &dyn View, kind: &ObjectKind, object: &Value) -> Option<Arc<Value>> {
    let reference = controller_of(object).filter(|reference| reference["kind"] == kind.name)?;
    let owner = view.get(kind.collection, namespace(object), text(reference, "/name"))?;
    (reference["uid"] == uid(&owner)).then_some(owner)
}

/// The owners of a kind that a change of an object concerns: the one that controls it, or those that `want` it where
/// nothing does. An owner that is gone is named too, so that what it left can be put right.
pub(crate) fn concerned(
    view: &dyn View,
    kind: &ObjectKind,
    object: &Value,
    want: impl Fn(&Value) -> bool,
) -> Vec<ObjectName> {
    let Some(reference) = controller_of(object) else {
        let all = view.list(kind.collection, namespace(object));
        return all.iter().filter(|owner| want(owner)).map(|owner| name_of(owner)).collect();
    };
    let named = ObjectName { namespace: namespace(object).to_owned(), name: text(reference, "/name").to_owned() };
    let is_gone = || view.get(kind.collection, &named.namespace, &named.name).is_none();
    let concerns = reference["kind"] == kind.name && (owner_of(view, kind, object).is_some() || is_gone());
    concerns.then_some(named).into_iter().collect()
}

/// The finalizers of an object but one, as a patch says them.
pub(crate) fn without_finalizer(object: &Value, finalizer: &str) -> Value {
    or_null(other_finalizers(object, finalizer))
}

fn other_finalizers(object: &Value, finalizer: &str) -> Vec<Value> {
    list(object, "/metadata/finalizers").iter().filter(|held| *held != finalizer).cloned().collect()
}
