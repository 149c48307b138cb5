//! One change of a remote object, what a write gives back, and objects as a listing shows them.

use portolan_core::{Entry, Item};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::call::listing::Element;

/// An object of a listing: read on the spot, so that no more than one is ever held whole. None if it does not fit.
pub(crate) struct ListedItem<T>(pub(crate) Option<Entry<T>>);

impl<'de, T: Item> Deserialize<'de> for ListedItem<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|object| Self(Entry::read(object)))
    }
}

impl<T: Item> Element for ListedItem<T> {
    fn id(&self) -> Option<&str> {
        self.0.as_ref().map(|entry| entry.id.as_str())
    }
}

/// One change of one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Makes a new object.
    Create(Value),
    /// Changes an object by the collection's verb.
    Update {
        /// Its id.
        id: String,
        /// What to write.
        body: Value,
    },
    /// Deletes it.
    Delete {
        /// Its id.
        id: String,
        /// Query parameters, where the collection wants some.
        query: Vec<(String, String)>,
    },
}

impl Op {
    /// A deletion without parameters.
    pub fn delete(id: impl Into<String>) -> Self {
        Self::Delete { id: id.into(), query: Vec::new() }
    }

    /// The object it is about; none for a new one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Create(_) => None,
            Self::Update { id, .. } | Self::Delete { id, .. } => Some(id),
        }
    }
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Written<T> {
    /// The object as the API now has it.
    Stored(Entry<T>),
    /// Deleted by us; the id.
    Deleted(String),
    /// Was gone already when it was to be deleted; the id.
    Gone(String),
}

impl<T> Written<T> {
    /// The object, if one is left.
    pub fn entry(&self) -> Option<&Entry<T>> {
        match self {
            Self::Stored(entry) => Some(entry),
            Self::Deleted(_) | Self::Gone(_) => None,
        }
    }

    /// The object's id.
    pub fn id(&self) -> &str {
        match self {
            Self::Stored(entry) => &entry.id,
            Self::Deleted(id) | Self::Gone(id) => id,
        }
    }
}
