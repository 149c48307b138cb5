//! The manager as a whole: its controllers, and who runs when what changes.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use portolan_core::Problem;
use portolan_engine::{CancellationToken, Context, Controller, Selection, Task, WriteMode, in_time};
use portolan_zerotrust_model::CloudflareZeroTrustOperatorConfig as Config;

use crate::config_controller::ConfigController;
use crate::deployment_controller::DeploymentController;
use crate::own_deployment::{self, Search};
use crate::settings::Settings;
use crate::shared::ManagerContext;
use crate::worker::WorkerKind;

/// The lease by which one manager leads.
pub const LEASE: &str = "cloudflare-zero-trust-manager";

/// How often the own pod is looked at for the image that it runs.
const LOOKS_AT_POD: u32 = 10;
const POD_PAUSE: Duration = Duration::from_millis(500);

/// The side that keeps the operator's own Deployments in shape.
pub struct Manager {
    context: Arc<Context>,
    settings: Settings,
}

impl Manager {
    /// The manager over a cluster.
    pub fn new(context: &Context, settings: Settings) -> Self {
        Self { context: Arc::new(context.clone()), settings }
    }

    /// Everything that runs, made anew. A copy of a cluster has no operator of its own, and nothing runs there.
    pub fn tasks(&self, shutdown: &CancellationToken) -> Vec<Task> {
        if self.context.mode == WriteMode::Shadow {
            return Vec::new();
        }
        let shared = Arc::new(ManagerContext::new(Arc::clone(&self.context), self.settings.clone()));
        follow_caches(&shared);
        let mut tasks = vec![
            shared.configs.into_task(&self.context, shutdown.clone()),
            search_task(Arc::clone(&shared), shutdown.clone()),
            config_controller(&shared).into_task(shutdown.clone()),
        ];
        // Outside of a cluster there is nothing to shape, and perhaps no right to look.
        if let Some(pod) = &self.settings.pod {
            tasks.push(shared.deployments.into_task(&self.context, shutdown.clone()));
            tasks.push(deployment_controller(&shared, pod).into_task(shutdown.clone()));
        }
        tasks
    }
}

fn config_controller(shared: &Arc<ManagerContext>) -> Controller<ConfigController> {
    let reconciler = Arc::new(ConfigController { shared: Arc::clone(shared) });
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.reports.clone())
        .select(Selection::all().within(shared.context.operator_namespace.clone()))
        .after(gate(shared))
}

fn deployment_controller(shared: &Arc<ManagerContext>, pod: &str) -> Controller<DeploymentController> {
    let namespace = shared.context.operator_namespace.clone();
    let reconciler = Arc::new(DeploymentController { shared: Arc::clone(shared) });
    let own = Arc::downgrade(shared);
    Controller::with_handle(Arc::clone(&shared.context), reconciler, shared.shapes.clone())
        .select(Selection::all().within(namespace.clone()))
        .after(gate(shared))
        .watch::<Pod>(Selection::fields(format!("metadata.name={pod}")).within(namespace), move |_, _| {
            own.upgrade().and_then(|shared| shared.own()).map(|own| own.deployment).into_iter().collect()
        })
}

/// Waits until it is known what is there and which Deployment is the own one.
fn gate(shared: &Arc<ManagerContext>) -> impl Future<Output = ()> + Send + 'static {
    let shared = Arc::clone(shared);
    async move {
        shared.configs.ready().await;
        shared.searched().await;
        if shared.own().is_some() {
            shared.deployments.ready().await;
        }
    }
}

/// Looks for the own Deployment until it is found.
fn search_task(shared: Arc<ManagerContext>, shutdown: CancellationToken) -> Task {
    let search = shared.search.subscribe();
    let run = async move {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = keep_searching(&shared) => {}
        }
    };
    Task::new("own deployment", move || usize::from(*search.borrow() == Search::Begun), run)
}

async fn keep_searching(shared: &ManagerContext) {
    let (context, pod) = (&shared.context, shared.settings.pod.as_deref());
    let mut pause = context.timing.transient;
    loop {
        match own_deployment::find(&context.client, &context.operator_namespace, pod).await {
            Ok(own) => {
                until_image_is_known(shared).await;
                tracing::info!(deployment = %own.deployment, "Found the operator's own Deployment");
                shared.search.send_replace(Search::Found(own));
                shared.shape_anew();
                shared.report_anew();
                return;
            }
            Err(problem) => lost(shared, problem),
        }
        if pod.is_none() {
            // Nobody tells a process later which pod it runs in.
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(context.timing.transient_most).max(Duration::from_millis(100));
    }
}

/// Waits a little for the word which image this pod runs: it comes later than the process starts, and workers that were
/// made without it would roll once more.
async fn until_image_is_known(shared: &ManagerContext) {
    let (context, Some(pod)) = (&shared.context, &shared.settings.pod) else { return };
    if !shared.keeps_workers() {
        return;
    }
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &context.operator_namespace);
    for _ in 0..LOOKS_AT_POD {
        if in_time(api.get(pod)).await.is_ok_and(|pod| has_image_id(&pod)) {
            return;
        }
        tokio::time::sleep(POD_PAUSE).await;
    }
}

fn has_image_id(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.into_iter().any(|one| !one.image_id.is_empty())
}

/// Tells once why the own Deployment is not known. Where one process does everything, that matters to none but a
/// configuration, which says so itself.
fn lost(shared: &ManagerContext, problem: Problem) {
    if shared.lost().as_ref() == Some(&problem) {
        return;
    }
    if shared.keeps_workers() {
        tracing::error!(error = %problem, "The operator's own Deployment is not known: no workers are made");
    } else {
        tracing::debug!(error = %problem, "The operator's own Deployment is not known");
    }
    shared.search.send_replace(Search::Failed(problem));
    shared.report_anew();
}

/// What changes of the mirrored objects, and verdicts about configurations, make run. Nothing of that keeps what owns it
/// alive.
fn follow_caches(shared: &Arc<ManagerContext>) {
    shared.configs.follow(shared, |shared, before, after| {
        if asks(before) != asks(after) {
            shared.shape_anew();
            shared.report_anew();
        }
    });
    shared.deployments.follow_seen(shared, |shared, before, after| {
        let name = before.or(after).and_then(|one| one.metadata.name.as_deref()).unwrap_or_default();
        if WorkerKind::ALL.iter().any(|kind| kind.name() == name) && spec_of(before) != spec_of(after) {
            shared.shape_anew();
        }
    });
    shared.deployments.follow(shared, |shared, _, _| shared.report_anew());
    let own = Arc::downgrade(shared);
    shared.verdicts.on_news(move |_, _, _| own.upgrade().iter().for_each(|shared| shared.report_anew()));
}

/// What makes a configuration another one.
fn asks(config: Option<&Config>) -> Option<(Option<&str>, Option<i64>, bool)> {
    let meta = &config?.metadata;
    Some((meta.uid.as_deref(), meta.generation, meta.deletion_timestamp.is_some()))
}

/// What makes a worker's Deployment another one; how its pods are does not.
fn spec_of(deployment: Option<&Deployment>) -> Option<(Option<&str>, Option<i64>, bool, usize)> {
    let meta = &deployment?.metadata;
    let owners = meta.owner_references.as_ref().map_or(0, Vec::len);
    Some((meta.uid.as_deref(), meta.generation, meta.deletion_timestamp.is_some(), owners))
}
