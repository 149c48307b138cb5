//! Whose objects: what matches a selector is taken, what no longer matches is let go.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{controller_reference, exact_target, is_deleting, labels, uid};
use super::selector::Selector;
use crate::{Part, Step};

/// An owner that claims objects of a collection.
pub(crate) struct Claim<'a> {
    pub(crate) owner: &'a Value,
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) selector: &'a Selector,
    pub(crate) collection: &'static str,
}

impl Claim<'_> {
    /// The owner's objects after the steps: of its own those that still match, and orphans that do. An owner that goes
    /// neither takes nor lets go.
    pub(crate) fn settle(
        &self,
        own: Vec<Arc<Value>>,
        orphans: Vec<Arc<Value>>,
        steps: &mut Vec<Step>,
    ) -> Vec<Arc<Value>> {
        let goes = is_deleting(self.owner);
        let (mut claimed, strangers): (Vec<_>, Vec<_>) = own.into_iter().partition(|object| self.matches(object));
        if goes {
            return claimed;
        }
        steps.extend(strangers.iter().map(|object| self.release(object)));
        for orphan in orphans.into_iter().filter(|object| self.matches(object) && !is_deleting(object)) {
            steps.push(self.adopt(&orphan));
            claimed.push(orphan);
        }
        claimed
    }

    fn matches(&self, object: &Value) -> bool {
        self.selector.matches(labels(object))
    }

    fn adopt(&self, object: &Value) -> Step {
        let mut references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        references.retain(|reference| reference["uid"] != *uid(self.owner));
        references.push(controller_reference(self.owner, self.api_version, self.kind));
        self.set_references(object, json!(references))
    }

    fn release(&self, object: &Value) -> Step {
        let mut references = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        references.retain(|reference| reference["uid"] != *uid(self.owner));
        self.set_references(object, if references.is_empty() { Value::Null } else { json!(references) })
    }

    /// The list is replaced as a whole, so that it must be the one that was seen.
    fn set_references(&self, object: &Value, references: Value) -> Step {
        let target = exact_target(self.collection, object);
        Step::Patch { target, part: Part::Main, patch: json!({"metadata": {"ownerReferences": references}}) }
    }
}
