//! A collection's handle: one snapshot and one writer for everybody in the process.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use portolan_core::WriteGate;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::budget::governor::Lane;
use crate::budget::limiter::Permit;
use crate::budget::priority::SharedPriority;
use crate::budget::quota::{NearlyFull, Quota};
use crate::cache::snapshot::Snapshot;
use crate::cache::snapshot_store::{Freshness, RefreshNeed, SnapshotEdit, SnapshotStore};
use crate::call::error::{ApiError, Effect, ErrorClass};
use crate::call::listing;
use crate::call::options::CallOptions;
use crate::call::request::Request;
use crate::call::retry::RetryPolicy;
use crate::call::sender::{Exit, Sender};
use crate::collection::{Collection, Paging};
use crate::handle::commit::{CommitLine, Follow, OpsQueue};
use crate::item::{Op, Written};
use portolan_commit::PendingWrite;
use portolan_core::{Entry, Item};

mod batch;
pub(crate) mod commit;
mod create;
#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod tests;

pub use create::Created;

/// Writes at once of a collection that takes no batches.
pub(crate) const WRITES_AT_ONCE: usize = 8;
/// Objects that a listing does not show though we wrote them a moment ago, and that are asked for one by one.
const CONFIRMED: usize = 3;
/// Times in a row that the batch call may be unknown before it is not tried any more.
const BATCH_MISSES: u32 = 3;

/// A collection of one account or zone.
///
/// # Expected flow
/// [`refresh`](Self::refresh) as fresh as the plan needs it (30 s for creates of keys that the API does not keep unique),
/// [`with`](Self::with) to plan, [`write`](Self::write) to apply.
///
/// # Guarantees
/// - Concurrent refreshes share one listing, and its failure.
/// - A source's operations are applied together and, in a batched collection, atomically (up to the size of a batch); one
///   bad source fails alone.
/// - The snapshot follows our own writes. After a write of unknown outcome the next refresh lists, whatever freshness it asks.
/// - A create is never sent twice: an unknown outcome comes back as [`Effect::Unknown`]. [`create`](Self::create) looks then
///   whether it arrived.
///
/// # Caveats
/// A batch applies deletes, patches, puts and posts in this order, not in the source's.
pub struct CollectionHandle<T: Item> {
    shared: Arc<CollectionState<T>>,
    writer: Arc<OnceLock<AbortOnDropHandle<()>>>,
    retry: RetryPolicy,
    gate: WriteGate,
}

impl<T: Item> CollectionHandle<T> {
    /// A handle; where it has a line, its writes stand in it with those of others.
    pub(crate) fn new(
        sender: Arc<Sender>,
        collection: &'static Collection,
        scope: &str,
        line: Option<Arc<CommitLine>>,
        quota: Arc<Quota>,
    ) -> Self {
        let retry = sender.retry();
        let shared = Arc::new(CollectionState::new(sender, collection, scope, line, quota));
        if let Some(line) = &shared.line {
            let follower: Weak<dyn Follow> = Arc::<CollectionState<T>>::downgrade(&shared);
            line.follow(follower);
        }
        Self { shared, writer: Arc::default(), retry, gate: WriteGate::default() }
    }

    /// The same snapshot and writer for callers with another policy, who may write while a gate is open.
    pub(crate) fn view(&self, retry: RetryPolicy, gate: WriteGate) -> Self {
        Self { shared: self.shared.clone(), writer: self.writer.clone(), retry, gate }
    }

    /// The same handle for writes that are sent while this gate is open too.
    #[must_use]
    pub fn within(&self, gate: &WriteGate) -> Self {
        self.view(self.retry, self.gate.and(gate))
    }

    fn options(&self, lane: Lane) -> CallOptions {
        CallOptions { lane, retry: self.retry }
    }

    /// Lists the collection if the snapshot is missing, in doubt or older than asked for.
    pub async fn refresh(&self, lane: Lane, freshness: Freshness) -> Result<(), ApiError> {
        self.shared.refresh(self.options(lane), freshness).await
    }

    /// The same where the collection has at most so many pages. False where it has more: that takes one request, and
    /// those who ask at the same time share it.
    pub async fn refresh_up_to(&self, lane: Lane, freshness: Freshness, pages: u64) -> Result<bool, ApiError> {
        self.shared.refresh_up_to(self.options(lane), freshness, pages).await
    }

    /// Looks at the snapshot; empty before the first listing.
    pub fn with<R>(&self, look: impl FnOnce(&Snapshot<T>) -> R) -> R {
        look(self.shared.store().snapshot())
    }

    /// How many requests a listing takes, by what is known of the collection.
    pub fn pages(&self) -> u32 {
        let objects = u32::try_from(self.with(Snapshot::len)).unwrap_or(u32::MAX);
        match self.shared.collection.paging {
            Paging::Single | Paging::Document => 1,
            Paging::Pages | Paging::Cursor => objects.div_ceil(self.shared.collection.per_page.max(1)).max(1),
        }
    }

    /// Says that a write is likely to come soon: others that are ready wait for it a little, so that they go out
    /// together. Drop it when the write begins, or when it is not to come after all.
    pub fn expect(&self) -> PendingWrite<T> {
        self.shared.queue.expect()
    }

    /// Applies one source's operations and gives what became of each. On an error none of a batch's are applied; of other
    /// collections' the first ones may be, and the snapshot shows them.
    pub async fn write(&self, lane: Lane, ops: Vec<Op>) -> Result<Vec<Written<T>>, ApiError> {
        if ops.is_empty() {
            return Ok(Vec::new());
        }
        if !self.shared.batches() {
            let _turn = self.shared.writes.acquire().await;
            return self.shared.write_in_turn(self.options(lane), &self.gate, &ops).await;
        }
        let mut written = Vec::with_capacity(ops.len());
        let mut ops = ops.into_iter().peekable();
        while ops.peek().is_some() {
            let part = ops.by_ref().take(self.shared.batch_limit()).collect();
            written.extend(self.commit(lane, part).await?);
        }
        Ok(written)
    }

    async fn commit(&self, lane: Lane, ops: Vec<Op>) -> Result<Vec<Written<T>>, ApiError> {
        let answer = self.shared.queue.push((self.options(lane), self.gate.clone()), ops);
        self.writer.get_or_init(|| AbortOnDropHandle::new(tokio::spawn(commit::run(self.shared.clone()))));
        answer.await.unwrap_or_else(|_| Err(ApiError::transient("the writer stopped", Effect::Unknown)))
    }

    /// Takes an object into the snapshot as another call than [`write`](Self::write) showed it.
    pub fn learn(&self, entry: &Entry<T>) {
        self.shared.store().stored(entry);
        self.shared.recount();
    }

    /// Takes an object out of the snapshot that another call deleted, or did not find.
    pub fn unlearn(&self, id: &str) {
        self.shared.store().removed(id);
    }

    /// Why nothing more can be made here: Cloudflare said so a few minutes ago. Until `retry_after` is over nobody asks again.
    pub fn refusal(&self) -> Option<ApiError> {
        self.shared.quota.refusal()
    }

    /// For creates that another call than [`write`](Self::write) makes: sends it unless there is no room, as far as known.
    pub async fn make<R>(&self, create: impl AsyncFnOnce() -> Result<R, ApiError>) -> Result<R, ApiError> {
        let _admitted = self.shared.quota.admit().await?;
        let made = create().await;
        match &made {
            Ok(_) => self.shared.quota.has_room(),
            Err(error) => self.shared.quota.refused(error),
        }
        made
    }

    /// Tells once, after each time that the known limit came near.
    pub fn nearly_full(&self) -> Option<NearlyFull> {
        self.shared.quota.news()
    }

    pub(crate) fn scope(&self) -> &str {
        &self.shared.scope
    }

    pub(crate) fn is_limit_to_be_asked(&self) -> bool {
        self.shared.quota.is_to_be_asked()
    }

    pub(crate) fn set_limit(&self, limit: Option<usize>) {
        self.shared.quota.set_limit(limit);
        self.shared.recount();
    }

    /// The snapshot is no longer trusted: the next refresh lists.
    pub fn invalidate(&self) {
        self.shared.store().doubt();
    }

    /// Operations that one call may carry, where the plan allows more than the collection's default.
    pub fn set_batch_limit(&self, operations: usize) {
        self.shared.batch_limit.store(operations.max(1), Ordering::Relaxed);
    }

    /// Sources that wait for their commit.
    pub fn waiting(&self) -> usize {
        self.shared.queue.len()
    }
}

/// What the handle and its writer both use.
pub(crate) struct CollectionState<T: Item> {
    pub(crate) sender: Arc<Sender>,
    pub(crate) collection: &'static Collection,
    pub(crate) scope: String,
    pub(crate) queue: OpsQueue<T>,
    store: Mutex<SnapshotStore<T>>,
    listing: tokio::sync::Mutex<()>,
    priority: SharedPriority,
    writes: Semaphore,
    batch_limit: AtomicUsize,
    /// Times in a row that the API did not know the batch call.
    batch_misses: AtomicU32,
    /// Others who write the same.
    pub(crate) line: Option<Arc<CommitLine>>,
    /// Whether there is room for more.
    pub(crate) quota: Arc<Quota>,
}

impl<T: Item> CollectionState<T> {
    fn new(
        sender: Arc<Sender>,
        collection: &'static Collection,
        scope: &str,
        line: Option<Arc<CommitLine>>,
        quota: Arc<Quota>,
    ) -> Self {
        Self {
            sender,
            collection,
            scope: scope.to_owned(),
            queue: OpsQueue::default(),
            store: Mutex::default(),
            listing: tokio::sync::Mutex::new(()),
            priority: SharedPriority::default(),
            writes: Semaphore::new(WRITES_AT_ONCE),
            batch_limit: AtomicUsize::new(collection.batch.map_or(1, |batch| batch.max)),
            batch_misses: AtomicU32::new(0),
            line,
            quota,
        }
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, SnapshotStore<T>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether many operations may go in one call: the collection takes batches, and so does this API as far as known.
    pub(crate) fn batches(&self) -> bool {
        self.collection.batch.is_some() && self.batch_misses.load(Ordering::Relaxed) < BATCH_MISSES
    }

    /// The API knows the batch call.
    pub(crate) fn batch_known(&self) {
        self.batch_misses.store(0, Ordering::Relaxed);
    }

    /// The API does not know the batch call; older fakes do not.
    pub(crate) fn batch_unknown(&self) {
        let misses = self.batch_misses.fetch_add(1, Ordering::Relaxed) + 1;
        if misses == BATCH_MISSES {
            tracing::info!(
                collection = self.collection.name,
                "The API takes no batches; writing one by one from now on"
            );
        }
    }

    pub(crate) fn batch_limit(&self) -> usize {
        self.batch_limit.load(Ordering::Relaxed)
    }

    pub(crate) async fn refresh(&self, options: CallOptions, freshness: Freshness) -> Result<(), ApiError> {
        self.refresh_up_to(options, freshness, u64::MAX).await.map(drop)
    }

    async fn refresh_up_to(&self, options: CallOptions, freshness: Freshness, pages: u64) -> Result<bool, ApiError> {
        portolan_core::waypoint!();
        let asked = self.store().tick();
        if self.store().need(freshness, asked) == RefreshNeed::Nothing {
            return Ok(true);
        }
        self.priority.raise(options.lane);
        let _turn = self.listing.lock().await;
        let need = self.store().need(freshness, asked);
        match need {
            RefreshNeed::Nothing => Ok(true),
            RefreshNeed::Failed(error) => Err(error),
            RefreshNeed::Listing if self.store().is_larger(asked, pages) => Ok(false),
            RefreshNeed::Listing => self.list(options, pages).await,
        }
    }

    /// Whoever asks before the request goes out shares it: those who are about to ask, and those who come while it waits
    /// for the governor. False where there are more pages.
    async fn list(&self, options: CallOptions, pages: u64) -> Result<bool, ApiError> {
        tokio::task::yield_now().await;
        let (lane, permit) = match self.priority.permit(&self.sender, options.lane).await {
            Ok(granted) => granted,
            Err(error) => {
                self.priority.settle();
                self.store().fail(error.clone());
                return Err(error);
            }
        };
        let options = options.in_lane(lane);
        let began = self.store().begin(Instant::now());
        let _guard = ListingGuard(self);
        let place = (self.collection, self.scope.as_str());
        let listed = listing::up_to(&self.sender, Some(permit), (options, &self.priority), place, pages).await;
        match listed {
            Ok(Some(objects)) => {
                let unlisted = self.store().unlisted(began, &objects);
                let unlisted =
                    self.confirm(options, unlisted).await.inspect_err(|error| self.store().fail(error.clone()))?;
                self.store().finish(began, objects, unlisted);
                self.recount();
                Ok(true)
            }
            Ok(None) => {
                self.store().exceeds(pages);
                Ok(false)
            }
            Err(error) => {
                self.store().fail(error.clone());
                Err(error)
            }
        }
    }

    /// Which of the objects are there that we wrote a moment ago and that a listing did not show. A few are asked for
    /// themselves: where one is there the listing lags behind, and those that come after it count as there, too.
    async fn confirm(&self, options: CallOptions, unlisted: Vec<Entry<T>>) -> Result<Vec<Entry<T>>, ApiError> {
        let mut unlisted = unlisted.into_iter();
        for entry in unlisted.by_ref().take(CONFIRMED) {
            let request = self.collection.get(&self.scope, &entry.id);
            match self.sender.answer::<Value>(None, options, Exit::FREE, &request).await {
                Ok(answer) => return Ok(Entry::read(answer.result).into_iter().chain(unlisted).collect()),
                Err(error) if error.class == ErrorClass::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Vec::new())
    }

    /// One operation after the other.
    async fn write_in_turn(
        &self,
        options: CallOptions,
        gate: &WriteGate,
        ops: &[Op],
    ) -> Result<Vec<Written<T>>, ApiError> {
        let may_go = || gate.is_open();
        let mut written = Vec::with_capacity(ops.len());
        for op in ops {
            written.push(self.write_one(None, options, Exit { may_go: &may_go, line: None }, op).await?);
        }
        Ok(written)
    }

    /// One operation by its own request.
    pub(crate) async fn write_one(
        &self,
        permit: Option<Permit>,
        options: CallOptions,
        exit: Exit<'_>,
        op: &Op,
    ) -> Result<Written<T>, ApiError> {
        let _admitted = match op {
            Op::Create(_) => match self.quota.admit().await {
                Ok(admitted) => Some(admitted),
                Err(error) => {
                    permit.into_iter().for_each(Permit::unused);
                    return Err(error);
                }
            },
            Op::Update { .. } | Op::Delete { .. } => None,
        };
        let guard = DoubtOnDrop::unless_answered(self);
        let answer = self.sender.answer(permit, options, exit, &self.request(op)).await;
        guard.answered();
        self.sender.metrics().committed(self.collection.name, 1);
        match answer {
            Ok(answer) => self.take_in(op, answer.result),
            Err(error) => self.give_up(op, error),
        }
    }

    /// How full the collection is, as far as known: told where that is nearly too full.
    fn recount(&self) {
        let used = self.store().snapshot().len();
        let (left, is_news) = self.quota.counted(used);
        if is_news {
            self.sender.metrics().quota_left(self.collection.name, &self.scope, left);
        }
    }

    fn request(&self, op: &Op) -> Request {
        match op {
            Op::Create(body) => self.collection.create(&self.scope, body),
            Op::Update { id, body } => self.collection.update(&self.scope, id, body),
            Op::Delete { id, query } => self.collection.delete(&self.scope, id, query),
        }
    }

    /// Follows a successful operation in the snapshot.
    pub(crate) fn take_in(&self, op: &Op, result: Value) -> Result<Written<T>, ApiError> {
        if let Op::Delete { id, .. } = op {
            self.store().removed(id);
            self.made_room();
            self.tell(|other| other.removed(id));
            return Ok(Written::Deleted(id.clone()));
        }
        let result = self.collection.identified(result, &self.scope);
        self.tell(|other| other.stored(&result));
        let Some(entry) = Entry::read(result) else {
            self.store().doubt();
            return Err(ApiError::transient("the answer to a write does not show the object", Effect::Unknown));
        };
        self.store().stored(&entry);
        if matches!(op, Op::Create(_)) {
            self.made_room();
        }
        Ok(Written::Stored(entry))
    }

    /// One was made or went, so that there is room, as far as known.
    fn made_room(&self) {
        self.quota.has_room();
        self.recount();
    }

    /// Follows a failed operation in the snapshot; deleting what is gone has succeeded.
    fn give_up(&self, op: &Op, error: ApiError) -> Result<Written<T>, ApiError> {
        match (op, error.class) {
            (Op::Delete { id, .. }, ErrorClass::NotFound) => {
                self.store().removed(id);
                self.recount();
                Ok(Written::Gone(id.clone()))
            }
            (Op::Update { id, .. }, ErrorClass::NotFound) => {
                self.store().removed(id);
                Err(error)
            }
            (op, _) => {
                if matches!(op, Op::Create(_)) {
                    self.quota.refused(&error);
                }
                self.follow(&error);
                Err(error)
            }
        }
    }

    /// After a conflict or an unknown outcome there is something that the snapshot does not show.
    pub(crate) fn follow(&self, error: &ApiError) {
        if error.effect == Effect::Unknown || error.class == ErrorClass::Conflict {
            self.store().doubt();
        }
        if error.effect == Effect::Unknown {
            self.tell(|other| other.doubted());
        }
    }

    fn tell(&self, tell: impl Fn(&dyn Follow)) {
        if let Some(line) = &self.line {
            line.tell(self, tell);
        }
    }
}

impl<T: Item> Follow for CollectionState<T> {
    fn stored(&self, object: &Value) {
        if let Some(entry) = Entry::read(object.clone()) {
            self.store().heard(&SnapshotEdit::Stored(entry));
        }
    }

    fn removed(&self, id: &str) {
        self.store().heard(&SnapshotEdit::Removed(id.to_owned()));
    }

    fn doubted(&self) {
        self.store().heard_doubt();
    }
}

/// A listing under way; ends it also when whoever asked goes away.
struct ListingGuard<'a, T: Item>(&'a CollectionState<T>);

impl<T: Item> Drop for ListingGuard<'_, T> {
    fn drop(&mut self) {
        self.0.priority.settle();
        self.0.store().abandon();
    }
}

/// Sheds doubt on the snapshot if a write is given up before its answer is there.
pub(crate) struct DoubtOnDrop<'a, T: Item> {
    shared: Option<&'a CollectionState<T>>,
}

impl<'a, T: Item> DoubtOnDrop<'a, T> {
    pub(crate) fn unless_answered(shared: &'a CollectionState<T>) -> Self {
        Self { shared: Some(shared) }
    }

    pub(crate) fn answered(mut self) {
        self.shared = None;
    }
}

impl<T: Item> Drop for DoubtOnDrop<'_, T> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared {
            shared.store().doubt();
            shared.tell(|other| other.doubted());
        }
    }
}
