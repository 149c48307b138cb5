//! Who runs when something changes that objects depend on.
//!
//! All controllers of the job keep the same [`Projection`], so one look through their stores answers for all kinds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use portolan_core::ObjectKey;
use portolan_engine::{Handle, Projected, SecretNeed, Store};

use crate::guard::MadeWith;
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

    /// These objects of a kind run.
    pub(crate) fn run(&self, kind: &str, keys: &[ObjectKey]) {
        for (_, handle) in self.handles().iter().filter(|(one, _)| *one == kind) {
            handle.enqueue_all(keys);
        }
    }

    /// How many objects depend on one of these, whatever their kind.
    pub(crate) fn dependents(&self, dependencies: &[String]) -> usize {
        self.count(|projection| dependencies.iter().any(|one| projection.depends_on(one)))
    }

    /// How many objects made something with this credential that still stands.
    pub(crate) fn users(&self, credentials: &str) -> usize {
        self.count(|projection| projection.was_made_with(credentials))
    }

    fn count(&self, counts: impl Fn(&Projection) -> bool) -> usize {
        let of = |store: &Store<Projection>| store.projections().filter(|(_, projection)| counts(projection)).count();
        self.handles().iter().map(|(_, handle)| handle.read(of)).sum()
    }

    /// Whether all objects of all kinds are known.
    pub(crate) fn are_listed(&self) -> bool {
        let handles = self.handles();
        !handles.is_empty() && handles.iter().all(|(_, handle)| handle.is_listed())
    }

    /// By what the things were made that objects recorded, and whether the objects stay.
    pub(crate) fn made_with(&self, operator_namespace: &str) -> Vec<(MadeWith, SecretNeed)> {
        let of = |key: &ObjectKey, one: &Projected<Projection>| {
            let projection = one.projection.as_ref()?;
            let namespace = key.namespace.as_deref().unwrap_or(operator_namespace);
            let made_with = match &projection.secret {
                Some(secret) => MadeWith::Secret(ObjectKey::namespaced(namespace, &**secret)),
                None => MadeWith::Credentials(projection.made_with?),
            };
            Some((made_with, if one.deleting { SecretNeed::Leaving } else { SecretNeed::Staying }))
        };
        let mut all: HashMap<MadeWith, SecretNeed> = HashMap::new();
        for (_, handle) in self.handles() {
            handle.read(|store| {
                for (made_with, need) in store.iter().filter_map(|(key, one)| of(key, one)) {
                    let known = all.entry(made_with).or_insert(need);
                    *known = need.max(*known);
                }
            });
        }
        all.into_iter().collect()
    }

    /// An object is gone: credentials that were only kept for it may go.
    pub(crate) fn user_gone(&self) {
        for (_, handle) in self.handles().iter().filter(|(kind, _)| *kind == "CloudflareCredentials") {
            let deleting = handle.read(keys_where_deleting);
            handle.enqueue_all(&deleting);
        }
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
