//! `portolan plan`: what would change, without changing it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use portolan_core::OwnerId;

use super::{Form, print};
use crate::cloudflare::Cloudflare;
use crate::duration::duration;
use crate::failure::{Failure, Outcome};
use crate::manifest::{self, Manifest};
use crate::paint::Paint;
use crate::planning::{self, Answer, Question};
use crate::server::{Call, ConnectArgs, Server};
use crate::urls::Urls;
use crate::{operator, output};

/// Exit code where something would change.
const CHANGES: u8 = 2;

/// Arguments of `portolan plan`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The cluster is copied into this process, the files are applied to the copy, and the controllers plan \
    there with the\ncluster's own credentials; nothing is written anywhere. Without a cluster the files are planned alone.\n\
    Exit codes: 0 nothing would change, 2 something would, 1 it could not be found out."
)]
pub(crate) struct Args {
    /// File or folder with objects to lay over the cluster's; `-` reads standard input. May be repeated
    #[arg(short, long = "filename", value_name = "PATH", num_args = 1..)]
    filenames: Vec<PathBuf>,

    /// Look into subfolders too
    #[arg(short = 'R', long)]
    recursive: bool,

    /// How to show it
    #[arg(short, long, value_enum, default_value = "text")]
    output: Form,

    /// Address of the Cloudflare API; by default that of `portolan up`, the environment's, or Cloudflare's own
    #[arg(long, value_name = "live|URL", value_parser = Cloudflare::parse)]
    cloudflare: Option<Cloudflare>,

    /// Whose marks are ours; by default derived from the cluster, as `portolan run` does
    #[arg(long, value_name = "ID")]
    owner_id: Option<String>,

    /// Namespace of the operator's own objects
    #[arg(long, value_name = "NAME", default_value = operator::NAMESPACE)]
    cluster_resource_namespace: String,

    /// How long planning may take
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    connect: ConnectArgs,
}

/// Plans and prints.
pub(crate) async fn run(args: Args) -> Outcome<ExitCode> {
    let manifests =
        if args.filenames.is_empty() { Vec::new() } else { manifest::read(&args.filenames, args.recursive)? };
    let cluster = cluster(&args, &manifests).await?;
    let question = Question {
        cloudflare: cloudflare(&args, cluster.as_ref())?,
        cluster: cluster.as_ref(),
        manifests: &manifests,
        namespace: args.cluster_resource_namespace.clone(),
        owner: args.owner_id.as_deref().map(|id| OwnerId::parse(id).unwrap_or_else(|_| OwnerId::derive(id))),
        timeout: args.timeout,
    };
    let answer = planning::plan(&question).await?;
    print(&shown(&answer, args.output)?);
    if answer.is_incomplete() {
        return Err(Failure::new("some objects could not be planned: Cloudflare or the cluster could not be asked")
            .next("see to what the messages above name, and plan again"));
    }
    Ok(if answer.plan.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(CHANGES) })
}

/// The cluster, if there is one. Files can do without.
async fn cluster(args: &Args, manifests: &[Manifest]) -> Outcome<Option<Server>> {
    let reached = match Server::connect_anywhere(&args.connect).await {
        Ok(server) => match server.call(Call::get("/version")).await {
            Ok(_) => Ok(server),
            Err(error) => Err(Failure::from(error)),
        },
        Err(failure) => Err(failure),
    };
    match reached {
        Ok(server) => Ok(Some(server)),
        Err(failure) if manifests.is_empty() || args.connect.kubeconfig.is_some() => Err(failure),
        Err(failure) => {
            eprintln!("No cluster is reachable, so the files are planned alone ({})", failure.what());
            Ok(None)
        }
    }
}

fn cloudflare(args: &Args, cluster: Option<&Server>) -> Outcome<String> {
    let beside = || Some(Urls::beside(&args.connect, cluster?.address())?.cloudflare);
    match &args.cloudflare {
        Some(Cloudflare::At(url)) => Ok(url.clone()),
        Some(Cloudflare::Simulated) => Err(Failure::new("there is no simulator here to plan against")
            .next("start one with `portolan sim` and give its address with --cloudflare")),
        None => match Cloudflare::from_environment().or_else(beside) {
            Some(url) => Ok(url),
            None => match Cloudflare::live() {
                Cloudflare::At(url) => Ok(url),
                Cloudflare::Simulated => Err(Failure::new("there is no Cloudflare API to plan against")),
            },
        },
    }
}

fn shown(answer: &Answer, form: Form) -> Outcome<String> {
    if form == Form::Json {
        return output::json_text(&answer.to_json());
    }
    let mut text = answer.plan.render(Paint::for_stdout().colour());
    if !answer.unplanned.is_empty() {
        text.push_str("\nNot planned:\n");
        for (object, problem) in &answer.unplanned {
            writeln!(text, "  {object}: {}, {}", problem.reason, problem.message)
                .expect("writing to a string cannot fail");
        }
    }
    Ok(text)
}
