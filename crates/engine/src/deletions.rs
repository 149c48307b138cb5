//! The deletion budget at work: asks the ledger of a scope before anything is deleted in it, and keeps the ledger
//! across restarts in a `ConfigMap` of the operator's namespace.
//!
//! The ledger is written before the deletions that it allows, so that a crash in between forgets none. Deletions asked
//! for at the same time share one write. What is held is released by an annotation on the object that stands for the
//! scope, or on the `ConfigMap` itself, which always exists. What nobody asks for any more is no longer held.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use portolan_core::{Clock, Ledger, ObjectId, Problem, Verdict, digest_hex, reasons, text};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, FIELD_MANAGER, WriteMode};
use crate::jobs::task::Task;
use crate::observe::collected::{CollectedGauge, LabelledCounts};
use crate::pass::annotations::Steering;
use crate::watch::{CollectionEvent, Following, Selection, follow};

/// How many held names a condition lists; the `ConfigMap` lists all.
const NAMES_SHOWN: usize = 20;
/// The annotation that releases held deletions; its value is the digest of their list.
const RELEASE_ANNOTATION: &str = "portolan.dev/release-deletions";
/// What is held is asked for again when the window has moved on; a release asks at once.
const RETRY: Duration = Duration::from_secs(600);
/// Who asks for what is held asks again within [`RETRY`]: what nobody has asked for as long as this is no longer wanted.
const UNASKED: Duration = Duration::from_secs(1500);
/// How often such names are looked for.
const TIDYING: Duration = Duration::from_secs(300);
/// Names of objects end here.
const LONGEST_NAME: usize = 253;
/// Reading the ledgers is tried again after this.
const PAUSE: Duration = Duration::from_secs(2);
/// What the names of the `ConfigMap`s begin with.
const PREFIX: &str = "portolan-held-";
/// Tells the `ConfigMap`s of ledgers from others.
const LABEL: &str = "portolan.dev/deletion-ledger";

/// What deletions are counted over, such as a zone or one collection of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionScope {
    /// The id of whatever holds them, which the object that stands for it has recorded.
    pub id: String,
    /// The collection's name.
    pub collection: String,
    /// Name for users.
    pub label: String,
}

impl DeletionScope {
    fn config_map(&self) -> String {
        // A namespace's name has no dots, so that one before the object's name keeps ids apart.
        let name = format!("{}-{}", self.id.replace('/', "."), self.collection.replace('_', "-")).to_lowercase();
        if PREFIX.len() + name.len() > LONGEST_NAME {
            return format!("{PREFIX}{}", digest_hex([self.id.as_str(), self.collection.as_str()], 40));
        }
        format!("{PREFIX}{name}")
    }
}

impl fmt::Display for DeletionScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.collection.replace('_', " "), self.label)
    }
}

/// What a deletion is seen against.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Further deletions in the scope that are bound to follow.
    pub following: Vec<String>,
    /// Objects of ours in the scope.
    pub total: usize,
}

/// Tells when the ledgers are read.
#[derive(Clone)]
pub struct Loaded(watch::Receiver<bool>);

impl Loaded {
    /// Waits until they are; or for good, if the task that reads them has ended.
    pub async fn ready(mut self) {
        if self.0.wait_for(|loaded| *loaded).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// What became of deletions that were held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheld {
    /// The id of their scope.
    pub id: String,
    /// Who asked for them and may go on; nobody where they are no longer wanted.
    pub askers: Vec<ObjectId>,
}

/// What is to be done about the ledgers of an id, as the object says that stands for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerWork {
    /// The digest of what its annotation releases.
    release: Option<String>,
    /// Whether a ledger is to be written.
    unstored: bool,
}

impl LedgerWork {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

type Listener = Arc<dyn Fn(Unheld) + Send + Sync>;

/// Ledgers by id and collection.
type Scopes = BTreeMap<(String, String), Arc<KeptLedger>>;
/// What is held, by who asked for it.
type Waiting = BTreeMap<ObjectId, (DeletionScope, Vec<String>)>;

/// All ledgers of the process.
#[derive(Clone)]
pub struct Deletions {
    api: Api<ConfigMap>,
    namespaces: Api<Namespace>,
    clock: Clock,
    /// Where users put the annotation that releases what is held, as `the zone's object`.
    release_on: &'static str,
    scopes: Arc<Mutex<Scopes>>,
    /// What is held, by who asked for it.
    waiting: Arc<Mutex<Waiting>>,
    /// Who is told of what is no longer held.
    listener: Arc<Mutex<Option<Listener>>>,
    /// The metric of what is held.
    counted: CollectedGauge,
    /// Watches the ledgers of the operator's namespace.
    following: Following,
    /// Where that annotation is read.
    steering: Steering,
    live: bool,
}

/// One scope's ledger and how much of it is stored.
struct KeptLedger {
    scope: DeletionScope,
    state: Mutex<LedgerState>,
    /// Held while the ledger is written; says which version is stored.
    stored: tokio::sync::Mutex<u64>,
}

#[derive(Default)]
struct LedgerState {
    ledger: Ledger,
    version: u64,
    /// Digest and length of the held list, so that they are not found out anew for every name in it.
    held: Option<(String, usize)>,
    /// When each held name was last asked for, or found in a ledger that an earlier process left.
    asked: BTreeMap<String, Instant>,
}

impl Deletions {
    /// Ledgers in the operator's namespace; what they hold is released by an annotation on `release_on`.
    pub fn new(context: &Context, release_on: &'static str) -> Self {
        Self {
            namespaces: Api::all(context.client.clone()),
            api: Api::namespaced(context.client.clone(), &context.operator_namespace),
            clock: context.clock.clone(),
            release_on,
            scopes: Arc::default(),
            waiting: Arc::default(),
            listener: Arc::default(),
            counted: context.metrics.held().clone(),
            following: Following {
                resource: "ledgers".to_owned(),
                selection: Selection::labels(LABEL).within(&context.operator_namespace),
                seed: context.seed,
                metrics: context.metrics.clone(),
            },
            steering: context.steering,
            live: context.mode == WriteMode::Live,
        }
    }

    /// Reads what an earlier process left. Comes before anything is deleted.
    async fn load(&self) -> Result<(), kube::Error> {
        let found = self.api.list(&ListParams::default().labels(LABEL)).await?;
        for map in found.items {
            if let Some((scope, ledger)) = map.data.as_ref().and_then(read) {
                let kept = self.kept(&scope);
                let mut state = kept.state();
                state.held = held_in(&ledger);
                let now = Instant::now();
                state.asked = ledger.listed().map(|name| (name.clone(), now)).collect();
                state.ledger = ledger;
            }
        }
        Ok(())
    }

    /// The task that reads them, again and again until it succeeds; and what to wait for before anything is deleted.
    pub fn loading(&self, shutdown: CancellationToken) -> (Task, Loaded) {
        let (loaded, is_loaded) = watch::channel(false);
        let (ledgers, busy, scopes) = (self.clone(), is_loaded.clone(), Arc::clone(&self.scopes));
        let counting = self.counted.source(move || held_by_collection(&scopes));
        let run = async move {
            let _counting = counting;
            while let Err(error) = ledgers.load().await {
                tracing::warn!(%error, "The ledgers of deletions could not be read and will be tried again");
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            }
            loaded.send_replace(true);
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = ledgers.keep() => {}
            }
        };
        let unread = is_loaded.clone();
        let task = Task::new("ledgers", move || usize::from(!*busy.borrow()), run)
            .lacking(move || (!*unread.borrow()).then_some("the ledgers of deletions are not read"));
        (task, Loaded(is_loaded))
    }

    /// Tells somebody when what was held may go, or is no longer wanted.
    pub fn on_unheld(&self, listener: impl Fn(Unheld) + Send + Sync + 'static) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listener));
    }

    fn tell(&self, unheld: Unheld) {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener(unheld);
        }
    }

    /// Heeds annotations on the ledgers themselves, and takes off what nobody asks for any more.
    async fn keep(&self) {
        if !self.live {
            return std::future::pending().await;
        }
        let mut events = follow(self.api.clone(), self.following.clone());
        let mut tidying = tokio::time::interval(TIDYING);
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(CollectionEvent::Found(map) | CollectionEvent::Changed(map)) => self.heed(&map).await,
                    Some(_) => {}
                    None => return,
                },
                _ = tidying.tick() => self.tidy().await,
            }
        }
    }

    /// Releases what the annotation on a ledger says.
    async fn heed(&self, map: &ConfigMap) {
        let Some(digest) = self.steering.released_deletions(&map.metadata) else { return };
        let Some((scope, _)) = map.data.as_ref().and_then(read) else { return };
        if let Err(problem) = self.approve(&scope.id, digest).await {
            tracing::warn!(ledger = scope.config_map(), error = %problem, "Held deletions could not be released yet");
        }
    }

    /// Takes off what nobody has asked for in a long time: its asker went while nobody looked.
    async fn tidy(&self) {
        let all: Vec<Arc<KeptLedger>> =
            self.scopes.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for kept in all {
            let Some(version) = kept.forget_unasked(Instant::now()) else { continue };
            self.tell(Unheld { id: kept.scope.id.clone(), askers: Vec::new() });
            if let Err(problem) = self.store(&kept, version).await {
                tracing::warn!(ledger = kept.scope.config_map(), error = %problem, "A ledger could not be written");
            }
        }
    }

    /// Says that something of a scope stays after all, whoever asked for its deletion. True where that was held; then the
    /// ledger is to be [stored](Self::flush).
    pub fn stays(&self, scope: &DeletionScope, name: &str) -> bool {
        let key = (scope.id.clone(), scope.collection.clone());
        let kept = self.scopes.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        kept.is_some_and(|kept| kept.withdraw(&[name.to_owned()]))
    }

    /// Asks to delete `names` in a scope. Once this returns `Ok` they are counted; `news` is called where the list of what
    /// is held changed. `surroundings` is asked only where the names are not held already.
    pub async fn ask(
        &self,
        asker: ObjectId,
        scope: &DeletionScope,
        names: &[String],
        surroundings: impl FnOnce() -> Surroundings,
        news: impl FnOnce(),
    ) -> Result<(), Problem> {
        portolan_core::waypoint!();
        let kept = self.kept(scope);
        let before = kept.digest();
        // Before it is asked: a release that comes between the answer and its keeping is told to those who wait.
        self.waiting().insert(asker.clone(), (scope.clone(), names.to_vec()));
        let (held, version) = kept.consider((self.clock)(), names, surroundings);
        if kept.digest() != before {
            news();
        }
        self.store(&kept, version).await?;
        let Some((digest, count)) = held else {
            self.waiting().remove(&asker);
            return Ok(());
        };
        Err(Problem::waiting(
            reasons::DELETION_BUDGET_EXCEEDED,
            format!(
                "held: {} is among {} in the {scope} within ten minutes, more than the budget allows. Look at the list in \
                 ConfigMap {}, then release it with the annotation {RELEASE_ANNOTATION}: \"{digest}\" on {} or on that \
                 ConfigMap",
                text::join_some(names, 3),
                text::count(count, "withdrawal"),
                kept.scope.config_map(),
                self.release_on,
            ),
        )
        .with_retry_after(RETRY))
    }

    /// What is to be done about the ledgers of an id, by the annotations of the object that stands for it.
    pub fn due(&self, id: &str, meta: &ObjectMeta) -> LedgerWork {
        let (now, ledgers) = ((self.clock)(), self.of(id));
        let released = self.steering.released_deletions(meta);
        LedgerWork {
            release: released.filter(|digest| ledgers.iter().any(|kept| kept.releases(digest, now))).map(str::to_owned),
            unstored: ledgers.iter().any(|kept| kept.is_unstored()),
        }
    }

    /// Does what is [due](Self::due): stores ledgers that changed, and lets go what was released. True if something was.
    pub async fn settle(&self, id: &str, work: &LedgerWork) -> Result<bool, Problem> {
        self.flush(id).await?;
        match &work.release {
            Some(digest) => self.approve(id, digest).await,
            None => Ok(false),
        }
    }

    /// Releases what is held in the scopes of an id, if `digest` is the digest of that list. True if something was.
    pub async fn approve(&self, id: &str, digest: &str) -> Result<bool, Problem> {
        let mut released = false;
        for kept in self.of(id) {
            if let Some(version) = kept.approve(digest, (self.clock)()) {
                let stored = self.store(&kept, version).await;
                released = true;
                // Also where it could not be kept: who asks again keeps it first, or is told why not.
                self.tell(Unheld { id: id.to_owned(), askers: self.askers(&kept.scope) });
                stored?;
            }
        }
        Ok(released)
    }

    /// An object is gone by other ways: what was held for it is no longer wanted. Gives back the id of the scope whose
    /// ledger is to be [stored](Self::flush).
    pub fn withdraw(&self, asker: &ObjectId) -> Option<String> {
        let (scope, names) = self.waiting().remove(asker)?;
        self.kept(&scope).withdraw(&names);
        Some(scope.id)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn askers(&self, scope: &DeletionScope) -> Vec<ObjectId> {
        let waiting = self.waiting();
        waiting.iter().filter(|(_, (one, _))| one == scope).map(|(asker, _)| asker.clone()).collect()
    }

    /// Stores the ledgers of an id where they changed.
    pub async fn flush(&self, id: &str) -> Result<(), Problem> {
        for kept in self.of(id) {
            let version = kept.state().version;
            self.store(&kept, version).await?;
        }
        Ok(())
    }

    /// What is held in the scopes of an id, as sentences.
    pub fn held(&self, id: &str) -> Vec<String> {
        self.of(id).iter().filter_map(|kept| kept.message()).collect()
    }

    fn of(&self, id: &str) -> Vec<Arc<KeptLedger>> {
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.values().filter(|kept| kept.scope.id == id).cloned().collect()
    }

    fn kept(&self, scope: &DeletionScope) -> Arc<KeptLedger> {
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (scope.id.clone(), scope.collection.clone());
        let fresh = || {
            Arc::new(KeptLedger {
                scope: scope.clone(),
                state: Mutex::default(),
                stored: tokio::sync::Mutex::default(),
            })
        };
        Arc::clone(scopes.entry(key).or_insert_with(fresh))
    }

    /// Makes sure that `version` or a later one is stored.
    async fn store(&self, kept: &KeptLedger, version: u64) -> Result<(), Problem> {
        let mut stored = kept.stored.lock().await;
        if *stored >= version {
            return Ok(());
        }
        let (document, current) = kept.document();
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let name = kept.scope.config_map();
        let mut written = self.api.patch(&name, &parameters, &Patch::Apply(&document)).await;
        if written.as_ref().is_err_and(is_missing) {
            self.make_namespace().await;
            written = self.api.patch(&name, &parameters, &Patch::Apply(&document)).await;
        }
        written.map_err(|error| {
            Problem::transient(
                reasons::API_ERROR,
                format!("keeping the ledger of deletions in ConfigMap {name}: {error}"),
            )
        })?;
        *stored = current;
        Ok(())
    }
}

impl Deletions {
    /// The operator's own namespace may be missing where it runs outside of the cluster. A failure shows in the next write.
    async fn make_namespace(&self) {
        let metadata = ObjectMeta { name: self.api.namespace().map(str::to_owned), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = self.namespaces.create(&PostParams::default(), &namespace).await;
        if let Err(error) = made {
            tracing::debug!(%error, "The operator's namespace could not be made");
        }
    }
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

impl LedgerState {
    fn asked_for(&mut self, names: &[String]) {
        let now = Instant::now();
        self.asked.extend(names.iter().map(|name| (name.clone(), now)));
    }
}

impl KeptLedger {
    fn state(&self) -> MutexGuard<'_, LedgerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The digest and length of the list in which names are held, if one is; and the version that must be stored.
    fn consider(
        &self,
        now: jiff::Timestamp,
        names: &[String],
        surroundings: impl FnOnce() -> Surroundings,
    ) -> (Option<(String, usize)>, u64) {
        let mut state = self.state();
        state.asked_for(names);
        if !names.iter().all(|name| state.ledger.holds(name)) {
            let Surroundings { following, total } = surroundings();
            let wanted: Vec<String> = names.iter().cloned().chain(following).collect();
            state.asked_for(&wanted);
            state.ledger.consider(now, &wanted, total);
            let allowed = !names.iter().any(|name| state.ledger.holds(name));
            if allowed {
                state.ledger.record(now, names);
            }
            state.version += 1;
            state.held = held_in(&state.ledger);
            if allowed {
                return (None, state.version);
            }
        }
        if state.held.is_none() {
            state.held = held_in(&state.ledger);
        }
        (state.held.clone(), state.version)
    }

    /// Takes names off the list; true where one was on it.
    fn withdraw(&self, names: &[String]) -> bool {
        let mut state = self.state();
        if !names.iter().any(|name| state.ledger.holds(name)) {
            return false;
        }
        state.ledger.withdraw(names);
        for name in names {
            state.asked.remove(name);
        }
        state.version += 1;
        state.held = None;
        true
    }

    /// Takes off what nobody has asked for in a long time; the version that must be stored, where there was something.
    fn forget_unasked(&self, now: Instant) -> Option<u64> {
        let mut state = self.state();
        let LedgerState { asked, ledger, .. } = &mut *state;
        asked.retain(|name, _| ledger.holds(name));
        let old: Vec<String> =
            asked.iter().filter(|(_, at)| now.duration_since(**at) >= UNASKED).map(|(name, _)| name.clone()).collect();
        if old.is_empty() {
            return None;
        }
        ledger.withdraw(&old);
        state.version += 1;
        state.held = None;
        Some(state.version)
    }

    /// Whether a digest would release something.
    fn releases(&self, digest: &str, now: jiff::Timestamp) -> bool {
        let state = self.state();
        let mut ledger = state.ledger.clone();
        ledger.approve(digest, now) && ledger != state.ledger
    }

    /// Whether it changed since it was written; also while it is being written.
    fn is_unstored(&self) -> bool {
        let version = self.state().version;
        self.stored.try_lock().map_or(true, |stored| *stored < version)
    }

    fn approve(&self, digest: &str, now: jiff::Timestamp) -> Option<u64> {
        let mut state = self.state();
        let before = state.ledger.clone();
        if !state.ledger.approve(digest, now) || state.ledger == before {
            return None;
        }
        state.version += 1;
        state.held = None;
        Some(state.version)
    }

    /// The digest of what is held, if anything is.
    fn digest(&self) -> Option<String> {
        self.state().held.as_ref().map(|(digest, _)| digest.clone())
    }

    fn message(&self) -> Option<String> {
        let Verdict::Held { digest, list, more } = self.state().ledger.verdict() else { return None };
        let count = list.len() + more;
        Some(format!(
            "{} in the {} {} held: {} ({} in ConfigMap {}). To let {} go, set the annotation {RELEASE_ANNOTATION}: \"{digest}\"",
            text::count(count, "deletion"),
            self.scope,
            if count == 1 { "is" } else { "are" },
            text::join_some(&list, NAMES_SHOWN),
            if more == 0 { "all".to_owned() } else { format!("the first {}", list.len()) },
            self.scope.config_map(),
            if count == 1 { "it" } else { "them" },
        ))
    }

    fn document(&self) -> (Value, u64) {
        let state = self.state();
        let mut data = json!({
            "id": self.scope.id,
            "collection": self.scope.collection,
            "label": self.scope.label,
            "ledger": serde_json::to_string(&state.ledger).expect("a ledger is plain JSON"),
        });
        if let Verdict::Held { digest, list, more } = state.ledger.verdict() {
            data["digest"] = json!(digest);
            data["held"] = json!(list.join("\n"));
            data["count"] = json!((list.len() + more).to_string());
        }
        let metadata = json!({ "name": self.scope.config_map(), "labels": { LABEL: "true", "app.kubernetes.io/managed-by": "portolan" } });
        (json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data }), state.version)
    }
}

/// How many deletions are held, by collection.
fn held_by_collection(scopes: &Mutex<Scopes>) -> LabelledCounts {
    let mut counts = LabelledCounts::new();
    for kept in scopes.lock().unwrap_or_else(PoisonError::into_inner).values() {
        let held = held_in(&kept.state().ledger).map_or(0, |(_, count)| count);
        *counts.entry(vec![kept.scope.collection.clone()]).or_default() += i64::try_from(held).unwrap_or(i64::MAX);
    }
    counts
}

/// Digest and length of what a ledger holds.
fn held_in(ledger: &Ledger) -> Option<(String, usize)> {
    match ledger.verdict() {
        Verdict::Granted => None,
        Verdict::Held { digest, list, more } => Some((digest, list.len() + more)),
    }
}

fn read(data: &BTreeMap<String, String>) -> Option<(DeletionScope, Ledger)> {
    let text = |key: &str| data.get(key).cloned();
    let scope = DeletionScope { id: text("id")?, collection: text("collection")?, label: text("label")? };
    Some((scope, serde_json::from_str(data.get("ledger")?).ok()?))
}
