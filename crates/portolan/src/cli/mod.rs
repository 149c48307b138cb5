//! The command line: one module a command, each taking its arguments and doing one thing.

mod apiserver;
mod apply;
mod bench;
mod crds;
mod delete;
mod get;

use clap::{Parser, Subcommand};

use crate::failure::{Failure, Outcome};
use crate::logs::{self, LogFormat};

/// Kubernetes objects and a Git repository, turned into live, protected names.
///
/// Today Portolan brings an embedded Kubernetes API server that answers like kube-apiserver, and small tools for it.
#[derive(Parser, Debug)]
#[command(name = "portolan", version, propagate_version = true, max_term_width = 110)]
#[command(after_help = "Try: `portolan apiserver` in one terminal, `portolan get namespaces` in another.\n\
    Environment: LOG_LEVEL (error, warn, info, debug, trace), NO_COLOR, KUBECONFIG.")]
pub(crate) struct Cli {
    /// How log lines on standard error look
    #[arg(long, value_enum, default_value = "text", global = true, display_order = 900)]
    log: LogFormat,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the embedded Kubernetes API server until Ctrl-C
    Apiserver(apiserver::Args),
    /// Apply the objects of files or folders (server-side apply)
    Apply(apply::Args),
    /// Show objects
    Get(get::Args),
    /// Delete objects by name, by selector or by file
    Delete(delete::Args),
    /// Print the definitions (CRDs) of Portolan's own kinds as YAML
    Crds,
    /// Repeatable measurements: JSON on standard output, progress on standard error
    Bench(bench::Args),
}

impl Command {
    /// Servers tell what they do; tools only what went wrong.
    fn default_log_level(&self) -> &'static str {
        match self {
            Self::Apiserver(_) => "info",
            Self::Apply(_) | Self::Get(_) | Self::Delete(_) | Self::Crds | Self::Bench(_) => "warn,kube_client=off",
        }
    }

    async fn run(self) -> Outcome {
        match self {
            Self::Apiserver(args) => apiserver::run(args).await,
            Self::Apply(args) => apply::run(args).await,
            Self::Get(args) => get::run(args).await,
            Self::Delete(args) => delete::run(args).await,
            Self::Crds => {
                crds::run();
                Ok(())
            }
            Self::Bench(args) => bench::run(args).await,
        }
    }
}

impl Cli {
    /// Does what was asked for.
    pub(crate) fn run(self) -> Outcome {
        logs::start(self.log, self.command.default_log_level())?;
        // The only provider in the tree; a second call in one process would be harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
        let outcome = runtime.block_on(self.command.run());
        runtime.shutdown_background();
        outcome
    }
}

/// Prints to standard output; a reader that went away (`| head`) ends the process quietly.
fn print(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
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
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
