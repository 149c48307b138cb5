//! The five steps that every controller is made of; the engine alone calls them.

use std::fmt::Debug;

use portolan_core::{ObjectKey, Plan, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::dispatch::store::Projected;
use crate::pass::report::Report;

/// A Kubernetes object whose kind is known when the program is built.
pub trait Object:
    kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static
{
}

/// What never changes about the controller of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The kind's name, as in logs and metrics.
    pub kind: &'static str,
    /// The finalizer that holds an object until its remote part is gone; none where nothing is left behind.
    pub finalizer: Option<&'static str>,
    /// Finalizers of earlier operators: they count as ours when the object is deleted, and go with ours.
    pub older_finalizers: &'static [&'static str],
    /// Annotations of earlier operators that go together with their finalizers, in the same write.
    pub older_annotations: &'static [&'static str],
    /// Whether ours takes the place of the older finalizers on objects that live. Where an earlier operator is gone
    /// for good, its finalizer would hold them for ever.
    pub replaces_older_finalizers: bool,
    /// Whether the kind's status is ours to write. Kinds of others report by events and in their own ways, and say
    /// themselves which of them are news.
    pub owns_status: bool,
    /// Whether a status is written where nothing but a time in it is new. Such times must come from what happened, not
    /// from the clock, or a settled object would be written again and again.
    pub heeds_times: bool,
}

impl Profile {
    /// A kind that leaves nothing behind and whose status is ours.
    pub const fn of(kind: &'static str) -> Self {
        Self {
            kind,
            finalizer: None,
            older_finalizers: &[],
            older_annotations: &[],
            replaces_older_finalizers: false,
            owns_status: true,
            heeds_times: false,
        }
    }
}

/// What happens to the objects of one kind: gather → plan → apply → report.
///
/// # Expected flow
/// The engine reads an object, calls [`gather`](Self::gather) and [`plan`](Self::plan), stores the finalizer where one is
/// missing, calls [`apply`](Self::apply) where the plan has changes, and writes what [`report`](Self::report) says.
/// An object that is being deleted takes the same way; its plan holds removals only, and the finalizer goes last.
///
/// # Guarantees
/// One object is in one step at a time; different objects run side by side. The finalizer is stored before the
/// first `apply`. A [`Problem`] of any step ends the pass, and the engine chooses by its class when to try again.
///
/// # Assumptions
/// Every step is safe to repeat after a crash at any instruction. [`project`](Self::project), `plan`, `changes` and
/// `report` are pure: in tests they run where nothing can be read or written ([`Purity`](crate::Purity)). What else is to
/// happen in memory has hooks of its own: [`seen`](Self::seen), [`rests`](Self::rests) and
/// [`remember`](Self::remember).
pub trait Reconcile: Send + Sync + 'static {
    /// The kind of object.
    type Object: Object;
    /// What `gather` read.
    type Inputs: Send + Sync;
    /// What is to be done.
    type Plan: Send + Sync;
    /// What was done.
    type Applied: Send + Sync;
    /// What the cache keeps of an object: small, since there is one for each.
    type Projection: Clone + PartialEq + Send + Sync + 'static;

    /// What never changes about this controller.
    fn profile(&self) -> Profile;

    /// Whether an object is any business of ours. One that is not is passed over, with whatever finalizers it has.
    fn is_relevant(&self, _object: &Self::Object) -> bool {
        true
    }

    /// Whether a living object needs its finalizer. Where nothing is left behind by one that has it, it is taken away.
    fn needs_finalizer(&self, _object: &Self::Object, _inputs: &Self::Inputs, _plan: &Self::Plan) -> bool {
        true
    }

    /// Whether a change of this annotation is a reason to run. Annotations that other programs rewrite all the time
    /// are best left out.
    fn reacts_to_annotation(&self, annotation: &str) -> bool {
        !annotation.starts_with("kubectl.kubernetes.io/")
    }

    /// What the cache keeps of an object. Pure.
    fn project(&self, object: &Self::Object) -> Self::Projection;

    /// What the cache keeps of an object is news: it came (nothing before), changed, or is gone from Kubernetes (nothing
    /// after). Called in order and for news alone; the loop waits for it, so it notes, enqueues or wakes, and returns.
    fn seen(
        &self,
        _key: &ObjectKey,
        _before: Option<&Projected<Self::Projection>>,
        _after: Option<&Projected<Self::Projection>>,
    ) {
    }

    /// Reads what planning needs.
    fn gather(&self, object: &Self::Object) -> impl Future<Output = Result<Self::Inputs, Problem>> + Send;

    /// What is to be done. An object that is being deleted plans removals only. Pure.
    fn plan(&self, object: &Self::Object, inputs: &Self::Inputs) -> Result<Self::Plan, Problem>;

    /// The plan as everyone else sees it. Without changes, `apply` is not called.
    fn changes(&self, plan: &Self::Plan) -> Plan;

    /// Whether `apply` is called. Kinds that also do what is no change of anything remote say when.
    fn has_work(&self, plan: &Self::Plan) -> bool {
        !self.changes(plan).is_empty()
    }

    /// Nothing is written in this pass, or nothing more: the plan is empty, or a step failed. What `gather` announced to
    /// others is taken back.
    fn rests(&self, _inputs: &Self::Inputs) {}

    /// Status fields that must be stored before `apply`, merged into the status there is: the note that a kind
    /// without marks makes before it creates something.
    fn intent(&self, _object: &Self::Object, _inputs: &Self::Inputs, _plan: &Self::Plan) -> Option<Value> {
        None
    }

    /// Carries the plan out.
    fn apply(
        &self,
        object: &Self::Object,
        inputs: &Self::Inputs,
        plan: &Self::Plan,
    ) -> impl Future<Output = Result<Self::Applied, Problem>> + Send;

    /// What the user gets to see; the engine writes it. Pure.
    fn report(&self, object: &Self::Object, outcome: Outcome<'_, Self>) -> Report;

    /// How a pass ended, for whoever asks later: other controllers, and looks for drift. Called right before the report is
    /// written; it remembers and enqueues, and reads and writes nothing.
    fn remember(&self, _object: &Self::Object, _outcome: Outcome<'_, Self>) {}
}

/// How a pass over an object ended.
pub enum Outcome<'a, R: Reconcile + ?Sized> {
    /// The plan was carried out.
    Applied {
        /// What was read.
        inputs: &'a R::Inputs,
        /// What was to be done.
        plan: &'a R::Plan,
        /// What was done.
        applied: &'a R::Applied,
    },
    /// There was nothing to do.
    Unchanged {
        /// What was read.
        inputs: &'a R::Inputs,
        /// A plan without changes.
        plan: &'a R::Plan,
    },
    /// A step failed. The status that the report gives is merged into the one there is, so that ids stay.
    Failed(PassFailure<'a, R>),
}

/// A step that failed.
pub struct PassFailure<'a, R: Reconcile + ?Sized> {
    /// Why.
    pub problem: &'a Problem,
    /// What was read and to be done, where the pass came so far.
    pub planned: Option<(&'a R::Inputs, &'a R::Plan)>,
    /// What the pass before failed for.
    pub before: Option<&'a Problem>,
}

impl<R: Reconcile + ?Sized> PassFailure<'_, R> {
    /// Whether the pass before did not fail for the same.
    pub fn is_news(&self) -> bool {
        self.before.is_none_or(|before| before.message != self.problem.message)
    }
}
