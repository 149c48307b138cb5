//! `portolan up`: embedded everything, with files that are kept applied.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_cloudflare_sim::OriginAddress;

use super::print;
use crate::cloudflare::Cloudflare;
use crate::colour::Colours;
use crate::duration::{self, duration};
use crate::failure::{Failure, Outcome};
use crate::health_view::{Health, HealthView};
use crate::progress::Progress;
use crate::signals::Signals;
use crate::simulation::{EdgePlace, read_seed};
use crate::up::{Files, PodMode, Settings, Summary, Up, next_steps, unready};
use crate::zerotrust::NamespaceArgs;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long the first summary waits for objects that do not become Ready.
const FIRST_SUMMARY: Duration = Duration::from_secs(15);
/// How often the simulator's state is kept.
const KEEP: Duration = Duration::from_secs(10);

/// Arguments of `portolan up`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The data directory holds the objects, the kubeconfig, urls.json and the simulator's state; start again \
    on it and\nnothing changes. Objects that leave the files stay: delete them with kubectl or `portolan delete`.\n\
    Examples:\n  portolan up examples/quickstart --once\n  portolan up manifests/ --cloudflare live"
)]
pub(crate) struct Args {
    /// Files and folders with objects; they are applied, and applied again when they change
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Look into subfolders too
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Wait until everything is Ready, print a summary, and stop
    #[arg(long)]
    once: bool,

    /// How long --once waits
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    timeout: Duration,

    /// Directory for data, certificates and kubeconfig; made if it is not there
    #[arg(long, value_name = "DIR", default_value = ".portolan")]
    data_dir: PathBuf,

    /// Address of the Kubernetes API; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6440")]
    listen: SocketAddr,

    /// Which Cloudflare: a simulator in this process, the real one, or the one at an address
    #[arg(long, value_name = "sim|live|URL", default_value = "sim", value_parser = Cloudflare::parse)]
    cloudflare: Cloudflare,

    /// Address of the simulator; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787")]
    sim_listen: SocketAddr,

    /// What the simulator begins with when the data directory is new, as for `portolan sim --seed`; what objects name is made anyway
    #[arg(long, value_name = "FILE")]
    seed: Option<PathBuf>,

    /// Where the simulator's edge answers HTTP for published names; 127.0.0.1:8788, or a free port where that one is taken
    #[arg(long, value_name = "ADDRESS")]
    edge: Option<SocketAddr>,

    /// Where the edge finds an origin that only a cluster knows by name, as traefik.traefik.svc=127.0.0.1:8000;
    /// `*=echo` answers in the place of all origins that are not named
    #[arg(long, value_name = "HOST=ADDRESS")]
    edge_origin: Vec<OriginAddress>,

    /// What becomes of pods: `run` as processes of this machine, `simulate` those that no program stands for, or `off`
    #[arg(long, value_enum, default_value = "run", value_name = "run|simulate|off", hide_possible_values = true)]
    pods: PodMode,

    #[command(flatten)]
    zerotrust: NamespaceArgs,
}

/// Runs until told to stop, or with `--once` until everything is Ready.
pub(crate) async fn run(args: Args) -> Outcome {
    let began = Instant::now();
    let mut stop = Signals::listen()?;
    let mut files = Files::new(args.paths.clone(), args.recursive)?;
    // Read before anything starts: a typing error should cost no time.
    let manifests = files.changed().transpose()?.unwrap_or_default();
    let progress = Arc::new(Progress::start());
    let settings = Settings {
        data_dir: args.data_dir.clone(),
        listen: args.listen,
        cloudflare: args.cloudflare.clone(),
        sim_listen: args.sim_listen,
        zerotrust_namespace: args.zerotrust.operator_namespace.clone(),
        seed: args.seed.as_deref().map(read_seed).transpose()?,
        edge: args.edge.map_or_else(EdgePlace::usual, EdgePlace::Exactly),
        edge_origins: args.edge_origin.clone(),
        pods: args.pods,
    };
    let (up, applied) = Up::start(settings, &manifests, &progress).await?;
    for failure in &applied.refused {
        progress.line(failure.to_string());
    }
    let session = Session { args: &args, up: &up, progress: &progress, began };
    let outcome = tokio::select! {
        () = stop.asked() => Ok(()),
        outcome = session.serve(&mut files, applied.refused.len()) => outcome,
    };
    progress.finish();
    if !args.once {
        eprintln!("Stopping; the data stays in {}", args.data_dir.display());
    }
    let stopped = up.stop().await;
    outcome.and(stopped)
}

/// One run of the command.
struct Session<'a> {
    args: &'a Args,
    up: &'a Up,
    progress: &'a Progress,
    began: Instant,
}

impl Session<'_> {
    async fn serve(&self, files: &mut Files, refused: usize) -> Outcome {
        if self.args.once {
            return self.once(refused).await;
        }
        self.progress.finish();
        print(&self.greeting());
        tokio::try_join!(self.first_summary(), self.follow(files))?;
        Ok(())
    }

    /// Converges, tells, and fails where something is not well.
    async fn once(&self, refused: usize) -> Outcome {
        self.progress.step("Waiting until everything is Ready");
        let settled = tokio::time::timeout(self.args.timeout, self.up.settled(self.progress)).await;
        let objects = match settled {
            Ok(objects) => objects?,
            Err(_) => self.up.objects().await?,
        };
        self.progress.finish();
        print(&self.summary(&objects));
        let waiting = objects.iter().filter(|seen| seen.health() != Health::Ready).count();
        if waiting > 0 {
            let shown = duration::shown(self.args.timeout);
            return Err(Failure::new(format!(
                "{waiting} objects are not Ready after {shown}:\n{}",
                unready(&objects).trim_end()
            ))
            .next("correct what the messages name and run it again; --timeout waits longer"));
        }
        if refused > 0 {
            return Err(Failure::new(format!("{refused} objects were refused; the messages above say why"))
                .next("correct them and run it again; what was applied stays"));
        }
        print(&format!("\n{}", next_steps(&self.args.paths, &self.args.data_dir)));
        Ok(())
    }

    async fn first_summary(&self) -> Outcome {
        let objects = match tokio::time::timeout(FIRST_SUMMARY, self.up.settled(self.progress)).await {
            Ok(objects) => objects?,
            Err(_) => self.up.objects().await?,
        };
        if !objects.is_empty() {
            print(&format!("\n{}", self.summary(&objects)));
            let unready = unready(&objects);
            if !unready.is_empty() {
                print(&format!("Not Ready:\n{unready}"));
            }
        }
        for shortcoming in self.up.shortcomings() {
            print(&format!("{shortcoming}\n"));
        }
        Ok(())
    }

    /// Keeps the files applied and the simulator's state stored.
    async fn follow(&self, files: &mut Files) -> Outcome {
        let mut kept = Instant::now();
        loop {
            tokio::time::sleep(LOOK).await;
            self.up.seed();
            if let Some(manifests) = files.changed() {
                self.apply_again(manifests).await;
            }
            if kept.elapsed() >= KEEP {
                kept = Instant::now();
                self.up.keep()?;
            }
        }
    }

    /// Applies changed files. What cannot be read or applied is told, and the rest goes on.
    async fn apply_again(&self, manifests: Outcome<Vec<crate::manifest::Manifest>>) {
        let applied = match manifests {
            Ok(manifests) => self.up.apply(&manifests).await,
            Err(failure) => Err(failure),
        };
        match applied {
            Ok(applied) => {
                for text in &applied.changed {
                    print(&format!("{text}\n"));
                }
                for failure in &applied.refused {
                    eprintln!("{failure}");
                }
            }
            Err(failure) => eprintln!("{failure}"),
        }
    }

    fn summary(&self, objects: &[HealthView]) -> String {
        let summary = Summary {
            objects,
            metrics: &self.up.metrics(),
            took: self.began.elapsed(),
            is_simulated: self.up.simulation().is_some(),
        };
        summary.render(Colours::for_stdout())
    }

    fn greeting(&self) -> String {
        let urls = self.up.urls();
        let kubeconfig = self.up.kubeconfig();
        let kubeconfig = kubeconfig.display();
        let edge = urls.edge.as_ref().map_or_else(String::new, |url| {
            format!("Its edge, for published names, at {url}   (curl -i -H 'Host: NAME' {url}/)\n")
        });
        let sort = if self.up.simulation().is_some() { "Simulated Cloudflare API" } else { "Cloudflare API" };
        format!(
            "Kubernetes API at {}\n{sort} at {}\n{edge}Try, in another terminal:\n  \
             kubectl --kubeconfig {kubeconfig} get dnsrecords,httproutes -A\n  \
             portolan status --kubeconfig {kubeconfig}\n  \
             portolan logs POD --kubeconfig {kubeconfig}\n  \
             portolan why HOSTNAME --kubeconfig {kubeconfig}\n  portolan plan --kubeconfig {kubeconfig} -f FILE.yaml\n\
             Stop with Ctrl-C; the data stays.\n",
            urls.api, urls.cloudflare
        )
    }
}
