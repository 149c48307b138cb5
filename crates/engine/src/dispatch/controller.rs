//! The loop of one kind: events in, passes out.
//!
//! Everything is decided in one task; passes run beside it and hand back what they did. Whole objects are kept only
//! while they wait for their pass, and only a bounded number of them: the others are read when their turn comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{Api, Resource as _};
use portolan_core::ObjectKey;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::dispatch::dispatcher::Dispatcher;
use crate::dispatch::handle::Handle;
use crate::dispatch::store::Store;
use crate::jobs::task::Task;
use crate::reconcile::{Object, Reconcile};
use crate::watch::cache::Cache;
use crate::watch::guarded::{Guarded, GuardedBody};
use crate::watch::mapping::{MappedWatch, Related};
use crate::watch::{Following, Selection, follow};

/// Runs the passes of one kind.
pub struct Controller<R: Reconcile> {
    context: Arc<Context>,
    reconciler: Arc<R>,
    handle: Handle<R::Projection>,
    selection: Selection,
    triggers: Vec<BoxFuture<'static, ()>>,
    gates: Vec<BoxFuture<'static, ()>>,
    /// Whether all gates are open.
    open: Arc<AtomicBool>,
}

impl<R: Reconcile> Controller<R> {
    /// A controller of all objects of a kind.
    pub fn new(context: Arc<Context>, reconciler: Arc<R>) -> Self {
        Self::with_handle(context, reconciler, Handle::new())
    }

    /// A controller behind a handle that others have already.
    pub fn with_handle(context: Arc<Context>, reconciler: Arc<R>, handle: Handle<R::Projection>) -> Self {
        handle.store().scanned = context.metrics.scans(reconciler.profile().kind);
        let (selection, triggers, gates) = (Selection::all(), Vec::new(), Vec::new());
        Self { context, reconciler, handle, selection, triggers, gates, open: Arc::default() }
    }

    /// Only these objects.
    pub fn select(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// What this controller knows, and how to make it run.
    pub fn handle(&self) -> Handle<R::Projection> {
        self.handle.clone()
    }

    /// Objects of another kind make ours run: `map` names which. When an object changes, what it named before runs
    /// too. `map` should be quick: the store waits for it.
    pub fn watch<K: Object>(
        self,
        selection: Selection,
        map: impl Fn(Related<'_, K>, &Store<R::Projection>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let api = selection.api::<Guarded<K>>(&self.context.client);
        let events = follow(api, self.following(&K::plural(&()), selection));
        let map = move |seen: Related<'_, Guarded<K>>, store: &Store<R::Projection>| match seen {
            Related::Gone(key) => map(Related::Gone(key), store),
            Related::Here(raw) => match &raw.body {
                GuardedBody::Typed(object) => map(Related::Here(object), store),
                GuardedBody::Malformed(_) => {
                    map(Related::Gone(&crate::dispatch::fingerprint::key_of(raw.meta())), store)
                }
            },
        };
        self.triggered(MappedWatch::new(events, map))
    }

    /// As [`watch`](Self::watch), for kinds of which only the metadata matters or that may not exist in a cluster.
    pub fn watch_metadata(
        self,
        resource: &ApiResource,
        selection: Selection,
        map: impl Fn(Related<'_, PartialObjectMeta<DynamicObject>>, &Store<R::Projection>) -> Vec<ObjectKey>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let following = self.following(&resource.plural, selection);
        let events = follow(Api::all_with(self.context.client.clone(), resource), following);
        self.triggered(MappedWatch::new(events, map))
    }

    fn following(&self, resource: &str, selection: Selection) -> Following {
        let (seed, metrics) = (self.context.seed, self.context.metrics.clone());
        Following { resource: resource.to_owned(), selection, seed, metrics }
    }

    fn triggered<K: kube::Resource + Send + Sync + 'static>(mut self, trigger: MappedWatch<K, R::Projection>) -> Self {
        let (listed, is_listed) = tokio::sync::oneshot::channel();
        self.triggers.push(trigger.run(self.handle.clone(), listed).boxed());
        self.after(is_listed.map(drop))
    }

    /// Objects of a cache make ours run: `map` sees an object before and after its change. The controller starts when
    /// the cache is complete. `map` should be quick: the store waits for it.
    pub fn follow<K: Object>(
        self,
        cache: &Cache<K>,
        map: impl Fn(Option<&K>, Option<&K>, &Store<R::Projection>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let handle = self.handle.clone();
        cache.on_change(move |before, after| {
            handle.enqueue_mapped(|store| map(before, after, store));
        });
        let cache = cache.clone();
        self.after(async move { cache.ready().await })
    }

    /// Starts no pass before this is done.
    pub fn after(mut self, gate: impl Future<Output = ()> + Send + 'static) -> Self {
        self.gates.push(gate.boxed());
        self
    }

    /// Runs until it is told to stop; passes at work then have the grace time to end. Dropping the future stops
    /// everything at once.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { context, reconciler, handle, selection, triggers, gates, open: is_open } = self;
        handle.set_running(true);
        let mut background = JoinSet::new();
        for trigger in triggers {
            background.spawn(trigger);
        }
        let api = selection.api::<Guarded<R::Object>>(&context.client);
        let following = Following {
            resource: R::Object::plural(&()).into_owned(),
            selection,
            seed: context.seed,
            metrics: context.metrics.clone(),
        };
        let mut events = follow(api, following);
        let mut gates = futures::future::join_all(gates).fuse();
        let grace = context.timing.grace;
        let mut dispatcher = Dispatcher::new(context, reconciler, handle.clone());
        let mut open = false;
        loop {
            let next = if open { dispatcher.start(Instant::now()) } else { None };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = dispatcher.ended() => {}
                Some(event) = events.next() => {
                    portolan_core::waypoint!();
                    dispatcher.see(event);
                }
                _ = &mut gates, if !open => {
                    open = true;
                    is_open.store(true, Ordering::Relaxed);
                }
                () = handle.woken() => {}
                () = sleep_until(next) => {}
            }
        }
        drop(background);
        dispatcher.drain(grace).await;
        handle.set_running(false);
    }

    /// This controller as a task of a job.
    pub fn into_task(self, shutdown: CancellationToken) -> Task {
        let (name, handle, open) = (self.reconciler.profile().kind, self.handle.clone(), Arc::clone(&self.open));
        handle.set_running(true);
        let listed = handle.clone();
        Task::new(name, move || handle.busy(), self.run(shutdown)).lacking(move || {
            if !listed.is_listed() {
                Some("its first list is not complete")
            } else if !open.load(Ordering::Relaxed) {
                Some("the first lists of what it needs are not complete")
            } else {
                None
            }
        })
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
