//! The jobs of a process: each runs while it leads, and stops alone.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::context::{Context, WriteMode};
use crate::jobs::handle::JobHandle;
use crate::jobs::leadership::Leadership;
use crate::jobs::lease::{Candidacy, Election, Term};
use crate::jobs::task::{Busy, JobTasks, NotReady, Task};
use crate::observe::health::{Check, Probes};
use crate::observe::watchdog::Watchdog;
use crate::verdicts::Verdicts;

/// A job that failed to start or broke is started again after this.
const PAUSE: Duration = Duration::from_secs(1);
/// What a job lacks is looked for again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

type Start = Box<dyn Fn(&CancellationToken) -> JobTasks + Send + Sync>;

/// A set of tasks that run together, anew for every term of leadership.
pub struct Job {
    name: &'static str,
    needs: Option<StartCheck>,
    candidacy: Option<Candidacy>,
    leadership: Leadership,
    handle: JobHandle,
    start: Start,
}

/// Looks whether a job may start; says in a sentence what it lacks.
type StartCheck = Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

impl Job {
    /// A job that makes its tasks anew each time it starts. The tasks end when the token says so.
    pub fn new<T: Into<JobTasks>>(
        name: &'static str,
        start: impl Fn(&CancellationToken) -> T + Send + Sync + 'static,
    ) -> Self {
        let (leadership, handle) = (Leadership::default(), JobHandle::default());
        Self {
            name,
            needs: None,
            candidacy: None,
            leadership,
            handle,
            start: Box::new(move |token| start(token).into()),
        }
    }

    /// The job as others see it.
    pub fn handle(&self) -> JobHandle {
        self.handle.clone()
    }

    /// Runs the job alone, without its lease. Dropping the future stops everything at once.
    pub async fn run(self, shutdown: CancellationToken) {
        let tasks = self.started(&shutdown);
        self.handle.run(tasks).await;
    }

    /// Its tasks, made anew.
    fn started(&self, shutdown: &CancellationToken) -> Vec<Task> {
        let made = (self.start)(shutdown);
        self.handle.started(&made);
        made.tasks
    }

    /// Runs only while this process holds the lease.
    pub fn elected(self, candidacy: Candidacy) -> Self {
        Self { candidacy: Some(candidacy), ..self }
    }

    /// Says while it runs that it may write; what it writes with looks there.
    pub fn granting(self, leadership: &Leadership) -> Self {
        Self { leadership: leadership.clone(), ..self }
    }

    /// Waits, without being ready, until nothing is lacking; `look` says what is.
    pub fn needing<F>(self, look: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self { needs: Some(Box::new(move || look().boxed())), ..self }
    }
}

/// What is known of the jobs from outside.
type JobStates = Arc<Verdicts<&'static str, JobState>>;

/// Where a job stands.
enum JobState {
    /// It has not begun.
    Starting,
    /// Something is lacking, as the sentence says.
    Waiting(String),
    /// Another process leads.
    Standby,
    /// Its tasks run.
    Running(Vec<RunningTask>),
    /// It ended.
    Stopped,
}

/// A task that runs, as it is seen from outside.
struct RunningTask {
    name: String,
    busy: Busy,
    lack: NotReady,
}

impl RunningTask {
    fn of(task: &Task) -> Self {
        Self { name: task.name.clone().into_owned(), busy: task.busy(), lack: task.lack() }
    }
}

impl JobState {
    /// What has to be well for the job to be ready.
    fn checks(&self, job: &str) -> Vec<Check> {
        match self {
            Self::Starting => vec![Check::failed(job, "it has not begun")],
            Self::Waiting(lack) => vec![Check::failed(job, lack.as_str())],
            Self::Stopped => vec![Check::failed(job, "it has ended")],
            Self::Standby => vec![Check::passed(format!("{job} (another process leads)"))],
            Self::Running(tasks) => {
                let check =
                    |one: &RunningTask| Check::of(format!("{job}/{}", one.name), (one.lack)().map(str::to_owned));
                tasks.iter().map(check).collect()
            }
        }
    }
}

/// Runs jobs side by side. Dropping it stops everything at once, as a crash would.
pub struct Manager {
    jobs: JoinSet<()>,
    supervised: Vec<(&'static str, AbortHandle)>,
    watchdog: Watchdog,
    states: JobStates,
    shutdown: CancellationToken,
}

impl Manager {
    /// Starts the jobs. Must be called inside a tokio runtime.
    pub fn start(context: &Arc<Context>, jobs: impl IntoIterator<Item = Job>) -> Self {
        let (mut running, states, shutdown) = (JoinSet::new(), JobStates::default(), CancellationToken::new());
        let mut supervised = Vec::new();
        for job in jobs {
            let supervisor = Supervisor { name: job.name, states: states.clone(), context: context.clone() };
            supervisor.set(JobState::Starting);
            supervised.push((job.name, running.spawn(supervisor.run(job, shutdown.clone()))));
        }
        Self { jobs: running, supervised, watchdog: Watchdog::start(), states, shutdown }
    }

    /// How many things are under way in all jobs; 0 means that nothing happens before something changes.
    pub fn busy(&self) -> usize {
        busy(&self.states)
    }

    /// Which jobs run in this process now.
    pub fn leading(&self) -> Vec<&'static str> {
        let runs = |(name, state): (&&'static str, &JobState)| matches!(state, JobState::Running(_)).then_some(*name);
        self.states.read(|states| states.iter().filter_map(runs).collect())
    }

    /// Which jobs wait, and what they lack.
    pub fn waiting(&self) -> Vec<(&'static str, String)> {
        let lack = |(name, state): (&&'static str, &JobState)| match state {
            JobState::Waiting(lack) => Some((*name, lack.clone())),
            _ => None,
        };
        self.states.read(|states| states.iter().filter_map(lack).collect())
    }

    /// What the health endpoints answer: alive while no job has ended by itself, ready when every job stands by or runs with
    /// all it needs.
    pub fn probes(&self) -> Probes {
        let (states, supervised) = (self.states.clone(), self.supervised.clone());
        let (watchdog, shutdown) = (self.watchdog.check(), self.shutdown.clone());
        let alive = move || {
            let ended = |supervisor: &AbortHandle| supervisor.is_finished() && !shutdown.is_cancelled();
            let jobs = supervised
                .iter()
                .map(|(name, supervisor)| Check::of(*name, ended(supervisor).then(|| "it died".to_owned())));
            std::iter::once(watchdog()).chain(jobs).collect()
        };
        let ready = move || states.read(|states| states.iter().flat_map(|(name, state)| state.checks(name)).collect());
        Probes::new(alive, ready)
    }

    /// Stops gracefully: no new passes, those at work may end, leases are released.
    pub async fn shutdown(mut self) {
        self.shutdown.cancel();
        while self.jobs.join_next().await.is_some() {}
    }
}

fn busy(states: &JobStates) -> usize {
    let of = |state: &JobState| match state {
        JobState::Starting => 1,
        JobState::Waiting(_) | JobState::Standby | JobState::Stopped => 0,
        JobState::Running(tasks) => tasks.iter().map(|task| (task.busy)()).sum(),
    };
    states.read(|states| states.values().map(of).sum())
}

/// A job's place in the process.
struct Supervisor {
    name: &'static str,
    states: JobStates,
    context: Arc<Context>,
}

/// Why a job's tasks ended.
enum Stopped {
    Asked,
    LostLease,
    Broke,
}

impl Supervisor {
    fn set(&self, state: JobState) {
        self.context.metrics.leads(self.name, matches!(state, JobState::Running(_)));
        self.states.put(self.name, state);
    }

    async fn run(self, job: Job, shutdown: CancellationToken) {
        loop {
            let begin = async {
                self.lack_nothing(&job).await;
                self.lead(&job).await
            };
            let term = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                term = begin => term,
            };
            match self.serve(&job, term, &shutdown).await {
                Stopped::Asked => break,
                Stopped::LostLease => tracing::warn!(job = self.name, "The lease is lost: the job stops here"),
                Stopped::Broke => {
                    self.context.metrics.broke(self.name);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        self.set(JobState::Stopped);
    }

    /// Waits for what the job needs. Each lack is told once.
    async fn lack_nothing(&self, job: &Job) {
        let Some(needs) = &job.needs else { return };
        let mut told = None;
        while let Err(lack) = needs().await {
            if told.as_ref() != Some(&lack) {
                tracing::warn!(job = self.name, "The job waits: {lack}");
                self.set(JobState::Waiting(lack.clone()));
                told = Some(lack);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits for the lease, where the job has one.
    async fn lead(&self, job: &Job) -> Option<Term> {
        // A lease is a write too.
        let Some(candidacy) = job.candidacy.as_ref().filter(|_| self.context.mode != WriteMode::DryRun) else {
            job.leadership.always();
            return None;
        };
        let election = Election::of(&self.context, candidacy.clone()).granting(job.leadership.clone());
        let first_look = tokio::time::timeout(PAUSE, election.acquire()).await;
        if let Ok(term) = first_look {
            return Some(term);
        }
        self.set(JobState::Standby);
        tracing::info!(job = self.name, "Another process leads the job: this one stands by");
        Some(election.acquire().await)
    }

    /// Runs the job's tasks until it must stop.
    async fn serve(&self, job: &Job, mut term: Option<Term>, shutdown: &CancellationToken) -> Stopped {
        let token = shutdown.child_token();
        let tasks = job.started(&token);
        tracing::info!(job = self.name, "The job starts here");
        self.set(JobState::Running(tasks.iter().map(RunningTask::of).collect()));
        let mut running = JoinSet::new();
        for task in tasks {
            running.spawn(task.run());
        }
        let stopped = tokio::select! {
            biased;
            () = lost(&mut term) => Stopped::LostLease,
            () = broken(&mut running) => Stopped::Broke,
            () = shutdown.cancelled() => Stopped::Asked,
        };
        if matches!(stopped, Stopped::Asked) {
            // The lease is renewed meanwhile: nobody else starts before our last pass has ended.
            let all = async { while running.join_next().await.is_some() {} };
            tokio::select! {
                () = all => {}
                () = lost(&mut term) => {}
            }
        }
        running.shutdown().await;
        self.set(JobState::Starting);
        if let Some(term) = term
            && !matches!(stopped, Stopped::LostLease)
        {
            term.release().await;
        }
        stopped
    }
}

async fn lost(term: &mut Option<Term>) {
    match term {
        Some(term) => term.hold().await,
        None => std::future::pending().await,
    }
}

/// Waits until a task panics. Tasks that end are done.
async fn broken(running: &mut JoinSet<()>) {
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "A task ended in a panic: its job starts again");
            return;
        }
    }
    std::future::pending::<()>().await;
}
