//! What a controller sees.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Where an object is, within a collection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Empty for kinds without namespaces.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The objects of the watched collections at one moment, as the API shows them, but without `managedFields`.
pub trait View {
    /// The time.
    fn now(&self) -> Timestamp;

    /// One object.
    fn get(&self, collection: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// The objects of a namespace, by name; of all namespaces where it is empty.
    fn list(&self, collection: &str, namespace: &str) -> Vec<Arc<Value>>;

    /// Looks at the objects of a namespace one after the other; at those of all where it is empty. Holds less memory than a
    /// list.
    fn visit(&self, collection: &str, namespace: &str, look: &mut dyn FnMut(&Value));

    /// Those of a namespace that carry all of these labels, by name. Cheaper than a list, as are the next two.
    fn labelled(&self, collection: &str, namespace: &str, labels: &Map<String, Value>) -> Vec<Arc<Value>>;

    /// Those whose controlling owner (`controller: true`) has this uid, by name.
    fn controlled_by(&self, collection: &str, namespace: &str, uid: &str) -> Vec<Arc<Value>>;

    /// Those that nothing controls and that carry all of these labels, by name.
    fn strays(&self, collection: &str, namespace: &str, labels: &Map<String, Value>) -> Vec<Arc<Value>>;
}
