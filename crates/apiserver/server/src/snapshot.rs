//! A server's state at one moment → servers in memory that begin with it: objects and compiled definitions, shared, not copied.
//!
//! Tests that need the same definitions and roles many times make them once.

use std::sync::Arc;

use crate::api::Api;
use crate::registry::Registry;
use crate::store::{JournalRow, PreparedJournal};

/// What a server held at one moment. Clones share it.
#[derive(Clone)]
pub struct ServerSnapshot {
    objects: Arc<[JournalRow]>,
    version: u64,
    registry: Arc<Registry>,
}

impl ServerSnapshot {
    pub(crate) fn of(api: &Api) -> Self {
        let (objects, version) = api.store.everything();
        Self { objects: objects.into(), version, registry: api.registry() }
    }

    /// What a store begins with.
    pub(crate) fn journal(&self) -> PreparedJournal {
        PreparedJournal::new(self.objects.clone(), self.version)
    }

    /// Everything that was served.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.clone()
    }
}
