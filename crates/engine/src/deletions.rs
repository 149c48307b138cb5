//! The deletion budget at work: asks the ledger of a scope before anything is deleted in it, and keeps the ledger
//! across restarts in a `ConfigMap` of the operator's namespace.
//!
//! The ledger is written before the deletions that it allows, so that a crash in between forgets none. Deletions asked
//! for at the same time share one write.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use portolan_core::{Clock, Ledger, ObjectId, Problem, Verdict, reasons, text};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, FIELD_MANAGER};
use crate::counted::{Counted, Counts};
use crate::task::Task;

/// How many held names a condition lists; the `ConfigMap` lists all.
const NAMES_SHOWN: usize = 20;
/// The annotation that releases held deletions; its value is the digest of their list.
const RELEASE_ANNOTATION: &str = "portolan.dev/release-deletions";
/// What is held is asked for again when the window has moved on; a release asks at once.
const RETRY: Duration = Duration::from_secs(600);
/// Reading the ledgers is tried again after this.
const PAUSE: Duration = Duration::from_secs(2);
/// Tells the `ConfigMap`s of ledgers from others.
const LABEL: &str = "portolan.dev/deletion-ledger";

/// What deletions are counted over: a zone, or one collection of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The zone's or account's id, which the object that stands for it has recorded.
    pub id: String,
    /// The collection's name.
    pub collection: String,
    /// Name for users.
    pub label: String,
}

impl Scope {
    fn config_map(&self) -> String {
        // A namespace's name has no dots, so that one before the object's name keeps ids apart.
        format!("portolan-held-{}-{}", self.id.replace('/', "."), self.collection.replace('_', "-")).to_lowercase()
    }
}

impl fmt::Display for Scope {
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

/// Ledgers by id and collection.
type Scopes = BTreeMap<(String, String), Arc<Kept>>;
/// What is held, by who asked for it.
type Waiting = BTreeMap<ObjectId, (Scope, Vec<String>)>;

/// All ledgers of the process.
#[derive(Clone)]
pub struct Deletions {
    api: Api<ConfigMap>,
    namespaces: Api<Namespace>,
    clock: Clock,
    /// Where users put the annotation that releases what is held, as `the CloudflareDomain`.
    release_on: &'static str,
    scopes: Arc<Mutex<Scopes>>,
    /// What is held, by who asked for it.
    waiting: Arc<Mutex<Waiting>>,
    /// The metric of what is held.
    counted: Counted,
}

/// One scope's ledger and how much of it is stored.
struct Kept {
    scope: Scope,
    state: Mutex<State>,
    /// Held while the ledger is written; says which version is stored.
    stored: tokio::sync::Mutex<u64>,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    version: u64,
    /// Digest and length of the held list, so that they are not found out anew for every name in it.
    held: Option<(String, usize)>,
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
            counted: context.metrics.held().clone(),
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
            shutdown.cancelled().await;
        };
        let unread = is_loaded.clone();
        let task = Task::new("ledgers", move || usize::from(!*busy.borrow()), run)
            .lacking(move || (!*unread.borrow()).then_some("the ledgers of deletions are not read"));
        (task, Loaded(is_loaded))
    }

    /// Asks to delete `names` in a scope. Once this returns `Ok` they are counted; `news` is called where the list of what
    /// is held changed. `surroundings` is asked only where the names are not held already.
    pub async fn ask(
        &self,
        asker: ObjectId,
        scope: &Scope,
        names: &[String],
        surroundings: impl FnOnce() -> Surroundings,
        news: impl FnOnce(),
    ) -> Result<(), Problem> {
        let kept = self.kept(scope);
        let before = kept.digest();
        let (held, version) = kept.consider((self.clock)(), names, surroundings);
        if kept.digest() != before {
            news();
        }
        self.store(&kept, version).await?;
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((digest, count)) = held else {
            waiting.remove(&asker);
            return Ok(());
        };
        waiting.insert(asker, (scope.clone(), names.to_vec()));
        drop(waiting);
        Err(Problem::waiting(
            reasons::DELETION_BUDGET_EXCEEDED,
            format!(
                "held: deleting {} is one of {count} deletions in the {scope} within ten minutes, more than the budget \
                 allows. Look at the list in ConfigMap {}, then release it with the annotation {RELEASE_ANNOTATION}: \
                 \"{digest}\" on {}",
                text::join_some(names, 3),
                kept.scope.config_map(),
                self.release_on,
            ),
        )
        .with_retry_after(RETRY))
    }

    /// Releases what is held in the scopes of an id, if `digest` is the digest of that list. True if something was.
    pub async fn approve(&self, id: &str, digest: &str) -> Result<bool, Problem> {
        let mut released = false;
        for kept in self.of(id) {
            if let Some(version) = kept.approve(digest, (self.clock)()) {
                self.store(&kept, version).await?;
                released = true;
            }
        }
        Ok(released)
    }

    /// An object is gone by other ways: what was held for it is no longer wanted. Gives back the id of the scope whose
    /// ledger is to be [stored](Self::flush).
    pub fn withdraw(&self, asker: &ObjectId) -> Option<String> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(asker);
        let (scope, names) = waiting?;
        let kept = self.kept(&scope);
        let mut state = kept.state();
        state.ledger.withdraw(&names);
        state.version += 1;
        state.held = None;
        Some(scope.id)
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

    fn of(&self, id: &str) -> Vec<Arc<Kept>> {
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        scopes.values().filter(|kept| kept.scope.id == id).cloned().collect()
    }

    fn kept(&self, scope: &Scope) -> Arc<Kept> {
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (scope.id.clone(), scope.collection.clone());
        let fresh =
            || Arc::new(Kept { scope: scope.clone(), state: Mutex::default(), stored: tokio::sync::Mutex::default() });
        Arc::clone(scopes.entry(key).or_insert_with(fresh))
    }

    /// Makes sure that `version` or a later one is stored.
    async fn store(&self, kept: &Kept, version: u64) -> Result<(), Problem> {
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

impl Kept {
    fn state(&self) -> MutexGuard<'_, State> {
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
        if !names.iter().all(|name| state.ledger.holds(name)) {
            let Surroundings { following, total } = surroundings();
            let wanted: Vec<String> = names.iter().cloned().chain(following).collect();
            let verdict = state.ledger.consider(now, &wanted, total);
            let allowed = names.iter().all(|name| verdict.allows(name));
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
        let Verdict::Held { digest, list } = self.state().ledger.verdict() else { return None };
        Some(format!(
            "{} in the {} are held: {} (all in ConfigMap {}). To let them go, set the annotation {RELEASE_ANNOTATION}: \"{digest}\"",
            text::count(list.len(), "deletion"),
            self.scope,
            text::join_some(&list, NAMES_SHOWN),
            self.scope.config_map(),
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
        if let Verdict::Held { digest, list } = state.ledger.verdict() {
            data["digest"] = json!(digest);
            data["held"] = json!(list.join("\n"));
        }
        let metadata = json!({ "name": self.scope.config_map(), "labels": { LABEL: "true", "app.kubernetes.io/managed-by": "portolan" } });
        (json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data }), state.version)
    }
}

/// How many deletions are held, by collection.
fn held_by_collection(scopes: &Mutex<Scopes>) -> Counts {
    let mut counts = Counts::new();
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
        Verdict::Held { digest, list } => Some((digest, list.len())),
    }
}

fn read(data: &BTreeMap<String, String>) -> Option<(Scope, Ledger)> {
    let text = |key: &str| data.get(key).cloned();
    let scope = Scope { id: text("id")?, collection: text("collection")?, label: text("label")? };
    Some((scope, serde_json::from_str(data.get("ledger")?).ok()?))
}
