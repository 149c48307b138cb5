//! The reconciler of every kind of the job: gather, plan, apply and report, written once. Each step is a module.

mod apply;
mod gather;
mod plan;
#[cfg(test)]
mod purity_tests;
mod report;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use portolan_cloudflare_api::{Client, CollectionHandle, Entry, Item, PendingWrite};
use portolan_core::{Mark, ObjectId, ObjectKey, Plan, Problem, reasons};
use portolan_engine::{Claims, Handle, LedgerWork, Outcome, Profile, Projected, Reconcile, Report, Seniority};
use serde_json::Value;

use crate::definition::STEERING;
use crate::drift_memory::KindDriftMemory;
use crate::job::JobContext;
use crate::kind::{Kind, Management, Recorded, Resolved};
use crate::projection::{Projection, digest};
use crate::resolve::{Right, ScopeRef};
use crate::sheet::IntentStatus;
use portolan_core::ownership::{Matched, RemoteWrite};

/// How soon a decision is made again that rested on a snapshot that proved wrong.
const SOON: Duration = Duration::from_secs(1);

/// Reconciles one kind.
pub(crate) struct KindReconciler<K: Kind> {
    pub(crate) shared: Arc<JobContext>,
    pub(crate) handle: OnceLock<Handle<Projection>>,
    pub(crate) drift_memory: KindDriftMemory,
    /// By the digests of claims.
    pub(crate) claims: Claims<u64>,
    kind: std::marker::PhantomData<fn() -> K>,
}

/// One account or zone with what was found there for an object.
pub(crate) struct FoundThere<B: Item> {
    place: ScopeRef,
    client: Client,
    /// By what right something is removed here.
    right: Right,
    remote: Arc<CollectionHandle<B>>,
    candidates: Vec<Entry<B>>,
    /// Candidates that other objects of the kind recorded, and which ones.
    elsewhere: BTreeMap<String, String>,
    /// Tells the collection's writer that this object may be about to write.
    expected: Mutex<Option<PendingWrite<B>>>,
}

impl<B: Item> FoundThere<B> {
    /// The write begins now, or does not come.
    fn expect_no_longer(&self) {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// What was read for an object.
pub(crate) struct Inputs<B: Item> {
    resolved: Resolved,
    wanted: Vec<B>,
    /// Where the object's remote part belongs now.
    here: Option<FoundThere<B>>,
    /// Where its status says it was before.
    former: Option<FoundThere<B>>,
    /// The Secret that the credential was read from.
    secret: Option<ObjectKey>,
    /// The remote object of an observed kind.
    observed: Option<Entry<B>>,
    /// Where the object's remote part was, if that is gone as a whole.
    gone: Option<ScopeRef>,
    /// Ids that stay behind because the user said so.
    left_behind: Vec<String>,
    /// Objects that still refer to this one, which goes.
    still_used: usize,
    /// Whether the object is to delete itself.
    ends_itself: bool,
    /// What is due in the ledgers of the scope that the object stands for.
    ledgers: LedgerWork,
    /// When Cloudflare was asked.
    checked_at: String,
}

/// What is to be done for an object.
pub(crate) struct Steps<B> {
    here: Matched<B>,
    former: Vec<RemoteWrite<B>>,
    changes: Plan,
    ends_itself: bool,
    /// The scope that the object stands for, and what is due in its ledgers.
    ledgers: Option<(String, LedgerWork)>,
}

/// What stands for the object after its plan was carried out.
pub(crate) struct Carried<B> {
    present: Vec<Entry<B>>,
}

impl<K: Kind> KindReconciler<K> {
    pub(crate) fn new(shared: Arc<JobContext>) -> Self {
        Self {
            shared,
            handle: OnceLock::new(),
            drift_memory: KindDriftMemory::default(),
            claims: Claims::default(),
            kind: std::marker::PhantomData,
        }
    }

    fn id_of(&self, key: &ObjectKey) -> ObjectId {
        ObjectId::new(K::KIND, key.clone())
    }

    /// What stands for an object is kept for looks for drift.
    fn keep(&self, object: &K, inputs: &Inputs<K::Body>, present: &[Entry<K::Body>], beside: &[Entry<K::Body>]) {
        let key = key_of(object);
        match &inputs.here {
            Some(found) if object.meta().deletion_timestamp.is_none() => {
                let kept = self.handle.get().and_then(|handle| handle.key(&key));
                let key = kept.unwrap_or_else(|| key.clone().into());
                self.drift_memory.set(key, (&found.place.id, &found.client), present, beside.is_empty());
            }
            _ => self.drift_memory.remove(&key),
        }
        if !beside.is_empty() {
            self.drift_memory.conflicted(key);
        }
    }

    /// An object is gone from Kubernetes.
    fn gone(&self, key: &ObjectKey) {
        self.drift_memory.remove(key);
        if let Some(scope) = self.shared.deletions.withdraw(&self.id_of(key)) {
            self.shared.triggers.deletions_held(&scope);
        }
        self.shared.triggers.user_gone();
        self.shared.guard.look_again();
    }

    /// Other objects that say that they are the default too, as a problem.
    fn other_defaults(&self, object: &K) -> Option<Problem> {
        let handle = self.handle.get().filter(|_| K::MANAGEMENT == Management::Observed && object.is_default())?;
        let own = key_of(object);
        let is_default = |one: &Projected<Projection>| {
            !one.deleting && one.projection.as_ref().is_some_and(|projection| projection.default)
        };
        let others: Vec<String> = handle.read(|store| {
            let defaults = store.iter().filter(|(key, one)| **key != own && is_default(one));
            defaults.map(|(key, _)| key.to_string()).collect()
        });
        if others.is_empty() {
            return None;
        }
        let names = portolan_core::text::join_and(&others);
        let message = format!("isDefault is also true in {} {names}; keep one of them the default", K::KIND);
        Some(Problem::waiting(reasons::DUPLICATE_DEFAULT, message))
    }

    /// An older object that wants the same, as a problem.
    fn rival(&self, object: &K) -> Option<Problem> {
        if let Some(problem) = self.other_defaults(object) {
            return Some(problem);
        }
        let claim = object.claim()?;
        let older = self.claims.elder(&digest(&claim), &Seniority::of(object.meta()), |_| true)?;
        Some(Problem::waiting(
            reasons::CONFLICT_ERROR,
            format!(
                "{claim} is already wanted by {} {older}, which is older; nothing was changed. Delete one of the two",
                K::KIND
            ),
        ))
    }

    fn mark(&self, object: &K) -> Mark {
        Mark { kind: K::KIND.to_owned(), key: key_of(object), owner: self.shared.owner.clone(), adopted: false }
    }
}

impl<K: Kind> Reconcile for KindReconciler<K> {
    type Object = K;
    type Inputs = Inputs<K::Body>;
    type Plan = Steps<K::Body>;
    type Applied = Carried<K::Body>;
    type Projection = Projection;

    fn profile(&self) -> Profile {
        let (finalizer, older_finalizers) = (Some(K::FINALIZER), K::SHEET.older_finalizers);
        Profile { finalizer, older_finalizers, ..Profile::of(K::KIND) }
    }

    fn reacts_to_annotation(&self, annotation: &str) -> bool {
        STEERING.is_one(annotation)
    }

    fn project(&self, object: &K) -> Projection {
        portolan_core::waypoint!();
        Projection::of(object)
    }

    fn seen(&self, key: &ObjectKey, before: Option<&Projected<Projection>>, after: Option<&Projected<Projection>>) {
        self.shared.triggers.seen::<K>(before, after);
        // Who else wants the same is told when what stands for this one is gone.
        self.claims.seen(before, after, |projection| projection.claim);
        let Some(after) = after else { return self.gone(key) };
        // What does not parse is as it was before.
        let Some(projection) = &after.projection else { return };
        let known = before.and_then(|one| one.projection.as_ref());
        let needs = |made_with: Option<_>, one: Option<&Projected<Projection>>| {
            (made_with, one.is_some_and(|one| one.deleting))
        };
        if needs(known.and_then(|known| known.made_with), before) != needs(projection.made_with, Some(after)) {
            self.shared.guard.look_again();
        }
    }

    async fn gather(&self, object: &K) -> Result<Self::Inputs, Problem> {
        if object.meta().deletion_timestamp.is_some() {
            return self.gather_removal(object).await;
        }
        object.check()?;
        // What is already there for this object is looked after, whoever wants the same later.
        let is_there = K::MANAGEMENT == Management::Owned && !object.recorded().ids.is_empty();
        match self.rival(object).filter(|_| !is_there) {
            Some(rival) => Err(rival),
            None => self.gather_wanted(object).await,
        }
    }

    fn plan(&self, object: &K, inputs: &Self::Inputs) -> Result<Self::Plan, Problem> {
        let recorded = object.recorded();
        let here = if let Some(found) = &inputs.here {
            let there = plan::owned_there::<K>(found, &recorded);
            self.matched(object, found, inputs.wanted.clone(), &inputs.resolved, &there)?
        } else {
            Matched { steps: Vec::new(), kept: inputs.observed.iter().cloned().collect(), beside: Vec::new() }
        };
        let former = match &inputs.former {
            Some(found) => {
                // The note is about what is made here.
                let recorded = Recorded { intent: IntentStatus { creating: None, ..recorded.intent }, ..recorded };
                self.matched(object, found, Vec::new(), &inputs.resolved, &recorded)?.steps
            }
            None => Vec::new(),
        };
        let mut deleted = here.steps.iter().chain(&former).filter_map(RemoteWrite::deleted);
        if let Some(problem) = deleted.find_map(K::undeletable) {
            return Err(problem);
        }
        let changes = plan::changes::<K>(object, inputs, &here.steps, &former);
        let ledgers = inputs.observed.as_ref().filter(|_| !inputs.ledgers.is_empty());
        let ledgers = ledgers.map(|entry| (entry.id.clone(), inputs.ledgers.clone()));
        Ok(Steps { here, former, changes, ends_itself: inputs.ends_itself, ledgers })
    }

    fn changes(&self, plan: &Self::Plan) -> Plan {
        plan.changes.clone()
    }

    /// What is held is let go, which changes nothing at Cloudflare yet.
    fn has_work(&self, plan: &Self::Plan) -> bool {
        !plan.changes.is_empty() || plan.ledgers.is_some()
    }

    fn intent(&self, object: &K, inputs: &Self::Inputs, plan: &Self::Plan) -> Option<Value> {
        plan::intent(object, inputs, plan)
    }

    fn rests(&self, inputs: &Self::Inputs) {
        for found in inputs.here.iter().chain(&inputs.former) {
            found.expect_no_longer();
        }
    }

    async fn apply(&self, object: &K, inputs: &Self::Inputs, plan: &Self::Plan) -> Result<Self::Applied, Problem> {
        if let Some(found) = inputs.here.as_ref().filter(|_| plan.here.steps.is_empty()) {
            found.expect_no_longer();
        }
        if let Some((scope, work)) = &plan.ledgers
            && self.shared.deletions.settle(scope, work).await?
        {
            self.shared.triggers.held_released();
        }
        if plan.ends_itself {
            self.shared.delete(object).await?;
        }
        let to_delete_later = K::MANAGEMENT == Management::Owned && !plan.here.steps.iter().all(RemoteWrite::removes);
        if let Some(secret) = inputs.secret.as_ref().filter(|_| to_delete_later) {
            self.shared.hold(secret).await?;
        }
        let mut present = plan.here.kept.clone();
        if let Some(found) = &inputs.here {
            present.extend(self.carry_out(object, found, &plan.here.steps).await?);
        }
        if let Some(found) = &inputs.former {
            self.carry_out(object, found, &plan.former).await?;
        }
        if object.meta().deletion_timestamp.is_some() {
            self.promote_rivals(object);
        }
        Ok(Carried { present })
    }

    fn report(&self, object: &K, outcome: Outcome<'_, Self>) -> Report {
        match outcome {
            Outcome::Applied { inputs, plan, applied } => {
                let mut notices = report::notices::<K>(plan, inputs);
                notices.extend(inputs.here.as_ref().and_then(report::near_limit::<K>));
                self.well(object, inputs, plan, &applied.present, notices)
            }
            Outcome::Unchanged { inputs, plan } => {
                self.well(object, inputs, plan, &plan.here.kept, report::left_behind(inputs))
            }
            Outcome::Failed(failure) => Self::failed(object, &failure),
        }
    }

    fn remember(&self, object: &K, outcome: Outcome<'_, Self>) {
        match outcome {
            Outcome::Applied { inputs, plan, applied } => {
                self.keep(object, inputs, &applied.present, &plan.here.beside);
            }
            Outcome::Unchanged { inputs, plan } => self.keep(object, inputs, &plan.here.kept, &plan.here.beside),
            Outcome::Failed(failure) if failure.problem.reason == reasons::CONFLICT_ERROR => {
                self.drift_memory.conflicted(key_of(object));
            }
            Outcome::Failed(_) => {}
        }
    }
}

pub(crate) fn key_of<K: kube::Resource<DynamicType = ()>>(object: &K) -> ObjectKey {
    portolan_engine::key_of(object.meta())
}
