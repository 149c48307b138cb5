//! `portolan bench`: repeatable measurements.

use std::path::PathBuf;

use clap::Subcommand;

use super::print;
use crate::bench;
use crate::failure::Outcome;

/// Arguments of `portolan bench`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Subcommand, Debug)]
enum Scenario {
    /// The embedded API server, and with --peer another server in the same run
    #[command(
        after_help = "The embedded server runs as a process of its own with a fresh data directory, durable as always.\n\
        A ratio over 1 means that the embedded server did better."
    )]
    Apiserver(ApiserverArgs),
    /// Many DNS records in one zone: calls, time, latency and memory
    #[command(
        after_help = "API server, simulator and controllers run in this process, with an API latency of 150 ms; for memory, \
        `portolan run`\nis a process of its own beside `portolan apiserver` and `portolan sim`."
    )]
    Dns(DnsArgs),
    /// A drift pass over many zones: calls and time
    Drift(DriftArgs),
    /// Pods as processes: time until all are ready, memory that each takes of `portolan up`, and what they cost at rest
    #[command(after_help = "`portolan up` runs as a process of its own with a fresh data directory; its pods sleep.")]
    Pods(PodsArgs),
    /// Many routes published through one tunnel, open and protected: calls, time, latency and memory
    #[command(
        after_help = "API server, simulator and controllers run in this process, with an API latency of 150 ms and, where a part says \
        so,\nCloudflare's own limit of 1,200 requests in five minutes; for memory, `portolan run` is a process of its own."
    )]
    Publish(PublishArgs),
}

/// Arguments of `portolan bench dns`.
#[derive(clap::Args, Debug)]
struct DnsArgs {
    /// Records in the zone
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    records: u32,

    /// Measure these parts only
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["cold", "live", "idle", "memory"])]
    only: Vec<bench::dns::DnsPart>,
}

/// Arguments of `portolan bench drift`.
#[derive(clap::Args, Debug)]
struct DriftArgs {
    /// Zones
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    zones: u32,

    /// Records in each zone
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    records: u32,
}

/// Arguments of `portolan bench publish`.
#[derive(clap::Args, Debug)]
struct PublishArgs {
    /// Routes without protection
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    routes: u32,

    /// Routes with Access; an account has 500 applications
    #[arg(long, value_name = "COUNT", default_value_t = 450, value_parser = clap::value_parser!(u32).range(1..=500))]
    protected: u32,

    /// Measure these parts only
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["cold", "live", "access", "idle", "memory"])]
    only: Vec<bench::publish::PublishPart>,
}

/// Arguments of `portolan bench pods`.
#[derive(clap::Args, Debug)]
struct PodsArgs {
    /// Pods that are wanted in the end
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pods: u32,
}

/// Arguments of `portolan bench apiserver`.
#[derive(clap::Args, Debug)]
struct ApiserverArgs {
    /// Kubeconfig of a server to compare with; the run makes and deletes two namespaces and a node there
    #[arg(long, value_name = "KUBECONFIG")]
    peer: Option<PathBuf>,

    /// Process of the peer, for its resident memory; repeated for several, which are summed
    #[arg(long, value_name = "PID", requires = "peer")]
    peer_pid: Vec<u32>,

    /// Objects to create: config maps with 1 KiB of data each
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    objects: u32,

    /// Clients at once, each with a connection of its own
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    clients: u32,

    /// Watchers of the fan-out
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    watchers: u32,

    /// Pods that report their status, selected by one service for each hundred
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pods: u32,
}

/// Runs the scenario and prints its figures as JSON.
pub(crate) async fn run(args: Args) -> Outcome {
    let report = match args.scenario {
        Scenario::Apiserver(args) => apiserver(args).await?,
        Scenario::Dns(args) => bench::dns::run(args.records as usize, &args.only).await?,
        Scenario::Publish(args) => {
            bench::publish::run(args.routes as usize, args.protected as usize, &args.only).await?
        }
        Scenario::Pods(args) => bench::running_pods::run(args.pods as usize / 4, args.pods as usize).await?,
        Scenario::Drift(args) => bench::drift::run(args.zones as usize, args.records as usize).await?,
    };
    print(&format!("{report:#}\n"));
    Ok(())
}

async fn apiserver(args: ApiserverArgs) -> Outcome<serde_json::Value> {
    let load = bench::Load {
        objects: args.objects as usize,
        clients: args.clients as usize,
        watchers: args.watchers as usize,
        pods: args.pods as usize,
    };
    let peer = args.peer.map(|kubeconfig| bench::Peer { kubeconfig, pids: args.peer_pid });
    Ok(bench::run(load, peer).await?)
}
