//! A client that cannot write: what a process holds that only looks.

use std::sync::Arc;

use jiff::Timestamp;
use portolan_core::Item;
use serde_json::Value;

use crate::budget::governor::{Budget, Lane};
use crate::budget::rotation::DriftShare;
use crate::cache::shared_look::SharedLook;
use crate::cache::single::Single;
use crate::cache::snapshot::Snapshot;
use crate::cache::snapshot_store::Freshness;
use crate::call::error::ApiError;
use crate::call::request::Request;
use crate::client::Client;
use crate::collection::{Collection, TypedCollection};
use crate::credential::Identity;
use crate::document::{Content, Document, DocumentKind, KnownDocument};
use crate::handle::CollectionHandle;

/// The reading half of a [`Client`]; snapshots are those of the client.
#[derive(Clone, Debug)]
pub struct Reader {
    client: Client,
}

impl Reader {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Sends one read and gives the answer's `result`; a request that could write is refused here.
    pub async fn get(&self, lane: Lane, request: &Request) -> Result<Value, ApiError> {
        if !request.is_read() {
            return Err(ApiError::read_only());
        }
        self.client.send(lane, request).await
    }

    /// Every object of a collection, over all pages.
    pub async fn list_all(&self, lane: Lane, collection: &Collection, scope_id: &str) -> Result<Vec<Value>, ApiError> {
        self.client.list_all(lane, collection, scope_id).await
    }

    /// An object that changes hardly ever, as it was read lately; none where it may not be seen or is not there.
    pub async fn rarely(
        &self,
        lane: Lane,
        freshness: Freshness,
        single: &'static Single,
        scope_id: &str,
    ) -> Result<Option<Arc<Value>>, ApiError> {
        self.client.rarely(lane, freshness, single, scope_id).await
    }

    /// What looks at one thing found: the same one for the same name and scope.
    pub fn looked<T: Clone + Send + Sync + 'static>(&self, name: &'static str, scope: &str) -> SharedLook<T> {
        self.client.looked(name, scope)
    }

    /// A collection's snapshot.
    pub fn records<T: Item>(&self, collection: &'static TypedCollection<T>, scope_id: &str) -> ReadRecords<T> {
        ReadRecords { remote: self.client.records(collection, scope_id) }
    }

    /// Asks once for a zone's plan where its records are so many that their limit matters.
    pub async fn learn_limit<T: Item>(&self, lane: Lane, records: &ReadRecords<T>) {
        self.client.learn_limit(lane, &records.remote).await;
    }

    /// A document.
    pub fn document(&self, kind: &'static DocumentKind, scope_id: &str, owner_id: &str) -> ReadDocument {
        ReadDocument { document: self.client.document(kind, scope_id, owner_id) }
    }

    /// What is left of the credential's budget.
    pub fn budget(&self) -> Budget {
        self.client.budget()
    }

    /// What looks for drift may spend of it.
    pub fn drift_share(&self) -> DriftShare {
        self.client.drift_share()
    }

    /// The time by the API's clock, as far as its answers tell.
    pub fn time(&self) -> Timestamp {
        self.client.time()
    }

    /// The credential's fingerprint.
    pub fn identity(&self) -> &Identity {
        self.client.identity()
    }
}

/// The reading half of a [`CollectionHandle`].
pub struct ReadRecords<T: Item> {
    remote: Arc<CollectionHandle<T>>,
}

impl<T: Item> ReadRecords<T> {
    /// Lists the collection if the snapshot is missing, in doubt or older than asked for.
    pub async fn refresh(&self, lane: Lane, freshness: Freshness) -> Result<(), ApiError> {
        self.remote.refresh(lane, freshness).await
    }

    /// The same where the collection has at most so many pages; false where it has more.
    pub async fn refresh_up_to(&self, lane: Lane, freshness: Freshness, pages: u64) -> Result<bool, ApiError> {
        self.remote.refresh_up_to(lane, freshness, pages).await
    }

    /// Looks at the snapshot; empty before the first listing.
    pub fn with<R>(&self, look: impl FnOnce(&Snapshot<T>) -> R) -> R {
        self.remote.with(look)
    }

    /// Why nothing more can be made here, where Cloudflare said so a few minutes ago.
    pub fn refusal(&self) -> Option<ApiError> {
        self.remote.refusal()
    }

    /// How many requests a listing takes, by what is known of the collection.
    pub fn pages(&self) -> u32 {
        self.remote.pages()
    }

    /// The snapshot is no longer trusted: the next refresh lists.
    pub fn invalidate(&self) {
        self.remote.invalidate();
    }
}

/// The reading half of a [`Document`].
#[derive(Debug)]
pub struct ReadDocument {
    document: Arc<Document>,
}

impl ReadDocument {
    /// Reads it.
    pub async fn read(&self, lane: Lane) -> Result<Arc<Content>, ApiError> {
        self.document.read(lane).await
    }

    /// Reads it if what is known of it is older than asked for.
    pub async fn refresh(&self, lane: Lane, freshness: Freshness) -> Result<Arc<Content>, ApiError> {
        self.document.refresh(lane, freshness).await
    }

    /// What was last read or written, if anything was.
    pub fn snapshot(&self) -> Option<KnownDocument> {
        self.document.snapshot()
    }
}
