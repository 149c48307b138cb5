//! The command line: one module a command, each taking its arguments and doing one thing.

pub(crate) mod apiserver;
mod apply;
mod bench;
mod crds;
mod delete;
mod doctor;
#[cfg(test)]
mod environment;
mod get;
mod install;
mod logs;
mod plan;
mod run;
mod sim;
mod status;
mod uninstall;
mod up;
mod why;

use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::failure::{Failure, Outcome};
use crate::logs::LogFormat;
use crate::traces::{self, Traces};

/// Kubernetes objects and a Git repository, turned into live, protected names.
///
/// Today Portolan publishes annotated routes, protected by Access, and DNS records, networks and network routes at
/// Cloudflare, in a cluster or without one: it brings an embedded Kubernetes API server that answers like kube-apiserver,
/// and a strict simulator of the Cloudflare API with its edge.
#[derive(Parser, Debug)]
#[command(name = "portolan", version, propagate_version = true, max_term_width = 110)]
#[command(after_help = "Try: `portolan up examples/quickstart`, then `portolan status` in another terminal.\n\
    Environment: LOG_LEVEL (DEBUG, INFO, WARNING, ERROR), LOG_FORMAT (text, json), NO_COLOR, KUBECONFIG,\n\
    CLOUDFLARE_API_BASE_URL.")]
pub(crate) struct Cli {
    /// How log lines on standard error look; by default as `LOG_FORMAT` says, else text
    #[arg(long, value_enum, global = true, display_order = 900)]
    log: Option<LogFormat>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run everything in one process, without a cluster: API server, controllers, simulator
    Up(up::Args),
    /// Run the controllers in or against a cluster
    Run(Box<run::Args>),
    /// Show what would be changed, without changing it; exit code 0: nothing, 2: something, 1: an error
    Plan(plan::Args),
    /// Show accounts, zones, records, networks, tenants and names with their health
    Status(status::Args),
    /// Tell why a name answers as it does: route, settings, task, rule, record, policies, last error
    Why(why::Args),
    /// Check cluster, rights, tokens, tunnels and names, and say what to do; exit code 0: nothing failed, 1: something did
    Doctor(Box<doctor::Args>),
    /// Apply the objects of files or folders (server-side apply)
    Apply(apply::Args),
    /// Show objects
    Get(get::Args),
    /// Delete objects by name, by selector or by file
    Delete(delete::Args),
    /// Show what a pod's containers write
    Logs(logs::Args),
    /// Print the definitions (CRDs) of Portolan's own kinds as YAML, or install them
    Crds(crds::Args),
    /// Print the whole installation as YAML, or apply it to a cluster
    Install(install::Args),
    /// Take our finalizers off all objects, so that they can be deleted without an operator; Cloudflare is left as it is
    Uninstall(uninstall::Args),
    /// Run the Cloudflare simulator alone
    Sim(sim::Args),
    /// Run the embedded Kubernetes API server alone
    Apiserver(apiserver::Args),
    /// Repeatable measurements: JSON on standard output, progress on standard error
    Bench(bench::Args),
}

/// What a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputForm {
    /// For people
    Text,
    /// For programs
    Json,
}

impl Command {
    /// Servers tell what they do; tools only what went wrong.
    fn default_log_level(&self) -> &'static str {
        match self {
            Self::Apiserver(_) | Self::Run(_) => "info",
            // What is not Ready is told with its reason; what is merely waited for need not be.
            Self::Up(_) => "warn,portolan_engine=error,kube_client=off",
            Self::Plan(_) | Self::Bench(_) => "error,kube_client=off",
            Self::Sim(_)
            | Self::Status(_)
            | Self::Why(_)
            | Self::Doctor(_)
            | Self::Apply(_)
            | Self::Get(_)
            | Self::Delete(_)
            | Self::Logs(_)
            | Self::Install(_)
            | Self::Uninstall(_)
            | Self::Crds(_) => "warn,kube_client=off",
        }
    }

    /// One thread is enough for controllers, which mostly wait, and keeps their memory together.
    fn runtime(&self) -> tokio::runtime::Builder {
        match self {
            Self::Run(_) => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        }
    }

    /// Where spans go, if anywhere.
    fn collector(&self) -> Option<&str> {
        match self {
            Self::Run(args) => args.collector(),
            _ => None,
        }
    }

    async fn run(self, traces: Option<Traces>) -> Outcome<ExitCode> {
        let done = match self {
            Self::Plan(args) => return plan::run(args).await,
            Self::Doctor(args) => return doctor::run(*args).await,
            Self::Up(args) => up::run(args).await,
            Self::Run(args) => run::run(*args, traces).await,
            Self::Status(args) => status::run(args).await,
            Self::Why(args) => why::run(args).await,
            Self::Apply(args) => apply::run(args).await,
            Self::Get(args) => get::run(args).await,
            Self::Delete(args) => delete::run(args).await,
            Self::Logs(args) => logs::run(args).await,
            Self::Crds(args) => crds::run(args).await,
            Self::Install(args) => install::run(args).await,
            Self::Uninstall(args) => uninstall::run(args).await,
            Self::Sim(args) => sim::run(args).await,
            Self::Apiserver(args) => apiserver::run(args).await,
            Self::Bench(args) => bench::run(args).await,
        };
        done.map(|()| ExitCode::SUCCESS)
    }
}

impl Cli {
    /// The command line as it was given.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&heedless(Self::command()).try_get_matches()?)
    }

    /// Does what was asked for.
    pub(crate) fn run(self) -> Outcome<ExitCode> {
        let (spans, traces) = self.command.collector().map(traces::prepare).unzip();
        crate::logs::start(self.log, self.command.default_log_level(), spans);
        // The only provider in the tree; a second call in one process would be harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = self
            .command
            .runtime()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
        let outcome = runtime.block_on(self.command.run(traces));
        runtime.shutdown_background();
        outcome
    }
}

/// Variables without a value count as unset: manifests set such ones.
fn heedless(command: clap::Command) -> clap::Command {
    let is_empty = |name: &std::ffi::OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|argument| match argument.get_env() {
        Some(name) if is_empty(name) => argument.env(Resettable::Reset),
        _ => argument,
    });
    command.mut_subcommands(heedless)
}

/// Prints to standard output; a reader that went away (`| head`) ends the process quietly.
fn print(text: &str) {
    print_bytes(text.as_bytes());
}

/// As [`print()`], what need not be text.
fn print_bytes(bytes: &[u8]) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Which namespace a command works in.
#[derive(clap::Args, Clone, Debug)]
struct NamespaceArgs {
    /// Namespace to work in, where not the kubeconfig's (or `default`)
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
