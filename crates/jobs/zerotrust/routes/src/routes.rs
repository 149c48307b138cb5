//! The controller of routes: looks at each, does what is to be done, and says how it stands.

use std::sync::Arc;
use std::time::Duration;

use portolan_core::{Class, ObjectKey, Plan, Problem, reasons as core};
use portolan_engine::{Notice, Outcome, PassFailure, Profile, Projected, Reconcile, Report, WriteMode, outcome};
use portolan_zerotrust_model::{Enabled, FINALIZER, HttpRoute, OLDER_FINALIZER, RouteInput, annotations, reasons};

use crate::execute::Executor;
use crate::preview::Preview;
use crate::route_context::RouteContext;
use crate::route_plan::RoutePlan;
use crate::shared::{RouteProjection, RoutesContext};

/// What a worker has said nothing about for so long is looked at again.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reconciles routes.
pub(crate) struct RouteController {
    pub(crate) shared: Arc<RoutesContext>,
}

impl RouteController {
    /// How a route stands is noted for its tenant and templates, and for its own next pass.
    fn note_standing(&self, subject: &RouteContext, plan: &RoutePlan, stopped: Option<&Problem>) {
        if subject.stuck.is_some() && plan.stuck.is_none() && stopped.is_none() {
            self.shared.set_stuck(&subject.key, None);
        }
        if let Some(known) = subject.known.as_ref().filter(|_| !subject.is_leaving() && !subject.loses()) {
            self.shared.keeps(&known.state);
        }
        self.shared.statuses.post(&subject.key, subject.standing_after(plan, stopped));
        if self.shared.routes.read(|store| store.get(&subject.key).is_none()) {
            // It went while we looked: whoever noticed that came too early.
            self.shared.statuses.post(&subject.key, None);
        }
        let news = subject.news(plan, stopped);
        if let Some(problem) = subject.problem.as_ref().filter(|_| !news.is_empty()) {
            outcome::failed(&format_args!("HTTPRoute {}", subject.key), problem);
        }
        if news.iter().any(|notice| notice.reason == reasons::PROTECTION_WOULD_BE_LOST) {
            // Whoever asks for more may have the name.
            let hostname = subject.input.as_ref().and_then(|input| input.hostname().ok());
            let others = hostname.map(|name| self.shared.claims.of(name.as_str())).unwrap_or_default();
            self.shared.routes.enqueue_all(others.iter().filter(|other| **other != subject.key));
        }
    }

    /// A route is gone from Kubernetes.
    fn gone(&self, key: &ObjectKey) {
        self.shared.service_users.forget(key);
        self.shared.statuses.post(key, None);
        self.shared.set_cleared(key, false);
        self.shared.set_stuck(key, None);
        self.shared.orphaned.notify_one();
    }

    /// Whether a route shall have a finalizer while something stands for it.
    fn wants_finalizer(&self, subject: &RouteContext) -> bool {
        self.shared.settings.finalizers && subject.input.as_ref().is_none_or(RouteInput::allows_finalizer)
    }

    /// A step could not be done: what stands stays, and the route says why until it can.
    async fn note_end(
        &self,
        subject: &RouteContext,
        executor: &mut Executor<'_>,
        plan: &RoutePlan,
        ended: Result<(), &Problem>,
    ) {
        let stuck = ended.err().filter(|problem| problem.class != Class::Transient);
        if stuck == plan.stuck.as_ref() {
            return;
        }
        self.shared.set_stuck(&subject.key, stuck.cloned());
        let Some(problem) = stuck else { return };
        if let Err(error) = executor.write_trouble(problem).await {
            tracing::debug!(route = %subject.key, %error, "What stops a route could not be written on it");
        }
    }

    async fn tell(&self, subject: &RouteContext, notices: &[Notice]) {
        for notice in notices {
            self.shared.tell(&subject.key, notice).await;
        }
    }

    /// What is told of a route. Where nothing is applied, nobody is told that nothing was.
    fn news(&self, subject: &RouteContext, plan: &RoutePlan, stopped: Option<&Problem>) -> Vec<Notice> {
        if self.shared.context.mode == WriteMode::Live { subject.news(plan, stopped) } else { Vec::new() }
    }

    fn report_on(&self, subject: &RouteContext) -> Report {
        let deleting = subject.input.as_ref().is_some_and(|input| input.deleting);
        let problem = match &subject.problem {
            Some(problem) => Some(problem.clone()),
            None if deleting && !subject.is_clean() => Some(going(subject)),
            None => None,
        };
        Report { problem, ..Report::default() }
    }
}

/// A kind on whose objects an older operator left its finalizer and its memory.
pub(crate) const fn guarded(kind: &'static str) -> Profile {
    Profile {
        finalizer: Some(FINALIZER),
        older_finalizers: &[OLDER_FINALIZER],
        older_annotations: &[annotations::OLDER_MEMORY],
        replaces_older_finalizers: true,
        ..Profile::of(kind)
    }
}

/// What stands for a route that is being deleted has to go first.
fn going(subject: &RouteContext) -> Problem {
    let message = match subject.failure() {
        Some(failure) => format!("what stands at Cloudflare could not be taken down yet: {}", failure.sentence),
        None => "what stands at Cloudflare is being taken down".to_owned(),
    };
    Problem::waiting(core::DELETING, message).with_retry_after(PATIENCE)
}

impl Reconcile for RouteController {
    type Object = HttpRoute;
    type Inputs = RouteContext;
    type Plan = RoutePlan;
    type Applied = ();
    type Projection = RouteProjection;

    fn profile(&self) -> Profile {
        Profile { owns_status: false, ..guarded("HTTPRoute") }
    }

    /// Other programs with the same framework use the same finalizer: on a route that never asked for anything it is theirs.
    fn is_relevant(&self, route: &HttpRoute) -> bool {
        let asks = |name: &String| name.starts_with(annotations::PREFIX) || name.starts_with(annotations::OLDER_PREFIX);
        let key = portolan_engine::key_of(&route.metadata);
        let held = route.metadata.finalizers.iter().flatten().any(|name| name == FINALIZER);
        held || route.metadata.annotations.iter().flatten().any(|(name, _)| asks(name))
            || self.shared.state_index.knows(&key)
            || self.shared.statuses.about(&key).is_some()
    }

    fn needs_finalizer(&self, _: &HttpRoute, subject: &RouteContext, _: &RoutePlan) -> bool {
        let asks = subject.input.as_ref().is_some_and(|input| input.enabled() == Enabled::Yes);
        // A route that asks but cannot be published yet gets no finalizer, and one that has something keeps it.
        self.wants_finalizer(subject) && ((asks && subject.problem.is_none()) || !subject.is_clean())
    }

    fn reacts_to_annotation(&self, annotation: &str) -> bool {
        [annotations::PREFIX, annotations::OLDER_PREFIX, "portolan.dev/"]
            .iter()
            .any(|prefix| annotation.starts_with(prefix))
    }

    fn project(&self, route: &HttpRoute) -> RouteProjection {
        portolan_core::waypoint!();
        Arc::new(RouteInput::read(route))
    }

    /// Which name a route asks for is noted, and whoever asks for the one that it no longer asks for has a look.
    fn seen(
        &self,
        key: &ObjectKey,
        before: Option<&Projected<RouteProjection>>,
        after: Option<&Projected<RouteProjection>>,
    ) {
        let released = self.shared.claims.seen(key, before, after);
        self.shared.routes.enqueue_all(&released);
        if after.is_none() {
            self.gone(key);
        }
    }

    async fn gather(&self, route: &HttpRoute) -> Result<RouteContext, Problem> {
        let mut subject = self.shared.gather_context(&portolan_engine::key_of(&route.metadata), Some(route)).await?;
        if self.shared.context.mode != WriteMode::Live {
            subject.preview = Some(Box::pin(self.shared.preview(&subject)).await?);
        }
        Ok(subject)
    }

    fn plan(&self, _: &HttpRoute, subject: &RouteContext) -> Result<RoutePlan, Problem> {
        let remote = subject.preview.as_ref().map(Preview::plan).transpose()?;
        Ok(RoutePlan { remote: remote.unwrap_or_default(), ..subject.plan() })
    }

    fn changes(&self, plan: &RoutePlan) -> Plan {
        plan.remote.clone()
    }

    fn has_work(&self, plan: &RoutePlan) -> bool {
        !plan.steps.is_empty()
    }

    async fn apply(&self, _: &HttpRoute, subject: &RouteContext, plan: &RoutePlan) -> Result<(), Problem> {
        let mut executor = Executor::new(&self.shared, subject, plan);
        let carried_out = executor.carry_out().await;
        // What was done is told, even if the rest was not.
        let notices = std::mem::take(&mut executor.notices);
        self.tell(subject, &notices).await;
        self.note_end(subject, &mut executor, plan, carried_out.as_ref().copied()).await;
        carried_out
    }

    fn report(&self, route: &HttpRoute, outcome: Outcome<'_, Self>) -> Report {
        match outcome {
            Outcome::Applied { inputs, plan, .. } | Outcome::Unchanged { inputs, plan } => {
                Report { events: self.news(inputs, plan, None), ..self.report_on(inputs) }
            }
            Outcome::Failed(PassFailure { problem, planned: Some((subject, plan)), .. }) => {
                Report { events: self.news(subject, plan, plan.newly_stopped(problem)), ..Report::default() }
            }
            Outcome::Failed(failure) => {
                let problem = failure.problem;
                let goes = route.metadata.deletion_timestamp.is_some();
                let events = match problem.class {
                    Class::Invalid | Class::Denied if failure.is_news() && !goes => {
                        vec![Notice::warning(problem.reason, problem.message.clone())]
                    }
                    Class::Transient | Class::Waiting | Class::Invalid | Class::Denied => Vec::new(),
                };
                Report { events, ..Report::default() }
            }
        }
    }

    fn remember(&self, _: &HttpRoute, outcome: Outcome<'_, Self>) {
        let (subject, plan, stopped) = match outcome {
            Outcome::Applied { inputs, plan, .. } | Outcome::Unchanged { inputs, plan } => (inputs, plan, None),
            Outcome::Failed(PassFailure { problem, planned: Some((subject, plan)), .. }) => {
                (subject, plan, plan.newly_stopped(problem))
            }
            Outcome::Failed(_) => return,
        };
        if self.shared.context.mode == WriteMode::Live {
            self.note_standing(subject, plan, stopped);
        }
    }
}
