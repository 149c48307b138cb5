//! `portolan run`: the controllers in or against a cluster, until Ctrl-C or SIGTERM.

mod older;
mod zerotrust;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use portolan_cloudflare_api::Settings as ApiSettings;
use portolan_core::{OwnerId, Plan, Problem};
use portolan_engine::outcome::Startup;
use portolan_engine::{CancellationToken, Drift, Mode, PlanSink, cluster_owner};
use portolan_zerotrust::{Role, Settings};
use tokio::task::JoinSet;

use super::print;
use crate::endpoints::{Address, Endpoints};
use crate::failure::{Failure, Outcome};
use crate::jobs::JobName;
use crate::operator::{self, Operator};
use crate::paint::Paint;
use crate::server::{ConnectArgs, Server, chain};
use crate::signals::Stop;
use crate::traces::Traces;
use crate::{definitions, kinds};

/// Arguments of `portolan run`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The cluster is the kubeconfig's (--kubeconfig, $KUBECONFIG), else the one this process runs in, else \
    .portolan/kubeconfig.\nEnvironment: CLOUDFLARE_API_BASE_URL (another API than Cloudflare's own), POD_NAMESPACE.\n\
    Flags of the older Cloudflare operator are accepted, so that its Deployment needs another image only."
)]
pub(crate) struct Args {
    #[command(flatten)]
    connect: ConnectArgs,

    /// Jobs to run; without it, those whose definitions the cluster has
    #[arg(long, value_name = "JOB", value_delimiter = ',')]
    controllers: Vec<JobName>,

    /// Address of /metrics, as `:8080`; `0` for none
    #[arg(long, visible_alias = "metrics-bind-address", value_name = "ADDRESS", default_value = ":8080")]
    metrics: Address,

    /// Address of /healthz, /livez and /readyz; `0` for none
    #[arg(long, visible_alias = "health-probe-bind-address", value_name = "ADDRESS", default_value = ":8081")]
    health: Address,

    /// Run only while no other process leads; by default in a cluster
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: Option<bool>,

    /// Whose marks are ours, so that a rebuilt cluster takes its own objects back; by default derived from the cluster
    #[arg(long, value_name = "ID")]
    owner_id: Option<String>,

    /// Print what would be changed, and change nothing anywhere
    #[arg(long)]
    dry_run: bool,

    /// Namespace of leases, and of Secrets that objects of the cluster name
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = operator::NAMESPACE)]
    cluster_resource_namespace: String,

    /// Send spans to an OpenTelemetry collector (OTLP over HTTP), by its address
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,

    #[command(flatten)]
    zerotrust: zerotrust::ZerotrustArgs,

    #[command(flatten)]
    older: older::OlderArgs,
}

impl Args {
    /// Where spans go, if anywhere.
    pub(super) fn collector(&self) -> Option<&str> {
        self.otlp.as_deref().filter(|url| !url.is_empty())
    }
}

/// Runs until told to stop.
pub(crate) async fn run(args: Args, traces: Option<Traces>) -> Outcome {
    let mut stop = Stop::listen()?;
    args.older.tell();
    let server = Server::connect_anywhere(&args.connect).await?;
    let jobs = jobs(&server, &args.controllers).await?;
    let options = options(&args, &server, jobs).await?;
    let endpoints = Endpoints::bind(&args.metrics, &args.health).await?;
    if options.jobs.contains(&JobName::Zerotrust) {
        startup(&options.zerotrust);
        look_for_namespace(&server, &options).await;
    }
    tracing::info!(
        cluster = server.address(),
        cloudflare = options.api.base_url,
        owner = %options.owner,
        namespace = options.namespace,
        elected = options.candidate.is_some(),
        jobs = options.jobs.iter().map(|job| job.as_str()).collect::<Vec<_>>().join(","),
        "Starting the controllers"
    );
    let operator = Operator::start(server.client().clone(), options)?;
    let serving = endpoints.serve(&operator);
    let stopping = CancellationToken::new();
    let mut sending = JoinSet::new();
    if let Some(traces) = traces {
        sending.spawn(traces.send(stopping.clone()));
    }
    stop.asked().await;
    tracing::info!("Stopping: work that is under way may end");
    operator.stop().await;
    drop(serving);
    stopping.cancel();
    sending.join_all().await;
    Ok(())
}

/// The jobs that were asked for, else those whose definitions the cluster has. Fails where there is none, and warns of
/// single definitions that are missing.
async fn jobs(server: &Server, asked: &[JobName]) -> Outcome<Vec<JobName>> {
    let known = kinds::Kinds::discover(server).await?;
    if !asked.is_empty() {
        for job in asked {
            definitions::check(*job, &known, server.address())?;
        }
        return Ok(asked.to_vec());
    }
    let jobs: Vec<JobName> = JobName::ALL.into_iter().filter(|job| job.is_installed(&known)).collect();
    if jobs.is_empty() {
        definitions::check(JobName::Cloudflare, &known, server.address())?;
    }
    for job in &jobs {
        if let Err(failure) = definitions::check(*job, &known, server.address()) {
            tracing::warn!("{}", failure.what());
        }
    }
    Ok(jobs)
}

async fn options(args: &Args, server: &Server, jobs: Vec<JobName>) -> Outcome<operator::Options> {
    let candidate = candidate();
    let api = ApiSettings { read_only: args.dry_run, ..ApiSettings::from_env() };
    let mut options = operator::Options::new(owner(args, server).await?, "");
    options.api = api;
    options.jobs = jobs;
    options.namespace.clone_from(&args.cluster_resource_namespace);
    let is_elected = !args.dry_run && args.leader_elect.unwrap_or_else(crate::server::is_in_cluster);
    let is_alone = is_elected && args.zerotrust.role == Role::All;
    options.zerotrust = args.zerotrust.settings(&candidate, is_alone);
    if args.dry_run {
        options.mode = Mode::DryRun;
        options.plans = Some(printing());
    } else if is_elected {
        options.candidate = Some(candidate);
    }
    Ok(options)
}

async fn owner(args: &Args, server: &Server) -> Outcome<OwnerId> {
    match &args.owner_id {
        Some(id) => Ok(OwnerId::parse(id).unwrap_or_else(|_| OwnerId::derive(id))),
        None => cluster_owner(server.client()).await.map_err(|error| {
            Failure::new(format!("reading namespace kube-system of {}: {}", server.address(), chain(&error)))
                .next("let this process read that namespace, or say who owns its objects with --owner-id")
        }),
    }
}

/// Makes the zerotrust job's namespace where it is missing and this process may; says so where it may not.
async fn look_for_namespace(server: &Server, options: &operator::Options) {
    let name = &options.zerotrust.operator_namespace;
    if options.mode == Mode::Live
        && let Err(failure) = server.make_namespace(name).await
    {
        tracing::warn!(
            "namespace {name}, where tasks and states are kept, cannot be looked at or made: {}",
            failure.what()
        );
    }
}

/// Says how the zerotrust job runs.
fn startup(settings: &Settings) {
    let mut intervals = vec![("sweep", settings.routes.sweep), ("lease", settings.worker.lease)];
    if let Drift::Every(every) = settings.routes.drift {
        intervals.push(("drift", every));
    }
    let startup = Startup {
        version: env!("CARGO_PKG_VERSION"),
        role: settings.role.as_str(),
        operator_namespace: &settings.operator_namespace,
        watch_namespaces: &settings.routes.watch_namespaces,
        intervals: &intervals,
    };
    startup.log();
    if settings.role == Role::Manager {
        tracing::warn!("the role manager has nothing to do yet: run kube_worker and cloudflare_worker, or all");
    }
}

/// A name that no other process has: the pod's, or the machine's, with something of this start.
fn candidate() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let host =
        host.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned()));
    format!("{}_{}", host.unwrap_or_else(|| "portolan".to_owned()), uuid::Uuid::new_v4())
}

/// Prints each plan when it is new or another one than before.
fn printing() -> PlanSink {
    let paint = Paint::for_stdout();
    let last: Mutex<BTreeMap<String, String>> = Mutex::default();
    Arc::new(move |object, outcome: Result<Plan, Problem>| {
        let text = match outcome {
            Ok(plan) => plan.render(paint.colour()),
            Err(problem) => format!("{}: {problem}\n", problem.reason),
        };
        let mut last = last.lock().expect("nothing panics while it is held");
        let before = last.insert(object.to_string(), text.clone());
        if before.as_ref() != Some(&text) {
            print(&format!("{object}\n{text}\n"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_starts_on_one_machine_are_two_candidates() {
        assert_ne!(candidate(), candidate());
    }
}
