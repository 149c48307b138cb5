//! Group commit: while one write is under way others gather, and the next carries them all.
//!
//! Idle, a change goes out at once; while changes keep coming, writes are up to a second apart ([`Pace`]). Who knows early
//! that a write is to come says so, and writes that are ready wait for it a little: when hundreds of objects start together
//! they go out together. The governor's turn comes first and then what has gathered is taken, so that waiting for the
//! budget makes batches larger, not queues longer. A refused batch is split by source until the bad one is alone.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::StreamExt;
use http::Method;
use portolan_core::WriteGate;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::batch::{self, Assembled};
use crate::error::{ApiError, Effect, ErrorClass};
use crate::governor::Lane;
use crate::item::{Item, Op, Written};
use crate::limiter::Permit;
use crate::manner::Manner;
use crate::remote::{Doubt, RemoteInner, WRITES_AT_ONCE};
use crate::request::Request;
use crate::sender::Exit;
use crate::store::Freshness;
use portolan_commit::Linger;
use portolan_commit::Pace;

/// How long a write waits for others that are about to come.
const PATIENCE: Duration = Duration::from_secs(1);

type CommitResult<T> = Result<Vec<Written<T>>, ApiError>;

/// One caller's operations.
pub(crate) struct PendingOps<T> {
    manner: Manner,
    gate: WriteGate,
    /// What the caller's lines carry in the log.
    span: Span,
    ops: Vec<Op>,
    /// What is settled already; the rest is still to be sent.
    done: Vec<Option<Written<T>>>,
    reply: oneshot::Sender<CommitResult<T>>,
}

impl<T: Item> PendingOps<T> {
    fn open(&self) -> impl Iterator<Item = (usize, &Op)> {
        self.ops.iter().enumerate().filter(|(index, _)| self.done[*index].is_none())
    }

    /// Whether somebody waits for it who may still write.
    fn may_go(&self) -> bool {
        !self.reply.is_closed() && self.gate.is_open()
    }

    fn size(&self) -> usize {
        self.open().count()
    }

    /// Whether there are more objects after it than before: a batch deletes before it creates.
    fn grows(&self) -> bool {
        let count = |counts: fn(&Op) -> bool| self.open().filter(|(_, op)| counts(op)).count();
        count(|op| matches!(op, Op::Create(_))) > count(|op| matches!(op, Op::Delete { .. }))
    }

    fn settle(self) {
        let Self { done, reply, .. } = self;
        let all: Option<Vec<Written<T>>> = done.into_iter().collect();
        let answer = all.ok_or_else(|| ApiError::transient("not every operation was answered", Effect::Unknown));
        // A caller that went away does not mind.
        let _ = reply.send(answer);
    }

    fn fail(self, error: ApiError) {
        let _ = self.reply.send(Err(error));
    }
}

/// The sources that wait.
pub(crate) struct OpsQueue<T> {
    waiting: Mutex<VecDeque<PendingOps<T>>>,
    pub(crate) gathering: Arc<Linger>,
}

impl<T> Default for OpsQueue<T> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), gathering: Arc::default() }
    }
}

impl<T: Item> OpsQueue<T> {
    pub(crate) fn push(&self, (manner, gate): (Manner, WriteGate), ops: Vec<Op>) -> oneshot::Receiver<CommitResult<T>> {
        let (reply, answer) = oneshot::channel();
        let done = ops.iter().map(|_| None).collect();
        self.waiting().push_back(PendingOps { manner, gate, span: Span::current(), ops, done, reply });
        self.gathering.arrived();
        answer
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting().len()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<PendingOps<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most urgent lane that waits; callers that went away or may not write any more do not.
    fn lane(&self) -> Option<Lane> {
        let mut waiting = self.waiting();
        lapse(&mut waiting);
        waiting.iter().map(|source| source.manner.lane).min()
    }

    /// Waits until something more urgent than `than` is there.
    async fn urgent(&self, than: Option<Lane>) -> Lane {
        loop {
            match self.lane() {
                Some(lane) if than.is_none_or(|than| lane < than) => return lane,
                _ => self.gathering.next().await,
            }
        }
    }

    /// Waits for those who said that they are about to write, until a call is full or they take too long.
    async fn gathered(&self, limit: usize) {
        self.gathering.complete(PATIENCE, || self.operations() >= limit).await;
    }

    fn operations(&self) -> usize {
        self.waiting().iter().map(PendingOps::size).sum()
    }

    /// Takes as many sources as one call carries, urgent ones first. A source that touches an object which another one in
    /// the call touches stays, and so do those behind it that touch the same.
    fn take(&self, limit: usize) -> Vec<PendingOps<T>> {
        let mut waiting = self.waiting();
        lapse(&mut waiting);
        waiting.make_contiguous().sort_by_key(|source| source.manner.lane);
        let (mut taken, mut left, mut size) = (Vec::new(), VecDeque::new(), 0);
        let mut touched: HashSet<String> = HashSet::new();
        for source in waiting.drain(..) {
            let fits = taken.is_empty() || size + source.size() <= limit;
            let ids: Vec<String> = source.ops.iter().filter_map(Op::id).map(str::to_owned).collect();
            let free = ids.iter().all(|id| !touched.contains(id));
            touched.extend(ids);
            if fits && free {
                size += source.size();
                taken.push(source);
            } else {
                left.push_back(source);
            }
        }
        *waiting = left;
        taken
    }
}

/// Takes out whom nobody waits for, and who may not write any more and is told so.
fn lapse<T: Item>(waiting: &mut VecDeque<PendingOps<T>>) {
    *waiting = still_allowed(waiting.drain(..).collect()).into();
}

/// The line of all who write one zone's records in this process, whatever their credentials and whatever they keep of a
/// record: one write is on its way at a time, and everybody who reads the zone hears of it. Nobody waits in line for a
/// budget or after a failure.
#[derive(Default)]
pub(crate) struct CommitLine {
    turn: tokio::sync::Mutex<()>,
    followers: Mutex<Vec<Weak<dyn Follow>>>,
    pace: Mutex<Pace>,
}

/// Somebody with a snapshot of their own, who hears what others write.
pub(crate) trait Follow: Send + Sync {
    fn stored(&self, object: &Value);
    fn removed(&self, id: &str);
    fn doubted(&self);
}

impl CommitLine {
    /// Waits until no other write is on its way.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// How far apart writes are.
    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn follow(&self, follower: Weak<dyn Follow>) {
        let mut followers = self.followers();
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(follower);
    }

    /// Tells everybody but the one who wrote.
    pub(crate) fn tell<T: Follow>(&self, writer: &T, tell: impl Fn(&dyn Follow)) {
        let others = |follower: &&Weak<dyn Follow>| !std::ptr::addr_eq(follower.as_ptr(), std::ptr::from_ref(writer));
        let others: Vec<Arc<dyn Follow>> = self.followers().iter().filter(others).filter_map(Weak::upgrade).collect();
        for other in others {
            tell(other.as_ref());
        }
    }

    fn followers(&self) -> MutexGuard<'_, Vec<Weak<dyn Follow>>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer of one collection; runs until it is dropped.
pub(crate) async fn run<T: Item>(shared: Arc<RemoteInner<T>>) {
    loop {
        let (lane, permit) = match turn(&shared).await {
            Ok(turn) => turn,
            Err(error) => {
                fail_all(shared.queue.take(usize::MAX), &error);
                continue;
            }
        };
        let group = shared.queue.take(shared.batch_limit());
        let (Some(manner), Some(first)) = (Manner::shared(group.iter().map(|source| source.manner)), group.first())
        else {
            permit.unused();
            continue;
        };
        let span = first.span.clone();
        let commit = Commit { shared: &shared, manner: manner.in_lane(lane) };
        let began = Instant::now();
        commit.group(permit, group).instrument(span).await;
        if let Some(line) = &shared.line {
            line.pace().wrote(began, Instant::now());
        }
    }
}

/// Waits for work and for the governor, in the lane of the most urgent source; not for a long pause that the API asked for.
async fn turn<T: Item>(shared: &RemoteInner<T>) -> Result<(Lane, Permit), ApiError> {
    let mut lane = shared.queue.urgent(None).await;
    paced(shared).await;
    shared.queue.gathered(shared.batch_limit()).await;
    loop {
        tokio::select! {
            biased;
            permit = shared.sender.permit(lane) => return permit.map(|permit| (lane, permit)),
            urgent = shared.queue.urgent(Some(lane)) => lane = urgent,
        }
    }
}

/// Waits until the zone may be written again, or a call is full; what protects does not wait.
async fn paced<T: Item>(shared: &RemoteInner<T>) {
    let Some(line) = &shared.line else { return };
    loop {
        let next = line.pace().next(Instant::now());
        let full = shared.queue.operations() >= shared.batch_limit();
        let waits = shared.queue.lane().is_some_and(|lane| lane != Lane::Protect) && !full;
        let Some(next) = next.filter(|_| waits) else { return };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = shared.queue.gathering.next() => {}
        }
    }
}

/// One group on its way, with all the calls that a refusal costs.
struct Commit<'a, T: Item> {
    shared: &'a RemoteInner<T>,
    manner: Manner,
}

impl<T: Item> Commit<'_, T> {
    async fn group(&self, permit: Permit, group: Vec<PendingOps<T>>) {
        if !self.shared.batches() {
            permit.unused();
            return self.one_by_one(group).await;
        }
        let mut permit = Some(permit);
        let mut groups = vec![group];
        while let Some(group) = groups.pop() {
            let group = self.within_quota(still_allowed(group));
            if group.is_empty() {
                continue;
            }
            match self.send(permit.take(), &group).await {
                CallResult::Applied(answers) => self.deliver(group, answers),
                CallResult::Refused { error, blamed } => groups.extend(self.sort_out(group, error, &blamed).await),
            }
        }
        permit.into_iter().for_each(Permit::unused);
    }

    /// Those who ask for more than there is room for need not ask again for a while.
    fn within_quota(&self, group: Vec<PendingOps<T>>) -> Vec<PendingOps<T>> {
        let Some(error) = self.shared.quota.refusal() else { return group };
        let (full, rest): (Vec<_>, Vec<_>) = group.into_iter().partition(PendingOps::grows);
        fail_all(full, &error);
        rest
    }

    /// What has to hold when a request leaves: one at a time for the whole process.
    fn exit<'b>(&'b self, may_go: &'b (dyn Fn() -> bool + Send + Sync)) -> Exit<'b> {
        Exit { may_go, line: self.shared.line.as_deref() }
    }

    async fn send(&self, permit: Option<Permit>, group: &[PendingOps<T>]) -> CallResult<T> {
        let may_go = || group.iter().all(PendingOps::may_go);
        let ops: Vec<&Op> = group.iter().flat_map(|source| source.open().map(|(_, op)| op)).collect();
        match (ops.as_slice(), self.shared.collection.batch) {
            ([], _) => {
                permit.into_iter().for_each(Permit::unused);
                CallResult::Applied(Vec::new())
            }
            ([op], _) => CallResult::of_one(self.shared.write_one(permit, self.manner, self.exit(&may_go), op).await),
            (_, None) => CallResult::of_one(Err(ApiError::transient("the collection takes no batches", Effect::None))),
            (_, Some(batch)) => {
                let assembled = batch::assemble(ops.iter().copied());
                let request = Request::new(Method::POST, batch.template, &[self.shared.scope.as_str()])
                    .with_body(assembled.body.clone());
                let doubt = Doubt::unless_answered(self.shared);
                let answer = self.shared.sender.answer(permit, self.manner, self.exit(&may_go), &request).await;
                doubt.answered();
                self.shared.sender.metrics().committed(self.shared.collection.name, ops.len());
                self.read(&assembled, &ops, answer.map(|answer| answer.result))
            }
        }
    }

    fn read(&self, assembled: &Assembled, ops: &[&Op], answer: Result<Value, ApiError>) -> CallResult<T> {
        match answer {
            Ok(result) => {
                self.shared.batch_known();
                let parts = assembled.take_apart(result).into_iter().zip(ops);
                CallResult::Applied(parts.map(|(part, op)| self.shared.take_in(op, part)).collect())
            }
            Err(error) => CallResult::Refused { blamed: assembled.blamed(&error), error },
        }
    }

    fn deliver(&self, group: Vec<PendingOps<T>>, answers: Vec<Result<Written<T>, ApiError>>) {
        let mut answers = answers.into_iter();
        for mut source in group {
            let open: Vec<usize> = source.open().map(|(index, _)| index).collect();
            let parts: Vec<_> = answers.by_ref().take(open.len()).collect();
            let mut failed = None;
            for (index, part) in open.into_iter().zip(parts) {
                match part {
                    Ok(written) => source.done[index] = Some(written),
                    Err(error) => failed = Some(error),
                }
            }
            match failed {
                Some(error) => source.fail(error),
                None => source.settle(),
            }
        }
    }

    /// What is to be sent again after a refusal, last group first.
    async fn sort_out(&self, group: Vec<PendingOps<T>>, error: ApiError, blamed: &[usize]) -> Vec<Vec<PendingOps<T>>> {
        if !group.iter().all(PendingOps::may_go) && error.effect == Effect::None {
            return vec![group];
        }
        if may_be_missing(&error, &group) {
            return self.without_missing(group, error).await;
        }
        if group.len() > 1 && error.effect == Effect::None && concerns_content(&error) {
            // Which one a full zone blames is chance: halves find out how much fits.
            return split(group, if error.class == ErrorClass::Quota { &[] } else { blamed });
        }
        self.shared.follow(&error);
        if group.iter().any(PendingOps::grows) {
            self.shared.quota.refused(&error);
        }
        fail_all(group, &error);
        Vec::new()
    }

    /// An object of the batch is gone, or the API has no batches. A listing tells which.
    async fn without_missing(&self, group: Vec<PendingOps<T>>, error: ApiError) -> Vec<Vec<PendingOps<T>>> {
        match self.shared.refresh(self.manner, Freshness::AfterNow).await {
            Ok(()) => {}
            Err(error) => {
                self.give_up(group, &error);
                return Vec::new();
            }
        }
        let before: usize = group.iter().map(PendingOps::size).sum();
        let rest: Vec<PendingOps<T>> = group.into_iter().filter_map(|source| self.prune(source)).collect();
        let after: usize = rest.iter().map(PendingOps::size).sum();
        match (after < before, batch_is_missing(&error)) {
            (true, _) if rest.is_empty() => Vec::new(),
            (true, _) => vec![rest],
            (false, true) => {
                self.shared.batch_unknown();
                self.one_by_one(rest).await;
                Vec::new()
            }
            (false, false) if rest.len() > 1 => split(rest, &[]),
            (false, false) => {
                fail_all(rest, &error);
                Vec::new()
            }
        }
    }

    /// The collection cannot be listed. If the zone or account itself is gone, so is everything in it.
    fn give_up(&self, group: Vec<PendingOps<T>>, error: &ApiError) {
        let rest = if error.class == ErrorClass::NotFound {
            self.shared.store().clear();
            group.into_iter().filter_map(|source| self.prune(source)).collect()
        } else {
            group
        };
        fail_all(rest, error);
    }

    /// Deletes of what is gone are done; a source that changes what is gone fails alone.
    fn prune(&self, mut source: PendingOps<T>) -> Option<PendingOps<T>> {
        for index in 0..source.ops.len() {
            let Some(id) = source.ops[index].id().map(str::to_owned) else { continue };
            if source.done[index].is_some() || self.shared.store().snapshot().get(&id).is_some() {
                continue;
            }
            if !matches!(source.ops[index], Op::Delete { .. }) {
                source.fail(ApiError::gone(&id));
                return None;
            }
            source.done[index] = Some(Written::Gone(id));
        }
        match source.size() {
            0 => {
                source.settle();
                None
            }
            _ => Some(source),
        }
    }

    async fn one_by_one(&self, group: Vec<PendingOps<T>>) {
        let write = |mut source: PendingOps<T>| async move {
            for index in 0..source.ops.len() {
                if source.done[index].is_some() {
                    continue;
                }
                let may_go = || source.may_go();
                let exit = Exit { may_go: &may_go, line: None };
                match self.shared.write_one(None, source.manner, exit, &source.ops[index]).await {
                    Ok(written) => source.done[index] = Some(written),
                    Err(error) => return source.fail(error),
                }
            }
            source.settle();
        };
        futures::stream::iter(group).for_each_concurrent(WRITES_AT_ONCE, write).await;
    }
}

/// The group without those who may not write any more, who are told so.
fn still_allowed<T: Item>(group: Vec<PendingOps<T>>) -> Vec<PendingOps<T>> {
    let (ready, late): (Vec<_>, Vec<_>) = group.into_iter().partition(PendingOps::may_go);
    fail_all(late, &ApiError::lapsed());
    ready
}

fn fail_all<T: Item>(group: Vec<PendingOps<T>>, error: &ApiError) {
    for source in group {
        source.fail(error.clone());
    }
}

/// What became of one call.
enum CallResult<T> {
    Applied(Vec<Result<Written<T>, ApiError>>),
    Refused { error: ApiError, blamed: Vec<usize> },
}

impl<T> CallResult<T> {
    /// A single operation is followed in the snapshot already, and there is nobody else to blame.
    fn of_one(answer: Result<Written<T>, ApiError>) -> Self {
        Self::Applied(vec![answer])
    }
}

/// Whether another selection of sources could fare better.
fn concerns_content(error: &ApiError) -> bool {
    match error.class {
        ErrorClass::Auth | ErrorClass::RateLimit | ErrorClass::Transient => false,
        ErrorClass::NotFound
        | ErrorClass::Conflict
        | ErrorClass::Validation
        | ErrorClass::Quota
        | ErrorClass::Unknown => true,
    }
}

fn may_be_missing<T: Item>(error: &ApiError, group: &[PendingOps<T>]) -> bool {
    let by_id = group.iter().any(|source| source.open().any(|(_, op)| op.id().is_some()));
    (error.class == ErrorClass::NotFound && by_id) || batch_is_missing(error)
}

/// The path or method itself is not there, rather than a record.
fn batch_is_missing(error: &ApiError) -> bool {
    matches!(error.status, Some(404 | 405 | 501)) && !error.has_code(81044)
}

/// The sources that the answer blames go alone, the rest together; without blame, in halves. Last group is sent first.
fn split<T: Item>(group: Vec<PendingOps<T>>, blamed: &[usize]) -> Vec<Vec<PendingOps<T>>> {
    let (guilty, rest) = part(group, blamed);
    if guilty.is_empty() || (rest.is_empty() && guilty.len() > 1) {
        let mut first = if guilty.is_empty() { rest } else { guilty };
        let second = first.split_off(first.len().div_ceil(2));
        return [second, first].into_iter().filter(|half| !half.is_empty()).collect();
    }
    let alone = guilty.into_iter().rev().map(|source| vec![source]);
    let together = (!rest.is_empty()).then_some(rest);
    alone.chain(together).collect()
}

/// Sources that one of the blamed operations belongs to, and the others. Operations are counted through the whole group.
fn part<T: Item>(group: Vec<PendingOps<T>>, blamed: &[usize]) -> (Vec<PendingOps<T>>, Vec<PendingOps<T>>) {
    let mut start = 0;
    group.into_iter().partition(|source| {
        let range = start..start + source.size();
        start = range.end;
        blamed.iter().any(|index| range.contains(index))
    })
}
