//! `portolan run`: the controllers in or against a cluster, until Ctrl-C or SIGTERM.

mod jobs;
mod older;
mod zerotrust;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portolan_cloudflare_api::{Limits, Settings as ApiSettings};
use portolan_core::{OwnerId, Plan, Problem};
use portolan_engine::{CancellationToken, JobDefinition, PlanSink, Provisions, WriteMode, cluster_owner};
use tokio::task::JoinSet;

use super::print;
use crate::colour::Colours;
use crate::endpoints::{Endpoints, ListenAddress};
use crate::failure::{Failure, Outcome};
use crate::jobs::{parser, part};
use crate::operator::{self, Operator};
use crate::server::{CallError, ConnectArgs, Server, ServerRequest, chain, is_in_cluster};
use crate::signals::Signals;
use crate::traces::Traces;

/// So long may a stop take: kubelet kills after 30 s.
const LONGEST_STOP: Duration = Duration::from_secs(24);
/// A server that is away is asked again after this.
const ASK_AGAIN: Duration = Duration::from_secs(3);

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
    #[arg(long, value_name = "JOB", value_delimiter = ',', value_parser = parser())]
    controllers: Vec<&'static JobDefinition>,

    /// Address of /metrics, as `:8080`; `0` for none
    #[arg(
        long,
        visible_alias = "metrics-bind-address",
        value_name = "ADDRESS",
        env = "METRICS_ADDR",
        default_value = ":8080"
    )]
    metrics: ListenAddress,

    /// Address of /healthz, /livez and /readyz; `0` for none
    #[arg(
        long,
        visible_alias = "health-probe-bind-address",
        value_name = "ADDRESS",
        env = "HEALTH_ADDR",
        default_value = ":8081"
    )]
    health: ListenAddress,

    /// Run only while no other process leads; by default in a cluster
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: Option<bool>,

    /// Whose marks are ours, so that a rebuilt cluster takes its own objects back; by default derived from the cluster
    #[arg(long, value_name = "ID", env = "OWNER_ID")]
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

    /// Limits that Cloudflare granted the account, as `access-applications=2000,service-tokens=200`: from nine tenths of a limit
    /// on there is a warning, and nothing is refused here
    #[arg(long, value_name = "NAME=NUMBER,…", env = "CLOUDFLARE_LIMITS", value_parser = Limits::parse)]
    cloudflare_limits: Option<Limits>,

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
    let mut stop = Signals::listen()?;
    let started = tokio::select! {
        started = start(&args) => started?,
        () = stop.asked() => return Ok(()),
    };
    let (operator, serving) = started;
    let stopping = CancellationToken::new();
    let mut sending = JoinSet::new();
    if let Some(traces) = traces {
        sending.spawn(traces.send(stopping.clone()));
    }
    stop.asked().await;
    tracing::info!("Stopping: work that is under way may end");
    let ended = end(operator, &mut stop).await;
    drop(serving);
    stopping.cancel();
    sending.join_all().await;
    ended
}

/// The controllers and what is told of them.
async fn start(args: &Args) -> Outcome<(Operator, JoinSet<()>)> {
    args.older.tell();
    args.zerotrust.tell();
    let server = args.connect.server_anywhere().await?;
    reach(&server).await;
    let options = options(args, &server).await?;
    let endpoints = Endpoints::bind(&args.metrics, &args.health).await?;
    for job in &options.jobs {
        (job.announce)(&options.provisions);
        look_for_namespace(&server, job, &options).await;
    }
    tracing::info!(
        cluster = server.address(),
        cloudflare = options.api.base_url,
        owner = %options.owner,
        namespace = options.namespace,
        elected = options.candidate.is_some(),
        jobs = options.jobs.iter().map(|job| job.sheet.name).collect::<Vec<_>>().join(","),
        "Starting the controllers"
    );
    let operator = Operator::start(server.client().clone(), options)?;
    let serving = endpoints.serve(&operator);
    Ok((operator, serving))
}

/// Lets work that is under way end, unless somebody is in a hurry.
async fn end(operator: Operator, stop: &mut Signals) -> Outcome {
    tokio::select! {
        () = operator.stop() => Ok(()),
        () = stop.asked() => Err(Failure::new("stopped by a second signal: what was under way is left as it was")
            .next("nothing: whoever runs next goes on when the leases of this process have expired")),
        () = tokio::time::sleep(LONGEST_STOP) => Err(Failure::new(format!(
            "work that was under way did not end in {} s and is left as it was",
            LONGEST_STOP.as_secs()
        ))
        .next("look at the last lines of the log; whoever runs next goes on")),
    }
}

/// In a cluster a server that is away is waited for: a process that exits instead comes back ever more slowly.
async fn reach(server: &Server) {
    while is_in_cluster()
        && let Err(CallError::Failed(failure)) = server.call(ServerRequest::get("/version")).await
    {
        tracing::warn!("{}: it is asked again", failure.what());
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

async fn options(args: &Args, server: &Server) -> Outcome<operator::OperatorOptions> {
    let candidate = candidate();
    let is_elected = !args.dry_run && args.leader_elect.unwrap_or_else(is_in_cluster);
    let provisions = Provisions::default().with(args.zerotrust.settings(&candidate, is_elected));
    let jobs = jobs::choose(server, &args.controllers, &provisions).await?;
    let limits = args.cloudflare_limits.clone().unwrap_or_default();
    let api = ApiSettings { read_only: args.dry_run, limits, ..ApiSettings::from_env() };
    let mut options = operator::OperatorOptions::new(owner(args, server, &jobs, &provisions).await?, "");
    options.api = api;
    options.jobs = jobs;
    options.namespace.clone_from(&args.cluster_resource_namespace);
    options.needs = Some(jobs::needs(server, &provisions));
    options.provisions = provisions;
    if args.dry_run {
        options.mode = WriteMode::DryRun;
        options.plans = Some(printing());
    } else if is_elected {
        options.candidate = Some(candidate);
    }
    Ok(options)
}

async fn owner(args: &Args, server: &Server, jobs: &[&JobDefinition], provisions: &Provisions) -> Outcome<OwnerId> {
    match args.owner_id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => Ok(OwnerId::parse(id).unwrap_or_else(|_| OwnerId::derive(id))),
        // It marks nothing, and need not be let near the namespace that tells.
        None if !jobs.iter().any(|job| (job.marks)(provisions)) => {
            Ok(OwnerId::derive(part(provisions).map_or("nobody", |(_, part)| part)))
        }
        None => cluster_owner(server.client()).await.map_err(|error| {
            Failure::new(format!("reading namespace kube-system of {}: {}", server.address(), chain(&error)))
                .next("let this process read that namespace, or say who owns its objects with --owner-id")
        }),
    }
}

/// Makes a job's own namespace for a user who tries it out, where it is missing. An installed process is in it, and has no
/// right to look.
async fn look_for_namespace(server: &Server, job: &JobDefinition, options: &operator::OperatorOptions) {
    let Some(own) = (job.namespace)(&options.provisions) else { return };
    let is_whole = (job.part)(&options.provisions).is_none();
    let is_tried_out = is_whole && options.candidate.is_none() && !is_in_cluster();
    if options.mode == WriteMode::Live
        && is_tried_out
        && let Err(failure) = server.make_namespace(&own.name).await
    {
        tracing::warn!(
            "namespace {}, where {} are kept, cannot be looked at or made: {}",
            own.name,
            own.keeps,
            failure.what()
        );
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
    let colours = Colours::for_stdout();
    let last: Mutex<BTreeMap<String, String>> = Mutex::default();
    Arc::new(move |object, outcome: Result<Plan, Problem>| {
        let text = match outcome {
            Ok(plan) => plan.render(colours.colour()),
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
