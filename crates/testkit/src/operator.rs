//! The operator as a world runs it: each of its processes in one task that can be killed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use portolan_cloudflare_api::{Clients, Settings as ApiSettings};
use portolan_core::{Clock, Colour, OwnerId};
use portolan_engine::{CancellationToken, Context, Drift, JobHandle, Provisions, Purity};
use tokio::task::JoinHandle;

use crate::failpoints::Failpoints;
use crate::job::WorldJob;
use crate::pace::WorldPace;
use crate::process::{OperatorProcess, ProcessStart, Processes};
use crate::transport::{InProcess, SharedTransport};

/// What the operator finds around it.
pub(crate) struct Outside {
    pub(crate) job: &'static WorldJob,
    pub(crate) processes: Processes,
    pub(crate) clock: Clock,
    pub(crate) line: SharedTransport,
    pub(crate) owner: OwnerId,
    pub(crate) seed: u64,
    pub(crate) drift: Drift,
    /// Everything that was ever planned, as users read it.
    pub(crate) plans: Arc<Mutex<Vec<String>>>,
    /// How many processes were started so far.
    pub(crate) lives: AtomicU64,
}

impl Outside {
    fn next_life(&self) -> u64 {
        self.lives.fetch_add(1, Ordering::Relaxed)
    }

    /// Clients of Cloudflare whose requests go through failpoints.
    pub(crate) fn clients(&self, settings: ApiSettings, failpoints: Failpoints) -> Clients {
        let transport = Arc::new(InProcess::new(self.line.clone(), failpoints));
        Clients::new(settings, transport, self.clock.clone())
    }

    /// What controllers find around them, over a client of the cluster.
    pub(crate) fn context(&self, client: Client) -> Context {
        let mut context = Context::new(client, self.clock.clone(), self.owner.clone());
        context.purity = Purity::Enforced;
        self.job.operator_namespace().clone_into(&mut context.operator_namespace);
        context.seed = self.seed;
        let plans = self.plans.clone();
        context.plans = Some(Arc::new(move |object, plan| {
            let text = match plan {
                Ok(plan) if plan.is_empty() => return,
                Ok(plan) => plan.render(Colour::Off),
                Err(problem) => problem.to_string(),
            };
            plans.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{object}: {text}"));
        }));
        context
    }
}

/// A running process of the operator. Dropped, it is dead.
pub(crate) struct Process {
    task: JoinHandle<()>,
    handle: JobHandle,
    context: Arc<Context>,
    shutdown: CancellationToken,
}

impl Process {
    /// Starts a part of the operator whose requests go through failpoints.
    pub(crate) fn start(
        outside: &Outside,
        process: OperatorProcess,
        client: Client,
        failpoints: Failpoints,
        pace: &WorldPace,
    ) -> Self {
        let context = Arc::new(Context { timing: pace.timing(), ..outside.context(client) });
        let settings = ApiSettings { seed: outside.seed, retry: pace.retry(), ..ApiSettings::default() };
        let clients = Arc::new(outside.clients(settings, failpoints));
        context.metrics.register(|registry| clients.metrics().register(registry));
        let shutdown = CancellationToken::new();
        let start = ProcessStart { process, life: outside.next_life(), drift: outside.drift, pace: *pace };
        let provisions = outside.processes.provisions(&start, Provisions::default().with(clients).with(outside.drift));
        let job = outside.job.definition.job(&context, &provisions, None);
        let handle = job.handle();
        let task = tokio::spawn(job.run(shutdown.clone()));
        Self { task, handle, context, shutdown }
    }

    pub(crate) fn handle(&self) -> JobHandle {
        self.handle.clone()
    }

    pub(crate) fn busy(&self) -> usize {
        assert!(!self.task.is_finished(), "the operator ended by itself");
        self.handle.busy()
    }

    pub(crate) fn metrics(&self) -> String {
        self.context.metrics.render()
    }

    /// Ends it at whatever it is doing.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let ended = (&mut self.task).await;
        assert!(ended.is_ok() || ended.is_err_and(|error| error.is_cancelled()), "the operator panicked");
    }

    /// Lets it end what it is doing.
    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        (&mut self.task).await.expect("the operator ends without a panic");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.task.abort();
    }
}
