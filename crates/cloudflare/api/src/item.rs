//! What is kept of a remote object, and what a write gives back.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::listing::Element;

/// The part of a remote object that is kept: small and typed; unknown fields fall away.
pub trait Item: DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// By which an object made elsewhere is recognised. Several objects may share one.
    fn natural_key(&self) -> String;

    /// The text that carries an ownership mark.
    #[expect(clippy::unnecessary_literal_bound, reason = "kinds return a text of their own")]
    fn mark_text(&self) -> &str {
        ""
    }

    /// Whose it is, where a mark says so: a second key to find it by.
    fn owner_key(&self) -> Option<String> {
        None
    }

    /// The API still lists it, but it is gone.
    fn deleted(&self) -> bool {
        false
    }
}

/// A remote object and its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<T> {
    /// The API's id.
    pub id: String,
    /// What is kept of it.
    pub item: T,
}

impl<T: Item> Entry<T> {
    /// Reads an object of the API; none if it has no id or does not fit.
    pub fn read(object: Value) -> Option<Self> {
        let id = object.get("id")?.as_str()?.to_owned();
        Some(Self { id, item: serde_json::from_value(object).ok()? })
    }
}

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
