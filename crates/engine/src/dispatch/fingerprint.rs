//! What tells objects and their states apart: key, version, and a fingerprint of what is worth a run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kube::api::ObjectMeta;
use portolan_core::ObjectKey;

use crate::context::Context;
use crate::reconcile::Reconcile;

/// The key of an object.
pub fn key_of(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey { namespace: meta.namespace.clone(), name: meta.name.clone().unwrap_or_default() }
}

/// The resource version as a number that grows; 0 where a server counts otherwise.
pub(crate) fn version_of(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// A digest of what makes an object worth a run: generation, heeded annotations, finalizers, deletion.
///
/// Labels and status are not in it. Kinds without generations count every version.
fn fingerprint(meta: &ObjectMeta, reacts: impl Fn(&str) -> bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    meta.uid.hash(&mut hasher);
    match meta.generation {
        Some(generation) => generation.hash(&mut hasher),
        None => meta.resource_version.hash(&mut hasher),
    }
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    meta.finalizers.as_deref().unwrap_or_default().hash(&mut hasher);
    for (name, value) in meta.annotations.iter().flatten().filter(|(name, _)| reacts(name)) {
        (name, value).hash(&mut hasher);
    }
    hasher.finish()
}

/// The same, with those annotations that a controller reacts to.
pub(crate) fn fingerprint_for<R: Reconcile>(context: &Context, reconciler: &R, meta: &ObjectMeta) -> u64 {
    context.pure(|| fingerprint(meta, |name| reconciler.reacts_to_annotation(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> ObjectMeta {
        ObjectMeta {
            name: Some("a".to_owned()),
            generation: Some(1),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        }
    }

    fn print(meta: &ObjectMeta) -> u64 {
        fingerprint(meta, |name| name != "noise")
    }

    fn annotated(name: &str) -> ObjectMeta {
        ObjectMeta { annotations: Some([(name.to_owned(), "1".to_owned())].into()), ..meta() }
    }

    #[test]
    fn labels_status_and_noise_are_no_reason_to_run() {
        let labelled = ObjectMeta { labels: Some([("a".to_owned(), "b".to_owned())].into()), ..meta() };
        let newer = ObjectMeta { resource_version: Some("8".to_owned()), ..meta() };
        let empty = ObjectMeta { finalizers: Some(Vec::new()), ..meta() };

        for same in [labelled, newer, annotated("noise"), empty] {
            assert_eq!(print(&same), print(&meta()));
        }
    }

    #[test]
    fn generation_annotations_finalizers_and_deletion_are_reasons_to_run() {
        let edited = ObjectMeta { generation: Some(2), ..meta() };
        let held = ObjectMeta { finalizers: Some(vec!["f".to_owned()]), ..meta() };
        let recreated = ObjectMeta { uid: Some("other".to_owned()), ..meta() };

        for other in [edited, annotated("steering"), held, recreated] {
            assert_ne!(print(&other), print(&meta()));
        }
    }

    #[test]
    fn kinds_without_generations_count_versions() {
        let plain = ObjectMeta { generation: None, ..meta() };
        let newer = ObjectMeta { resource_version: Some("8".to_owned()), ..plain.clone() };

        assert_ne!(print(&plain), print(&newer));
        assert_eq!((version_of(&newer), version_of(&ObjectMeta::default())), (8, 0));
    }
}
