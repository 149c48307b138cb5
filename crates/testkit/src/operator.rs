//! The operator as a world runs it: the whole job in one task that can be killed.

use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use portolan_cloudflare::{Drift, Job, JobHandle, Settings};
use portolan_cloudflare_api::{Clients, Settings as ApiSettings, Transport};
use portolan_core::{Clock, Colour, OwnerId};
use portolan_engine::{CancellationToken, Context};
use tokio::task::JoinHandle;

use crate::manifests::OPERATOR_NAMESPACE;
use crate::pace::Pace;

/// What the operator finds around it.
pub(crate) struct Outside {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) owner: OwnerId,
    pub(crate) seed: u64,
    pub(crate) drift: Drift,
    /// Everything that was ever planned, as users read it.
    pub(crate) plans: Arc<Mutex<Vec<String>>>,
}

/// A running operator. Dropped, it is dead.
pub(crate) struct Operator {
    task: JoinHandle<()>,
    handle: JobHandle,
    context: Arc<Context>,
    shutdown: CancellationToken,
}

impl Operator {
    pub(crate) fn start(outside: &Outside, pace: &Pace) -> Self {
        let context = Arc::new(context(outside, pace));
        let settings = ApiSettings { seed: outside.seed, retry: pace.retry(), ..ApiSettings::default() };
        let clients = Arc::new(Clients::new(settings, outside.transport.clone(), outside.clock.clone()));
        let job = Job::new(context.clone(), clients, Settings { drift: outside.drift });
        let (handle, shutdown) = (job.handle(), CancellationToken::new());
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

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn context(outside: &Outside, pace: &Pace) -> Context {
    let mut context = Context::new(outside.client.clone(), outside.clock.clone(), outside.owner.clone());
    OPERATOR_NAMESPACE.clone_into(&mut context.operator_namespace);
    context.timing = pace.timing();
    context.seed = outside.seed;
    let plans = outside.plans.clone();
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
