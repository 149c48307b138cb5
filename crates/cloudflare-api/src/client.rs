//! One credential's client: sends requests, lists collections, and keeps one handle per collection and scope.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::collection::Collection;
use crate::credential::Identity;
use crate::document::{Document, DocumentKind};
use crate::error::ApiError;
use crate::governor::{Budget, Lane};
use crate::item::Item;
use crate::listing;
use crate::remote::Remote;
use crate::request::Request;
use crate::sender::Sender;
use crate::urgency::Urgency;

#[cfg(test)]
mod tests;

type Handles = HashMap<(&'static str, String, TypeId), Arc<dyn Any + Send + Sync>>;

/// A client; clones share everything.
#[derive(Clone)]
pub struct Client {
    sender: Arc<Sender>,
    handles: Arc<Mutex<Handles>>,
}

impl Client {
    pub(crate) fn new(sender: Sender) -> Self {
        Self { sender: Arc::new(sender), handles: Arc::default() }
    }

    /// Sends one request when the governor allows, again where that is safe, and gives the answer's `result`.
    pub async fn send(&self, lane: Lane, request: &Request) -> Result<Value, ApiError> {
        Ok(self.sender.answer(lane, request).await?.result)
    }

    /// Every object of a collection, over all pages.
    pub async fn list_all(&self, lane: Lane, collection: &Collection, scope_id: &str) -> Result<Vec<Value>, ApiError> {
        listing::all(&self.sender, None, (lane, &Urgency::default()), collection, scope_id).await
    }

    /// The handle of a collection: the same one for the same collection and scope.
    pub fn records<T: Item>(&self, collection: &'static Collection, scope_id: &str) -> Arc<Remote<T>> {
        self.handle(collection.name, scope_id, || Remote::new(self.sender.clone(), collection, scope_id))
    }

    /// The handle of a document: the same one for the same document.
    pub fn document(&self, kind: &'static DocumentKind, scope_id: &str, owner_id: &str) -> Arc<Document> {
        let key = format!("{scope_id}/{owner_id}");
        self.handle(kind.name, &key, || Document::new(self.sender.clone(), kind, scope_id, owner_id))
    }

    /// What is left of the credential's budget.
    pub fn budget(&self) -> Budget {
        self.sender.budget()
    }

    /// The credential's fingerprint.
    pub fn identity(&self) -> &Identity {
        self.sender.identity()
    }

    fn handle<H: Send + Sync + 'static>(&self, name: &'static str, scope: &str, make: impl FnOnce() -> H) -> Arc<H> {
        let key = (name, scope.to_owned(), TypeId::of::<H>());
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = handles.entry(key).or_insert_with(|| Arc::new(make())).clone();
        handle.downcast().expect("the type is part of the key")
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.sender.identity())
    }
}
