//! Carries tasks out: looks whether one is due, plans it, claims it, applies the plan, and writes what came of it.

mod attempt;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Api;
use portolan_cloudflare_api::{Client, Clients};
use portolan_core::{ObjectKey, Plan, Problem};
use portolan_engine::{CancellationToken, Context, Handle, Outcome, Reconcile, Report, Secrets};
use portolan_exposure::{Elsewhere, Exposure, Footprint, Live, Notes, Quotas};
use portolan_zerotrust_model::{CloudflareTask, CloudflareTaskStatus, Phase, SecretRef};
use tokio::time::Instant;

use crate::announced::Announced;
use crate::credential;
use crate::elsewhere::{self, States};
use crate::handover::Handover;
use crate::locks::Locks;
use crate::log;
use crate::others::{Life, Others};
use crate::presence::Presence;
use crate::progress::{self, Handed};
use crate::projection::Projection;
use crate::reason;
use crate::settings::Settings;
use crate::standing::{Look, Standing, standing};
use crate::turns::{Turn, Turns};
use crate::work::{self, Work};

/// A task that changed under our hands, or for whose sake something changed, is looked at again after this.
const SOON: Duration = Duration::from_millis(50);

/// Carries tasks out.
pub(crate) struct Carrier {
    context: Arc<Context>,
    clients: Arc<Clients>,
    settings: Settings,
    shutdown: CancellationToken,
    secrets: Secrets,
    handover: Handover,
    presence: Arc<Presence>,
    others: Others,
    turns: Turns,
    states: States,
    locks: Locks,
    quotas: Quotas,
    handle: Handle<Projection>,
    /// Tasks for whose sake something changed.
    nudged: Mutex<BTreeSet<ObjectKey>>,
    /// When Secrets that tasks name changed.
    changed: Mutex<BTreeMap<ObjectKey, Instant>>,
    /// Accounts whose Access applications were listed ahead of their use.
    accounts: Mutex<BTreeSet<String>>,
}

/// What was found for a task.
pub(crate) enum Inputs {
    /// Nothing is to be done now; worth another look after a while.
    Rest(Option<Duration>),
    /// It cannot be planned.
    Refused { problem: Problem, since: Instant },
    /// Everything that planning needs.
    Ready(Box<Ready>),
}

/// Everything that planning and carrying out need.
pub(crate) struct Ready {
    client: Client,
    work: Work,
    recorded: Footprint,
    live: Live,
    notes: Notes,
    handed: Option<Handed>,
    announced: Announced,
    /// Nobody else makes a token of the same name meanwhile.
    _turn: Option<Turn>,
}

/// What is to be done with a task.
pub(crate) enum Verdict {
    /// Nothing.
    Rest,
    /// It is told why it cannot be done.
    Refuse(Problem),
    /// It is carried out.
    Carry(Box<Exposure>),
}

/// What came of a task.
pub(crate) struct Done {
    /// Why it failed, and when it is tried again.
    problem: Option<Problem>,
    /// When to look again though nothing failed.
    again: Option<Duration>,
}

impl Carrier {
    pub(crate) fn new(
        context: &Arc<Context>,
        clients: &Arc<Clients>,
        settings: &Settings,
        shutdown: &CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            context: Arc::clone(context),
            clients: Arc::clone(clients),
            settings: settings.clone(),
            shutdown: shutdown.clone(),
            secrets: Secrets::new(context.client.clone()),
            handover: Handover::new(context),
            presence: Presence::new(context, settings),
            others: Others::new(context, settings),
            turns: Turns::default(),
            states: States::new(context),
            locks: Locks::new(context, settings),
            quotas: Quotas::default(),
            handle: Handle::new(),
            nudged: Mutex::default(),
            changed: Mutex::default(),
            accounts: Mutex::default(),
        })
    }

    /// What is known of the tasks, and how to make one run.
    pub(crate) fn handle(&self) -> Handle<Projection> {
        self.handle.clone()
    }

    /// The sign that this worker lives.
    pub(crate) fn presence(&self) -> Arc<Presence> {
        Arc::clone(&self.presence)
    }

    /// A Secret changed or went; answers the tasks that waited for that.
    pub(crate) fn secret_changed(&self, key: &ObjectKey) -> Vec<ObjectKey> {
        self.secrets.forget(key);
        let (used, waiting) = self.handle.read(|store| {
            let users = store.projections().filter(|(_, task)| task.secret.as_ref() == Some(key));
            let (waiting, others): (Vec<_>, Vec<_>) = users.partition(|(_, task)| task.lacks_credential);
            let keys: Vec<ObjectKey> = waiting.into_iter().map(|(key, _)| key.clone()).collect();
            (!keys.is_empty() || !others.is_empty(), keys)
        });
        if used {
            self.changed().insert(key.clone(), Instant::now());
        }
        self.nudged().extend(waiting.iter().cloned());
        waiting
    }

    /// A task that failed for a Secret that changed meanwhile is tried again at once.
    fn unless_changed(&self, task: &CloudflareTask, since: Instant, done: Done) -> Done {
        let secret = task.spec.credential_secret_ref.as_ref().map(SecretRef::object);
        let changed = secret.and_then(|secret| self.changed().get(&secret).copied());
        let credential =
            done.problem.as_ref().is_some_and(|problem| reason::is_of_credential(&progress::failure(problem)));
        if !credential || changed.is_none_or(|changed| changed < since) {
            return done;
        }
        self.nudged().insert(task.key());
        Done { problem: None, again: Some(SOON) }
    }

    fn changed(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Instant>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nudged(&self) -> MutexGuard<'_, BTreeSet<ObjectKey>> {
        self.nudged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, nudged: bool) -> Look<'_> {
        let Settings { identity, alone, .. } = &self.settings;
        Look { worker: identity, alone: *alone, nudged, now: (self.context.clock)() }
    }

    fn tasks(&self) -> Api<CloudflareTask> {
        Api::namespaced(self.context.client.clone(), &self.context.operator_namespace)
    }

    fn is_ours(&self, task: &CloudflareTask) -> bool {
        task.metadata.namespace.as_deref() == Some(self.context.operator_namespace.as_str())
    }

    /// How long to leave a task alone; none where it is due.
    async fn rest(&self, task: &CloudflareTask) -> Result<Option<Option<Duration>>, Problem> {
        if !self.is_ours(task) || self.shutdown.is_cancelled() {
            return Ok(Some(None));
        }
        let nudged = self.nudged().remove(&task.key());
        Ok(match standing(task, self.look(nudged)) {
            Standing::Due => None,
            Standing::Later(wait) => Some(Some(wait)),
            Standing::Settled => Some(None),
            Standing::Held(worker) => match self.others.look(&worker).await? {
                Life::Lives(wait) => Some(Some(wait)),
                Life::Dead => None,
            },
        })
    }

    async fn ready(&self, task: &CloudflareTask) -> Result<Ready, Problem> {
        let work = Work::of(task, &self.context.owner)?;
        let client = credential::client(&task.spec, &self.secrets, &self.clients).await?;
        let status = task.status.as_ref();
        let intent = status.and_then(CloudflareTaskStatus::intent);
        let handed = match intent.as_ref().and_then(|intent| intent.token.as_ref()) {
            Some(_) => self.handover.find(task).await?,
            None => None,
        };
        let recorded = work.recorded(task, handed.as_ref());
        let announced = Announced::new(&client, &work, &recorded);
        let turn = self.turns.take(work.desired(), &recorded).await;
        let mut notes = Notes { quotas: self.quotas.clone(), ..Notes::at((self.context.clock)()) };
        notes.secret_present = work::has_credentials(task, &recorded, handed.as_ref());
        notes.intent = intent;
        let live = work.gather(&client.reader(), &recorded, notes.intent.as_ref(), work::freshness(task)).await?;
        notes.elsewhere = self.elsewhere(task, &recorded, &live).await?;
        Ok(Ready { client, work, recorded, live, notes, handed, announced, _turn: turn })
    }

    /// What others have recorded, where that matters.
    async fn elsewhere(&self, task: &CloudflareTask, recorded: &Footprint, live: &Live) -> Result<Elsewhere, Problem> {
        if elsewhere::matters(recorded, live) {
            self.states.elsewhere(task, &self.handle).await
        } else {
            Ok(Elsewhere::default())
        }
    }
}

impl Ready {
    fn verdict(&self) -> Verdict {
        let planned = self.work.plan(&self.recorded, &self.live, &self.notes);
        if planned.as_ref().map_or(true, Exposure::is_empty) {
            self.announced.no_longer();
        }
        planned.map_or_else(Verdict::Refuse, |exposure| Verdict::Carry(Box::new(exposure)))
    }
}

impl Reconcile for Carrier {
    type Object = CloudflareTask;
    type Inputs = Inputs;
    type Plan = Verdict;
    type Applied = Done;
    type Projection = Projection;

    fn kind(&self) -> &'static str {
        "CloudflareTask"
    }

    fn finalizer(&self) -> Option<&'static str> {
        None
    }

    /// Statuses are claims: they are written here, over the version that was seen.
    fn owns_status(&self) -> bool {
        false
    }

    /// A task that is put back in line by its status alone runs too.
    fn project(&self, task: &CloudflareTask) -> Projection {
        let (key, projection) = (task.key(), Projection::of(task));
        let before = self.handle.read(|store| Some(store.get(&key)?.projection.as_ref()?.phase));
        if projection.phase == Phase::Pending && before.is_some_and(|before| before != Phase::Pending) {
            self.handle.enqueue(&key);
        }
        projection
    }

    async fn gather(&self, task: &CloudflareTask) -> Result<Inputs, Problem> {
        log::mark(task);
        if let Some(again) = self.rest(task).await? {
            return Ok(Inputs::Rest(again));
        }
        let since = Instant::now();
        let refused = |problem| Inputs::Refused { problem, since };
        Ok(self.ready(task).await.map_or_else(refused, |ready| Inputs::Ready(Box::new(ready))))
    }

    fn plan(&self, _: &CloudflareTask, inputs: &Inputs) -> Result<Verdict, Problem> {
        Ok(match inputs {
            Inputs::Rest(_) => Verdict::Rest,
            Inputs::Refused { problem, .. } => Verdict::Refuse(problem.clone()),
            Inputs::Ready(ready) => ready.verdict(),
        })
    }

    fn changes(&self, verdict: &Verdict) -> Plan {
        match verdict {
            Verdict::Rest | Verdict::Refuse(_) => Plan::default(),
            Verdict::Carry(exposure) => exposure.changes(),
        }
    }

    fn acts(&self, verdict: &Verdict) -> bool {
        !matches!(verdict, Verdict::Rest)
    }

    async fn apply(&self, task: &CloudflareTask, inputs: &Inputs, verdict: &Verdict) -> Result<Done, Problem> {
        let done = match (inputs, verdict) {
            (Inputs::Ready(ready), Verdict::Carry(exposure)) => Box::pin(self.carry(task, ready, exposure)).await?,
            (Inputs::Refused { problem, since }, _) => {
                let done = self.refuse(task, problem).await?;
                self.unless_changed(task, *since, done)
            }
            (_, Verdict::Refuse(problem)) => self.refuse(task, problem).await?,
            (Inputs::Rest(_), Verdict::Carry(_)) | (_, Verdict::Rest) => Done { problem: None, again: None },
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

    fn forgotten(&self, key: &ObjectKey) {
        self.nudged().remove(key);
    }
}
