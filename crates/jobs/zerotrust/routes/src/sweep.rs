//! Names that no route asks for any more: found by what is recorded, proven by asking for the route itself.
//!
//! A list is no proof: a narrowed scope, a kind that is not served or a list that broke off would take everything down.
//! Where more than half of all names seem to be orphans, a second look has to say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ListParams, ObjectMeta};
use portolan_core::{ObjectId, ObjectKey, Problem};
use portolan_engine::{CancellationToken, Levels, Notice, Selection, Task, in_time, key_of, outcome};
use portolan_zerotrust_model::state::StatePhase;
use portolan_zerotrust_model::{FINALIZER, reasons};
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::execute::{Executor, is_missing, refused};
use crate::route_status::RouteStatus;
use crate::shared::RoutesContext;

/// More orphans than this are doubted, if they are also more than half of all names.
const BELIEVED: usize = 5;
/// How long after the first a second look is taken.
const SECOND_LOOK: Duration = Duration::from_secs(60);
/// Names at once.
const AT_ONCE: usize = 50;
const FIRST_PAUSE: Duration = Duration::from_secs(15);
const LONGEST_PAUSE: Duration = Duration::from_secs(900);
/// Changes that come together are looked at together.
const GATHERING: Duration = Duration::from_millis(20);

/// Looks for orphans, again and again.
pub(crate) struct Sweep {
    shared: Arc<RoutesContext>,
    scope: Selection,
    /// Orphans of a sweep that was not believed, and when it was.
    suspects: Option<(Instant, BTreeSet<ObjectKey>)>,
    /// Orphans that two sweeps agreed about.
    confirmed: BTreeSet<ObjectKey>,
    /// When a name that failed is tried again, and how often it has.
    failures: BTreeMap<ObjectKey, (Instant, u32)>,
    /// Routes of namespaces that are not watched, which were told that they wait for that.
    told: BTreeSet<ObjectKey>,
    busy: Arc<AtomicUsize>,
}

impl Sweep {
    /// The task that sweeps.
    pub(crate) fn task(shared: Arc<RoutesContext>, shutdown: CancellationToken) -> Task {
        let busy = Arc::new(AtomicUsize::new(0));
        let sweep = Self {
            scope: shared.settings.selection(),
            shared,
            suspects: None,
            confirmed: BTreeSet::new(),
            failures: BTreeMap::new(),
            told: BTreeSet::new(),
            busy: Arc::clone(&busy),
        };
        let run = async move {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sweep.run() => {}
            }
        };
        Task::new("sweep", move || busy.load(Ordering::Relaxed), run)
    }

    /// The task that only tells what a sweep would take down, once: what has no route in the lists counts as gone.
    pub(crate) fn preview(shared: Arc<RoutesContext>, shutdown: CancellationToken) -> Task {
        let busy = Arc::new(AtomicUsize::new(1));
        let left = Arc::clone(&busy);
        let run = async move {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = preview(&shared) => {}
            }
            left.store(0, Ordering::Relaxed);
            shutdown.cancelled().await;
        };
        Task::new("sweep", move || busy.load(Ordering::Relaxed), run)
    }

    async fn run(mut self) {
        self.shared.ready().await;
        self.shared.routes.listed().await;
        loop {
            self.busy.store(1, Ordering::Relaxed);
            if let Err(problem) = self.sweep().await {
                tracing::warn!(error = %problem, "Names without a route could not be looked for; nothing was taken down");
            }
            if let Err(problem) = self.tell_unwatched().await {
                tracing::warn!(error = %problem, "Routes of namespaces that are not watched could not be looked at");
            }
            self.busy.store(0, Ordering::Relaxed);
            let pause = self.pause();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.shared.orphaned.notified() => {
                    self.busy.store(1, Ordering::Relaxed);
                    tokio::time::sleep(GATHERING).await;
                }
            }
        }
    }

    /// How long until the next sweep, should nothing happen.
    fn pause(&self) -> Duration {
        let now = Instant::now();
        let retries = self.failures.values().map(|(at, _)| at.saturating_duration_since(now));
        let second = self.suspects.as_ref().map(|(since, _)| (*since + SECOND_LOOK).saturating_duration_since(now));
        let soonest = retries.chain(second).chain([self.shared.settings.sweep]).min();
        soonest.unwrap_or(self.shared.settings.sweep).max(Duration::from_millis(100))
    }

    async fn sweep(&mut self) -> Result<(), Problem> {
        let candidates = self.candidates();
        for key in self.failures.keys().filter(|key| !candidates.contains(*key)) {
            if self.shared.routes.read(|store| store.get(key).is_none()) {
                self.shared.statuses.post(key, None);
            }
        }
        self.failures.retain(|key, _| candidates.contains(key));
        let now = Instant::now();
        let due = candidates.into_iter().filter(|key| self.failures.get(key).is_none_or(|(at, _)| *at <= now));
        let orphans = self.proven(due.collect()).await?;
        let believed = self.believed(orphans);
        let shared = Arc::clone(&self.shared);
        let passes = believed.into_iter().map(|key| {
            let shared = Arc::clone(&shared);
            async move {
                let done = Box::pin(take_down(&shared, &key)).await;
                (key, done)
            }
        });
        let ended: Vec<_> = futures::stream::iter(passes).buffer_unordered(AT_ONCE).collect().await;
        for (key, done) in ended {
            match done {
                Ok(()) => drop(self.failures.remove(&key)),
                Err(problem) => self.failed(key, &problem),
            }
        }
        Ok(())
    }

    /// A route of a namespace that is watched no longer, and that is being deleted, waits for us: it is told.
    async fn tell_unwatched(&mut self) -> Result<(), Problem> {
        let all = self.shared.state_index.all();
        let apart =
            all.iter().map(|known| &known.state.route).filter(|one| !self.scope.covers(one.namespace.as_deref()));
        let apart: BTreeSet<ObjectKey> = apart.cloned().collect();
        self.told.retain(|route| apart.contains(route));
        let namespaces: BTreeSet<Option<String>> = apart.iter().map(|route| route.namespace.clone()).collect();
        for namespace in namespaces.into_iter().flatten() {
            let api = self.shared.route_api(&ObjectKey::namespaced(namespace.clone(), ""));
            let found = in_time(api.list_metadata(&ListParams::default())).await;
            let found = found.map_err(|error| refused(&format!("listing HTTPRoutes of {namespace}"), &error))?;
            let waits = |meta: &ObjectMeta| {
                meta.deletion_timestamp.is_some() && meta.finalizers.iter().flatten().any(|name| name == FINALIZER)
            };
            let waiting = found.items.iter().filter(|one| waits(&one.metadata)).map(|one| key_of(&one.metadata));
            for route in waiting.filter(|route| apart.contains(route)).collect::<Vec<_>>() {
                if self.told.insert(route.clone()) {
                    let message = format!(
                        "the route is being deleted, but namespace {namespace} is not watched: what stands at Cloudflare stays, \
                         and so does the finalizer. Watch the namespace again, or take the finalizer {FINALIZER} off"
                    );
                    self.shared.tell(&route, &Notice::warning(reasons::NOT_WATCHED, message)).await;
                }
            }
        }
        Ok(())
    }

    fn candidates(&self) -> BTreeSet<ObjectKey> {
        self.shared.without_route(&self.scope)
    }

    /// Those whose route is really gone, while routes are served at all.
    async fn proven(&self, candidates: Vec<ObjectKey>) -> Result<BTreeSet<ObjectKey>, Problem> {
        if candidates.is_empty() {
            return Ok(BTreeSet::new());
        }
        let looks = candidates.into_iter().map(|key| async {
            let found = in_time(self.shared.route_api(&key).get_opt(&key.name)).await;
            let found = found.map_err(|error| refused(&format!("reading HTTPRoute {key}"), &error))?;
            Ok((key, found.is_none()))
        });
        let looked: Vec<Result<_, Problem>> = futures::stream::iter(looks).buffer_unordered(AT_ONCE).collect().await;
        let looked: Vec<_> = looked.into_iter().collect::<Result<_, _>>()?;
        // A kind that is not served answers the same as one without this route.
        if !self.are_routes_served().await? {
            tracing::warn!("HTTPRoutes are not served: nothing is taken down");
            return Ok(BTreeSet::new());
        }
        Ok(looked.into_iter().filter(|(_, gone)| *gone).map(|(key, _)| key).collect())
    }

    async fn are_routes_served(&self) -> Result<bool, Problem> {
        let client = self.shared.client();
        match in_time(client.list_api_group_resources("gateway.networking.k8s.io/v1")).await {
            Ok(group) => Ok(group.resources.iter().any(|resource| resource.name == "httproutes")),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(refused("asking whether HTTPRoutes are served", &error)),
        }
    }

    /// Those that may be taken down now.
    fn believed(&mut self, orphans: BTreeSet<ObjectKey>) -> BTreeSet<ObjectKey> {
        self.confirmed.retain(|key| orphans.contains(key) || self.failures.contains_key(key));
        let is_new = |key: &&ObjectKey| !self.confirmed.contains(*key) && !self.is_going(key);
        let new: BTreeSet<ObjectKey> = orphans.iter().filter(is_new).cloned().collect();
        let total = self.shared.state_index.all().len();
        if !is_doubtful(new.len(), total) {
            self.suspects = None;
            self.confirmed.extend(new);
            return orphans;
        }
        let doubted = match &self.suspects {
            Some((since, suspects)) if since.elapsed() >= SECOND_LOOK => {
                let (agreed, doubted): (BTreeSet<_>, BTreeSet<_>) =
                    new.into_iter().partition(|key| suspects.contains(key));
                self.confirmed.extend(agreed);
                self.suspects = None;
                doubted
            }
            Some(_) => new,
            None => {
                tracing::warn!(
                    orphans = new.len(),
                    total,
                    "More than half of all names seem to have lost their route: a second look has to confirm it"
                );
                self.suspects = Some((Instant::now(), new.clone()));
                new
            }
        };
        orphans.into_iter().filter(|key| !doubted.contains(key)).collect()
    }

    /// Whether a name is being taken down already.
    fn is_going(&self, key: &ObjectKey) -> bool {
        self.shared.state_index.state(key).is_none_or(|known| known.state.phase == StatePhase::Deleting)
    }

    fn failed(&mut self, key: ObjectKey, problem: &Problem) {
        let count = self.failures.get(&key).map_or(0, |(_, count)| *count);
        let usual = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(count).unwrap_or(u32::MAX)).min(LONGEST_PAUSE);
        let pause = problem.retry_after.unwrap_or(usual);
        if count == 0 {
            outcome::failed(&format_args!("HTTPRoute {key}, which is gone"), problem);
        }
        let tenant = self.shared.state_index.state(&key).and_then(|known| known.state.tenant.clone());
        let failure = Some((problem.reason, problem.message.clone()));
        self.shared.statuses.post(&key, Some(RouteStatus { tenant, failure, ..RouteStatus::default() }));
        self.failures.insert(key, (Instant::now() + pause, count.saturating_add(1)));
    }
}

impl RoutesContext {
    /// Names that something is recorded or under way for, in our scope and without a route that is known.
    fn without_route(&self, scope: &Selection) -> BTreeSet<ObjectKey> {
        let all = self.state_index.routes().into_iter();
        let ours = all.filter(|route| scope.covers(route.namespace.as_deref()));
        ours.filter(|route| self.routes.read(|store| store.get(route).is_none())).collect()
    }
}

/// Plans the removal of what has no route any more.
async fn preview(shared: &RoutesContext) {
    shared.ready().await;
    shared.routes.listed().await;
    let Some(plans) = &shared.context.plans else { return };
    for key in shared.without_route(&shared.settings.selection()) {
        let planned = async {
            let preview = Box::pin(shared.preview(&shared.gather_context(&key, None).await?)).await?;
            shared.context.pure(|| preview.plan())
        };
        plans(ObjectId::new("HTTPRoute", key.clone()), Box::pin(planned).await);
    }
}

/// Whether so many orphans are too many to be believed at once.
fn is_doubtful(orphans: usize, total: usize) -> bool {
    orphans > BELIEVED && orphans * 2 > total
}

/// One pass over a name whose route is gone.
async fn take_down(shared: &RoutesContext, key: &ObjectKey) -> Result<(), Problem> {
    let tenant = shared.state_index.state(key).and_then(|known| known.state.tenant.clone());
    let span = tenant.as_ref().map_or_else(tracing::Span::none, Levels::span);
    async {
        let subject = shared.gather_context(key, None).await?;
        // It may have come back while we waited for our turn.
        if shared.routes.read(|store| store.get(key).is_some()) {
            return Ok(());
        }
        let plan = shared.context.pure(|| subject.plan());
        Executor::new(shared, &subject, &plan).carry_out().await?;
        let gone = subject.is_clean() || shared.state_index.state(key).is_none();
        shared.statuses.post(key, if gone { None } else { shared.context.pure(|| subject.standing(&plan)) });
        Ok(())
    }
    .instrument(span)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_61_many_orphans_are_believed_only_where_most_names_have_their_route() {
        assert!(!is_doubtful(5, 5));
        assert!(is_doubtful(6, 11));
        assert!(!is_doubtful(6, 12));
        assert!(is_doubtful(1000, 1000));
    }
}
