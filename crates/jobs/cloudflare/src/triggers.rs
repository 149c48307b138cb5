//! Who runs when something changes that objects depend on.
//!
//! All controllers of the job keep the same [`Projection`], so one look through their stores answers for all kinds.

use std::sync::{Mutex, PoisonError};

use portolan_core::ObjectKey;
use portolan_engine::{Handle, Store};

use crate::projection::Projection;

/// The controllers of the job by kind.
#[derive(Default)]
pub(crate) struct Triggers {
    handles: Mutex<Vec<(&'static str, Handle<Projection>)>>,
}

impl Triggers {
    pub(crate) fn add(&self, kind: &'static str, handle: Handle<Projection>) {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push((kind, handle));
    }

    /// Objects that depend on this run, whatever their kind; `except` is the controller that asks.
    pub(crate) fn changed(&self, dependency: &str, except: Option<&str>) {
        for (_, handle) in self.handles().iter().filter(|(kind, _)| Some(*kind) != except) {
            handle.enqueue_where(|_, projection| projection.depends_on(dependency));
        }
    }

    /// How many objects depend on this, whatever their kind.
    pub(crate) fn dependents(&self, dependency: &str) -> usize {
        let of = |handle: &Handle<Projection>| handle.read(|store| dependents(store, dependency).len());
        self.handles().iter().map(|(_, handle)| of(handle)).sum()
    }

    /// Objects whose name lies in a domain run.
    pub(crate) fn domain_changed(&self, domain: &str) {
        for (_, handle) in &self.handles() {
            handle.enqueue_where(|_, projection| projection.lies_in(domain));
        }
    }

    /// The objects of a kind that say that they are its default run.
    pub(crate) fn defaults_changed(&self, kind: &str) {
        for (_, handle) in self.handles().iter().filter(|(one, _)| *one == kind) {
            handle.enqueue_where(|_, projection| projection.default);
        }
    }

    /// Deletions in a scope are held: the object that stands for it says so.
    pub(crate) fn deletions_held(&self, scope: &str) {
        for (_, handle) in &self.handles() {
            handle.enqueue_where(|_, projection| projection.stands_for(scope));
        }
    }

    /// Held deletions were released: what is being deleted runs.
    pub(crate) fn held_released(&self) {
        for (_, handle) in &self.handles() {
            let deleting = handle.read(keys_where_deleting);
            handle.enqueue_all(&deleting);
        }
    }

    /// A copy, so that no lock is held while a controller is told.
    fn handles(&self) -> Vec<(&'static str, Handle<Projection>)> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn keys_where_deleting(store: &Store<Projection>) -> Vec<ObjectKey> {
    store.iter().filter(|(_, object)| object.deleting).map(|(key, _)| key.clone()).collect()
}

/// Objects of one controller that depend on this.
pub(crate) fn dependents(store: &Store<Projection>, dependency: &str) -> Vec<ObjectKey> {
    let depends = |projection: &Projection| projection.depends_on(dependency);
    store.projections().filter(|(_, projection)| depends(projection)).map(|(key, _)| key.clone()).collect()
}

/// Objects of one controller whose addresses come through a route.
pub(crate) fn dependents_of_routes(store: &Store<Projection>) -> Vec<ObjectKey> {
    store.projections().filter(|(_, projection)| projection.through_route).map(|(key, _)| key.clone()).collect()
}
