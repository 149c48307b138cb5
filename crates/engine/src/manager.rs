//! The jobs of a process: each runs while it leads, and stops alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Mode};
use crate::lease::{Election, Term};
use crate::serve::Probes;
use crate::task::{Busy, Task};

/// A job that failed to start or broke is started again after this.
const PAUSE: Duration = Duration::from_secs(1);

type Start = Box<dyn Fn(&CancellationToken) -> Vec<Task> + Send + Sync>;

/// A set of tasks that run together, anew for every term of leadership.
pub struct Job {
    name: &'static str,
    lease: Option<(String, String)>,
    start: Start,
}

impl Job {
    /// A job that makes its tasks anew each time it starts. The tasks end when the token says so.
    pub fn new(name: &'static str, start: impl Fn(&CancellationToken) -> Vec<Task> + Send + Sync + 'static) -> Self {
        Self { name, lease: None, start: Box::new(start) }
    }

    /// Runs only while this process holds the lease; the identity is this process's own.
    pub fn elected(mut self, lease: impl Into<String>, identity: impl Into<String>) -> Self {
        self.lease = Some((lease.into(), identity.into()));
        self
    }
}

/// What is known of the jobs from outside.
type Board = Arc<Mutex<BTreeMap<&'static str, Standing>>>;

/// Where a job stands.
enum Standing {
    /// It has not begun.
    Starting,
    /// Another process leads.
    Standby,
    /// Its tasks run.
    Running(Vec<Busy>),
    /// It ended.
    Stopped,
}

/// Runs jobs side by side. Dropping it stops everything at once, as a crash would.
pub struct Manager {
    jobs: JoinSet<()>,
    board: Board,
    shutdown: CancellationToken,
}

impl Manager {
    /// Starts the jobs. Must be called inside a tokio runtime.
    pub fn start(context: &Arc<Context>, jobs: impl IntoIterator<Item = Job>) -> Self {
        let (mut running, board, shutdown) = (JoinSet::new(), Board::default(), CancellationToken::new());
        for job in jobs {
            let seat = Seat { name: job.name, board: board.clone(), context: context.clone() };
            seat.stands(Standing::Starting);
            running.spawn(seat.run(job, shutdown.clone()));
        }
        Self { jobs: running, board, shutdown }
    }

    /// How many things are under way in all jobs; 0 means that nothing happens before something changes.
    pub fn busy(&self) -> usize {
        busy(&self.board)
    }

    /// Which jobs run in this process now.
    pub fn leading(&self) -> Vec<&'static str> {
        let board = self.board.lock().expect("nothing panics while it is held");
        board.iter().filter(|(_, standing)| matches!(standing, Standing::Running(_))).map(|(name, _)| *name).collect()
    }

    /// What the health endpoints answer: ready when every job runs or stands by.
    pub fn probes(&self) -> Probes {
        let board = self.board.clone();
        Probes::new(move || {
            let board = board.lock().expect("nothing panics while it is held");
            board.values().all(|standing| matches!(standing, Standing::Running(_) | Standing::Standby))
        })
    }

    /// The token that stops all jobs gracefully.
    pub fn shutdown_token(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// Stops gracefully: no new passes, those at work may end, leases are released.
    pub async fn shutdown(mut self) {
        self.shutdown.cancel();
        while self.jobs.join_next().await.is_some() {}
    }
}

fn busy(board: &Board) -> usize {
    let board = board.lock().expect("nothing panics while it is held");
    let of = |standing: &Standing| match standing {
        Standing::Starting => 1,
        Standing::Standby | Standing::Stopped => 0,
        Standing::Running(tasks) => tasks.iter().map(|busy| busy()).sum(),
    };
    board.values().map(of).sum()
}

/// A job's place in the process.
struct Seat {
    name: &'static str,
    board: Board,
    context: Arc<Context>,
}

/// Why a job's tasks ended.
enum Stopped {
    Asked,
    LostLease,
    Broke,
}

impl Seat {
    fn stands(&self, standing: Standing) {
        self.context.metrics.leads(self.name, matches!(standing, Standing::Running(_)));
        self.board.lock().expect("nothing panics while it is held").insert(self.name, standing);
    }

    async fn run(self, job: Job, shutdown: CancellationToken) {
        loop {
            let term = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                term = self.lead(&job) => term,
            };
            match self.serve(&job, term, &shutdown).await {
                Stopped::Asked => break,
                Stopped::LostLease => tracing::warn!(job = self.name, "The lease is lost: the job stops here"),
                Stopped::Broke => tokio::time::sleep(PAUSE).await,
            }
        }
        self.stands(Standing::Stopped);
    }

    /// Waits for the lease, where the job has one.
    async fn lead(&self, job: &Job) -> Option<Term> {
        // A lease is a write too.
        let (lease, identity) = job.lease.as_ref().filter(|_| self.context.mode != Mode::DryRun)?;
        let election = Election::new(&self.context, lease.as_str(), identity.as_str());
        let first_look = tokio::time::timeout(PAUSE, election.acquire()).await;
        if let Ok(term) = first_look {
            return Some(term);
        }
        self.stands(Standing::Standby);
        Some(election.acquire().await)
    }

    /// Runs the job's tasks until it must stop.
    async fn serve(&self, job: &Job, mut term: Option<Term>, shutdown: &CancellationToken) -> Stopped {
        let token = shutdown.child_token();
        let tasks = (job.start)(&token);
        tracing::info!(job = self.name, "The job starts here");
        self.stands(Standing::Running(tasks.iter().map(Task::busy).collect()));
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
        self.stands(Standing::Starting);
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
