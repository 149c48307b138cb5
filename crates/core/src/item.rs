//! What is kept of a remote object, whoever has it: how it is recognised, written and compared, and whose it says it is.

use std::fmt::Debug;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A remote object: what is kept, written and compared of it. Small and typed; unknown fields fall away.
pub trait Item: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The field that carries an ownership mark; none for objects without such a field.
    const MARK: Option<MarkField<Self>> = None;
    /// Longest text of that field.
    const MARK_LIMIT: Option<usize> = match Self::MARK {
        Some(field) => Some(field.limit),
        None => None,
    };

    /// By which an object made elsewhere is recognised. Several objects may share one.
    fn natural_key(&self) -> String;

    /// By which a snapshot finds it, and with it what cannot stand beside it: the natural key, or less.
    fn place_key(&self) -> String {
        self.natural_key()
    }

    /// How users call it in a plan: `A www.example.com`.
    fn label(&self) -> String {
        self.natural_key()
    }

    /// The text that carries an ownership mark.
    fn mark_text(&self) -> &str {
        Self::MARK.map_or("", |field| (field.text)(self))
    }

    /// Puts text into the field that carries the mark.
    fn set_mark_text(&mut self, text: String) {
        if let Some(field) = Self::MARK {
            (field.set)(self, text);
        }
    }

    /// Whose it is, where a mark says so: a second key to find it by.
    fn owner_key(&self) -> Option<String> {
        crate::owner_key(self.mark_text()).map(str::to_owned)
    }

    /// The API still lists it, but it is gone.
    fn deleted(&self) -> bool {
        false
    }

    /// Whether it is what is meant where none is named.
    fn is_default(&self) -> bool {
        false
    }

    /// Undoes what the server does to our values (case, order, quotes, defaults); called on both sides of a comparison.
    fn normalise(&mut self) {}

    /// Natural keys of what cannot stand beside it unless it is ours: whoever made that publishes something else there.
    fn rival_keys(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether going from `old` to this needs a new object, because Cloudflare cannot change it in place.
    fn replaces(&self, _old: &Self) -> bool {
        false
    }

    /// When it was made, by the other side's clock, where that tells.
    fn made_at(&self) -> Option<Timestamp> {
        None
    }

    /// What is written and never shown again, as members of the request: nothing where the other side assumes the same.
    fn unseen(&self) -> Option<Map<String, Value>> {
        None
    }

    /// What is written and compared of it.
    fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("remote objects are plain JSON")
    }

    /// What a plan shows of it beside what it is to become.
    fn shown_beside(&self, _after: &Self) -> Value {
        self.to_json()
    }

    /// The body of the request that creates it.
    fn create_body(&self) -> Value {
        let mut body = self.to_json();
        if let (Value::Object(members), Some(unseen)) = (&mut body, self.unseen()) {
            members.extend(unseen);
        }
        body
    }

    /// The body of the request that changes `old` to this.
    fn update_body(&self, _old: &Self) -> Value {
        self.create_body()
    }
}

/// The field of a remote object that carries an ownership mark.
#[derive(Debug)]
pub struct MarkField<T> {
    /// Its longest text.
    pub limit: usize,
    /// Reads it.
    pub text: fn(&T) -> &str,
    /// Writes it.
    pub set: fn(&mut T, String),
}

impl<T> Clone for MarkField<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for MarkField<T> {}

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
