//! The state of one controller's loop: what was seen, what is at work, what comes next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::Resource as _;
use kube::api::ObjectMeta;
use portolan_core::{ObjectKey, Problem, reasons};
use tokio::sync::Semaphore;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::context::Context;
use crate::dispatch::backoff;
use crate::dispatch::fingerprint::{fingerprint_for, key_of, version_of};
use crate::dispatch::handle::Handle;
use crate::dispatch::store::Projected;
use crate::observe::metrics::word;
use crate::pass::{PassResult, Requeue, pass};
use crate::reconcile::Reconcile;
use crate::watch::CollectionEvent;
use crate::watch::guarded::{Guarded, GuardedBody};

/// Most whole objects that wait for their pass in memory.
const MOST_PAYLOADS: usize = 512;

pub(crate) struct Dispatcher<R: Reconcile> {
    context: Arc<Context>,
    reconciler: Arc<R>,
    handle: Handle<R::Projection>,
    /// Objects that wait for their pass.
    payloads: BTreeMap<ObjectKey, Guarded<R::Object>>,
    /// Version and fingerprint of what was seen of objects at work.
    meanwhile: BTreeMap<ObjectKey, (u64, u64)>,
    failures: BTreeMap<ObjectKey, Failures>,
    /// Keys of the list under way.
    listing: Option<BTreeSet<ObjectKey>>,
    passes: JoinSet<PassResult<R::Object>>,
    at_work: HashMap<Id, AtWork>,
    reads: Arc<Semaphore>,
}

struct Failures {
    count: u32,
    generation: i64,
    /// What failed last.
    problem: Problem,
}

struct AtWork {
    key: ObjectKey,
    since: Instant,
}

impl<R: Reconcile> Dispatcher<R> {
    pub(crate) fn new(context: Arc<Context>, reconciler: Arc<R>, handle: Handle<R::Projection>) -> Self {
        Self {
            reads: Arc::new(Semaphore::new(context.timing.reads)),
            context,
            reconciler,
            handle,
            payloads: BTreeMap::new(),
            meanwhile: BTreeMap::new(),
            failures: BTreeMap::new(),
            listing: None,
            passes: JoinSet::new(),
            at_work: HashMap::new(),
        }
    }

    /// Takes in what was seen.
    pub(crate) fn see(&mut self, event: CollectionEvent<Guarded<R::Object>>) {
        portolan_core::waypoint!();
        match event {
            CollectionEvent::Restarted => self.listing = Some(BTreeSet::new()),
            CollectionEvent::Found(raw) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(key_of(raw.meta()));
                }
                self.arrived(raw);
            }
            CollectionEvent::Changed(raw) => self.arrived(raw),
            CollectionEvent::Gone(raw) => self.forget(&key_of(raw.meta())),
            CollectionEvent::Listed => self.listed(),
            CollectionEvent::Failed { missing } => {
                if missing {
                    // What does not exist is empty.
                    self.handle.set_listed();
                }
            }
        }
    }

    fn listed(&mut self) {
        if let Some(listing) = self.listing.take() {
            let gone: Vec<ObjectKey> = self.handle.read(|store| {
                store.iter().map(|(key, _)| key).filter(|key| !listing.contains(*key)).cloned().collect()
            });
            for key in &gone {
                self.forget(key);
            }
        }
        self.handle.set_listed();
    }

    fn arrived(&mut self, raw: Guarded<R::Object>) {
        let meta = raw.meta();
        let (key, version, print) = (key_of(meta), version_of(meta), self.print(meta));
        let Some(passed) = self.remember(&key, &raw, Unknown::Takes) else { return };
        let mut queue = self.handle.queue();
        let running = queue.is_running(&key);
        if !running && passed != print {
            queue.push(&key, Instant::now());
        }
        drop(queue);
        if running {
            // The pass at work may be over another state than the last one that ended: when it ends it is compared.
            self.meanwhile.insert(key.clone(), (version, print));
        }
        // What waits for a pass is what was seen last, also where that is what was passed over before.
        if running || passed != print || self.payloads.contains_key(&key) {
            self.keep_payload(key, raw);
        }
    }

    fn print(&self, meta: &ObjectMeta) -> u64 {
        fingerprint_for(&self.context, &*self.reconciler, meta)
    }

    /// Keeps what there is to know of an object; answers the fingerprint of its last pass, or none for old news.
    fn remember(&self, key: &ObjectKey, raw: &Guarded<R::Object>, unknown: Unknown) -> Option<u64> {
        let before = self.handle.get(key);
        if before.is_none() && unknown == Unknown::Stays {
            return None;
        }
        if !self.handle.store().put(self.projected(raw)) {
            return None;
        }
        let was = before.as_ref().map(|known| word(known.ready));
        self.context.metrics.moved(self.reconciler.profile().kind, was, Some(word(raw.ready)));
        self.handle.read(|store| {
            let after = store.get(key)?;
            self.reconciler.seen(key, before.as_ref(), Some(after));
            Some(after.passed)
        })
    }

    fn projected(&self, raw: &Guarded<R::Object>) -> Projected<R::Projection> {
        let meta = raw.meta();
        Projected {
            key: Arc::new(key_of(meta)),
            uid: meta.uid.as_deref().unwrap_or_default().into(),
            generation: meta.generation.unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|time| time.0),
            deleting: meta.deletion_timestamp.is_some(),
            ready: raw.ready,
            projection: match &raw.body {
                GuardedBody::Typed(object) => Some(self.project(object)),
                GuardedBody::Malformed(_) => None,
            },
            version: version_of(meta),
            passed: 0,
        }
    }

    fn project(&self, object: &R::Object) -> R::Projection {
        let reconciler = &self.reconciler;
        self.context.pure(|| reconciler.project(object))
    }

    fn keep_payload(&mut self, key: ObjectKey, raw: Guarded<R::Object>) {
        if self.payloads.len() < MOST_PAYLOADS || self.payloads.contains_key(&key) {
            self.payloads.insert(key, raw);
        }
    }

    /// An object is gone from Kubernetes.
    fn forget(&mut self, key: &ObjectKey) {
        self.handle.queue().forget(key);
        let known = self.handle.store().remove(key);
        if let Some(known) = &known {
            self.context.metrics.moved(self.reconciler.profile().kind, Some(word(known.ready)), None);
        }
        self.payloads.remove(key);
        self.meanwhile.remove(key);
        self.failures.remove(key);
        self.reconciler.seen(key, known.as_ref(), None);
    }

    /// Starts the passes whose time has come; answers when the next one's comes.
    pub(crate) fn start(&mut self, now: Instant) -> Option<Instant> {
        let handle = self.handle.clone();
        if !handle.is_listed() {
            return None;
        }
        let mut queue = handle.queue();
        while self.passes.len() < self.context.timing.in_flight
            && let Some((key, waited)) = queue.pop(now)
        {
            self.context.metrics.waited(self.reconciler.profile().kind, waited);
            let seen = self.payloads.remove(&key);
            self.begin(key, seen, now);
        }
        let kind = self.reconciler.profile().kind;
        self.context.metrics.queued(kind, queue.len(), queue.running(), queue.age(now));
        if self.passes.len() < self.context.timing.in_flight { queue.next() } else { None }
    }

    fn begin(&mut self, key: ObjectKey, seen: Option<Guarded<R::Object>>, now: Instant) {
        let (context, reconciler, reads) = (self.context.clone(), self.reconciler.clone(), self.reads.clone());
        let (kind, log_scope) = (reconciler.profile().kind, tracing::field::Empty);
        // A kind whose work is in a log scope says so with `Levels::mark`.
        let span = tracing::info_span!("reconcile", kind, object = %key, log_scope, log_scope_namespace = log_scope);
        let work = {
            let key = key.clone();
            let failed = self.failures.get(&key).map(|failures| failures.problem.clone());
            async move { pass(&context, reconciler.as_ref(), &key, (seen, failed), &reads).await }.instrument(span)
        };
        let id = self.passes.spawn(work).id();
        self.at_work.insert(id, AtWork { key, since: now });
    }

    /// Waits for a pass to end and draws the conclusions; never returns while none is at work.
    pub(crate) async fn ended(&mut self) {
        match self.passes.join_next_with_id().await {
            Some(Ok((id, ended))) => self.conclude(id, ended),
            Some(Err(error)) => self.broke(&error),
            None => std::future::pending().await,
        }
    }

    /// A pass panicked: that is its object's trouble alone.
    fn broke(&mut self, error: &JoinError) {
        self.context.metrics.panicked(self.reconciler.profile().kind);
        let key = self.at_work.get(&error.id()).map(|work| work.key.to_string());
        tracing::error!(kind = self.reconciler.profile().kind, object = key, %error, "A pass ended in a panic");
        let problem = Problem::transient(reasons::ERROR, "an internal error, see the log");
        let ended = PassResult { passed: None, generation: 0, latest: None, next: Requeue::Failed(problem) };
        self.conclude(error.id(), ended);
    }

    fn conclude(&mut self, id: Id, ended: PassResult<R::Object>) {
        let Some(AtWork { key, since }) = self.at_work.remove(&id) else { return };
        self.measure(&ended.next, since.elapsed());
        let now = Instant::now();
        let after = self.after(&key, &ended);
        let again = self.superseded(&key, ended);
        let next = if again { Some(now) } else { after.map(|wait| now + wait) };
        let exists = self.handle.read(|store| store.get(&key).is_some());
        if exists {
            self.handle.queue().finish(&key, next);
            return;
        }
        let mut queue = self.handle.queue();
        queue.forget(&key);
        queue.finish(&key, None);
        drop(queue);
        self.payloads.remove(&key);
        self.failures.remove(&key);
    }

    fn measure(&self, next: &Requeue, took: Duration) {
        let (result, reason) = match next {
            Requeue::Gone => ("gone", ""),
            Requeue::Rest | Requeue::After(_) => ("success", ""),
            Requeue::Now => ("superseded", ""),
            Requeue::Failed(problem) => (problem.class.as_str(), problem.reason),
        };
        self.context.metrics.passed(self.reconciler.profile().kind, result, reason, took);
    }

    /// How long until the next pass.
    fn after(&mut self, key: &ObjectKey, ended: &PassResult<R::Object>) -> Option<Duration> {
        match &ended.next {
            Requeue::Failed(problem) => self.back_off(key, problem, ended.generation),
            Requeue::Now => Some(Duration::ZERO),
            Requeue::After(wait) => {
                self.failures.remove(key);
                Some(*wait)
            }
            Requeue::Rest | Requeue::Gone => {
                self.failures.remove(key);
                None
            }
        }
    }

    fn back_off(&mut self, key: &ObjectKey, problem: &Problem, generation: i64) -> Option<Duration> {
        let before = self.failures.remove(key).filter(|failures| failures.generation == generation);
        let count = before.map_or(0, |failures| failures.count);
        let failures = Failures { count: count.saturating_add(1), generation, problem: problem.clone() };
        self.failures.insert(key.clone(), failures);
        let jitter = backoff::jitter(self.context.seed, self.reconciler.profile().kind, key, count);
        backoff::delay(&self.context.timing, problem, count, jitter)
    }

    /// Notes what was passed over. Answers whether the object changed meanwhile in a way that is worth another pass.
    fn superseded(&mut self, key: &ObjectKey, ended: PassResult<R::Object>) -> bool {
        let meanwhile = self.meanwhile.remove(key);
        let Some(passed) = ended.passed else {
            // Whatever the pass was over, it is tried again as its end says; news need not wait for that.
            let before = self.handle.read(|store| store.get(key).map(|known| known.passed));
            return meanwhile.is_some_and(|(_, print)| Some(print) != before);
        };
        if let Some(known) = self.handle.store().get_mut(key) {
            known.passed = passed;
        }
        let mut seen = meanwhile;
        if let Some(latest) = ended.latest {
            self.remember(key, &latest, Unknown::Stays);
            let own = (version_of(latest.meta()), self.print(latest.meta()));
            // Of two events the newer one counts, and waits; without versions the other's does.
            if meanwhile.is_none_or(|other| own.0 != 0 && other.0 <= own.0) {
                seen = Some(own);
                self.keep_payload(key.clone(), latest);
            }
        }
        let again = seen.is_some_and(|(_, print)| print != passed);
        if !again {
            self.payloads.remove(key);
        }
        again
    }

    /// Lets the passes at work end, for some time.
    pub(crate) async fn drain(mut self, grace: Duration) {
        let all = async { while self.passes.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all).await.is_err() {
            tracing::warn!(kind = self.reconciler.profile().kind, "Passes were abandoned: they are safe to repeat");
        }
    }
}

/// What happens to objects that are not known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// They become known.
    Takes,
    /// They stay unknown: the watch decides what exists.
    Stays,
}
