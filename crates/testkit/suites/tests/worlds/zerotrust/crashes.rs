//! Scenarios 41–50: processes that die, APIs that fail, limits that are obeyed. The crash points of all steps are here too.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault, Grant, RecordedRequest, credential_id};
use portolan_testkit_suites::crash::{Tried, at_every_step};
use portolan_testkit_suites::failpoints::StopSide;
use portolan_testkit_suites::manifests::CANARY;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::edge_monitor::EdgeMonitor;
use portolan_testkit_suites::zerotrust::manifests::in_namespace;
use portolan_testkit_suites::zerotrust::wishes::NameWish;
use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, Roles, RouteManifest, TUNNEL, tenant, token_secret};
use portolan_testkit_suites::{World, paused, tell};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{publish, settled};

/// For the write of a claim, and for looking when it is there.
const SOME: Duration = Duration::from_secs(2);

fn with_token() -> RouteManifest {
    RouteManifest::to("api", "api.example.com").allowing("user@example.com").with("serviceToken", "true")
}

/// One of everything, and the Secret opens the edge.
async fn assert_published(world: &World, place: &str) {
    let name = world.name("api.example.com");
    assert_eq!((name.rules().len(), name.records().len(), name.apps().len()), (1, 1, 1), "{place}");
    assert_eq!(world.cloudflare.all("service_tokens").len(), 1, "{place}");
    assert!(name.opens_with_token_of("api").await, "{place}: the Secret opens the name: {:#?}", name.app());
    assert!(!name.is_public(), "{place}");
    assert_eq!(world.tasks().await, Vec::<Value>::new(), "{place}");
}

fn calls(world: &World, method: &str, end: &str) -> usize {
    let requests = world.cloudflare.simulator.requests();
    requests.iter().filter(|one| one.method == method && one.route().ends_with(end)).count()
}

#[tokio::test(start_paused = true)]
async fn scenario_41_a_dead_workers_task_is_taken_over_when_its_lease_has_expired() {
    let world = z::world().roles(Roles::apart(2)).start().await;
    world.crash_part(z::worker(2)).await;
    let dying = world.failpoints_of(z::worker(1)).clone();
    dying.stop_on("PUT /client/v4/accounts", StopSide::Before);
    world.cluster.apply(with_token().manifest()).await;
    dying.halted().await;
    world.crash_part(z::worker(1)).await;
    assert_eq!(world.tasks().await[0]["status"]["phase"], "InProgress");
    let died = Instant::now();

    world.restart_part(z::worker(2)).await;
    let taken = async |world: &World| {
        world.tasks().await.first().is_none_or(|task| task["status"]["workerPod"] == "cloudflare-worker-2")
    };
    while !taken(&world).await && died.elapsed() < Duration::from_secs(300) {
        world.pass(Duration::from_millis(500)).await;
    }
    let taken_after = died.elapsed();
    let done = world.holds_within(Duration::from_secs(60), async |world: &World| world.tasks().await.is_empty()).await;

    let (lease, renewal) = (Duration::from_secs(60), Duration::from_secs(10));
    // The last sign was up to one renewal old, and others look as often as it is renewed.
    assert!(taken_after + renewal >= lease && taken_after <= lease + renewal + SOME, "{taken_after:?}");
    assert!(done, "{:#?}", world.tasks().await);
    assert_published(&world, "after the take-over").await;
    world.settle().await;
    world.assert_sound("scenario 41").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_42_killed_after_the_tokens_post_there_is_one_token_and_a_valid_secret() {
    let world = settled([]).await;
    world.failpoints.stop_on(&format!("POST /client/v4/accounts/{ACCOUNT}/access/service_tokens"), StopSide::After);
    world.cluster.apply(with_token().manifest()).await;
    world.failpoints.halted().await;
    assert_eq!(world.cloudflare.all("service_tokens").len(), 1, "the token was made");

    world.restart().await;
    world.settle().await;

    assert_published(&world, "after the restart").await;
    world.assert_sound("scenario 42").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_43_killed_between_the_steps_of_collection_it_converges() {
    for (text, side) in [
        ("/api/v1/namespaces/default/secrets", StopSide::Before),
        ("/api/v1/namespaces/default/secrets", StopSide::After),
        ("/api/v1/namespaces/cloudflare-zero-trust/configmaps", StopSide::After),
        ("/httproutes/api", StopSide::After),
        (
            "DELETE /apis/cfzt.cloudflare.com/v1alpha1/namespaces/cloudflare-zero-trust/cloudflaretasks",
            StopSide::Before,
        ),
        ("DELETE /apis/cfzt.cloudflare.com/v1alpha1/namespaces/cloudflare-zero-trust/cloudflaretasks", StopSide::After),
    ] {
        let world = settled([]).await;
        world.failpoints.stop_on(text, side);
        world.cluster.apply(with_token().manifest()).await;
        let came = tokio::time::timeout(Duration::from_secs(600), world.failpoints.halted()).await;
        assert!(came.is_ok(), "it comes to {text}: {:#?}", world.failpoints.steps());

        world.restart().await;
        world.settle().await;

        assert_published(&world, text).await;
        world.assert_sound(text).await;
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_44_two_workers_carry_every_task_out_once() {
    let world = z::world().roles(Roles::apart(2)).latency(Duration::from_millis(100)).start().await;
    let routes: Vec<Value> = (0..20)
        .map(|n| RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com")).allowing("user@example.com").into())
        .collect();

    world.cluster.create_all(&routes).await;
    world.settle().await;

    for n in 0..20 {
        let host = format!("r{n}.example.com");
        assert!(world.name(&host).lets_in("user@example.com") && world.name(&host).rules().len() == 1, "{host}");
    }
    assert_eq!(calls(&world, "POST", "/access/apps"), 20, "no application is asked for twice");
    assert_eq!(calls(&world, "DELETE", ""), 0);
    world.assert_sound("scenario 44").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_45_a_spec_that_changes_under_way_is_carried_out_afterwards() {
    let world = z::world().latency(Duration::from_secs(2)).start().await;
    world.cluster.apply(RouteManifest::to("app", "app.example.com").allowing("one@example.com").manifest()).await;
    let claimed =
        async |world: &World| world.tasks().await.first().is_some_and(|task| task["status"]["phase"] == "InProgress");
    assert!(world.holds_within(Duration::from_secs(60), claimed).await);

    publish(&world, RouteManifest::to("app", "app.example.com").allowing("two@example.com")).await;

    let name = world.name("app.example.com");
    assert!(name.lets_in("two@example.com") && !name.lets_in("one@example.com"));
    assert_eq!(world.tasks().await, Vec::<Value>::new());
    world.forget();
    world.crash().await;
    world.restart().await;
    world.settle().await;
    assert_eq!(world.writes(), [""; 0], "the stored hash is the new one");
    world.assert_sound("scenario 45").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_46_a_retry_after_is_obeyed_and_others_go_on() {
    let world = settled([]).await;
    world.cloudflare.simulator.add_token("another-token", Grant::all());
    world.cluster.apply(&token_secret("apps", "cloudflare-api-token", "another-token")).await;
    world.cluster.apply(&in_namespace(tenant("apps"), "apps")).await;
    world.settle().await;
    world.forget();
    let fault = Fault::on("", "/cfd_tunnel/", Effect::status(429)).retry_after(Duration::from_secs(30)).times(1);
    world.cloudflare.fault(fault);

    world.cluster.apply(RouteManifest::to("slow", "slow.example.com").manifest()).await;
    let refused = world.holds_within(Duration::from_secs(20), async |world: &World| {
        world.cloudflare.simulator.requests().iter().any(|one| one.status == 429)
    });
    assert!(refused.await);
    let refused_at =
        world.cloudflare.simulator.requests().iter().find(|one| one.status == 429).map_or(0, |one| one.at_ms);
    world.cluster.apply(RouteManifest::to("fast", "fast.example.com").within("apps").manifest()).await;
    let fast =
        world.holds_within(Duration::from_secs(20), async |world: &World| world.name("fast.example.com").is_public());
    assert!(fast.await, "another credential goes on");
    assert!(!world.name("slow.example.com").is_published());
    world.settle_within(Duration::from_secs(600)).await;
    world.pass(Duration::from_secs(60)).await;

    assert!(world.name("slow.example.com").is_public());
    assert!(!world.tasks().await.iter().any(|task| task["status"]["phase"] == "Failed"));
    let of = |token: &str, one: &RecordedRequest| one.credential == credential_id(token);
    let paused = |one: &&RecordedRequest| one.at_ms > refused_at && one.at_ms < refused_at + 30_000;
    let asked = world.cloudflare.simulator.requests();
    let early = asked.iter().filter(paused).filter(|one| of(CANARY, one));
    let early: Vec<String> = early.map(|one| format!("{} {}", one.method, one.path)).collect();
    assert_eq!(early, [""; 0], "no call on that credential, not even to look");
    assert!(asked.iter().filter(paused).any(|one| of("another-token", one)));
}

#[tokio::test(start_paused = true)]
async fn scenario_47_a_server_error_is_tried_again_and_a_refusal_is_not() {
    let world = settled([]).await;
    world.cloudflare.fault(Fault::on("POST", "/access/apps", Effect::status(500)).times(2));
    world.cluster.apply(RouteManifest::to("app", "app.example.com").allowing("user@example.com").manifest()).await;
    let mut phases = std::collections::BTreeSet::new();
    for _ in 0..600 {
        phases
            .extend(world.tasks().await.iter().filter_map(|task| task["status"]["phase"].as_str().map(str::to_owned)));
        world.pass(Duration::from_millis(100)).await;
    }
    world.settle().await;
    assert!(world.name("app.example.com").lets_in("user@example.com"));
    assert!(!phases.contains("Failed"), "{phases:?}");

    // What is wrong for good is told by the first text; after the second, only a fresh look can tell.
    for (route, text) in [("zone", "domain does not belong to zone"), ("policy", "policy does not exist")] {
        let hostname = format!("{route}.example.com");
        world.cloudflare.simulator.clear_faults();
        world.cloudflare.fault(Fault::on("POST", "/access/apps", refused_by_access(text)));
        world.forget();
        publish(&world, RouteManifest::to(route, &hostname).allowing("user@example.com")).await;
        world.pass(Duration::from_secs(1800)).await;

        assert_eq!(calls(&world, "POST", "/access/apps"), 1, "{text}: a single attempt");
        let tasks = world.tasks().await;
        let task = tasks.iter().find(|task| task["spec"]["hostname"] == hostname.as_str()).expect("it failed");
        assert_eq!(task["status"]["phase"], "Failed", "{text}");
        let message = task["status"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("12130") && message.contains(text), "{message}");
        let events = world.cluster.told(&format!("HTTPRoute/default/{route}")).await;
        assert!(events.iter().any(|event| event.contains("12130")), "{events:?}");
        assert!(!world.name(&hostname).is_published(), "{text}");
    }
    assert!(world.name("app.example.com").lets_in("user@example.com"));
}

/// What Access answers to nearly everything that it does not take.
fn refused_by_access(text: &str) -> Effect {
    Effect::Status { status: 400, code: 12130, message: format!("access.api.error.invalid_request: {text}") }
}

#[tokio::test(start_paused = true)]
async fn scenario_48_without_access_nothing_is_published() {
    let outside = refused_by_access("domain does not belong to zone");
    let refusals = [Effect::status(400), outside];
    for effect in [Effect::status(500), Effect::status(403), Effect::Timeout].into_iter().chain(refusals.clone()) {
        let world = settled([]).await;
        world.cloudflare.fault(Fault::on("POST", "/access/apps", effect.clone()));

        world.cluster.apply(RouteManifest::to("app", "app.example.com").allowing("user@example.com").manifest()).await;
        world.pass(Duration::from_secs(1200)).await;
        assert!(!world.name("app.example.com").is_published(), "{effect:?}");
        assert_eq!(calls(&world, "PUT", "/configurations"), 0, "{effect:?}");

        world.cloudflare.simulator.clear_faults();
        if !refusals.contains(&effect) {
            let opened = world.holds_within(Duration::from_secs(1200), async |world: &World| {
                world.name("app.example.com").lets_in("user@example.com")
            });
            assert!(opened.await, "{effect:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_49_a_signal_releases_the_claim_in_time() {
    let world = z::world().latency(Duration::from_secs(4)).start().await;
    world.cluster.apply(with_token().manifest()).await;
    let claimed = world.holds_within(Duration::from_secs(60), async |world: &World| {
        world.tasks().await.first().is_some_and(|task| task["status"]["phase"] == "InProgress")
    });
    assert!(claimed.await);
    world.pass(Duration::from_secs(1)).await;
    let begin = Instant::now();

    world.stop().await;

    assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    let task = world.tasks().await.remove(0);
    assert_eq!(task["status"]["phase"], "Pending", "{task:#}");
    assert_eq!(task["status"]["workerPod"], "");
    world.restart().await;
    world.settle().await;
    assert_published(&world, "after the next start").await;
    world.assert_sound("scenario 49").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_50_two_minutes_without_the_cluster_are_survived() {
    let world =
        settled([RouteManifest::to("before", "before.example.com"), RouteManifest::to("gone", "gone.example.com")])
            .await;
    world.cluster.apply(with_token().manifest()).await;
    let (broken, asked) = (world.failpoints.broken(), world.failpoints.requests());
    world.failpoints.cluster_down(true);
    world.cluster.apply(RouteManifest::to("during", "during.example.com").manifest()).await;
    world.cluster.delete("HTTPRoute/default/gone").await;
    world.pass(Duration::from_secs(120)).await;
    assert!(world.failpoints.broken() > broken, "watches that were open broke");
    let tries = world.failpoints.requests() - asked;
    assert!((1..2000).contains(&tries), "it still runs and tries again, now and then: {tries} times in two minutes");
    // Whoever goes on from where it was learns that it is too late for that, and lists anew.
    world.forget_history();

    world.failpoints.cluster_down(false);
    let back = world.holds_within(Duration::from_secs(900), async |world: &World| {
        world.name("during.example.com").is_public()
            && world.name("gone.example.com").is_gone()
            && world.name("api.example.com").opens_with_token_of("api").await
    });

    assert!(back.await);
    assert!(world.failpoints.expired() > 0, "some were told 410");
    world.settle().await;
    assert_published(&world, "after the outage").await;
    world.assert_sound("scenario 50").await;
}

/// From now on somebody looks on that these names are as wished.
fn watched(world: &World, wishes: &[(&str, NameWish)]) {
    let monitor = EdgeMonitor::post(world);
    for (hostname, wish) in wishes {
        monitor.wish(world, hostname, *wish);
    }
}

/// Kills the operator before and after each step of an act; says how often.
fn killed(name: &str, prepare: impl AsyncFn(&World), act: impl AsyncFn(&World)) -> Tried {
    let tried = paused(at_every_step(name, &z::world(), prepare, act));
    tell(&format!("crash points: {} (zerotrust {name}: {} steps)", tried.crashes, tried.steps));
    assert!(tried.crashes >= 10 && tried.missed == 0, "{tried:?}");
    tried
}

#[test]
fn killed_at_every_step_of_publishing_it_ends_as_if_nothing_happened() {
    killed(
        "publish",
        async |_: &World| {},
        async |world: &World| {
            world.cluster.apply(with_token().manifest()).await;
        },
    );
}

#[test]
fn killed_at_every_step_of_an_update_it_ends_as_if_nothing_happened() {
    let prepare = async |world: &World| drop(world.cluster.apply(with_token().manifest()).await);
    killed("update", prepare, async |world: &World| {
        watched(world, &[("api.example.com", NameWish::Protected)]);
        let route = with_token()
            .allowing("other@example.com")
            .with("origin.url", "http://other:81")
            .with("serviceToken.duration", "4380h");
        world.cluster.apply(route.manifest()).await;
    });
}

#[test]
fn killed_at_every_step_of_a_rename_it_ends_as_if_nothing_happened() {
    let prepare = async |world: &World| drop(world.cluster.apply(with_token().manifest()).await);
    killed("rename", prepare, async |world: &World| {
        let api = "api.example.com";
        watched(
            world,
            &[(api, NameWish::Protected), (api, NameWish::Gone), ("renamed.example.com", NameWish::Protected)],
        );
        world.cluster.apply(with_token().with("hostname", "renamed.example.com").manifest()).await;
    });
}

#[test]
fn killed_at_every_step_of_a_rotation_it_ends_as_if_nothing_happened() {
    let prepare = async |world: &World| drop(world.cluster.apply(with_token().manifest()).await);
    killed("rotate", prepare, async |world: &World| {
        watched(world, &[("api.example.com", NameWish::Protected)]);
        world.cluster.apply(with_token().with("serviceToken.rotate", "please").manifest()).await;
    });
}

#[test]
fn killed_at_every_step_of_unpublishing_it_ends_as_if_nothing_happened() {
    let prepare = async |world: &World| drop(world.cluster.apply(with_token().manifest()).await);
    killed("unpublish", prepare, async |world: &World| {
        watched(world, &[("api.example.com", NameWish::Protected), ("api.example.com", NameWish::Gone)]);
        world.cluster.delete("HTTPRoute/default/api").await;
    });
}

#[test]
fn killed_at_every_step_of_switching_access_off_it_ends_as_if_nothing_happened() {
    let prepare = async |world: &World| drop(world.cluster.apply(with_token().manifest()).await);
    killed("unprotect", prepare, async |world: &World| {
        watched(world, &[("api.example.com", NameWish::Protected), ("api.example.com", NameWish::Public)]);
        world.cluster.apply(RouteManifest::to("api", "api.example.com").manifest()).await;
    });
}

#[tokio::test(start_paused = true)]
async fn a_world_with_a_token_is_sound_in_the_end() {
    let world = settled([with_token()]).await;

    assert_published(&world, "at rest").await;
    world.assert_sound("at rest").await;
    let seeded = world.cloudflare.seeded();
    world.cluster.delete("HTTPRoute/default/api").await;
    world.settle().await;
    let mut now = world.cloudflare.simulator.state();
    let version = seeded["configurations"][TUNNEL]["version"].clone();
    now["configurations"][TUNNEL]["version"] = version;
    assert_eq!(json!(z::canonical::steady(&now)), json!(z::canonical::steady(&seeded)), "as seeded in {ACCOUNT}");
}
