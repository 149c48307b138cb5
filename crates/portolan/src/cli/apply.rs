//! `portolan apply`: manifests → server-side apply, definitions and namespaces first.

use std::path::PathBuf;

use super::{NamespaceArgs, print};
use crate::applying::{Applier, ApplyOptions, As, Conflicts, MANAGER, Storing};
use crate::failure::{Outcome, Tally};
use crate::manifest;
use crate::server::ConnectArgs;

/// Arguments of `portolan apply`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  portolan apply -f app.yaml\n  portolan apply -f manifests/ -R -n staging --dry-run\n  \
    generate | portolan apply -f -"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Args {
    /// File or folder with objects as YAML or JSON; `-` reads standard input. May be repeated
    #[arg(short, long = "filename", value_name = "PATH", required = true, num_args = 1..)]
    filenames: Vec<PathBuf>,

    /// Look into subfolders too
    #[arg(short = 'R', long)]
    recursive: bool,

    #[command(flatten)]
    namespace: NamespaceArgs,

    /// Apply on the server: always so; accepted because kubectl wants it
    #[arg(long)]
    server_side: bool,

    /// Take over fields that other managers own
    #[arg(long)]
    force_conflicts: bool,

    /// Let the server check and answer, but store nothing
    #[arg(long)]
    dry_run: bool,

    /// Name under which the fields are owned
    #[arg(long, value_name = "NAME", default_value = MANAGER)]
    field_manager: String,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Applies everything that can be applied; fails at the end if anything could not.
pub(crate) async fn run(args: Args) -> Outcome {
    let manifests = manifest::read(&args.filenames, args.recursive)?;
    let server = args.connect.server().await?;
    let mut tally = Tally::of(manifests.len());
    let dry = if args.dry_run { " (dry run)" } else { "" };
    let mut applier = Applier::new(&server, options(&args)).await?;
    applier
        .apply_all(&manifests, |manifest, outcome| match outcome {
            Ok(applied) => print(&format!("{} {}{dry}\n", applied.object, applied.change.as_str())),
            Err(failure) => tally.record(failure.while_doing(&manifest.origin)),
        })
        .await?;
    tally.finish("applied", "the messages above say why; what was applied stays: correct the rest and apply again")
}

fn options(args: &Args) -> ApplyOptions {
    ApplyOptions {
        namespace: args.namespace.namespace.clone(),
        applier: As::Manager(args.field_manager.clone()),
        conflicts: if args.force_conflicts { Conflicts::TakeOver } else { Conflicts::Refuse },
        storing: if args.dry_run { Storing::DryRun } else { Storing::Stored },
    }
}
