//! One credential's client: sends requests, lists collections, and keeps one handle per collection and scope.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use portolan_core::WriteGate;
use serde::Deserialize as _;
use serde_json::Value;

use crate::budget::governor::{Budget, Lane};
use crate::budget::limits::{self, Limits};
use crate::budget::priority::SharedPriority;
use crate::budget::quota::Quota;
use crate::budget::rotation::DriftShare;
use crate::cache::shared_look::SharedLook;
use crate::cache::single::{Single, SingleHandle, ZONE};
use crate::cache::snapshot::Snapshot;
use crate::cache::snapshot_store::Freshness;
use crate::call::error::ApiError;
use crate::call::listing;
use crate::call::options::CallOptions;
use crate::call::request::Request;
use crate::call::retry::RetryPolicy;
use crate::call::sender::{Exit, Sender};
use crate::collection::{Collection, TypedCollection};
use crate::collections;
use crate::credential::Identity;
use crate::document::{self, Document, DocumentKind};
use crate::handle::CollectionHandle;
use crate::handle::commit;
use crate::objects::{self, ZonePlan};
use crate::reader::Reader;
use portolan_commit::Lines;
use portolan_core::Item;

#[cfg(test)]
mod tests;

/// One handle for each: a second one would have a snapshot, a writer and a budget of its own.
type Handles = HashMap<HandleKey, Arc<dyn Any + Send + Sync>>;

/// What a handle is of: its sort, its name and its scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HandleKey {
    sort: HandleSort,
    name: &'static str,
    scope: String,
}

/// Sorts of handles. A name has one type within a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum HandleSort {
    Collection,
    Document,
    SingleHandle,
    SharedLook,
}

/// What the clients of all credentials of a process share.
#[derive(Default)]
pub(crate) struct Common {
    documents: Lines<document::WriteLine>,
    collections: Lines<commit::CommitLine>,
    quotas: Lines<Quota>,
}

/// A client; clones share everything.
#[derive(Clone)]
pub struct Client {
    sender: Arc<Sender>,
    handles: Arc<Mutex<Handles>>,
    common: Arc<Common>,
    retry: RetryPolicy,
    /// None where it is always open.
    gate: Option<WriteGate>,
}

impl Client {
    pub(crate) fn new(sender: Sender, common: Arc<Common>) -> Self {
        let retry = sender.retry();
        Self { sender: Arc::new(sender), handles: Arc::default(), common, retry, gate: None }
    }

    /// The same client for callers who repeat failed requests by another policy.
    pub(crate) fn with_retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// The same client, whose writes leave while this gate is open too: also those that wait in a writer's line.
    #[must_use]
    pub fn within(&self, gate: &WriteGate) -> Self {
        let gate = self.gate.as_ref().map_or_else(|| gate.clone(), |own| own.and(gate));
        Self { gate: Some(gate), ..self.clone() }
    }

    /// Whether nobody but whoever asks has it, nor waits for a write of it.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.handles) == 1
    }

    /// The part of it that cannot write; snapshots are shared.
    pub fn reader(&self) -> Reader {
        Reader::new(self.clone())
    }

    /// Sends one request when the governor allows, again where that is safe, and gives the answer's `result`.
    pub async fn send(&self, lane: Lane, request: &Request) -> Result<Value, ApiError> {
        let may_go = || self.gate.as_ref().is_none_or(WriteGate::is_open);
        let exit = Exit { may_go: &may_go, line: None };
        Ok(self.sender.answer(None, self.options(lane), exit, request).await?.result)
    }

    /// After a failure that may pass: waits as long as the policy asks, then true, as often as it allows. For a POST that may
    /// have arrived and is therefore not repeated by [`send`](Self::send):
    ///
    /// ```text
    /// let mut attempt = 0;
    /// let made = loop {
    ///     match client.send(lane, &post).await {
    ///         Err(error) if client.again(&error, attempt).await => match look(&client).await? {
    ///             Some(found) => break found,
    ///             None => attempt += 1,
    ///         },
    ///         answer => break answer?,
    ///     }
    /// };
    /// ```
    ///
    /// [`CollectionHandle::create`] is this loop for collections. Documents do it by themselves.
    pub async fn again(&self, error: &ApiError, attempt: u32) -> bool {
        self.sender.again(self.retry, error, attempt).await
    }

    /// Every object of a collection, over all pages.
    pub async fn list_all(&self, lane: Lane, collection: &Collection, scope_id: &str) -> Result<Vec<Value>, ApiError> {
        listing::all(&self.sender, None, (self.options(lane), &SharedPriority::default()), collection, scope_id).await
    }

    /// The handle of a collection: the same one for the same collection and scope.
    pub fn records<T: Item>(
        &self,
        collection: &'static TypedCollection<T>,
        scope_id: &str,
    ) -> Arc<CollectionHandle<T>> {
        let make = || {
            let line = collection.batch.is_some().then(|| self.common.collections.of(collection.name, scope_id));
            let quota = self.common.quotas.of(collection.name, scope_id);
            quota.set_limit(self.limits().of(collection));
            CollectionHandle::new(self.sender.clone(), collection, scope_id, line, quota)
        };
        self.handle(HandleSort::Collection.of(collection.name, scope_id), make, CollectionHandle::view)
    }

    /// How many objects accounts and zones may have, as far as known.
    pub fn limits(&self) -> &Limits {
        self.sender.limits()
    }

    /// Asks once for a zone's plan where its records are so many that their limit matters. A credential that may not see the
    /// zone is no failure: a limit only advises.
    pub async fn learn_limit<T: Item>(&self, lane: Lane, records: &CollectionHandle<T>) {
        if records.with(Snapshot::len) < limits::WORTH_KNOWING || !records.is_limit_to_be_asked() {
            return;
        }
        if let Some(zone) = self.listed_zone(records.scope()) {
            return records.set_limit(zone.most_records);
        }
        if let Ok(Some(zone)) = self.rarely(lane, Freshness::Any, &ZONE, records.scope()).await {
            let zone = objects::Zone::deserialize(zone.as_ref()).ok();
            records.set_limit(zone.and_then(|zone| zone.most_records));
        }
    }

    /// A zone as the last listing showed it, where it said which plan the zone has.
    fn listed_zone(&self, id: &str) -> Option<objects::Zone> {
        let zones = self.records(&collections::ZONES, "");
        zones.with(|zones| zones.get(id).map(|entry| entry.item.clone())).filter(|zone| zone.plan != ZonePlan::Unknown)
    }

    /// The handle of a document: the same one for the same document.
    pub fn document(&self, kind: &'static DocumentKind, scope_id: &str, owner_id: &str) -> Arc<Document> {
        let key = format!("{scope_id}/{owner_id}");
        let make = || {
            let line = self.common.documents.of(kind.name, &key);
            Document::new(self.sender.clone(), kind, (scope_id, owner_id), line)
        };
        self.handle(HandleSort::Document.of(kind.name, &key), make, Document::view)
    }

    /// An object that changes hardly ever, as it was read lately; none where it may not be seen or is not there.
    pub async fn rarely(
        &self,
        lane: Lane,
        freshness: Freshness,
        single: &'static Single,
        scope_id: &str,
    ) -> Result<Option<Arc<Value>>, ApiError> {
        let make = || SingleHandle::new(self.sender.clone(), single, scope_id);
        let kept = self
            .handle(HandleSort::SingleHandle.of(single.name, scope_id), make, |kept, _, _| SingleHandle::clone(kept));
        kept.get(self.options(lane), freshness).await
    }

    /// What looks at one thing found: the same one for the same name and scope.
    pub fn looked<T: Clone + Send + Sync + 'static>(&self, name: &'static str, scope: &str) -> SharedLook<T> {
        let key = HandleSort::SharedLook.of(name, scope);
        self.handle(key, SharedLook::<T>::default, |looked, _, _| looked.clone()).as_ref().clone()
    }

    /// The time by the API's clock, as far as its answers tell.
    pub fn time(&self) -> Timestamp {
        self.sender.time()
    }

    /// Why the API does not answer at the moment (its rate limit, an outage), as far as the last attempt tells. Requests
    /// that wait for it to pass are still under way.
    pub fn trouble(&self) -> Option<ApiError> {
        self.sender.trouble()
    }

    /// What is left of the credential's budget.
    pub fn budget(&self) -> Budget {
        self.sender.budget()
    }

    /// What looks for drift may spend of it.
    pub fn drift_share(&self) -> DriftShare {
        self.sender.drift_share()
    }

    /// The credential's fingerprint.
    pub fn identity(&self) -> &Identity {
        self.sender.identity()
    }

    /// The handle for this client's policy and gate: a view of the one that all share.
    fn handle<H: Send + Sync + 'static>(
        &self,
        key: HandleKey,
        make: impl FnOnce() -> H,
        view: impl FnOnce(&H, RetryPolicy, WriteGate) -> H,
    ) -> Arc<H> {
        portolan_core::waypoint!();
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let usual = handles.entry(key).or_insert_with(|| Arc::new(make())).clone();
        let usual: Arc<H> = usual.downcast().expect("a name has one type within a sort");
        if self.retry == self.sender.retry() && self.gate.is_none() {
            return usual;
        }
        Arc::new(view(&usual, self.retry, self.gate.clone().unwrap_or_default()))
    }

    fn options(&self, lane: Lane) -> CallOptions {
        CallOptions { lane, retry: self.retry }
    }
}

impl HandleSort {
    fn of(self, name: &'static str, scope: &str) -> HandleKey {
        HandleKey { sort: self, name, scope: scope.to_owned() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.sender.identity())
    }
}
