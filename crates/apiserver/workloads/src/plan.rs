//! What a controller wants to be done.

use std::time::Duration;

use serde_json::Value;

/// Steps in their order, and when to look again where only time makes a difference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Carried out one after the other; those after a failed one are left to the next plan.
    pub steps: Vec<Step>,
    /// Plan again after this long although nothing changed.
    pub again_after: Option<Duration>,
}

impl FromIterator<Step> for Plan {
    /// Steps without a time to look again.
    fn from_iter<T: IntoIterator<Item = Step>>(steps: T) -> Self {
        Self { steps: steps.into_iter().collect(), again_after: None }
    }
}

/// An object that a step is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTarget {
    /// As `pods`, or `replicasets.apps`.
    pub collection: &'static str,
    /// Empty for kinds without namespaces.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The uid that it must still have.
    pub uid: String,
    /// The resource version that the plan was made for, where another one would make the step wrong.
    pub version: Option<String>,
}

/// The endpoint that a patch goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The object.
    Main,
    /// Its `/status`.
    Status,
}

/// When the objects go that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// After it: background propagation.
    After,
    /// Before it: foreground propagation.
    Before,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make an object, in the namespace and under the name (or `generateName`) that its metadata says.
    Create {
        /// Where.
        collection: &'static str,
        /// All of it but what the server sets; `apiVersion` and `kind` included.
        object: Value,
    },
    /// A JSON merge patch (RFC 7386): lists are replaced, null removes.
    Patch {
        /// Which object.
        target: StepTarget,
        /// Which endpoint.
        part: Endpoint,
        /// What changes.
        patch: Value,
    },
    /// Delete it.
    Delete {
        /// Which object.
        target: StepTarget,
        /// And what it owns.
        dependents: Dependents,
    },
    /// Tell about an object.
    Event(Event),
}

/// In an event's message: the name of the object that the creation before it in the plan made.
pub const CREATED: &str = "{created}";

/// Why the server did not take a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// As `AlreadyExists`.
    pub reason: String,
    /// The server's sentence.
    pub message: String,
}

/// Whether an event is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum EventType {
    Normal,
    Warning,
}

/// What people see in `kubectl describe`. Repeated ones are counted, not written again.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The object that it is about, with `apiVersion`, `kind` and metadata.
    pub about: Value,
    /// Normal or warning.
    pub event_type: EventType,
    /// As `SuccessfulCreate`.
    pub reason: &'static str,
    /// A sentence; [`CREATED`] in it becomes a name.
    pub message: String,
}
