//! Tunnel configurations and Access objects against the simulator: what they cost, and what others' edits and lost answers do.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use crate::support::World;
use portolan_cloudflare_api::document::{Committed, TUNNEL_CONFIGURATION};
use portolan_cloudflare_api::{
    ApiError, CollectionHandle, Created, Document, ErrorClass, Freshness, Item, Lane, Request, Snapshot,
    TypedCollection, collections,
};
use portolan_cloudflare_sim::{self as sim, Count, Fault, Options};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct App {
    domain: String,
}

static APPS: TypedCollection<App> = TypedCollection::of(collections::ACCESS_APPS);
static TOKENS: TypedCollection<App> = TypedCollection::of(collections::SERVICE_TOKENS);

impl Item for App {
    fn natural_key(&self) -> String {
        self.domain.clone()
    }
}

/// A tunnel, its configuration, and the account's applications.
struct Tunnel {
    world: World,
    account: String,
    id: String,
    document: Arc<Document>,
    apps: Arc<CollectionHandle<App>>,
}

impl Tunnel {
    async fn new(seed: u64) -> Self {
        Self::with(Options { latency: Duration::from_millis(150), seed, ..Options::default() }).await
    }

    async fn with(options: Options) -> Self {
        let world = World::new(options, "enterprise");
        let account = world.sim.add_account("Tunnels");
        world.sim.add_zone("example.net", &account, "free").unwrap();
        let make = Request::new(http::Method::POST, "/accounts/{account_id}/cfd_tunnel", &[&account])
            .with_body(json!({"name": "main", "config_src": "cloudflare"}));
        let made = world.client.send(Lane::Change, &make).await.unwrap();
        let id = made["id"].as_str().unwrap().to_owned();
        let document = world.client.document(&TUNNEL_CONFIGURATION, &account, &id);
        let apps = world.client.records(&APPS, &account);
        world.sim.take_requests();
        Self { world, account, id, document, apps }
    }

    /// Somebody else's edit, through the API.
    async fn somebody_adds(&self, hostname: &str) {
        let at = |method| {
            let template = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations";
            Request::new(method, template, &[&self.account, &self.id])
        };
        let mut live = self.world.client.send(Lane::Change, &at(http::Method::GET)).await.unwrap()["config"].take();
        add(&mut live, hostname);
        self.world.client.send(Lane::Change, &at(http::Method::PUT).with_body(json!({"config": live}))).await.unwrap();
    }

    async fn publish(&self, hostname: &str) -> Result<Committed, ApiError> {
        let wanted = hostname.to_owned();
        self.document.edit(Lane::Change, hostname, move |config| add(config, &wanted)).await
    }

    async fn hostnames(&self) -> Vec<String> {
        let content = self.document.read(Lane::Change).await.unwrap();
        let rules = content.value["ingress"].as_array().into_iter().flatten();
        rules.filter_map(|rule| rule["hostname"].as_str()).map(str::to_owned).collect()
    }

    async fn create_app(&self, domain: &str) -> Result<Created<App>, ApiError> {
        let body = json!({"name": domain, "domain": domain, "type": "self_hosted"});
        let find = |snapshot: &Snapshot<App>| snapshot.by_key(domain).next().cloned();
        self.apps.create(Lane::Protect, body, find).await
    }
}

/// A rule for the hostname, before the catch-all.
fn add(config: &mut Value, hostname: &str) {
    if !config["ingress"].is_array() {
        config["ingress"] = json!([{"service": "http_status:404"}]);
    }
    let rules = config["ingress"].as_array_mut().unwrap();
    if rules.iter().all(|rule| rule["hostname"] != hostname) {
        rules.insert(rules.len() - 1, json!({"hostname": hostname, "service": "http://web:80"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_edits_of_a_configuration_cost_two_calls() {
    let tunnel = Arc::new(Tunnel::new(0).await);
    let mut tasks = JoinSet::new();
    for number in 0..1_000 {
        let tunnel = tunnel.clone();
        tasks.spawn(async move { tunnel.publish(&format!("n{number}.example.com")).await });
    }

    let answers = tasks.join_all().await;

    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(tunnel.world.sim.request_count(), 2);
    assert_eq!(tunnel.hostnames().await.len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn edits_by_others_before_our_read_and_after_our_write_survive_a_hundred_times() {
    let tunnel = Tunnel::new(1).await;

    for round in 0..100 {
        tunnel.somebody_adds(&format!("before{round}.example.com")).await;
        let committed = tunnel.publish(&format!("ours{round}.example.com")).await.unwrap();
        assert_eq!(committed.raced, None);
        tunnel.somebody_adds(&format!("after{round}.example.com")).await;
    }

    assert_eq!(tunnel.hostnames().await.len(), 300);
}

#[tokio::test(start_paused = true)]
async fn an_edit_between_our_read_and_our_write_is_told_with_both_versions_a_hundred_times() {
    let tunnel = Tunnel::new(2).await;
    tunnel.somebody_adds("first.example.com").await;

    for round in 0..100 {
        // After two quiet seconds a write goes at once.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = tunnel.document.read(Lane::Change).await.unwrap().version.unwrap();
        let ours = format!("ours{round}.example.com");
        // Every call takes 150 ms: one that begins 75 ms after our read arrives before our write does.
        let theirs = async {
            tokio::time::sleep(Duration::from_millis(75)).await;
            let content = tunnel.document.snapshot().unwrap().content;
            let mut config = content.value.clone();
            add(&mut config, &format!("theirs{round}.example.com"));
            let template = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations";
            let put = Request::new(http::Method::PUT, template, &[&tunnel.account, &tunnel.id]);
            tunnel.world.client.send(Lane::Change, &put.with_body(json!({"config": config}))).await.unwrap();
        };

        let (committed, ()) = tokio::join!(tunnel.publish(&ours), theirs);

        let raced = committed.unwrap().raced.expect("their write fell between ours");
        assert_eq!((raced.read, raced.became), (before, before + 2), "round {round}");
        assert!(tunnel.hostnames().await.contains(&ours));
    }
}

#[tokio::test(start_paused = true)]
async fn lost_answers_and_server_errors_lose_no_rule() {
    for seed in 0..20 {
        let tunnel = Arc::new(Tunnel::new(seed).await);
        for (effect, share) in [(sim::Effect::Reset, 0.15), (sim::Effect::status(500), 0.15)] {
            let fault = Fault::on("", "/configurations", effect).count(Count::Probability(share));
            tunnel.world.sim.fault(fault.clone());
            tunnel.world.sim.fault(fault.after_write());
        }
        let mut tasks = JoinSet::new();
        for number in 0..20 {
            let tunnel = tunnel.clone();
            tasks.spawn(async move {
                tokio::time::sleep(Duration::from_millis(number * 200)).await;
                while tunnel.publish(&format!("n{number}.example.com")).await.is_err() {}
            });
        }

        tasks.join_all().await;

        tunnel.world.sim.clear_faults();
        assert_eq!(tunnel.hostnames().await.len(), 20, "failing seed: {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_application_is_made_once_whatever_happens_on_the_way() {
    for seed in 0..20 {
        let tunnel = Tunnel::new(seed).await;
        for fault in [
            Fault::on("POST", "/access/apps", sim::Effect::status(500)).count(Count::Probability(0.3)),
            Fault::on("POST", "/access/apps", sim::Effect::Reset).count(Count::Probability(0.3)).after_write(),
        ] {
            tunnel.world.sim.fault(fault);
        }

        for number in 0..10 {
            let domain = format!("n{number}.example.net");
            while tunnel.create_app(&domain).await.is_err() {}
        }

        assert_eq!(tunnel.world.sim.objects("access/apps", &tunnel.account).len(), 10, "failing seed: {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_application_of_somebody_else_is_found_on_any_page_when_the_domain_is_taken() {
    // A server that gives smaller pages than it is asked for, without a word.
    let tunnel = Tunnel::with(Options { seed: 3, largest_page: Some(25), ..Options::default() }).await;
    for number in 0..60 {
        tunnel.create_app(&format!("n{number}.example.net")).await.unwrap();
    }
    tunnel.apps.invalidate();

    let found = tunnel.create_app("n57.example.net").await.unwrap();

    assert!(matches!(&found, Created::Found(entry) if entry.item.domain == "n57.example.net"), "{found:?}");
    let requests = tunnel.world.sim.requests();
    let pages: Vec<_> =
        requests.iter().filter(|one| one.method == "GET").map(|one| one.query["page"].clone()).collect();
    assert_eq!(pages, ["1", "2", "3"], "it stands on the last page");
    assert_eq!(requests.len(), 64, "60 creates, one refusal, one listing of three pages");
}

#[tokio::test(start_paused = true)]
async fn a_full_account_says_quota() {
    let tunnel = Tunnel::new(4).await;
    let tokens = tunnel.world.client.records(&TOKENS, &tunnel.account);
    tokens.refresh(Lane::Change, Freshness::Any).await.unwrap();
    let mut made = 0;

    let refused = loop {
        let request = TOKENS.create(&tunnel.account, &json!({"name": format!("t{made}"), "duration": "8760h"}));
        match tunnel.world.client.send(Lane::Change, &request).await {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };

    assert_eq!((refused.class, made), (ErrorClass::Quota, 50));
}
