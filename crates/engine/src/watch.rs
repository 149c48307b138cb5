//! Lists a collection in pages and then watches it for good: a stream that never ends and never fails.
//!
//! A broken watch resumes where it was; a version that the server no longer has (410) is listed anew. Errors are
//! told, waited out and tried again; a resource that does not exist (yet) is asked for ever more slowly.

pub(crate) mod cache;
pub(crate) mod claims;
pub(crate) mod guarded;
pub(crate) mod mapping;
pub(crate) mod referrers;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::DynamicResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use portolan_core::ObjectKey;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::dispatch::backoff::jitter;
use crate::observe::metrics::Metrics;
use crate::pass::status::in_time;

const PAGE: u32 = 500;
/// The server ends a watch after this; a new one resumes it.
const WATCH_SECONDS: u32 = 290;
/// A connection that says nothing for longer than a watch can last is dead.
const SILENCE: Duration = Duration::from_secs(295);
/// A watch that ended sooner did not work.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);
const LONGEST_REST_WHILE_MISSING: Duration = Duration::from_secs(60);

/// Which objects of a collection are seen.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// A label selector.
    pub labels: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
    /// The namespaces; none means all.
    pub namespaces: Vec<String>,
}

impl Selection {
    /// All objects.
    pub fn all() -> Self {
        Self::default()
    }

    /// Objects whose labels match.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { labels: Some(selector.into()), ..Self::default() }
    }

    /// Objects whose fields match.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { fields: Some(selector.into()), ..Self::default() }
    }

    /// Objects in these namespaces; all, where none is named.
    pub fn namespaces(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { namespaces: names.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The same objects, as far as they are in one namespace.
    pub fn within(self, namespace: impl Into<String>) -> Self {
        Self { namespaces: vec![namespace.into()], ..self }
    }

    /// Whether an object's namespace is among those selected.
    pub fn covers(&self, namespace: Option<&str>) -> bool {
        self.namespaces.is_empty() || namespace.is_some_and(|name| self.namespaces.iter().any(|one| one == name))
    }

    /// Where to ask: in the one namespace, or everywhere.
    pub(crate) fn api<K: Resource<DynamicType = (), Scope = DynamicResourceScope>>(&self, client: &Client) -> Api<K> {
        match self.namespaces.as_slice() {
            [namespace] => Api::namespaced_with(client.clone(), namespace, &()),
            _ => Api::all_with(client.clone(), &()),
        }
    }
}

/// What is seen of a collection.
#[derive(Debug)]
pub(crate) enum CollectionEvent<K> {
    /// It is listed anew: what is not found until `Listed` is gone.
    Restarted,
    /// An object of the list.
    Found(K),
    /// The list is complete.
    Listed,
    /// An object was made or changed.
    Changed(K),
    /// An object is gone.
    Gone(K),
    /// A list or watch failed and will be tried again.
    Failed {
        /// The server does not know the resource.
        missing: bool,
    },
}

/// What a follower needs to know besides its API.
#[derive(Clone)]
pub(crate) struct Following {
    pub(crate) resource: String,
    pub(crate) selection: Selection,
    pub(crate) seed: u64,
    pub(crate) metrics: Arc<Metrics>,
}

/// Follows a collection.
pub(crate) fn follow<K>(api: Api<K>, following: Following) -> BoxStream<'static, CollectionEvent<K>>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let selection = following.selection.clone();
    let follower =
        Follower { api, following, place: WatchState::Nowhere, ready: VecDeque::new(), failures: 0, rest: None };
    futures::stream::unfold(follower, |mut follower| async {
        let event = follower.next().await;
        Some((event, follower))
    })
    .filter(move |event| std::future::ready(is_selected(&selection, event)))
    .boxed()
}

/// Of several namespaces, those of no interest are passed over here.
fn is_selected<K: Resource>(selection: &Selection, event: &CollectionEvent<K>) -> bool {
    portolan_core::waypoint!();
    match event {
        CollectionEvent::Found(object) | CollectionEvent::Changed(object) | CollectionEvent::Gone(object) => {
            selection.covers(object.meta().namespace.as_deref())
        }
        CollectionEvent::Restarted | CollectionEvent::Listed | CollectionEvent::Failed { .. } => true,
    }
}

struct Follower<K> {
    api: Api<K>,
    following: Following,
    place: WatchState<K>,
    ready: VecDeque<CollectionEvent<K>>,
    failures: u32,
    rest: Option<Duration>,
}

enum WatchState<K> {
    Nowhere,
    Page { token: Option<String> },
    Listed { version: String },
    Watching { version: String, events: BoxStream<'static, kube::Result<WatchEvent<K>>>, since: Instant },
}

impl<K: Resource + Clone + Debug + DeserializeOwned + Send + 'static> Follower<K> {
    async fn next(&mut self) -> CollectionEvent<K> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return event;
            }
            if let Some(rest) = self.rest.take() {
                tokio::time::sleep(rest).await;
            }
            self.place = match std::mem::replace(&mut self.place, WatchState::Nowhere) {
                WatchState::Nowhere => {
                    self.ready.push_back(CollectionEvent::Restarted);
                    WatchState::Page { token: None }
                }
                WatchState::Page { token } => self.list(token).await,
                WatchState::Listed { version } => self.open(version).await,
                WatchState::Watching { version, events, since } => self.watch(version, events, since).await,
            };
        }
    }

    async fn list(&mut self, token: Option<String>) -> WatchState<K> {
        let Selection { labels, fields, .. } = self.following.selection.clone();
        let params = ListParams {
            label_selector: labels,
            field_selector: fields,
            limit: Some(PAGE),
            continue_token: token,
            ..ListParams::default()
        };
        let page = match in_time(self.api.list(&params)).await {
            Ok(page) => page,
            Err(error) => {
                self.failed(&error);
                return WatchState::Nowhere;
            }
        };
        self.ready.extend(page.items.into_iter().map(|object| CollectionEvent::Found(without_managed_fields(object))));
        let token = page.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_some() {
            return WatchState::Page { token };
        }
        self.failures = 0;
        self.ready.push_back(CollectionEvent::Listed);
        WatchState::Listed { version: page.metadata.resource_version.unwrap_or_default() }
    }

    async fn open(&mut self, version: String) -> WatchState<K> {
        let Selection { labels, fields, .. } = self.following.selection.clone();
        let params = WatchParams {
            label_selector: labels,
            field_selector: fields,
            timeout: Some(WATCH_SECONDS),
            bookmarks: true,
            ..WatchParams::default()
        };
        match in_time(self.api.watch(&params, &version)).await {
            Ok(events) => WatchState::Watching { version, events: events.boxed(), since: Instant::now() },
            Err(error) => {
                self.failed(&error);
                if is_gone(&error) || is_missing(&error) { WatchState::Nowhere } else { WatchState::Listed { version } }
            }
        }
    }

    async fn watch(
        &mut self,
        version: String,
        mut events: BoxStream<'static, kube::Result<WatchEvent<K>>>,
        since: Instant,
    ) -> WatchState<K> {
        let event = match tokio::time::timeout(SILENCE, events.next()).await {
            Ok(Some(Ok(event))) => event,
            Ok(Some(Err(error))) => {
                self.failed(&error);
                return if is_gone(&error) { WatchState::Nowhere } else { WatchState::Listed { version } };
            }
            Ok(None) | Err(_) => {
                if since.elapsed() < SHORTEST {
                    self.rest_after_failure(LONGEST_REST);
                }
                return WatchState::Listed { version };
            }
        };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.failures = 0;
                let version = object.resource_version().unwrap_or(version);
                self.ready.push_back(CollectionEvent::Changed(without_managed_fields(object)));
                WatchState::Watching { version, events, since }
            }
            WatchEvent::Deleted(object) => {
                self.failures = 0;
                let version = object.resource_version().unwrap_or(version);
                self.ready.push_back(CollectionEvent::Gone(without_managed_fields(object)));
                WatchState::Watching { version, events, since }
            }
            WatchEvent::Bookmark(bookmark) => {
                WatchState::Watching { version: bookmark.metadata.resource_version, events, since }
            }
            WatchEvent::Error(status) => {
                let gone = status.code == 410;
                self.failed(&kube::Error::Api(status.boxed()));
                if gone { WatchState::Nowhere } else { WatchState::Listed { version } }
            }
        }
    }

    /// Says what failed and rests. A version that is gone is no failure: the list comes at once.
    fn failed(&mut self, error: &kube::Error) {
        let (resource, missing) = (self.following.resource.as_str(), is_missing(error));
        self.following.metrics.watch_failed(resource);
        if missing {
            tracing::debug!(resource, "The server does not know this resource yet");
        } else if is_gone(error) {
            tracing::debug!(resource, "The history of a watch is gone: listing anew");
        } else {
            tracing::warn!(resource, %error, "Watching failed and will be tried again");
        }
        if is_gone(error) && self.failures == 0 {
            self.failures = 1;
            return;
        }
        self.ready.push_back(CollectionEvent::Failed { missing });
        self.rest_after_failure(if missing { LONGEST_REST_WHILE_MISSING } else { LONGEST_REST });
    }

    fn rest_after_failure(&mut self, most: Duration) {
        let key = ObjectKey::cluster(self.following.resource.as_str());
        let spread = 0.8 + 0.4 * jitter(self.following.seed, "watch", &key, self.failures);
        let usual = Duration::from_secs(1).saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.rest = Some(usual.min(most).mul_f64(spread));
        self.failures = self.failures.saturating_add(1);
    }
}

fn without_managed_fields<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}
