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
use crate::planning::{self, Answer, Question, Stored};
use crate::server::{Call, ConnectArgs, Server};
use crate::urls::{Urls, kubeconfig_path};
use crate::zerotrust::NamespaceArgs;
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

    #[command(flatten)]
    zerotrust: NamespaceArgs,

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
        cloudflare: cloudflare(&args, &cluster)?,
        cluster: cluster.server(),
        manifests: &manifests,
        namespace: args.cluster_resource_namespace.clone(),
        zerotrust_namespace: args.zerotrust.operator_namespace.clone(),
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

/// What the files are laid over.
enum Cluster {
    /// A server that answers.
    Answering(Server),
    /// What a stopped `portolan up` left.
    Stopped(Box<Stored>),
    /// Nothing.
    None,
}

impl Cluster {
    fn server(&self) -> Option<&Server> {
        match self {
            Self::Answering(server) => Some(server),
            Self::Stopped(stored) => Some(stored.server()),
            Self::None => None,
        }
    }
}

/// The cluster, if there is one. Files can do without.
async fn cluster(args: &Args, manifests: &[Manifest]) -> Outcome<Cluster> {
    let failure = match answering(args).await {
        Ok(server) => return Ok(Cluster::Answering(server)),
        Err(failure) => failure,
    };
    let kubeconfig = kubeconfig_path(&args.connect);
    if let Some(data_dir) = kubeconfig.parent()
        && let Some(stored) = Stored::open(data_dir).await?
    {
        eprintln!("Nothing runs on {}: planning with what is stored there", data_dir.display());
        return Ok(Cluster::Stopped(Box::new(stored)));
    }
    if manifests.is_empty() || args.connect.kubeconfig.is_some() {
        return Err(failure);
    }
    eprintln!("No cluster is reachable, so the files are planned alone ({})", failure.what());
    Ok(Cluster::None)
}

async fn answering(args: &Args) -> Outcome<Server> {
    let server = Server::connect_anywhere(&args.connect).await?;
    server.call(Call::get("/version")).await?;
    Ok(server)
}

/// The API's address: what was asked for, the environment's, the cluster's own, Cloudflare's.
fn cloudflare(args: &Args, cluster: &Cluster) -> Outcome<String> {
    let own = || match cluster {
        Cluster::Answering(server) => Some(Urls::beside(&args.connect, server.address())?.cloudflare),
        Cluster::Stopped(stored) => stored.cloudflare(),
        Cluster::None => None,
    };
    Cloudflare::address(args.cloudflare.as_ref(), own)
}

fn shown(answer: &Answer, form: Form) -> Outcome<String> {
    if form == Form::Json {
        return output::json_text(&answer.to_json());
    }
    let mut text = answer.plan.render(Paint::for_stdout().colour());
    if !answer.take_over.is_empty() {
        write!(text, "\n{}", answer.take_over.text()).expect("writing to a string cannot fail");
    }
    if !answer.unplanned.is_empty() {
        text.push_str("\nNot planned:\n");
        for (object, problem) in &answer.unplanned {
            writeln!(text, "  {object}: {}, {}", problem.reason, problem.message)
                .expect("writing to a string cannot fail");
        }
    }
    Ok(text)
}
