//! Carries tasks out: looks whether one is due, plans it, claims it, applies the plan, and writes what came of it.

mod attempt;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Api;
use portolan_cloudflare_api::document::TUNNEL_CONFIGURATION;
use portolan_cloudflare_api::objects::DnsRecord;
use portolan_cloudflare_api::{Client, Clients, PendingWrite, collections};
use portolan_core::{ObjectKey, Plan, Problem};
use portolan_engine::{CancellationToken, Context, Handle, Outcome, Profile, Projected, Reconcile, Report, Secrets};
use portolan_exposure::{Elsewhere, Exposure, Footprint, Live, PlanContext};
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskStatus, Phase};
use tokio::time::Instant;

use crate::credential;
use crate::due::{Due, TaskLook, due};
use crate::handover::Handover;
use crate::liveness::heartbeat::Heartbeat;
use crate::liveness::peers::{PeerLife, Peers};
use crate::locks::documents::DocumentLocks;
use crate::locks::token_names::{TokenNameLock, TokenNameLocks};
use crate::log;
use crate::metrics::Metrics;
use crate::projection::TaskProjection;
use crate::recorded_elsewhere::RecordedElsewhere;
use crate::secret_poller::SecretPoller;
use crate::settings::Settings;
use crate::task_status::Handed;
use crate::work::{self, TaskWork};

/// A task that changed under our hands, or for whose sake something changed, is looked at again after this.
const SOON: Duration = Duration::from_millis(50);

/// So long a credential is used without another look at its Secret.
const CREDENTIAL_KEPT: Duration = Duration::from_secs(5);

/// What is kept of a task.
type SeenTask = Projected<TaskProjection>;

/// Carries tasks out.
pub(crate) struct TaskReconciler {
    context: Arc<Context>,
    clients: Arc<Clients>,
    settings: Settings,
    metrics: Metrics,
    shutdown: CancellationToken,
    secrets: Secrets,
    secret_poller: SecretPoller,
    handover: Handover,
    heartbeat: Arc<Heartbeat>,
    peers: Peers,
    token_names: TokenNameLocks,
    states: RecordedElsewhere,
    locks: DocumentLocks,
    handle: Handle<TaskProjection>,
    /// Tasks for whose sake something changed.
    nudged: Mutex<BTreeSet<ObjectKey>>,
    /// Accounts whose Access applications were listed ahead of their use.
    accounts: Mutex<BTreeSet<String>>,
}

/// What was found for a task.
pub(crate) enum Inputs {
    /// Nothing is to be done now; worth another look after a while.
    Rest(Option<Duration>),
    /// It cannot be planned.
    Refused(Problem),
    /// Everything that planning needs.
    Ready(Box<Ready>),
}

/// Everything that planning and carrying out need.
pub(crate) struct Ready {
    /// When the first look was taken.
    begun: Instant,
    /// Whether it was taken because something changed that the task failed for.
    nudged: bool,
    client: Client,
    work: TaskWork,
    recorded: Footprint,
    live: Live,
    plan_context: PlanContext,
    handed: Option<Handed>,
    expected: Mutex<Option<ExpectedWrites>>,
    /// Nobody else makes a token of the same name meanwhile.
    turn: Option<TokenNameLock>,
}

/// What is to be done with a task.
pub(crate) enum TaskVerdict {
    /// Nothing.
    Rest,
    /// It is told why it cannot be done.
    Refuse(Problem),
    /// It is carried out.
    Carry(Box<Exposure>),
}

impl TaskVerdict {
    /// Whether nothing at Cloudflare is to change.
    fn writes_nothing(&self) -> bool {
        match self {
            Self::Rest | Self::Refuse(_) => true,
            Self::Carry(exposure) => exposure.is_empty(),
        }
    }
}

/// What came of a task.
pub(crate) struct AttemptOutcome {
    /// Why it failed, and when it is tried again.
    problem: Option<Problem>,
    /// When to look again though nothing failed.
    again: Option<Duration>,
}

impl TaskReconciler {
    pub(crate) fn new(
        context: &Arc<Context>,
        clients: &Arc<Clients>,
        settings: &Settings,
        metrics: &Metrics,
        shutdown: &CancellationToken,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            clients: Arc::clone(clients),
            settings: settings.clone(),
            metrics: metrics.clone(),
            shutdown: shutdown.clone(),
            secrets: Secrets::kept_for(context.client.clone(), CREDENTIAL_KEPT),
            secret_poller: SecretPoller::default(),
            handover: Handover::new(context),
            heartbeat: Heartbeat::new(context, settings),
            peers: Peers::new(context, settings),
            token_names: TokenNameLocks::default(),
            states: RecordedElsewhere::new(context),
            locks: DocumentLocks::new(context, settings),
            handle: Handle::new(),
            nudged: Mutex::default(),
            accounts: Mutex::default(),
        }
    }

    /// What is known of the tasks, and how to make one run.
    pub(crate) fn handle(&self) -> Handle<TaskProjection> {
        self.handle.clone()
    }

    /// The sign that this worker lives.
    pub(crate) fn heartbeat(&self) -> Arc<Heartbeat> {
        Arc::clone(&self.heartbeat)
    }

    /// Looks after tasks that failed for their credential, until told to stop.
    pub(crate) async fn poll_secrets(self: Arc<Self>) {
        let news = |tasks: Vec<ObjectKey>| {
            self.nudged().extend(tasks.iter().cloned());
            self.handle.enqueue_all(&tasks);
        };
        tokio::select! {
            () = self.shutdown.cancelled() => {}
            () = self.secret_poller.keep(self.handle(), self.secrets.clone(), news) => {}
        }
    }

    fn nudged(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.nudged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self, key: &ObjectKey) {
        self.nudged().remove(key);
        self.secret_poller.forget(key);
    }

    fn look(&self, nudged: bool) -> TaskLook<'_> {
        TaskLook { worker: &self.settings.identity, nudged, now: (self.context.clock)() }
    }

    fn tasks(&self) -> Api<CloudflareTask> {
        Api::namespaced(self.context.client.clone(), &self.context.operator_namespace)
    }

    /// How long to leave a task alone; none where it is due.
    async fn rest(&self, task: &CloudflareTask, nudged: bool) -> Result<Option<Option<Duration>>, Problem> {
        if self.shutdown.is_cancelled() {
            return Ok(Some(None));
        }
        Ok(match due(task, self.look(nudged)) {
            Due::Now => None,
            Due::Later(wait) => Some(Some(wait)),
            Due::Settled => Some(None),
            Due::Held(holder) => match self.peers.look(&holder).await? {
                PeerLife::Lives(wait) => Some(Some(wait)),
                PeerLife::Dead => None,
            },
        })
    }

    async fn ready(&self, task: &CloudflareTask, nudged: bool) -> Result<Ready, Problem> {
        let begun = Instant::now();
        let work = TaskWork::of(task, &self.context.owner)?;
        let client = self.client(task).await?;
        let status = task.status.as_ref();
        let intent = status.and_then(CloudflareTaskStatus::intent);
        let handed = match intent.as_ref().and_then(|intent| intent.token.as_ref()) {
            Some(_) => self.handover.find(task).await?,
            None => None,
        };
        let recorded = work.recorded(task, handed.as_ref());
        let turn = self.token_names.take(work.desired(), &recorded, &self.locks).await?;
        let expected = Mutex::new(Some(ExpectedWrites::of(&client, &work, &recorded)));
        let mut plan_context = PlanContext::at((self.context.clock)());
        plan_context.secret_present = work::has_credentials(task, &recorded, handed.as_ref());
        plan_context.intent = intent;
        let (reader, fresh) = (client.reader(), work::freshness(task));
        let live = work.goal().gather(&reader, &recorded, plan_context.intent.as_ref(), fresh).await?;
        plan_context.elsewhere = self.elsewhere(task, &recorded, &live).await?;
        Ok(Ready { begun, nudged, client, work, recorded, live, plan_context, handed, expected, turn })
    }

    /// The client of a task's credential.
    async fn client(&self, task: &CloudflareTask) -> Result<Client, Problem> {
        let reference = credential::reference(&task.spec)?;
        let found = self.secrets.found(&reference.object()).await?;
        self.secret_poller.tries(&task.key(), &found);
        credential::client(reference, &found, &self.clients)
    }

    /// What others have recorded, where that matters.
    async fn elsewhere(&self, task: &CloudflareTask, recorded: &Footprint, live: &Live) -> Result<Elsewhere, Problem> {
        if live.may_be_others(recorded) {
            self.states.elsewhere(task, &self.handle).await
        } else {
            Ok(Elsewhere::default())
        }
    }
}

/// What a task is about to write, said as early as possible, so that tasks that come together go out together.
struct ExpectedWrites {
    _rule: Option<PendingWrite>,
    _record: Option<PendingWrite<DnsRecord>>,
}

impl ExpectedWrites {
    fn of(client: &Client, work: &TaskWork, recorded: &Footprint) -> Self {
        let (account, tunnel, zone) = work.place(recorded);
        Self {
            _rule: tunnel.map(|tunnel| client.document(&TUNNEL_CONFIGURATION, account, tunnel).expect()),
            _record: zone.map(|zone| client.records(&collections::DNS_RECORDS, zone).expect()),
        }
    }
}

impl Ready {
    /// The writes begin now, or do not come.
    fn no_longer_expects(&self) {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn verdict(&self) -> TaskVerdict {
        let planned = self.work.goal().plan(&self.recorded, &self.live, &self.plan_context);
        planned.map_or_else(TaskVerdict::Refuse, |exposure| TaskVerdict::Carry(Box::new(exposure)))
    }
}

impl Reconcile for TaskReconciler {
    type Object = CloudflareTask;
    type Inputs = Inputs;
    type Plan = TaskVerdict;
    type Applied = AttemptOutcome;
    type Projection = TaskProjection;

    /// Statuses are claims: they are written by `apply`, over the version that was seen.
    fn profile(&self) -> Profile {
        Profile { owns_status: false, ..Profile::of("CloudflareTask") }
    }

    fn project(&self, task: &CloudflareTask) -> TaskProjection {
        portolan_core::waypoint!();
        TaskProjection::of(task)
    }

    /// A task that is put back in line by its status alone runs too.
    fn seen(&self, key: &ObjectKey, before: Option<&SeenTask>, after: Option<&SeenTask>) {
        let Some(after) = after else { return self.gone(key) };
        let Some(projection) = &after.projection else { return };
        let before = before.and_then(|before| Some(before.projection.as_ref()?.phase));
        if projection.phase == Phase::Pending && before.is_some_and(|before| before != Phase::Pending) {
            self.handle.enqueue(key);
        }
        if projection.lacks_credential {
            self.secret_poller.has_failed();
        }
    }

    async fn gather(&self, task: &CloudflareTask) -> Result<Inputs, Problem> {
        log::mark(task);
        let nudged = self.nudged().remove(&task.key());
        if let Some(again) = self.rest(task, nudged).await? {
            return Ok(Inputs::Rest(again));
        }
        Ok(Box::pin(self.ready(task, nudged))
            .await
            .map_or_else(Inputs::Refused, |ready| Inputs::Ready(Box::new(ready))))
    }

    fn plan(&self, _: &CloudflareTask, inputs: &Inputs) -> Result<TaskVerdict, Problem> {
        Ok(match inputs {
            Inputs::Rest(_) => TaskVerdict::Rest,
            Inputs::Refused(problem) => TaskVerdict::Refuse(problem.clone()),
            Inputs::Ready(ready) => ready.verdict(),
        })
    }

    fn changes(&self, verdict: &TaskVerdict) -> Plan {
        match verdict {
            TaskVerdict::Rest | TaskVerdict::Refuse(_) => Plan::default(),
            TaskVerdict::Carry(exposure) => exposure.changes(),
        }
    }

    fn has_work(&self, verdict: &TaskVerdict) -> bool {
        !matches!(verdict, TaskVerdict::Rest)
    }

    fn rests(&self, inputs: &Inputs) {
        if let Inputs::Ready(ready) = inputs {
            ready.no_longer_expects();
        }
    }

    async fn apply(
        &self,
        task: &CloudflareTask,
        inputs: &Inputs,
        verdict: &TaskVerdict,
    ) -> Result<AttemptOutcome, Problem> {
        if verdict.writes_nothing() {
            self.rests(inputs);
        }
        let done = match (inputs, verdict) {
            (Inputs::Ready(ready), TaskVerdict::Carry(exposure)) => Box::pin(self.carry(task, ready, exposure)).await?,
            (_, TaskVerdict::Refuse(problem)) => self.refuse(task, problem).await?,
            (Inputs::Rest(_) | Inputs::Refused(_), TaskVerdict::Carry(_)) | (_, TaskVerdict::Rest) => {
                AttemptOutcome { problem: None, again: None }
            }
        };
        Ok(done)
    }

    fn report(&self, _: &CloudflareTask, outcome: Outcome<'_, Self>) -> Report {
        match outcome {
            Outcome::Applied { applied, .. } => {
                Report { problem: applied.problem.clone(), again: applied.again, ..Report::default() }
            }
            Outcome::Unchanged { inputs: Inputs::Rest(again), .. } => Report { again: *again, ..Report::default() },
            Outcome::Unchanged { .. } | Outcome::Failed(_) => Report::default(),
        }
    }
}
