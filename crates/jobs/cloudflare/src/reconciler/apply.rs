//! Carries an object's steps out: asks for deletions first, writes as one source of a group commit, explains refusals.

use std::collections::BTreeSet;

use portolan_cloudflare_api::{ApiError, Entry, ErrorClass, Item, Lane, Op, Written};
use portolan_core::ownership::{Ownership, RemoteWrite};
use portolan_core::{ObjectKey, Problem, reasons};
use portolan_engine::{DeletionScope, Store, Surroundings};

use super::{FoundThere, KindReconciler, SOON, key_of};
use crate::kind::Kind;

use crate::projection::{Projection, digest};
use crate::resolve::ScopeRef;

impl<K: Kind> KindReconciler<K> {
    /// Deletions take names off the network: they go before other changes.
    pub(super) fn lane(&self, object: &K) -> Lane {
        if object.meta().deletion_timestamp.is_some() { Lane::Protect } else { Lane::Change }
    }

    pub(super) async fn carry_out(
        &self,
        object: &K,
        found: &FoundThere<K::Body>,
        steps: &[RemoteWrite<K::Body>],
    ) -> Result<Vec<Entry<K::Body>>, Problem> {
        portolan_core::waypoint!();
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        self.ask_for_deletions(object, found, steps).await?;
        let ops: Vec<Op> = steps.iter().filter(|step| !step.is_silent()).map(op).collect();
        let mut present: Vec<Entry<K::Body>> = steps.iter().filter_map(taken_silently).collect();
        found.expect_no_longer();
        if ops.is_empty() {
            return Ok(present);
        }
        match found.remote.write(self.lane(object), ops).await {
            Ok(written) => {
                present.extend(written.iter().filter_map(Written::entry).cloned());
                Ok(present)
            }
            Err(error) if steps.iter().all(RemoteWrite::removes) => {
                // The place may have gone since it was listed.
                let doing = writing::<K>(steps, &found.place);
                let account = object.recorded();
                let gone = self.place_gone(&found.client, found.right, &found.place, &account, &error, &doing).await;
                gone.map(|()| Vec::new()).map_err(|problem| self.explain(object, &error, problem))
            }
            Err(error) => {
                let problem = error.problem(&writing::<K>(steps, &found.place));
                Err(self.explain(object, &error, problem))
            }
        }
    }

    pub(super) async fn ask_for_deletions(
        &self,
        object: &K,
        found: &FoundThere<K::Body>,
        steps: &[RemoteWrite<K::Body>],
    ) -> Result<(), Problem> {
        let names: Vec<String> = steps.iter().filter(|step| step.deletes()).map(RemoteWrite::label).collect();
        if names.is_empty() {
            return Ok(());
        }
        let ending = portolan_engine::is_ending(&self.shared.client, object.meta().namespace.as_deref()).await;
        let surroundings = || self.surroundings(found, ending.then_some(object.meta().namespace.as_deref()).flatten());
        let scope = DeletionScope {
            id: found.place.id.clone(),
            collection: K::REMOTE.name.to_owned(),
            label: found.place.label.clone(),
        };
        let news = || self.shared.triggers.deletions_held(&scope.id);
        self.shared.deletions.ask(self.id_of(&key_of(object)), &scope, &names, surroundings, news).await
    }

    /// What else in a place is about to be deleted: of objects that are going, or whose namespace is.
    pub(super) fn surroundings(&self, found: &FoundThere<K::Body>, ending: Option<&str>) -> Surroundings {
        let going =
            |key: &ObjectKey, deleting: bool| deleting || (ending.is_some() && key.namespace.as_deref() == ending);
        let ids: Vec<Box<str>> = self.handle.get().map_or_else(Vec::new, |handle| {
            handle.read(|store| {
                let going = store.iter().filter(|(key, one)| going(key, one.deleting));
                going.filter_map(|(_, one)| one.projection.as_ref()).flat_map(|one| one.ids.iter().cloned()).collect()
            })
        });
        let recorded = match K::SHEET.ownership {
            Ownership::Mark => BTreeSet::new(),
            Ownership::Intent => self.recorded_ids(),
        };
        let is_somebodys = |entry: &&Entry<K::Body>| match K::SHEET.ownership {
            Ownership::Mark => entry.item.owner_key().is_some(),
            Ownership::Intent => recorded.contains(entry.id.as_str()),
        };
        found.remote.with(|snapshot| Surroundings {
            following: ids.iter().filter_map(|id| snapshot.get(id)).map(|entry| entry.item.label()).collect(),
            total: snapshot.iter().filter(is_somebodys).count(),
        })
    }

    /// The ids that objects of the kind recorded.
    fn recorded_ids(&self) -> BTreeSet<Box<str>> {
        let ids = |store: &Store<Projection>| store.projections().flat_map(|(_, one)| one.ids.to_vec()).collect();
        self.handle.get().map_or_else(BTreeSet::new, |handle| handle.read(ids))
    }

    /// What a refused write means for the object.
    fn explain(&self, object: &K, error: &ApiError, problem: Problem) -> Problem {
        let deleting = object.meta().deletion_timestamp.is_some();
        match error.class {
            // What a deletion waits for may go without the object changing.
            ErrorClass::Validation | ErrorClass::Conflict if deleting => {
                Problem::waiting(reasons::DEPENDENCY_ERROR, problem.message)
            }
            // The snapshot was wrong, and has been corrected: decide again soon.
            ErrorClass::NotFound => Problem::transient(problem.reason, problem.message).with_retry_after(SOON),
            // Perhaps what is in the way is ours, written by another client a moment ago: a fresh listing tells.
            ErrorClass::Conflict if !self.drift_memory.is_conflicted(&key_of(object)) => {
                Problem::transient(reasons::CONFLICT_ERROR, problem.message).with_retry_after(SOON)
            }
            // Something else is in the way: a drift pass looks again when what stands there has changed.
            ErrorClass::Conflict => Problem::invalid(reasons::CONFLICT_ERROR, problem.message),
            ErrorClass::Auth
            | ErrorClass::Validation
            | ErrorClass::Quota
            | ErrorClass::RateLimit
            | ErrorClass::Transient
            | ErrorClass::Unknown => problem,
        }
    }

    /// Objects that stood back for this one may go on.
    pub(super) fn promote_rivals(&self, object: &K) {
        if let (Some(claim), Some(handle)) = (object.claim(), self.handle.get()) {
            let (own, others) = (key_of(object), self.claims.of(&digest(&claim)));
            handle.enqueue_all(others.iter().filter(|other| **other != own));
        }
    }
}

fn writing<K: Kind>(steps: &[RemoteWrite<K::Body>], place: &ScopeRef) -> String {
    let names = portolan_core::text::join_some(steps.iter().map(RemoteWrite::label), 3);
    format!("writing the {} {names} in {}", K::NOUN, place.label)
}

/// What becomes the object's without a request.
fn taken_silently<B: Item>(step: &RemoteWrite<B>) -> Option<Entry<B>> {
    match step {
        RemoteWrite::Adopt { id, before, .. } if step.is_silent() => {
            Some(Entry { id: id.clone(), item: before.clone() })
        }
        RemoteWrite::Adopt { .. }
        | RemoteWrite::Create { .. }
        | RemoteWrite::Update { .. }
        | RemoteWrite::Delete { .. }
        | RemoteWrite::Release { .. } => None,
    }
}

fn op<B: Item>(step: &RemoteWrite<B>) -> Op {
    match step {
        RemoteWrite::Create { body } => Op::Create(body.create_body()),
        RemoteWrite::Update { id, before, after }
        | RemoteWrite::Adopt { id, before, after }
        | RemoteWrite::Release { id, before, after } => Op::Update { id: id.clone(), body: after.update_body(before) },
        RemoteWrite::Delete { id, .. } => Op::Delete { id: id.clone(), query: Vec::new() },
    }
}
