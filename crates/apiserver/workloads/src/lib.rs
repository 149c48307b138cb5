//! Kubernetes' controllers of workloads, as decisions: what is there goes in, the steps to take come out.
//!
//! Pure: no store, no clock, no runtime. The API server keeps a [`View`] of the collections that a [`Controller`]
//! watches, asks it for a [`Plan`] whenever something that concerns an object changed, and carries the steps out.
//! A step that fails because its object changed meanwhile is dropped: the change asks for a new plan.

mod common;
mod deployment;
mod endpoint_mirroring;
mod endpoint_slices;
mod endpoints;
mod job;
mod plan;
#[cfg(test)]
mod recorded;
mod replicaset;
mod root_certificate;
mod service_account;
mod serving;
mod stateful_set;
#[cfg(test)]
mod testing;
mod unscheduled;
mod view;

pub use plan::{CREATED, Dependents, Endpoint, Event, EventType, Plan, Step, StepFailure, StepTarget};
pub use root_certificate::RootCertificate;
pub use unscheduled::UnscheduledPods;
pub use view::{ObjectName, View};

use serde_json::Value;

/// One controller: the kind that it cares for, and what it does about an object of that kind.
pub trait Controller: Send + Sync {
    /// What its events are said to come from, as `deployment-controller`.
    fn component(&self) -> &'static str;

    /// The collection whose objects it plans for, as `deployments.apps`, or `services` in the core group.
    fn collection(&self) -> &'static str;

    /// Further collections that it reads: their changes make it look again.
    fn watches(&self) -> &'static [&'static str];

    /// Whether it looks at an object of this name in a watched collection; those that nobody looks at are not kept.
    fn reads(&self, _collection: &str, _name: &str) -> bool {
        true
    }

    /// The objects of its own collection that a change of `object` in a watched `collection` concerns. It is asked about
    /// the object before and after the change.
    fn concerned(&self, view: &dyn View, collection: &str, object: &Value) -> Vec<ObjectName>;

    /// What to do about an object. A second plan after its steps were carried out is empty.
    fn plan(&self, view: &dyn View, object: &Value) -> Plan;

    /// What to tell about a step that was refused for another reason than a change or an end of its object. The object
    /// is planned for again after a while in any case.
    fn failed(&self, _view: &dyn View, _object: &Value, _step: &Step, _failure: &StepFailure) -> Plan {
        Plan::default()
    }

    /// What to do once an object is gone; garbage collection follows owner references by itself.
    fn gone(&self, _view: &dyn View, _name: &ObjectName) -> Plan {
        Plan::default()
    }
}

/// All of them.
pub fn controllers() -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(deployment::Deployments),
        Box::new(replicaset::ReplicaSets),
        Box::new(endpoint_slices::EndpointSlices),
        Box::new(endpoints::Endpoints),
        Box::new(endpoint_mirroring::Mirroring),
        Box::new(service_account::DefaultServiceAccount),
        Box::new(stateful_set::StatefulSets),
        Box::new(job::Jobs),
    ]
}
