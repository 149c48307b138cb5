//! Plans against what then happens: pairs of manifests, applied in every way that people apply files.

mod generated;
mod observed;
mod ways;

use std::net::SocketAddr;
use std::time::Duration;

use portolan_apiserver::store::Range;
use portolan_apiserver::{ApiServer, Config};
use portolan_cloudflare_api::Limit;
use portolan_cloudflare_sim::Options as SimulatorOptions;
use portolan_engine::{Drift, Provisions, cluster_owner};
use portolan_zerotrust as zerotrust;
use serde_json::{Value, json};

use super::{PlanAnswer, PlanQuestion, plan, quiet};
use crate::definitions;
use crate::manifest::Manifest;
use crate::operator::{self, Operator};
use crate::server::Server;
use crate::simulation::Simulation;
use generated::ManifestPair;
use observed::{Observed, planned};
use ways::Way;

const ACCOUNT: &str = "0123456789abcdef0123456789abcdef";
const TUNNELS: [&str; 2] = ["11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"];
/// Pairs that stand beside each other in one cluster.
const AT_ONCE: usize = 25;
const TASKS: &str = "cloudflaretasks.cfzt.cloudflare.com";

/// A cluster and a simulated Cloudflare.
struct PairWorld {
    api: ApiServer,
    server: Server,
    simulation: Simulation,
}

impl PairWorld {
    async fn start() -> Self {
        let api = ApiServer::open(Config::default()).await.unwrap();
        let client = kube::Client::new(api.service(), "default");
        let server = Server::of_client(client, "in process");
        definitions::install(&server).await.unwrap();
        definitions::install_routes(&server).await.unwrap();
        for namespace in [operator::NAMESPACE, zerotrust::NAMESPACE] {
            server.make_namespace(namespace).await.unwrap();
        }
        let options = SimulatorOptions { rate_limit: None, ..SimulatorOptions::default() };
        let simulation = Simulation::start(options, SocketAddr::from(([127, 0, 0, 1], 0)), "").await.unwrap();
        simulation.simulator().add_account_with_id(ACCOUNT, "Pairs");
        for id in TUNNELS {
            let tunnel = json!({"id": id, "name": id, "config_src": "cloudflare"});
            simulation.simulator().put("cfd_tunnel", ACCOUNT, tunnel).unwrap();
        }
        let world = Self { api, server, simulation };
        world.apply(&[
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": operator::NAMESPACE},
                "stringData": {"CLOUDFLARE_API_TOKEN": "x"}}),
            ours("CloudflareCredentials", "main", &json!({"accountId": ACCOUNT, "authType": "apiToken", "isDefault": true,
                "secretRef": {"name": "token"}})),
        ])
        .await;
        world
    }

    async fn apply(&self, objects: &[Value]) {
        Way::Flux.apply(&self.server, &[], objects).await;
    }

    /// A namespace, a token and a zone of its own for each pair: none is in another's way.
    async fn prepare(&self, pair: &ManifestPair) {
        self.server.make_namespace(&pair.namespace).await.unwrap();
        self.simulation.simulator().add_zone(&pair.zone, ACCOUNT, "enterprise").unwrap();
        self.apply(&[
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": pair.namespace},
                "stringData": {"token": "x"}}),
            ours("CloudflareDomain", &pair.namespace, &json!({"domain": pair.zone})),
        ])
        .await;
    }

    /// Lets the controllers work until there is nothing left to do, and stops them.
    async fn converge(&self) {
        let owner = cluster_owner(self.server.client()).await.unwrap();
        let mut options = operator::OperatorOptions::new(owner, self.simulation.base_url());
        let mut settings = zerotrust::Settings::default();
        settings.routes.drift = Drift::Off;
        settings.worker.epoch = uuid::Uuid::new_v4().to_string();
        options.provisions = Provisions::default().with(Drift::Off).with(settings);
        options.api.limit = Limit { quota: 1_000_000, window: Duration::from_secs(300) };
        let operator = Operator::start(self.server.client().clone(), options).unwrap();
        loop {
            quiet(&operator, &self.api).await;
            let range = Range { collection: TASKS, prefix: "", after: "", at: None };
            if self.api.store().list(&range).map_or(0, |listing| listing.objects.len()) == 0 {
                break;
            }
        }
        operator.stop().await;
    }

    async fn plan(&self, files: &[Value]) -> PlanAnswer {
        let manifests: Vec<Manifest> = files.iter().map(|object| Manifest::made("a pair", object.clone())).collect();
        let question = PlanQuestion {
            cluster: Some(&self.server),
            manifests: &manifests,
            cloudflare: self.simulation.base_url(),
            namespace: operator::NAMESPACE.to_owned(),
            zerotrust_namespace: zerotrust::NAMESPACE.to_owned(),
            owner: None,
            field_manager: None,
            allow_origins: Vec::new(),
            timeout: Duration::from_secs(600),
        };
        plan(&question).await.unwrap()
    }

    fn observed(&self) -> Observed {
        Observed::of(self.simulation.simulator())
    }
}

fn ours(kind: &str, name: &str, spec: &Value) -> Value {
    let version = "networking.cloudflare-operator.io/v1alpha2";
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Plans what pairs are changed to, changes them, and compares; gives back how many changes there were, and how many objects
/// were refused.
async fn try_out(first: u64, count: usize) -> (usize, usize) {
    let world = PairWorld::start().await;
    let pairs: Vec<(Way, ManifestPair)> = (0..count)
        .map(|number| {
            let seed = first + u64::try_from(number).unwrap();
            (Way::ALL[usize::try_from(seed).unwrap() % Way::ALL.len()], ManifestPair::of(seed, number))
        })
        .collect();
    for (way, pair) in &pairs {
        world.prepare(pair).await;
        way.apply(&world.server, &[], &pair.before).await;
    }
    world.converge().await;
    let before = world.observed();
    let files: Vec<Value> = pairs.iter().flat_map(|(_, pair)| pair.after.clone()).collect();

    let answer = world.plan(&files).await;
    for (way, pair) in &pairs {
        way.apply(&world.server, &pair.before, &pair.after).await;
    }
    world.converge().await;

    let after = world.observed();
    let (told, happened) = (planned(&answer.plan), before.until(&after));
    let wrong: Vec<String> = told.symmetric_difference(&happened).cloned().collect();
    for line in &wrong {
        let is_in = |pair: &ManifestPair| {
            line.contains(&format!(".{}", pair.zone)) || line.contains(&format!("-{}-", pair.namespace))
        };
        let whose = pairs.iter().zip(first..).find(|((_, pair), _)| is_in(pair));
        let whose = whose.map(|((way, _), seed)| format!("seed {seed} by {way:?}")).unwrap_or_default();
        println!("{whose}: {line} ({})", if told.contains(line) { "planned only" } else { "not planned" });
        for change in answer.plan.changes.iter().filter(|change| line.contains(&change.target.name)) {
            println!("  {}", json!(change));
        }
    }
    assert!(wrong.is_empty(), "{} changes are not as planned; not planned were {:#?}", wrong.len(), answer.unplanned);
    let ((protected, _), (still, published)) = (before.names(), after.names());
    let opened: Vec<&str> = published
        .iter()
        .filter(|name| protected.contains(*name) && !still.contains(*name))
        .map(String::as_str)
        .collect();
    assert_eq!(answer.plan.names.becoming_public(), opened, "names that become public are told, and no others");
    (happened.len(), answer.unplanned.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ux_c1_plans_are_what_then_happens_in_every_way_of_applying() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (pairs, first) = (setting("PORTOLAN_PLAN_PAIRS", 100), setting("PORTOLAN_SEED", 1));
    let (mut changes, mut refused) = (0, 0);
    for start in (0..pairs).step_by(AT_ONCE) {
        let count = usize::try_from(pairs - start).unwrap().min(AT_ONCE);
        let (changed, unplanned) = try_out(first + start, count).await;
        // Pairs that change nothing show nothing.
        assert!(changed > count * 2 || count < AT_ONCE, "{changed} changes and {unplanned} refused of {count} pairs");
        (changes, refused) = (changes + changed, refused + unplanned);
    }
    println!("plans: {pairs} pairs, {} ways, all as planned ({changes} changes, {refused} refused)", Way::ALL.len());
}
