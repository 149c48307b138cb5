//! The five steps that every controller is made of; the engine alone calls them.

use std::fmt::Debug;

use portolan_core::{ObjectKey, Plan, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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
/// Every step is safe to repeat after a crash at any instruction. `plan`, `changes` and `report` are pure.
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

    /// The kind's name, as in logs and metrics.
    fn kind(&self) -> &'static str;

    /// The finalizer that holds an object until its remote part is gone; none where nothing is left behind.
    fn finalizer(&self) -> Option<&'static str>;

    /// Finalizers of earlier operators: they count as ours when the object is deleted, and go with ours.
    fn older_finalizers(&self) -> &'static [&'static str] {
        &[]
    }

    /// Annotations of earlier operators that go together with their finalizers, in the same write.
    fn older_annotations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether ours takes the place of the older finalizers on objects that live. Where an earlier operator is gone
    /// for good, its finalizer would hold them for ever.
    fn replaces_older_finalizers(&self) -> bool {
        false
    }

    /// Whether an object is any business of ours. One that is not is passed over, with whatever finalizers it has.
    fn concerns(&self, _object: &Self::Object) -> bool {
        true
    }

    /// Whether a living object needs its finalizer. Where nothing is left behind by one that has it, it is taken away.
    fn protects(&self, _object: &Self::Object, _inputs: &Self::Inputs, _plan: &Self::Plan) -> bool {
        true
    }

    /// Whether a change of this annotation is a reason to run. Annotations that other programs rewrite all the time
    /// are best left out.
    fn heeds(&self, annotation: &str) -> bool {
        !annotation.starts_with("kubectl.kubernetes.io/")
    }

    /// Whether the kind's status is ours to write. Kinds of others report by events and in their own ways.
    fn owns_status(&self) -> bool {
        true
    }

    /// Whether a status is written where nothing but a time in it is new. Such times must come from what happened, not
    /// from the clock, or a settled object would be written again and again.
    fn heeds_times(&self) -> bool {
        false
    }

    /// What the cache keeps of an object.
    fn project(&self, object: &Self::Object) -> Self::Projection;

    /// Reads what planning needs.
    fn gather(&self, object: &Self::Object) -> impl Future<Output = Result<Self::Inputs, Problem>> + Send;

    /// What is to be done. An object that is being deleted plans removals only.
    fn plan(&self, object: &Self::Object, inputs: &Self::Inputs) -> Result<Self::Plan, Problem>;

    /// The plan as everyone else sees it. Without changes, `apply` is not called.
    fn changes(&self, plan: &Self::Plan) -> Plan;

    /// Whether `apply` is called. Kinds that also do what is no change of anything remote say when.
    fn acts(&self, plan: &Self::Plan) -> bool {
        !self.changes(plan).is_empty()
    }

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

    /// What the user gets to see.
    fn report(&self, object: &Self::Object, outcome: Outcome<'_, Self>) -> Report;

    /// An object is gone from Kubernetes: what was kept about it elsewhere can go too.
    fn forgotten(&self, _key: &ObjectKey) {}
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
    Failed(&'a Problem),
}
