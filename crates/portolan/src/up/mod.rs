//! `portolan up`: the embedded API server, the controllers and the simulator in one process.

mod balancers;
mod files;
mod pods;
mod published;
mod summary;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portolan_apiserver::{Accounts, ApiServer, Config, RunningServer, Workloads};
use portolan_cloudflare_api::{HttpTransport, Transport};
use portolan_cloudflare_sim::{Options as SimulatorOptions, OriginAddress};
use portolan_engine::{Provisions, cluster_owner};
use portolan_zerotrust::Settings as ZerotrustSettings;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::applying::{AppliedAs, Applier, ApplyOptions, As, Conflicts, Storing};
use crate::cli::apiserver::not_started;
use crate::cloudflare::Cloudflare;
use crate::definitions;
use crate::endpoints::{Endpoints, ListenAddress};
use crate::failure::{Failure, Outcome};
use crate::health_view::{self, Health, HealthView};
use crate::jobs;
use crate::kinds::Kinds;
use crate::manifest::Manifest;
use crate::operator::{self, Operator};
use crate::pods_page;
use crate::progress::Progress;
use crate::server::{Server, chain};
use crate::simulation::{EdgePlace, Seeder, SeedingTransport, Simulation};
use crate::urls::Urls;
use crate::workloads;
use crate::zerotrust;

pub(crate) use files::Files;
pub(crate) use pods::PodMode;
use pods::Pods;
pub(crate) use summary::{Summary, next_steps, unready};

/// How often it is looked whether everything is done: at first, and at the longest where that takes its time.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_AT_MOST: Duration = Duration::from_millis(500);

/// How it is set up.
pub(crate) struct Settings {
    pub(crate) data_dir: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) cloudflare: Cloudflare,
    pub(crate) sim_listen: SocketAddr,
    /// Where the zerotrust job's own objects are.
    pub(crate) zerotrust_namespace: String,
    /// What an empty simulator begins with.
    pub(crate) seed: Option<Value>,
    pub(crate) edge: EdgePlace,
    pub(crate) edge_origins: Vec<OriginAddress>,
    pub(crate) pods: PodMode,
}

/// Everything that runs. Dropping it stops it at once; [`stop`](Self::stop) lets work end first.
pub(crate) struct Up {
    data_dir: PathBuf,
    zerotrust_namespace: String,
    urls: Urls,
    local: Server,
    operator: Operator,
    seeder: Option<Arc<Seeder>>,
    simulation: Option<Simulation>,
    pods: Option<Pods>,
    serving: RunningServer,
    _endpoints: JoinSet<()>,
}

/// What became of applied manifests.
#[derive(Default)]
pub(crate) struct Applied {
    /// A line for each object that changed.
    pub(crate) changed: Vec<String>,
    /// How many are as they were.
    pub(crate) unchanged: usize,
    /// Why objects were refused.
    pub(crate) refused: Vec<Failure>,
}

impl Up {
    /// Starts everything. The manifests are applied before the controllers start, so that these find all objects at once
    /// and write them in few calls.
    pub(crate) async fn start(
        settings: Settings,
        manifests: &[Manifest],
        progress: &Arc<Progress>,
    ) -> Outcome<(Self, Applied)> {
        progress.step("Starting the embedded Kubernetes API server");
        let cluster = Cluster::start(&settings).await?;
        progress.step("Installing the definitions of Portolan's kinds");
        let provisions = provisions(&settings);
        cluster.install(&provisions).await?;
        let simulation = simulate(&settings, progress).await?;
        progress.step(format!("Applying {} objects", manifests.len()));
        let applied = apply(&cluster.local, manifests).await?;
        progress.step("Starting the controllers");
        let seeder = simulation.as_ref().map(|simulation| seeder(&cluster.api, simulation, progress));
        let cloudflare = match (&simulation, settings.cloudflare) {
            (Some(simulation), _) => simulation.base_url(),
            (None, Cloudflare::At(url)) => url,
            (None, Cloudflare::Simulated) => unreachable!("the simulator was started above"),
        };
        let endpoints = Endpoints::bind(&ListenAddress::loopback(), &ListenAddress::none()).await?;
        let urls = Urls {
            api: cluster.serving.url(),
            cloudflare: cloudflare.clone(),
            edge: simulation.as_ref().and_then(Simulation::edge_url),
            metrics: endpoints.metrics_url(),
            pods: (settings.pods != PodMode::Off).then(|| endpoints.url_beside_metrics(pods_page::PATH)).flatten(),
        };
        let options = cluster.options(cloudflare, provisions).await?;
        let transport = transport(seeder.clone())?;
        urls.write(&settings.data_dir)?;
        // Last of what can fail: nothing that runs is left behind then.
        let pods = Pods::start(
            settings.pods,
            &settings.data_dir,
            (&cluster.api, cluster.serving.address()),
            cluster.client.clone(),
        )
        .await?;
        let operator = Operator::start_with(cluster.client, options, transport);
        let beside_metrics = pods.as_ref().map(Pods::routes).unwrap_or_default();
        let endpoints = endpoints.serve_with(&operator, beside_metrics);
        let up = Self {
            data_dir: settings.data_dir,
            zerotrust_namespace: settings.zerotrust_namespace,
            urls,
            local: cluster.local,
            operator,
            seeder,
            simulation,
            pods,
            serving: cluster.serving,
            _endpoints: endpoints,
        };
        Ok((up, applied))
    }

    /// Applies manifests.
    pub(crate) async fn apply(&self, manifests: &[Manifest]) -> Outcome<Applied> {
        apply(&self.local, manifests).await
    }

    /// Waits until every object of ours is Ready and nothing is under way; gives back all objects.
    pub(crate) async fn settled(&self, progress: &Progress) -> Outcome<Vec<HealthView>> {
        let began = Instant::now();
        loop {
            if self.operator.busy() == 0 {
                let objects = self.objects().await?;
                let waiting = objects.iter().filter(|seen| seen.health() != Health::Ready).count();
                if waiting == 0 && self.operator.busy() == 0 {
                    return Ok(objects);
                }
                progress.detail(format!("Waiting for {waiting} of {} objects to become Ready", objects.len()));
            } else {
                progress.detail(format!("{} objects at work", self.operator.busy()));
            }
            tokio::time::sleep((began.elapsed() / 10).clamp(LOOK, LOOK_AT_MOST)).await;
        }
    }

    /// All objects of the kinds that the controllers see to.
    pub(crate) async fn objects(&self) -> Outcome<Vec<HealthView>> {
        let kinds = Kinds::discover(&self.local).await?;
        let mut objects = Vec::new();
        for job in jobs::ALL {
            objects.extend(match job.sheet.group {
                // Routes are shown by what they publish.
                zerotrust::GROUP => zerotrust::seen(&zerotrust::read(&self.local, &self.zerotrust_namespace).await?),
                group => health_view::all(&self.local, &kinds, group, |_| true).await?,
            });
        }
        if self.pods.is_some() {
            objects.extend(workloads::seen(&self.local).await?);
        }
        Ok(objects)
    }

    /// Looks whether the simulator lacks something that objects name.
    pub(crate) fn seed(&self) {
        if let Some(seeder) = &self.seeder {
            seeder.look();
        }
    }

    /// The simulator, where there is one.
    pub(crate) fn simulation(&self) -> Option<&Simulation> {
        self.simulation.as_ref()
    }

    /// What does not work for pods, each with the command that helps.
    pub(crate) fn shortcomings(&self) -> Vec<String> {
        self.pods.iter().flat_map(|pods| pods.facts().shortcomings()).collect()
    }

    /// Where everything can be reached.
    pub(crate) fn urls(&self) -> &Urls {
        &self.urls
    }

    /// Where the kubeconfig is.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.data_dir.join("kubeconfig")
    }

    /// What the controllers measured, as text.
    pub(crate) fn metrics(&self) -> String {
        self.operator.metrics().render()
    }

    /// Keeps the simulator's state.
    pub(crate) fn keep(&self) -> Outcome {
        self.simulation.as_ref().map_or(Ok(()), |simulation| simulation.keep(&self.data_dir))
    }

    /// Lets work end, keeps the simulator's state, and stops.
    pub(crate) async fn stop(self) -> Outcome {
        // Pods may use the API until they have ended.
        let pods = async {
            if let Some(pods) = self.pods {
                pods.stop().await;
            }
        };
        tokio::join!(pods, self.operator.stop());
        let kept = match self.simulation {
            Some(simulation) => {
                let kept = simulation.keep(&self.data_dir);
                simulation.stop().await;
                kept
            }
            None => Ok(()),
        };
        self.serving.shutdown().await;
        Urls::remove(&self.data_dir);
        kept
    }
}

/// The embedded Kubernetes API.
struct Cluster {
    api: ApiServer,
    client: kube::Client,
    serving: RunningServer,
    local: Server,
}

impl Cluster {
    async fn start(settings: &Settings) -> Outcome<Self> {
        let config = Config {
            data_dir: Some(settings.data_dir.clone()),
            workloads: Workloads::On,
            accounts: Accounts::Required,
            ..Config::default()
        };
        let api = ApiServer::open(config).await.map_err(not_started)?;
        let client = kube::Client::new(api.service(), "default");
        let serving = api.clone().serve(settings.listen).await.map_err(not_started)?;
        let local = Server::of_client(client.clone(), serving.url());
        Ok(Self { api, client, serving, local })
    }

    /// Definitions and namespaces that the controllers need.
    async fn install(&self, provisions: &Provisions) -> Outcome {
        definitions::install(&self.local).await?;
        definitions::install_routes(&self.local).await?;
        self.local.make_namespace(operator::NAMESPACE).await?;
        for own in jobs::ALL.iter().filter_map(|job| (job.namespace)(provisions)) {
            self.local.make_namespace(&own.name).await?;
        }
        Ok(())
    }

    /// How the controllers run over it.
    async fn options(&self, cloudflare: String, provisions: Provisions) -> Outcome<operator::OperatorOptions> {
        let owner = cluster_owner(&self.client)
            .await
            .map_err(|error| Failure::new(format!("reading namespace kube-system: {}", chain(&error))))?;
        let mut options = operator::OperatorOptions::new(owner, cloudflare);
        options.provisions = provisions;
        Ok(options)
    }
}

/// What the jobs are told.
fn provisions(settings: &Settings) -> Provisions {
    let mut zerotrust =
        ZerotrustSettings { operator_namespace: settings.zerotrust_namespace.clone(), ..ZerotrustSettings::default() };
    zerotrust.worker.epoch = uuid::Uuid::new_v4().to_string();
    Provisions::default().with(zerotrust)
}

async fn apply(server: &Server, manifests: &[Manifest]) -> Outcome<Applied> {
    let options = ApplyOptions {
        namespace: None,
        applier: As::portolan(),
        conflicts: Conflicts::TakeOver,
        storing: Storing::Stored,
    };
    let mut outcome = Applied::default();
    let mut applier = Applier::new(server, options).await?;
    applier
        .apply_all(manifests, |manifest, result| match result {
            Ok(applied) if applied.change == AppliedAs::Unchanged => outcome.unchanged += 1,
            Ok(applied) => outcome.changed.push(format!("{} {}", applied.object, applied.change.as_str())),
            Err(failure) => outcome.refused.push(failure.while_doing(&manifest.origin)),
        })
        .await?;
    if outcome.refused.is_empty() {
        balancers::write(server, manifests).await?;
    }
    Ok(outcome)
}

async fn simulate(settings: &Settings, progress: &Progress) -> Outcome<Option<Simulation>> {
    if settings.cloudflare != Cloudflare::Simulated {
        return Ok(None);
    }
    progress.step("Starting the Cloudflare simulator");
    let mut simulation = Simulation::start(SimulatorOptions::default(), settings.sim_listen, "--sim-listen").await?;
    simulation.restore(&settings.data_dir, settings.seed.clone())?;
    simulation.start_edge(settings.edge, &settings.edge_origins).await?;
    Ok(Some(simulation))
}

fn seeder(api: &ApiServer, simulation: &Simulation, progress: &Arc<Progress>) -> Arc<Seeder> {
    let progress = progress.clone();
    let tell = move |made: &[String]| {
        progress.line(format!("Made in the simulator, since objects name it: {}", made.join(", ")));
    };
    Arc::new(Seeder::new(api.clone(), simulation.simulator().clone(), tell))
}

fn transport(seeder: Option<Arc<Seeder>>) -> Outcome<Arc<dyn Transport>> {
    let inner = HttpTransport::new()
        .map_err(|error| Failure::new(format!("cannot prepare connections to Cloudflare: {error}")))?;
    Ok(match seeder {
        Some(seeder) => Arc::new(SeedingTransport { inner, seeder }),
        None => Arc::new(inner),
    })
}
