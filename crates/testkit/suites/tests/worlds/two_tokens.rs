//! Two tenants with a token each publish in one tunnel and one zone at once: `PORTOLAN_TWO_TOKEN_RUNS` runs (10), half
//! of the seeds by the commit. Nothing is lost, and no request carries one tenant's change under the other's token.

use std::collections::BTreeSet;
use std::time::Duration;

use portolan_cloudflare_sim::{Grant, RecordedRequest, credential_id};
use portolan_testkit_suites::manifests::{ZONE_ID, namespace};
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, Roles, RouteManifest, TUNNEL};
use portolan_testkit_suites::{World, paused, seeds, tell};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

/// Routes of each tenant.
const ROUTES: usize = 25;
/// The tenants, which are also the first letters of their names.
const TENANTS: [&str; 2] = ["a", "b"];

fn token(tenant: &str) -> String {
    format!("canary-token-of-tenant-{tenant}")
}

/// What a run told.
struct Told {
    requests: usize,
    /// Writes of the tunnel's configuration.
    documents: usize,
    /// Writes of the zone's records.
    records: usize,
}

/// A world with the tenants, whose answers overtake each other; every third is divided into roles, and every third has two workers.
async fn world(seed: u64) -> World {
    let latency = Duration::from_millis(StdRng::seed_from_u64(seed).random_range(20..300));
    let roles = match seed % 3 {
        0 => Roles::default(),
        workers => Roles::apart(usize::try_from(workers).expect("a remainder of three is small")),
    };
    let world = z::world().seed(seed).latency(latency).uneven().roles(roles).start().await;
    for tenant in TENANTS {
        let team = format!("team-{tenant}");
        world.cloudflare.simulator.add_token(&token(tenant), Grant::all());
        world.cluster.apply(&namespace(&team)).await;
        world.cluster.apply(&z::token_secret(&team, "cloudflare-api-token", &token(tenant))).await;
        world.cluster.apply(&z::manifests::in_namespace(z::tenant(tenant), &team)).await;
    }
    world.settle().await;
    world.cloudflare.simulator.take_requests();
    world
}

fn hostname(tenant: &str, number: usize) -> String {
    format!("{tenant}-{number}.example.com")
}

fn route(tenant: &str, number: usize, protected: bool) -> Value {
    let route =
        RouteManifest::to(&format!("web-{number}"), &hostname(tenant, number)).within(&format!("team-{tenant}"));
    let route = route.with("tenant", tenant);
    if protected { route.allowing("someone@example.com").into() } else { route.into() }
}

/// Hostnames of both tenants in the tunnel's rules.
fn rules(config: &Value) -> BTreeSet<String> {
    let rules = config["ingress"].as_array().cloned().unwrap_or_default();
    let names = rules.iter().filter_map(|rule| rule["hostname"].as_str().map(str::to_owned));
    names.filter(|name| TENANTS.iter().any(|tenant| name.starts_with(&format!("{tenant}-")))).collect()
}

/// Names that a write is about: of the tunnel's configuration those that it adds or takes away.
fn changed(request: &RecordedRequest, stood: &mut BTreeSet<String>) -> BTreeSet<String> {
    let good = (200..300).contains(&request.status);
    if request.route().ends_with("/configurations") {
        let rules = rules(&request.body["config"]);
        let changed = rules.symmetric_difference(stood).cloned().collect();
        if good {
            *stood = rules;
        }
        return changed;
    }
    let posts = request.body["posts"].as_array().cloned().unwrap_or_else(|| vec![request.body.clone()]);
    let named = |body: &Value| body["name"].as_str().or(body["domain"].as_str()).map(str::to_owned);
    posts.iter().filter_map(named).filter(|name| name.ends_with(".example.com")).collect()
}

/// Every change went out under its own tenant's token.
fn assert_own_tokens(requests: &[RecordedRequest]) {
    let mut stood = BTreeSet::new();
    for request in requests.iter().filter(|request| request.is_write()) {
        let tenant = TENANTS.iter().find(|tenant| credential_id(&token(tenant)) == request.credential);
        assert!(tenant.is_some(), "neither tenant's token: {} {}", request.method, request.path);
        let tenant = tenant.copied().unwrap_or_default();
        for name in changed(request, &mut stood) {
            assert!(name.starts_with(&format!("{tenant}-")), "{name} under the token of {tenant}: {}", request.path);
        }
    }
}

async fn live(seed: u64) -> Told {
    let world = world(seed).await;
    let mut random = StdRng::seed_from_u64(seed);
    let mut all: Vec<(&str, usize)> = (0..ROUTES).flat_map(|number| TENANTS.map(|tenant| (tenant, number))).collect();
    all.shuffle(&mut random);

    for (tenant, number) in all {
        world.cluster.apply(&route(tenant, number, number % 5 == 0)).await;
        world.pass(Duration::from_millis(random.random_range(0..40))).await;
    }
    world.settle().await;

    let requests = world.cloudflare.simulator.take_requests();
    assert_own_tokens(&requests);
    let wanted: BTreeSet<String> =
        TENANTS.iter().flat_map(|tenant| (0..ROUTES).map(|number| hostname(tenant, number))).collect();
    let stands = rules(&z::config(&world, TUNNEL));
    let lost: Vec<&String> = wanted.difference(&stands).collect();
    assert!(lost.is_empty(), "rules that are not there: {lost:?}");
    let records = world.cloudflare.simulator.objects("dns_records", ZONE_ID);
    let names: BTreeSet<String> =
        records.iter().filter_map(|record| record["name"].as_str().map(str::to_owned)).collect();
    assert_eq!((stands.len(), names.intersection(&wanted).count()), (2 * ROUTES, 2 * ROUTES));
    assert!(world.tasks().await.iter().all(|task| !json!(task).to_string().contains("TunnelConfigRaced")));
    let writes =
        |end: &str| requests.iter().filter(|request| request.is_write() && request.route().contains(end)).count();
    Told { requests: requests.len(), documents: writes("/configurations"), records: writes("/dns_records") }
}

#[test]
fn finding_7_two_tenants_with_a_token_each_lose_nothing_in_one_tunnel_and_one_zone() {
    let lived = seeds::live_through_of("PORTOLAN_TWO_TOKEN_RUNS", 10, |seed| paused(live(seed)));

    tell(&format!(
        "two tokens: {} runs (seeds {}), {} rules and {} records, {} requests, {} writes of the tunnel, {} of the zone",
        lived.count,
        lived.seeds,
        lived.told.len() * 2 * ROUTES,
        lived.told.len() * 2 * ROUTES,
        lived.sum(|told| told.requests),
        lived.sum(|told| told.documents),
        lived.sum(|told| told.records)
    ));
    lived.assert_all("-p portolan-testkit-suites --test worlds two_tokens");
}

#[test]
fn finding_7_a_token_that_is_rotated_while_names_go_out_loses_no_rule() {
    for seed in 1..=3 {
        paused(async {
            let world = world(seed).await;
            let mut random = StdRng::seed_from_u64(seed);
            world.cluster.apply(&route("a", 0, false)).await;
            let there = async |world: &World| !rules(&z::config(world, TUNNEL)).is_empty();
            assert!(world.holds_within(Duration::from_secs(60), there).await);
            world.cloudflare.simulator.add_token("canary-token-that-is-new", Grant::all());
            let secret = z::token_secret("team-a", "cloudflare-api-token", "canary-token-that-is-new");
            world.cluster.apply(&secret).await;
            // A worker looks at a Secret every five seconds: names that come right before go out with the older token.
            world.pass(Duration::from_millis(3_000)).await;
            for number in 1..ROUTES {
                world.cluster.apply(&route("a", number, number % 5 == 0)).await;
                world.pass(Duration::from_millis(random.random_range(0..200))).await;
            }
            world.settle().await;

            let requests = world.cloudflare.simulator.take_requests();
            let used: BTreeSet<&str> =
                requests.iter().filter(|one| one.is_write()).map(|one| one.credential.as_str()).collect();
            assert_eq!(used.len(), 2, "seed {seed}: both tokens were in use");
            assert_eq!(rules(&z::config(&world, TUNNEL)).len(), ROUTES, "seed {seed}");
        });
    }
}

#[test]
fn a_planted_change_under_the_other_tenants_token_is_found() {
    let world = paused(async {
        let world = world(3).await;
        let rule = json!({ "hostname": hostname("b", 0), "service": "http://b:80" });
        let body = json!({ "config": { "ingress": [rule, { "service": "http_status:404" }] } });
        let path =
            format!("https://api.cloudflare.com/client/v4/accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations");
        let request = http::Request::put(path).header("authorization", format!("Bearer {}", token("a")));
        let request = request.header("content-type", "application/json").body(body.to_string().into()).unwrap();
        world.cloudflare.simulator.answer(request).await.unwrap();
        world
    });

    let requests = world.cloudflare.simulator.take_requests();
    assert!(std::panic::catch_unwind(|| assert_own_tokens(&requests)).is_err());
}
