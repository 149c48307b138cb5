//! Group commit for the records of a zone: while one batch is under way others gather, and the next carries them all.
//!
//! The governor's turn comes first and then what has gathered is taken, so that waiting for the budget makes batches
//! larger, not queues longer. A refused batch is split by source until the bad one is alone.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use futures::StreamExt;
use http::Method;
use portolan_commit::{Attempt, Line, Pace, PendingWrite, Queue, Source, Target, in_parts, split};
use portolan_core::{Item, WriteGate};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::budget::governor::Lane;
use crate::budget::limiter::Permit;
use crate::cache::snapshot_store::Freshness;
use crate::call::error::{ApiError, Effect, ErrorClass};
use crate::call::options::CallOptions;
use crate::call::request::Request;
use crate::call::sender::Exit;
use crate::handle::batch::{self, Assembled};
use crate::handle::{CollectionState, DoubtOnDrop, WRITES_AT_ONCE};
use crate::item::{Op, Written};

type CommitResult<T> = Result<Vec<Written<T>>, ApiError>;

/// One caller's operations.
pub(crate) struct PendingOps<T> {
    options: CallOptions,
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

impl<T: Item> Source for PendingOps<T> {
    type Lane = Lane;

    fn lane(&self) -> Lane {
        self.options.lane
    }

    fn is_paced(&self) -> bool {
        self.lane() != Lane::Protect
    }

    fn may_go(&self) -> bool {
        !self.reply.is_closed() && self.gate.is_open()
    }

    fn lapse(self) {
        self.fail(ApiError::lapsed());
    }

    fn size(&self) -> usize {
        self.open().count()
    }

    fn touches(&self) -> Vec<String> {
        self.ops.iter().filter_map(Op::id).map(str::to_owned).collect()
    }
}

/// The sources that wait.
pub(crate) struct OpsQueue<T>(Queue<PendingOps<T>>);

impl<T> Default for OpsQueue<T> {
    fn default() -> Self {
        Self(Queue::default())
    }
}

impl<T: Item> OpsQueue<T> {
    pub(crate) fn push(
        &self,
        (options, gate): (CallOptions, WriteGate),
        ops: Vec<Op>,
    ) -> oneshot::Receiver<CommitResult<T>> {
        let (reply, answer) = oneshot::channel();
        let done = ops.iter().map(|_| None).collect();
        self.0.push(PendingOps { options, gate, span: Span::current(), ops, done, reply });
        answer
    }

    pub(crate) fn expect(&self) -> PendingWrite<T> {
        self.0.expect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The line of all who write one zone's records in this process, whatever their credentials and whatever they keep of a
/// record: one write is on its way at a time, and everybody who reads the zone hears of it. Nobody waits in line for a
/// budget or after a failure.
#[derive(Default)]
pub(crate) struct CommitLine(Line<(), dyn Follow>);

/// Somebody with a snapshot of their own, who hears what others write.
pub(crate) trait Follow: Send + Sync {
    fn stored(&self, object: &Value);
    fn removed(&self, id: &str);
    fn doubted(&self);
}

impl CommitLine {
    /// Waits until no other write is on its way.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.turn().await
    }

    pub(crate) fn follow(&self, follower: Weak<dyn Follow>) {
        self.0.follow(follower);
    }

    /// Tells everybody but the one who wrote.
    pub(crate) fn tell<T: Follow>(&self, writer: &T, tell: impl Fn(&dyn Follow)) {
        for other in self.0.others(std::ptr::from_ref(writer)) {
            tell(other.as_ref());
        }
    }
}

/// The writer of one collection; runs until it is dropped.
pub(crate) async fn run<T: Item>(shared: Arc<CollectionState<T>>) {
    portolan_commit::run(&*shared).await;
}

impl<T: Item> Target for CollectionState<T> {
    type Source = PendingOps<T>;

    const PATIENCE: Duration = Duration::from_secs(1);

    fn queue(&self) -> &Queue<PendingOps<T>> {
        &self.queue.0
    }

    fn pace(&self) -> Option<&Mutex<Pace>> {
        self.line.as_ref().map(|line| line.0.pace())
    }

    fn room(&self) -> Option<usize> {
        Some(self.batch_limit())
    }

    /// The turn comes in the lane of the most urgent source; a long pause that the API asked for is not waited for.
    async fn commit(&self, lane: Lane) -> Option<Instant> {
        portolan_core::waypoint!();
        let (lane, permit) = self.queue().turn(lane, |lane| self.sender.permit(lane)).await;
        let permit = match permit {
            Ok(permit) => permit,
            Err(error) => {
                fail_all(self.queue().take(usize::MAX), &error);
                return None;
            }
        };
        let group = self.queue().take(self.batch_limit());
        let (Some(options), Some(first)) =
            (CallOptions::shared(group.iter().map(|source| source.options)), group.first())
        else {
            permit.unused();
            return None;
        };
        let span = first.span.clone();
        let commit = Commit { shared: self, options: options.in_lane(lane), permit: Some(permit) };
        let began = Instant::now();
        commit.group(group).instrument(span).await;
        Some(began)
    }
}

/// One group on its way, with all the calls that a refusal costs.
struct Commit<'a, T: Item> {
    /// The turn of the first call.
    permit: Option<Permit>,
    shared: &'a CollectionState<T>,
    options: CallOptions,
}

impl<T: Item> Commit<'_, T> {
    async fn group(mut self, group: Vec<PendingOps<T>>) {
        if self.shared.batches() {
            in_parts(&mut self, group).await;
            self.permit.into_iter().for_each(Permit::unused);
        } else {
            self.permit.take().into_iter().for_each(Permit::unused);
            self.one_by_one(group).await;
        }
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
            ([op], _) => CallResult::of_one(self.shared.write_one(permit, self.options, self.exit(&may_go), op).await),
            (_, None) => CallResult::of_one(Err(ApiError::transient("the collection takes no batches", Effect::None))),
            (_, Some(batch)) => {
                let assembled = batch::assemble(ops.iter().copied());
                let request = Request::new(Method::POST, batch.template, &[self.shared.scope.as_str()])
                    .with_body(assembled.body.clone());
                let doubt = DoubtOnDrop::unless_answered(self.shared);
                let answer = self.shared.sender.answer(permit, self.options, self.exit(&may_go), &request).await;
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
        match self.shared.refresh(self.options, Freshness::AfterNow).await {
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
                match self.shared.write_one(None, source.options, exit, &source.ops[index]).await {
                    Ok(written) => source.done[index] = Some(written),
                    Err(error) => return source.fail(error),
                }
            }
            source.settle();
        };
        futures::stream::iter(group).for_each_concurrent(WRITES_AT_ONCE, write).await;
    }
}

impl<T: Item> Attempt for Commit<'_, T> {
    type Source = PendingOps<T>;

    fn admit(&self, group: Vec<PendingOps<T>>) -> Vec<PendingOps<T>> {
        self.within_quota(group)
    }

    async fn attempt(&mut self, group: Vec<PendingOps<T>>) -> Vec<Vec<PendingOps<T>>> {
        let permit = self.permit.take();
        match self.send(permit, &group).await {
            CallResult::Applied(answers) => {
                self.deliver(group, answers);
                Vec::new()
            }
            CallResult::Refused { error, blamed } => self.sort_out(group, error, &blamed).await,
        }
    }
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
