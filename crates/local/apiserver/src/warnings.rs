//! What the server accepts and warns of all the same.

use serde_json::Value;

/// Takes out owner references that stand twice, and says so.
pub(crate) fn drop_duplicate_owners(object: &mut Value) -> Option<String> {
    let references = object["metadata"].get_mut("ownerReferences")?.as_array_mut()?;
    let mut seen: Vec<Value> = Vec::new();
    let mut twice: Vec<String> = Vec::new();
    references.retain(|reference| {
        let uid = reference["uid"].as_str().unwrap_or_default();
        if seen.iter().any(|s| s["uid"] == reference["uid"]) && !twice.iter().any(|t| t == uid) {
            twice.push(uid.to_owned());
        }
        let known = seen.contains(reference);
        seen.push(reference.clone());
        !known
    });
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// Finalizers that say not whose they are.
pub(crate) fn of_finalizers(object: &Value) -> Vec<String> {
    let bare = crate::object::finalizers(object).filter(|f| !f.contains('/'));
    let unclear = bare.filter(|f| !matches!(*f, "orphan" | "foregroundDeletion" | "kubernetes"));
    unclear
        .map(|f| {
            format!(
                "metadata.finalizers: {f:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with \
                 other finalizer writers"
            )
        })
        .collect()
}
