//! One pass over one object: gather → plan → finalizer → apply → report, or the reverse when it is being deleted.

pub(crate) mod annotations;
pub(crate) mod events;
pub(crate) mod finalizer;
pub(crate) mod malformed;
pub(crate) mod report;
pub(crate) mod status;

use std::time::Duration;

use kube::Resource as _;
use kube::api::{ObjectMeta, Patch, PatchParams};
use portolan_core::{Class, NewCondition, Notice, ObjectId, ObjectKey, Plan, Problem, condition, reasons};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::context::{Context, FIELD_MANAGER, WriteMode};
use crate::dispatch::fingerprint::{fingerprint_for, key_of};
use crate::pass::finalizer::{FinalizerStage, Finalizers};
use crate::pass::malformed::refuse;
use crate::pass::report::Report;
use crate::pass::status::Keep;
use crate::reconcile::{Outcome, PassFailure, Reconcile};
use crate::watch::guarded::{Guarded, GuardedBody};

/// After this an object is tried again that others write all the time.
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);

/// How a pass ended.
pub(crate) struct PassResult<K> {
    /// The fingerprint of the state that was passed over, with our own changes; none where nothing was read.
    pub(crate) passed: Option<u64>,
    /// The generation that was passed over.
    pub(crate) generation: i64,
    /// The object as our last write left it.
    pub(crate) latest: Option<Guarded<K>>,
    pub(crate) next: Requeue,
}

/// What comes after a pass.
#[derive(Debug)]
pub(crate) enum Requeue {
    /// The object does not exist.
    Gone,
    /// Nothing, until something changes.
    Rest,
    /// Another pass after a while.
    After(Duration),
    /// Another pass at once: the object changed under our hands.
    Now,
    /// A step failed.
    Failed(Problem),
}

/// Passes over an object that was seen, or is read first; what failed last time is known.
pub(crate) async fn pass<R: Reconcile>(
    context: &Context,
    reconciler: &R,
    key: &ObjectKey,
    (seen, failed): (Option<Guarded<R::Object>>, Option<Problem>),
    reads: &Semaphore,
) -> PassResult<R::Object> {
    portolan_core::waypoint!();
    let raw = match seen {
        Some(raw) => Ok(Some(raw)),
        None => read::<R>(context, key, reads).await,
    };
    let raw = match raw {
        Ok(Some(raw)) => raw,
        Ok(None) => return PassResult { passed: None, generation: 0, latest: None, next: Requeue::Gone },
        Err(problem) => {
            return PassResult { passed: None, generation: 0, latest: None, next: Requeue::Failed(problem) };
        }
    };
    let meta = raw.meta();
    let (passed, generation) = (fingerprint_for(context, reconciler, meta), generation_of(meta));
    let mut ended = PassResult { passed: Some(passed), generation, latest: None, next: Requeue::Rest };
    match raw.body {
        GuardedBody::Typed(object) => {
            let mut pass = Pass { context, reconciler, object: *object, passed, failed, latest: None };
            ended.next = pass.run().await;
            ended.passed = Some(pass.passed);
            ended.latest = pass.latest;
        }
        GuardedBody::Malformed(malformed) => {
            (ended.next, ended.latest) = refuse(context, reconciler, &malformed).await;
        }
    }
    ended
}

async fn read<R: Reconcile>(
    context: &Context,
    key: &ObjectKey,
    reads: &Semaphore,
) -> Result<Option<Guarded<R::Object>>, Problem> {
    let _turn = reads.acquire().await;
    let found = status::in_time(status::api::<R::Object>(&context.client, key).get_opt(&key.name)).await;
    found.map_err(|error| kubernetes_problem(format_args!("reading the object {key}"), &error))
}

pub(crate) fn generation_of(meta: &ObjectMeta) -> i64 {
    meta.generation.unwrap_or_default()
}

/// A failed call to the cluster is worth another try.
pub fn kubernetes_problem(doing: std::fmt::Arguments<'_>, error: &kube::Error) -> Problem {
    // The server's sentence says it all; the error as a whole repeats it three times.
    let said = match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    };
    Problem::transient(reasons::API_ERROR, format!("{doing} failed: {said}"))
}

pub(crate) fn finalizers<R: Reconcile>(reconciler: &R) -> Finalizers {
    Finalizers::of(&reconciler.profile())
}

/// A pass at work.
struct Pass<'a, R: Reconcile> {
    context: &'a Context,
    reconciler: &'a R,
    object: R::Object,
    passed: u64,
    /// What failed last time.
    failed: Option<Problem>,
    latest: Option<Guarded<R::Object>>,
}

/// What is to be done for an object, and why.
struct PlannedPass<R: Reconcile> {
    inputs: R::Inputs,
    plan: R::Plan,
    /// Whether `apply` is called.
    has_work: bool,
    /// Whether the object, as long as it lives, needs its finalizer.
    needs_finalizer: bool,
}

impl<R: Reconcile> PlannedPass<R> {
    /// How the pass ended well; nothing is applied where there was nothing to do.
    fn outcome<'a>(&'a self, applied: Option<&'a R::Applied>) -> Outcome<'a, R> {
        let (inputs, plan) = (&self.inputs, &self.plan);
        match applied {
            Some(applied) => Outcome::Applied { inputs, plan, applied },
            None => Outcome::Unchanged { inputs, plan },
        }
    }
}

/// Why an attempt ended early.
enum EarlyEnd {
    /// A step failed.
    Problem(Problem),
    /// There is nothing to say.
    Quietly(Requeue),
}

impl From<Problem> for EarlyEnd {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl<R: Reconcile> Pass<'_, R> {
    async fn run(&mut self) -> Requeue {
        let (reconciler, object) = (self.reconciler, &self.object);
        if !self.context.pure(|| reconciler.is_relevant(object)) {
            return Requeue::Rest;
        }
        if self.context.steering.is_paused(self.object.meta()) {
            return self.pause().await;
        }
        match finalizers(self.reconciler).stage(self.object.meta()) {
            FinalizerStage::Alive | FinalizerStage::Unprotected => self.keep().await,
            FinalizerStage::Leaving => self.remove().await,
            FinalizerStage::Left => Requeue::Rest,
        }
    }

    /// A living object becomes what it should be.
    async fn keep(&mut self) -> Requeue {
        let planned = match self.prepare().await {
            Ok(planned) => planned,
            Err(end) => return self.end_early(end, None).await,
        };
        let applied = match self.act(&planned).await {
            Ok(applied) => applied,
            Err(end) => return self.end_early(end, Some(&planned)).await,
        };
        let report = self.report(&planned, applied.as_ref());
        let next = self.publish(&report, Keep::Nothing).await;
        if !planned.needs_finalizer && !matches!(next, Requeue::Failed(_)) { self.unprotect(next).await } else { next }
    }

    async fn end_early(&mut self, end: EarlyEnd, planned: Option<&PlannedPass<R>>) -> Requeue {
        match end {
            EarlyEnd::Quietly(next) => next,
            EarlyEnd::Problem(problem) => self.fail(problem, planned).await,
        }
    }

    /// What is said of a pass that came to its end; who asks later finds it noted.
    fn report(&self, planned: &PlannedPass<R>, applied: Option<&R::Applied>) -> Report {
        let (reconciler, object) = (self.reconciler, &self.object);
        let report = self.context.pure(|| reconciler.report(object, planned.outcome(applied)));
        self.reconciler.remember(&self.object, planned.outcome(applied));
        report
    }

    /// Takes the finalizers off a living object that needs them no longer.
    async fn unprotect(&mut self, next: Requeue) -> Requeue {
        let finalizers = finalizers(self.reconciler);
        if self.context.mode == WriteMode::DryRun || !finalizers.hold(self.object.meta()) {
            return next;
        }
        match self.patch(finalizers.removing(self.object.meta())).await {
            Ok(written) => {
                self.took_over(written);
                next
            }
            Err(error) => {
                let end = self.refused(&error).await;
                self.end_early(end, None).await
            }
        }
    }

    /// Our own change of the finalizers is no reason to run again; answers whether it was the only change.
    fn took_over(&mut self, written: Guarded<R::Object>) -> bool {
        let meta = self.object.meta_mut();
        meta.finalizers.clone_from(&written.meta().finalizers);
        meta.resource_version.clone_from(&written.meta().resource_version);
        self.passed = self.print(self.object.meta());
        let same = self.print(written.meta()) == self.passed;
        self.latest = Some(written);
        same
    }

    /// A deleted object's remote part goes, then its finalizers.
    async fn remove(&mut self) -> Requeue {
        let planned = match self.prepare().await {
            Ok(planned) => planned,
            Err(end) => return self.stay(end, None).await,
        };
        let applied = match self.act(&planned).await {
            Ok(applied) => applied,
            Err(end) => return self.stay(end, Some(&planned)).await,
        };
        let report = self.report(&planned, applied.as_ref());
        match report.problem {
            None => self.let_go(&report.events).await,
            Some(problem) => {
                self.tell(&report.events).await;
                self.stay(EarlyEnd::Problem(problem), None).await
            }
        }
    }

    /// A deleted object cannot go yet, unless its user insists.
    async fn stay(&mut self, end: EarlyEnd, planned: Option<&PlannedPass<R>>) -> Requeue {
        let problem = match end {
            EarlyEnd::Problem(problem) => problem,
            EarlyEnd::Quietly(next) => return next,
        };
        if self.context.steering.is_forced(self.object.meta()) && problem.class != Class::Transient {
            self.planned(Err(&problem));
            let notice = Notice::warning(reasons::FORCED_CLEANUP, format!("deleted without cleanup: {problem}"));
            return if self.context.mode == WriteMode::DryRun { Requeue::Rest } else { self.let_go(&[notice]).await };
        }
        self.fail(problem, planned).await
    }

    /// The steps up to and including `plan`.
    async fn prepare(&mut self) -> Result<PlannedPass<R>, EarlyEnd> {
        let inputs = self.reconciler.gather(&self.object).await?;
        let (reconciler, object) = (self.reconciler, &self.object);
        let (plan, changes, has_work, needs_finalizer) = self.context.pure(|| {
            let plan = reconciler.plan(object, &inputs)?;
            let changes = reconciler.changes(&plan);
            let (has_work, needed) = (reconciler.has_work(&plan), reconciler.needs_finalizer(object, &inputs, &plan));
            Ok::<_, Problem>((plan, changes, has_work, needed))
        })?;
        self.planned(Ok(&changes));
        if !has_work {
            self.reconciler.rests(&inputs);
        }
        if self.context.mode == WriteMode::DryRun {
            return Err(EarlyEnd::Quietly(Requeue::Rest));
        }
        Ok(PlannedPass { inputs, plan, has_work, needs_finalizer })
    }

    /// Protects the object, and applies the plan where there is something to do.
    async fn act(&mut self, planned: &PlannedPass<R>) -> Result<Option<R::Applied>, EarlyEnd> {
        let PlannedPass { inputs, plan, has_work, needs_finalizer } = planned;
        if *needs_finalizer {
            self.protect().await?;
        }
        if !has_work {
            return Ok(None);
        }
        if self.context.mode == WriteMode::Shadow {
            return Err(EarlyEnd::Quietly(Requeue::Rest));
        }
        self.note_intent(inputs, plan).await?;
        Ok(Some(self.reconciler.apply(&self.object, inputs, plan).await?))
    }

    fn planned(&self, plan: Result<&Plan, &Problem>) {
        if let Some(sink) = &self.context.plans {
            let id = ObjectId::new(self.reconciler.profile().kind, key_of(self.object.meta()));
            sink(id, plan.cloned().map_err(Clone::clone));
        }
    }

    /// Stores the finalizer of a living object that lacks it.
    async fn protect(&mut self) -> Result<(), EarlyEnd> {
        let finalizers = finalizers(self.reconciler);
        let meta = self.object.meta();
        let adding = finalizers.adding(meta).filter(|_| finalizers.stage(meta) == FinalizerStage::Unprotected);
        let Some(patch) = adding else { return Ok(()) };
        let written = match self.patch(patch).await {
            Ok(written) => written,
            Err(error) => return Err(self.refused(&error).await),
        };
        if self.took_over(written) { Ok(()) } else { Err(EarlyEnd::Quietly(Requeue::Now)) }
    }

    fn print(&self, meta: &ObjectMeta) -> u64 {
        fingerprint_for(self.context, self.reconciler, meta)
    }

    async fn patch(&self, patch: json_patch::Patch) -> Result<Guarded<R::Object>, kube::Error> {
        patch_object::<R>(self.context, self.object.meta(), patch).await
    }

    /// A patch of the finalizers was refused: quietly where the object changed or is gone, else that is a problem.
    async fn refused(&self, error: &kube::Error) -> EarlyEnd {
        let (meta, key) = (self.object.meta(), key_of(self.object.meta()));
        let code = if let kube::Error::Api(status) = error { status.code } else { 0 };
        match code {
            404 => return EarlyEnd::Quietly(Requeue::Gone),
            // Others write it without a pause, which is nobody's fault.
            409 => return EarlyEnd::Quietly(Requeue::After(CONFLICT_PAUSE)),
            422 => {}
            _ => return EarlyEnd::Problem(kubernetes_problem(format_args!("writing the finalizers of {key}"), error)),
        }
        let state = |meta: &ObjectMeta| (meta.uid.clone(), meta.finalizers.clone(), meta.deletion_timestamp.is_some());
        match status::in_time(status::api::<R::Object>(&self.context.client, &key).get_opt(&key.name)).await {
            Ok(None) => EarlyEnd::Quietly(Requeue::Gone),
            Ok(Some(found)) if state(found.meta()) != state(meta) => EarlyEnd::Quietly(Requeue::Now),
            Ok(Some(_)) | Err(_) => {
                EarlyEnd::Problem(kubernetes_problem(format_args!("writing the finalizers of {key}"), error))
            }
        }
    }

    /// Stores what must be known before the first call, over the status there is.
    async fn note_intent(&mut self, inputs: &R::Inputs, plan: &R::Plan) -> Result<(), EarlyEnd> {
        let (reconciler, object) = (self.reconciler, &self.object);
        let Some(intent) = self.context.pure(|| reconciler.intent(object, inputs, plan)) else { return Ok(()) };
        let now = status::current(&self.object);
        let mut wanted = now.as_object().cloned().unwrap_or_default();
        status::overlay(&mut wanted, &intent);
        let wanted = status::as_typed(&self.object, Value::Object(wanted));
        if !status::differs(&now, &wanted) {
            return Ok(());
        }
        let written = status::write::<R::Object>(&self.context.client, self.object.meta(), &wanted).await;
        let written =
            written.map_err(|error| kubernetes_problem(format_args!("writing the intent to the status"), &error))?;
        let Some(written) = written else { return Err(EarlyEnd::Quietly(Requeue::Gone)) };
        if let GuardedBody::Typed(object) = &written.body
            && self.print(object.meta()) == self.passed
        {
            self.object = (**object).clone();
        }
        self.latest = Some(written);
        Ok(())
    }

    /// Writes what a report says, where it is news.
    async fn publish(&mut self, report: &Report, keep: Keep) -> Requeue {
        let generation = generation_of(self.object.meta());
        if let Err(problem) = self.write_status(report, keep, generation).await {
            tracing::warn!(kind = self.reconciler.profile().kind, object = %key_of(self.object.meta()), error = %problem,
                "The status could not be written");
            return Requeue::Failed(problem);
        }
        self.tell(&report.events).await;
        match (&report.problem, report.again) {
            (Some(problem), _) => Requeue::Failed(problem.clone()),
            (None, Some(wait)) => Requeue::After(wait),
            (None, None) => Requeue::Rest,
        }
    }

    async fn write_status(&mut self, report: &Report, keep: Keep, generation: i64) -> Result<(), Problem> {
        if !self.reconciler.profile().owns_status {
            return Ok(());
        }
        let (now, time) = (status::current(&self.object), (self.context.clock)());
        let Some(wanted) = status::wanted(&now, report, keep, generation, time) else { return Ok(()) };
        let wanted = status::as_typed(&self.object, wanted);
        let newer = self.reconciler.profile().heeds_times && now != wanted;
        if !newer && !status::differs(&now, &wanted) {
            return Ok(());
        }
        let written = status::write::<R::Object>(&self.context.client, self.object.meta(), &wanted).await;
        let written = written.map_err(|error| kubernetes_problem(format_args!("writing the status"), &error))?;
        // An object that went, or came back as another one, has nobody to tell.
        if let Some(written) = written {
            self.context.metrics.wrote_status(self.reconciler.profile().kind);
            self.latest = Some(written);
        }
        Ok(())
    }

    async fn tell(&self, notices: &[Notice]) {
        let regarding = self.object.object_ref(&());
        for notice in notices {
            self.context.events.tell(&regarding, notice).await;
        }
    }

    /// A step failed: say so once, and let the class decide when to try again.
    async fn fail(&mut self, problem: Problem, planned: Option<&PlannedPass<R>>) -> Requeue {
        self.planned(Err(&problem));
        if let Some(planned) = planned {
            self.reconciler.rests(&planned.inputs);
        }
        if self.context.mode == WriteMode::DryRun {
            return Requeue::Failed(problem);
        }
        let failure = || PassFailure {
            problem: &problem,
            planned: planned.map(|planned| (&planned.inputs, &planned.plan)),
            before: self.failed.as_ref(),
        };
        let (reconciler, object) = (self.reconciler, &self.object);
        let mut report = self.context.pure(|| reconciler.report(object, Outcome::Failed(failure())));
        self.reconciler.remember(&self.object, Outcome::Failed(failure()));
        let owns_status = self.reconciler.profile().owns_status;
        let waits = problem.class == Class::Waiting;
        let news = if owns_status {
            is_news(&status::conditions(&status::current(&self.object)), &report.conditions)
        } else {
            !waits && failure().is_news()
        };
        let deleting = self.object.meta().deletion_timestamp.is_some();
        if owns_status && (deleting || !news) {
            report.events.clear();
        }
        if deleting && !waits {
            report.events.push(Notice::warning(reasons::DELETE_FAILED, problem.message.as_str()));
        }
        self.log(&problem, news);
        report.problem = Some(problem);
        self.publish(&report, Keep::Rest).await
    }

    fn log(&self, problem: &Problem, news: bool) {
        let key = key_of(self.object.meta());
        let (kind, reason, class) = (self.reconciler.profile().kind, problem.reason, problem.class.as_str());
        if news {
            match problem.class {
                // What is not there yet usually comes.
                Class::Waiting => tracing::info!(kind, object = %key, reason, "Waiting: {problem}"),
                Class::Invalid | Class::Transient | Class::Denied => {
                    let outcome = "failed";
                    tracing::warn!(outcome, kind, object = %key, reason, class, error = %problem, "Reconciling failed");
                }
            }
        } else {
            tracing::debug!(kind, object = %key, reason, class, error = %problem, "Reconciling failed again");
        }
    }

    /// Takes the finalizers away; only then does the object go.
    async fn let_go(&mut self, notices: &[Notice]) -> Requeue {
        let patch = finalizers(self.reconciler).removing(self.object.meta());
        match self.patch(patch).await {
            Ok(_) => {
                self.tell(notices).await;
                Requeue::Gone
            }
            Err(error) => {
                let end = self.refused(&error).await;
                self.end_early(end, None).await
            }
        }
    }

    /// A paused object keeps its status and says that it is paused.
    async fn pause(&mut self) -> Requeue {
        if self.context.mode == WriteMode::DryRun {
            return Requeue::Rest;
        }
        let now = status::current(&self.object);
        let conditions = status::conditions(&now);
        let ready = condition::find(&conditions, condition::READY).map(|ready| ready.status).unwrap_or_default();
        let message = "Reconciling is paused by an annotation; take the annotation away to go on";
        let report = Report {
            status: Value::Object(Map::new()),
            conditions: vec![NewCondition::of(condition::READY, ready, reasons::PAUSED, message)],
            ..Report::default()
        };
        let observed = now["observedGeneration"].as_i64().unwrap_or_default();
        match self.write_status(&report, Keep::Rest, observed).await {
            Ok(()) => Requeue::Rest,
            Err(problem) => Requeue::Failed(problem),
        }
    }
}

pub(crate) async fn patch_object<R: Reconcile>(
    context: &Context,
    meta: &ObjectMeta,
    patch: json_patch::Patch,
) -> Result<Guarded<R::Object>, kube::Error> {
    let key = key_of(meta);
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let (api, patch) = (status::api::<R::Object>(&context.client, &key), Patch::<()>::Json(patch));
    status::in_time(api.patch(&key.name, &params, &patch)).await
}

/// Whether conditions say something that was not said before.
fn is_news(old: &[portolan_core::Condition], new: &[NewCondition]) -> bool {
    new.iter().any(|new| {
        !condition::find(old, new.r#type)
            .is_some_and(|old| old.status == new.status && old.reason == new.reason && old.message == new.message)
    })
}
