//! What the server accepts and warns of all the same.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// What to tell the client of a request, whatever comes of it.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    /// Nobody hears what the server's own controllers are told.
    heard: bool,
    told: Mutex<Vec<String>>,
}

impl Warnings {
    /// For a client, beginning with what it is told in any case.
    pub(crate) fn to_client(first: Option<&str>) -> Self {
        Self { heard: true, told: Mutex::new(first.map(str::to_owned).into_iter().collect()) }
    }

    /// For a controller of the server, which does not listen.
    pub(crate) fn to_nobody() -> Self {
        Self::default()
    }

    /// Adds what there is to tell; not asked where nobody listens.
    pub(crate) fn tell<T: IntoIterator<Item = String>>(&self, what: impl FnOnce() -> T) {
        if self.heard {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).extend(what());
        }
    }

    pub(crate) fn into_told(self) -> Vec<String> {
        self.told.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

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

/// Finalizers that are new and say not whose they are.
pub(crate) fn of_finalizers(object: &Value, old: Option<&Value>) -> Vec<String> {
    let is_old = |name: &str| old.is_some_and(|old| crate::object::finalizers(old).any(|there| there == name));
    let bare = crate::object::finalizers(object).filter(|f| !f.contains('/') && !is_old(f));
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
