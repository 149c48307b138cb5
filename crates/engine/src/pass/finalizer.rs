//! Where an object stands between its finalizer and its deletion, and the patches that move it on.
//!
//! The patches test what they replace instead of naming a resource version, so that someone who writes annotations
//! all the time never gets in the way.

use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use crate::reconcile::Profile;

/// What an object's finalizers and deletion time ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalizerStage {
    /// It lives, and its finalizer is in place or not needed.
    Alive,
    /// It lives without its finalizer: add that before anything remote is made.
    Unprotected,
    /// It is being deleted and waits for us.
    Leaving,
    /// It is being deleted and does not wait for us.
    Left,
}

/// The finalizers of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finalizers {
    /// What we add; none where nothing is left behind.
    pub(crate) ours: Option<&'static str>,
    /// What earlier operators added.
    pub(crate) older: &'static [&'static str],
    /// Annotations of theirs that go with them.
    pub(crate) annotations: &'static [&'static str],
    /// Whether ours takes the place of the older ones.
    pub(crate) replaces: bool,
}

impl Finalizers {
    /// The finalizers of a kind.
    pub(crate) fn of(profile: &Profile) -> Self {
        Self {
            ours: profile.finalizer,
            older: profile.older_finalizers,
            annotations: profile.older_annotations,
            replaces: profile.replaces_older_finalizers,
        }
    }

    /// Where an object stands.
    pub(crate) fn stage(&self, meta: &ObjectMeta) -> FinalizerStage {
        portolan_core::waypoint!();
        let held = present(meta);
        let outdated = self.replaces && held.iter().any(|name| self.older.contains(&name.as_str()));
        let has_ours = self.ours.is_none_or(|ours| held.iter().any(|name| name == ours)) && !outdated;
        match (meta.deletion_timestamp.is_some(), has_ours) {
            (false, true) => FinalizerStage::Alive,
            (false, false) => FinalizerStage::Unprotected,
            (true, _) if held.iter().any(|name| self.includes(name)) => FinalizerStage::Leaving,
            (true, _) => FinalizerStage::Left,
        }
    }

    fn includes(&self, name: &str) -> bool {
        self.ours == Some(name) || self.older.contains(&name)
    }

    /// Whether an object carries one of them.
    pub(crate) fn hold(&self, meta: &ObjectMeta) -> bool {
        present(meta).iter().any(|name| self.includes(name))
    }

    /// The patch that adds ours.
    pub(crate) fn adding(&self, meta: &ObjectMeta) -> Option<Patch> {
        let ours = self.ours?;
        let held = present(meta);
        let change = if held.is_empty() {
            PatchOperation::Add(AddOperation { path: pointer(), value: json!([ours]) })
        } else {
            let leaves = |name: &str| name == ours || (self.replaces && self.older.contains(&name));
            let all: Vec<&str> = held.iter().map(String::as_str).filter(|name| !leaves(name)).chain([ours]).collect();
            PatchOperation::Replace(ReplaceOperation { path: pointer(), value: json!(all) })
        };
        let gone = self.annotations_gone(meta).filter(|_| self.replaces);
        Some(Patch([same_object(meta), same_finalizers(meta), change].into_iter().chain(gone).collect()))
    }

    /// What takes the older operators' annotations off an object that loses their finalizers.
    fn annotations_gone(&self, meta: &ObjectMeta) -> impl Iterator<Item = PatchOperation> {
        let outdated = present(meta).iter().any(|name| self.older.contains(&name.as_str()));
        let there =
            move |name: &&&str| meta.annotations.as_ref().is_some_and(|all| outdated && all.contains_key(**name));
        self.annotations.iter().filter(there).map(|name| {
            let path = json_patch::jsonptr::PointerBuf::from_tokens(["metadata", "annotations", *name]);
            PatchOperation::Remove(RemoveOperation { path })
        })
    }

    /// The patch that takes away ours and the older ones together.
    pub(crate) fn removing(&self, meta: &ObjectMeta) -> Patch {
        let rest: Vec<&String> = present(meta).iter().filter(|name| !self.includes(name)).collect();
        let change = PatchOperation::Replace(ReplaceOperation { path: pointer(), value: json!(rest) });
        Patch(
            [same_object(meta), same_finalizers(meta), change].into_iter().chain(self.annotations_gone(meta)).collect(),
        )
    }
}

fn present(meta: &ObjectMeta) -> &[String] {
    meta.finalizers.as_deref().unwrap_or_default()
}

fn pointer() -> json_patch::jsonptr::PointerBuf {
    json_patch::jsonptr::PointerBuf::from_tokens(["metadata", "finalizers"])
}

/// An object of the same name that was made anew is another one.
fn same_object(meta: &ObjectMeta) -> PatchOperation {
    let path = json_patch::jsonptr::PointerBuf::from_tokens(["metadata", "uid"]);
    PatchOperation::Test(TestOperation { path, value: json!(meta.uid) })
}

fn same_finalizers(meta: &ObjectMeta) -> PatchOperation {
    let held = present(meta);
    let value = if held.is_empty() { Value::Null } else { json!(held) };
    PatchOperation::Test(TestOperation { path: pointer(), value })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const BOTH: Finalizers =
        Finalizers { ours: Some("ours"), older: &["older"], annotations: &["older/memory"], replaces: false };
    const HEIR: Finalizers = Finalizers { replaces: true, ..BOTH };
    const NONE: Finalizers = Finalizers { ours: None, older: &[], annotations: &[], replaces: false };

    fn meta(finalizers: &[&str], deleting: bool) -> ObjectMeta {
        ObjectMeta {
            uid: Some("u1".to_owned()),
            finalizers: Some(finalizers.iter().map(|&name| name.to_owned()).collect()),
            deletion_timestamp: deleting.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn every_combination_has_its_stage() {
        for (finalizers, held, deleting, stage) in [
            (BOTH, &["ours"][..], false, FinalizerStage::Alive),
            (BOTH, &["older"], false, FinalizerStage::Unprotected),
            (BOTH, &[], false, FinalizerStage::Unprotected),
            (BOTH, &["ours"], true, FinalizerStage::Leaving),
            (BOTH, &["older"], true, FinalizerStage::Leaving),
            (BOTH, &["foreign"], true, FinalizerStage::Left),
            (BOTH, &["older", "ours"], false, FinalizerStage::Alive),
            (HEIR, &["older", "ours"], false, FinalizerStage::Unprotected),
            (HEIR, &["older"], true, FinalizerStage::Leaving),
            (BOTH, &[], true, FinalizerStage::Left),
            (NONE, &[], false, FinalizerStage::Alive),
            (NONE, &["foreign"], true, FinalizerStage::Left),
        ] {
            assert_eq!(finalizers.stage(&meta(held, deleting)), stage, "{held:?} {deleting}");
        }
    }

    #[test]
    fn adding_keeps_what_others_added() {
        let patch = serde_json::to_value(BOTH.adding(&meta(&["foreign"], false))).unwrap();

        assert_eq!(patch[1], json!({"op": "test", "path": "/metadata/finalizers", "value": ["foreign"]}));
        assert_eq!(patch[2]["value"], json!(["foreign", "ours"]));
    }

    #[test]
    fn adding_takes_the_place_of_the_older_ones_where_asked() {
        let patch = serde_json::to_value(HEIR.adding(&meta(&["older", "foreign"], false))).unwrap();

        assert_eq!(patch[2]["value"], json!(["foreign", "ours"]));
    }

    #[test]
    fn adding_the_first_expects_that_there_is_none() {
        let patch = serde_json::to_value(BOTH.adding(&meta(&[], false))).unwrap();

        assert_eq!(patch[0], json!({"op": "test", "path": "/metadata/uid", "value": "u1"}));
        assert_eq!(patch[1]["value"], Value::Null);
        assert_eq!(patch[2], json!({"op": "add", "path": "/metadata/finalizers", "value": ["ours"]}));
    }

    #[test]
    fn removing_takes_ours_and_the_older_ones_and_no_other() {
        let patch = serde_json::to_value(BOTH.removing(&meta(&["older", "foreign", "ours"], true))).unwrap();

        assert_eq!(patch[2]["value"], json!(["foreign"]));
    }

    #[test]
    fn older_annotations_go_with_the_older_finalizer_and_never_alone() {
        let with_memory = |finalizers: &[&str]| ObjectMeta {
            annotations: Some([("older/memory".to_owned(), "{}".to_owned())].into()),
            ..meta(finalizers, false)
        };
        let removed = json!({"op": "remove", "path": "/metadata/annotations/older~1memory"});
        let patched = |patch: Option<Patch>| serde_json::to_value(patch).unwrap();

        assert_eq!(patched(HEIR.adding(&with_memory(&["older"])))[3], removed);
        assert_eq!(patched(Some(HEIR.removing(&with_memory(&["older", "ours"]))))[3], removed);
        assert_eq!(patched(HEIR.adding(&with_memory(&["foreign"])))[3], Value::Null);
        assert_eq!(patched(BOTH.adding(&with_memory(&["older"])))[3], Value::Null);
    }

    #[test]
    fn a_kind_without_finalizer_adds_none() {
        assert!(NONE.adding(&meta(&[], false)).is_none());
    }
}
