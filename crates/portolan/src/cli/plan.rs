//! `portolan plan`: what would change, without changing it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use portolan_cloudflare_api::DEFAULT_BASE_URL;
use portolan_core::text::{count, join_and};
use portolan_core::{Action, ObjectId, OwnerId, Problem};
use serde_json::{Value, json};

use super::{OutputForm, print};
use crate::cloudflare::Cloudflare;
use crate::colour::Colours;
use crate::duration::duration;
use crate::failure::{Failure, Outcome};
use crate::manifest::{self, Manifest};
use crate::planning::{self, PlanAnswer, PlanQuestion, StoppedServer};
use crate::server::{ConnectArgs, Server, ServerRequest};
use crate::urls::{Urls, kubeconfig_path};
use crate::zerotrust::NamespaceArgs;
use crate::{operator, output};

/// Exit code where something would change.
const CHANGES: u8 = 2;
/// More deletions than this may be held back.
const DELETIONS_FREE: usize = 10;

/// Arguments of `portolan plan`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The cluster is copied into this process, the files are applied to the copy, and the controllers plan \
    there with the\ncluster's own credentials; nothing is written anywhere. Without a cluster the files are planned alone.\n\
    Each file is applied as its object was applied before (portolan, kubectl, helm, Flux, Argo CD), so that what a file no\n\
    longer says goes as it would there.\n\
    Exit codes: 0 nothing would change, 2 something would, 1 it could not be found out, for any object."
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
    output: OutputForm,

    /// Who applies the files, as `kubectl` or `kustomize-controller`; by default whoever applied each object before
    #[arg(long, value_name = "NAME")]
    field_manager: Option<String>,

    /// Address of the Cloudflare API; by default that of `portolan up`, the environment's, or Cloudflare's own
    #[arg(long, value_name = "live|URL", value_parser = Cloudflare::parse)]
    cloudflare: Option<Cloudflare>,

    /// Origins that the operator allows though they reach what protects the cluster, with commas between them
    #[arg(long, value_name = "ORIGINS", value_delimiter = ',')]
    allow_origins: Vec<String>,

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
    let asked = PlanSource::of(&args, &cluster)?;
    if args.output == OutputForm::Text {
        print(&asked.sentence());
    }
    let question = PlanQuestion {
        cloudflare: asked.cloudflare.clone(),
        cluster: cluster.server(),
        manifests: &manifests,
        namespace: args.cluster_resource_namespace.clone(),
        zerotrust_namespace: args.zerotrust.operator_namespace.clone(),
        owner: args.owner_id.as_deref().map(|id| OwnerId::parse(id).unwrap_or_else(|_| OwnerId::derive(id))),
        field_manager: args.field_manager.clone(),
        allow_origins: args.allow_origins.clone(),
        timeout: args.timeout,
    };
    let answer = planning::plan(&question).await?;
    print(&match args.output {
        OutputForm::Json => output::json_text(&asked.with(answer.to_json()))?,
        OutputForm::Text => text(&answer, Colours::for_stdout()),
    });
    if !answer.unplanned.is_empty() {
        return Err(incomplete(&answer));
    }
    Ok(if answer.is_quiet() { ExitCode::SUCCESS } else { ExitCode::from(CHANGES) })
}

/// What could not be found out, and why.
fn incomplete(answer: &PlanAnswer) -> Failure {
    let mut reasons: Vec<&str> = answer.unplanned.values().map(|problem| problem.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let what = count(answer.unplanned.len(), "object");
    let failure = Failure::new(format!("{what} could not be planned: {}", join_and(reasons)));
    failure.next("see to what \"Not planned\" names, and plan again: what stands there stays as it is until then")
}

/// Who is asked.
struct PlanSource {
    /// The cluster's address; none where files are planned alone.
    cluster: Option<String>,
    cloudflare: String,
    sort: &'static str,
}

impl PlanSource {
    fn of(args: &Args, cluster: &Cluster) -> Outcome<Self> {
        let (own, simulated) = match cluster {
            Cluster::Answering(server) => {
                let urls = Urls::beside(&args.connect, server.address());
                let simulated = urls.as_ref().is_some_and(|urls| urls.edge.is_some());
                (urls.map(|urls| urls.cloudflare), simulated)
            }
            Cluster::Stopped(stored) => (stored.cloudflare(), true),
            Cluster::None => (None, false),
        };
        let cloudflare = Cloudflare::address(args.cloudflare.as_ref(), || own.clone())?;
        let sort = match &own {
            _ if cloudflare == DEFAULT_BASE_URL => "live",
            Some(own) if simulated && *own == cloudflare => "simulated",
            _ => "named",
        };
        Ok(Self { cluster: cluster.server().map(|server| server.address().to_owned()), cloudflare, sort })
    }

    /// The first line.
    fn sentence(&self) -> String {
        let cluster = self.cluster.as_deref().unwrap_or("the files alone");
        let sort = if self.sort == "named" { String::new() } else { format!("{} ", self.sort) };
        format!("Planning {cluster} with the {sort}Cloudflare API at {}\n", self.cloudflare)
    }

    /// The same for programs.
    fn with(&self, mut document: Value) -> Value {
        document["asked"] = json!({"cluster": self.cluster, "cloudflare": self.cloudflare, "cloudflareIs": self.sort});
        document
    }
}

/// What the files are laid over.
enum Cluster {
    /// A server that answers.
    Answering(Server),
    /// What a stopped `portolan up` left.
    Stopped(Box<StoppedServer>),
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
        && let Some(stored) = StoppedServer::open(data_dir).await?
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
    let server = args.connect.server_anywhere().await?;
    server.call(ServerRequest::get("/version")).await?;
    Ok(server)
}

fn text(answer: &PlanAnswer, colours: Colours) -> String {
    let unplanned = answer.unplanned.iter();
    let told = |(object, problem): (&ObjectId, &Problem)| format!("{object}: {}, {}", problem.reason, problem.message);
    let unplanned = block("Not planned", unplanned.map(told));
    let mut text = if answer.is_quiet() && !unplanned.is_empty() {
        format!("{unplanned}\nNothing else would change.\n")
    } else {
        [answer.plan.render(colours.colour()), unplanned].join(if answer.unplanned.is_empty() { "" } else { "\n" })
    };
    if answer.plan.counts().of(Action::Delete) > DELETIONS_FREE {
        writeln!(text, "More than {DELETIONS_FREE} deletions at once may be held until they are released.")
            .expect("writing to a string cannot fail");
    }
    let assumed = block("Assumed", answer.notes.iter().cloned());
    let taken = if answer.take_over.is_empty() { String::new() } else { answer.take_over.text() };
    for part in [assumed, taken].iter().filter(|part| !part.is_empty()) {
        write!(text, "\n{part}").expect("writing to a string cannot fail");
    }
    text
}

/// Lines under a title; nothing where there are none.
fn block(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { String::new() } else { format!("{title}:\n  {}\n", lines.join("\n  ")) }
}
