//! Taking over from both older operators: what they left is kept, by its ids, and what was insecure is closed.

use std::collections::BTreeSet;

use portolan_cloudflare_sim::RecordedRequest;
use portolan_testkit_suites::cloudflare::shown;
use portolan_testkit_suites::crash::at_every_step_of_the_start;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::migration::{Extent, Older, states, texts};
use portolan_testkit_suites::zerotrust::{self as z, OPERATOR_NAMESPACE, TUNNEL};
use portolan_testkit_suites::{World, paused, tell};
use serde_json::{Value, json};

const PREFIX: &str = "cfzt.cloudflare.com/";
const FINALIZER: &str = "cfzt.cloudflare.com/cleanup";
const KOPF: &str = "kopf.zalando.org/KopfFinalizerMarker";
const COLLECTIONS: [&str; 4] = ["dns_records", "access_apps", "service_tokens", "access_policies"];

/// What was written to Cloudflare.
#[derive(Debug, Default)]
struct Written {
    creates: Vec<String>,
    deletes: Vec<String>,
    updates: Vec<String>,
}

impl Written {
    fn of(requests: &[RecordedRequest]) -> Self {
        let mut written = Self::default();
        for request in requests.iter().filter(|request| request.is_write()) {
            let named = |item: &Value| format!("{} {}", shown(request), item["name"].as_str().unwrap_or_default());
            let items = |verb: &str| request.body[verb].as_array().cloned().unwrap_or_default();
            written.creates.extend(items("posts").iter().map(named));
            written.deletes.extend(items("deletes").iter().map(named));
            written.updates.extend(items("patches").iter().chain(&items("puts")).map(named));
            let again = request.path.ends_with("/rotate") || request.path.ends_with("/refresh");
            match request.method.as_str() {
                _ if request.path.ends_with("/batch") => {}
                "POST" if !again => written.creates.push(named(&request.body)),
                "DELETE" => written.deletes.push(shown(request)),
                _ => written.updates.push(named(&request.body)),
            }
        }
        written
    }
}

/// A world that an older operator was in, before ours is started.
async fn left_by(older: Older, extent: Extent) -> World {
    let world = z::world().asleep().start().await;
    older.lay_down(&world, extent).await;
    world.forget();
    world
}

async fn taken_over(older: Older, extent: Extent) -> World {
    let world = left_by(older, extent).await;
    world.restart().await;
    world.settle().await;
    world
}

fn ids(world: &World) -> BTreeSet<String> {
    let all = COLLECTIONS.iter().flat_map(|collection| world.cloudflare.all(collection));
    all.filter_map(|one| one["id"].as_str().map(str::to_owned)).collect()
}

/// Nothing that tells of an older operator is left in the cluster.
async fn assert_ours(world: &World, older: Older) {
    for kind in ["HTTPRoute", "CloudflareZeroTrustTenant"] {
        for object in world.cluster.list(kind).await {
            let meta = &object["metadata"];
            assert!(!meta["finalizers"].to_string().contains(KOPF), "{meta:#}");
            assert!(!meta["annotations"].to_string().contains("kopf"), "{meta:#}");
            let enabled = meta["annotations"][format!("{PREFIX}enabled")] != "false";
            assert_eq!(meta["finalizers"] == json!([FINALIZER]), enabled, "{meta:#}");
        }
    }
    assert_eq!(world.tasks().await, Vec::<Value>::new(), "no task is left");
    for state in states(world).await {
        assert_eq!(state["data"]["schema_version"], "1", "{state:#}");
        assert_eq!(state["data"]["account_id"], z::ACCOUNT, "{state:#}");
    }
    for (place, text) in texts(world).await {
        for canary in older.canaries() {
            assert!(!text.contains(canary), "{canary} stands in {place}: {text}");
        }
    }
}

/// Every route shows what stands for it, and nothing else.
async fn assert_outputs(world: &World) {
    for route in world.cluster.list("HTTPRoute").await {
        let meta = &route["metadata"];
        let note = |suffix: &str| meta["annotations"][format!("{PREFIX}{suffix}")].as_str();
        let name = world.name(note("hostname").expect("every route has one"));
        let record = name.records().first().and_then(|record| record["id"].as_str().map(str::to_owned));
        let app = name.apps().first().and_then(|app| app["id"].as_str().map(str::to_owned));
        let told = note("cnameRecordId").or(note("dnsRecordId"));
        assert_eq!(told.map(str::to_owned), record, "{meta:#}");
        assert_eq!(note("accessAppId").map(str::to_owned), app, "{meta:#}");
        assert_eq!(note("hostnameRouteId"), (!name.rules().is_empty()).then_some(TUNNEL), "{meta:#}");
        assert_eq!((note("status"), note("statusMessage")), (None, None), "{meta:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_63_what_the_operator_with_tasks_left_is_taken_over_without_a_create_or_a_delete() {
    let older = Older::WithTasks;
    let world = left_by(older, Extent::Standing).await;
    let before = ids(&world);

    world.restart().await;
    world.settle().await;

    let written = Written::of(&world.cloudflare.simulator.requests());
    tell(&format!("migration: from the operator with tasks: {} updates", written.updates.len()));
    assert_eq!((written.creates.as_slice(), written.deletes.as_slice()), (&[][..], &[][..]), "{written:#?}");
    assert_eq!(ids(&world), before, "every id is kept");
    assert_ours(&world, older).await;
    assert_outputs(&world).await;
    assert!(world.name("shop.example.com").is_public() && world.name("docs.example.com").is_public());
    assert!(world.name("admin.example.com").lets_in("admin@example.com"));
    assert!(world.name("api.example.com").opens_with_token_of("api").await, "the old Secret opens the name now");
    assert!(world.name("fresh.example.com").opens_with_token_of("fresh").await, "its lost secret was made anew");
    assert!(world.name("busy.example.com").lets_in("busy@example.com") && !world.name("busy.example.com").is_public());
    assert!(!world.name("open.example.com").lets_in("anybody@example.net"), "everybody may no longer pass");
    world.assert_sound("scenario 63").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_62_what_the_operator_with_finalizers_left_is_taken_over_without_a_create_or_a_delete() {
    let older = Older::WithFinalizers;
    let world = left_by(older, Extent::Standing).await;
    let before = ids(&world);

    world.restart().await;
    world.settle().await;

    let written = Written::of(&world.cloudflare.simulator.requests());
    tell(&format!("migration: from the operator with finalizers: {} updates", written.updates.len()));
    assert_eq!((written.creates.as_slice(), written.deletes.as_slice()), (&[][..], &[][..]), "{written:#?}");
    assert_eq!(ids(&world), before, "every id is kept");
    assert_ours(&world, older).await;
    assert_outputs(&world).await;
    assert!(world.name("web.example.com").is_public(), "with the tenant of the operator's namespace");
    assert!(world.name("moved.example.com").lets_in("moved@example.com"));
    assert!(world.name("before.example.com").rules().is_empty(), "the rule of the old name is gone");
    assert!(world.name("api.example.com").opens_with_token_of("api").await, "the old Secret opens the name now");
    assert_eq!(world.output("api", "serviceTokenSecretName").await.as_deref(), Some("cfzt-svctoken-api"));
    assert!(!world.name("locked.example.com").lets_in("anybody@example.net"));
    world.assert_sound("scenario 62").await;
}

/// What has to be changed at Cloudflare, and why: the list that the documentation tells.
#[tokio::test(start_paused = true)]
async fn only_what_is_insecure_or_named_otherwise_is_updated() {
    let mut changed = Vec::new();
    for older in Older::ALL {
        let world = taken_over(older, Extent::Standing).await;
        let written = Written::of(&world.cloudflare.simulator.requests());
        let apps: BTreeSet<String> = written
            .updates
            .iter()
            .filter(|update| update.starts_with("PUT access/apps"))
            .filter_map(|update| update.split_whitespace().last().map(str::to_owned))
            .collect();
        let documents = written.updates.iter().filter(|update| update.contains("/configurations")).count();
        // Of a protected name that moved, the old rule goes first, and the new one asks for the application's token when the
        // application has followed.
        let moves = usize::from(older == Older::WithFinalizers);
        assert!(
            documents <= 1 + moves,
            "one document, written once, and once more for a name that moved: {written:#?}"
        );
        assert!(!written.updates.iter().any(|update| update.contains("dns_records")), "{written:#?}");
        changed.push(apps);
    }
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(
        changed[0],
        names(&["api", "busy", "failing", "fresh", "open"]),
        "a policy is missing or lets everybody in"
    );
    assert_eq!(changed[1], names(&["admin", "api", "locked", "moved", "team"]), "they are named as their routes are");
}

#[tokio::test(start_paused = true)]
async fn what_was_left_half_done_is_finished_and_nothing_besides() {
    let world = taken_over(Older::WithTasks, Extent::Unfinished).await;

    let written = Written::of(&world.cloudflare.simulator.requests());
    assert_eq!(written.creates.len(), 1, "the record that was deleted in the dashboard: {:?}", written.creates);
    assert!(world.name("lost.example.com").is_public());
    assert!(world.name("gone.example.com").is_gone(), "the deletion that was queued is carried out");
    assert_eq!(written.deletes.len(), 3, "record, application, token: {:?}", written.deletes);
    assert_ours(&world, Older::WithTasks).await;
    world.assert_sound("half done").await;
}

#[tokio::test(start_paused = true)]
async fn a_route_whose_deletion_hangs_for_the_older_finalizer_is_cleaned_up() {
    let world = left_by(Older::WithFinalizers, Extent::Unfinished).await;
    world.cluster.delete("HTTPRoute/default/hanging").await;
    assert!(world.cluster.get("HTTPRoute/default/hanging").await.is_some(), "the finalizer holds it");

    world.restart().await;
    world.settle().await;

    assert!(world.cluster.get("HTTPRoute/default/hanging").await.is_none());
    assert!(world.name("hanging.example.com").is_gone());
    let written = Written::of(&world.cloudflare.simulator.requests());
    assert_eq!(written.deletes.len(), 2, "its record and its application: {:?}", written.deletes);
    assert_eq!(written.creates.len(), 1, "the application that was deleted in the dashboard: {:?}", written.creates);
    assert!(world.name("lost.example.com").lets_in("lost@example.com"));
    world.assert_sound("hanging").await;
}

#[tokio::test(start_paused = true)]
async fn after_the_take_over_every_route_can_be_deleted_and_everything_of_it_goes_once() {
    for older in Older::ALL {
        let world = taken_over(older, Extent::Standing).await;
        world.forget();

        for route in world.cluster.list("HTTPRoute").await {
            world.cluster.delete(&portolan_testkit_suites::manifests::id(&route)).await;
        }
        release_deletions(&world).await;

        assert_eq!(world.cluster.list("HTTPRoute").await, Vec::<Value>::new(), "{older:?}");
        assert_eq!(states(&world).await, Vec::<Value>::new(), "{older:?}");
        let written = Written::of(&world.cloudflare.simulator.requests());
        let once: BTreeSet<&String> = written.deletes.iter().filter(|one| one.starts_with("DELETE")).collect();
        let all = written.deletes.iter().filter(|one| one.starts_with("DELETE")).count();
        assert_eq!((once.len(), written.creates.len()), (all, 0), "{older:?}: {written:#?}");
        world.assert_sound("everything is deleted").await;
        for tenant in world.cluster.list("CloudflareZeroTrustTenant").await {
            world.cluster.delete(&portolan_testkit_suites::manifests::id(&tenant)).await;
        }
        world.settle().await;
        assert_eq!(world.cluster.list("CloudflareZeroTrustTenant").await, Vec::<Value>::new(), "{older:?}");
    }
}

/// So many deletions at once are held until somebody says that they are meant.
async fn release_deletions(world: &World) {
    for _ in 0..4 {
        world.settle().await;
        for tenant in world.cluster.list("CloudflareZeroTrustTenant").await {
            let id = portolan_testkit_suites::manifests::id(&tenant);
            let held = portolan_testkit_suites::cluster::condition(&tenant, "Stalled");
            let message = held.and_then(|held| held["message"].as_str()).unwrap_or_default();
            let digest = message.split_once("release-deletions: \"").and_then(|(_, rest)| rest.split_once('"'));
            if let Some((digest, _)) = digest {
                world.cluster.annotate(&id, "portolan.dev/release-deletions", digest).await;
            }
        }
    }
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_is_deleted_first_waits_for_the_names_that_an_older_operator_published_with_it() {
    let world = left_by(Older::WithFinalizers, Extent::Routes(&["shop", "web"])).await;
    for tenant in [format!("{OPERATOR_NAMESPACE}/shared"), "default/prod".to_owned()] {
        world.cluster.delete(&format!("CloudflareZeroTrustTenant/{tenant}")).await;
    }

    world.restart().await;
    world.settle().await;

    assert_eq!(world.cluster.list("CloudflareZeroTrustTenant").await.len(), 2, "their names still stand");
    assert!(world.name("shop.example.com").is_public());
    for route in ["default/shop", "apps/web"] {
        world.cluster.delete(&format!("HTTPRoute/{route}")).await;
    }
    world.settle().await;
    world.pass(std::time::Duration::from_secs(600)).await;
    world.settle().await;
    assert!(world.name("shop.example.com").is_gone() && world.name("web.example.com").is_gone());
    assert_eq!(world.cluster.list("CloudflareZeroTrustTenant").await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_route_of_another_program_keeps_that_programs_finalizer() {
    let world = left_by(Older::WithFinalizers, Extent::Routes(&["shop"])).await;
    let mut theirs = Value::from(z::RouteManifest::new("theirs"));
    theirs["metadata"]["finalizers"] = json!([KOPF]);
    theirs["metadata"]["annotations"] = json!({ "kopf.zalando.org/last-handled-configuration": "{}" });
    world.cluster.apply(&theirs).await;

    world.restart().await;
    world.settle().await;
    world.cluster.delete("HTTPRoute/default/theirs").await;
    world.settle().await;

    let kept = world.cluster.get("HTTPRoute/default/theirs").await.expect("whose finalizer it is, he lets it go");
    assert_eq!(kept["metadata"]["finalizers"], json!([KOPF]));
    assert!(kept["metadata"]["annotations"].to_string().contains("last-handled"));
}

/// Kills the operator before and after each step of a take-over.
fn killed(name: &str, older: Older, routes: &'static [&'static str]) {
    let prepare = async |world: &World| older.lay_down(world, Extent::Routes(routes)).await;
    let tried = paused(at_every_step_of_the_start(name, &z::world(), prepare));
    tell(&format!("migration: {} crash points ({name}: {} steps)", tried.crashes, tried.steps));
    assert!(tried.crashes > tried.steps && tried.steps >= 10 && tried.missed == 0, "{tried:?}");
}

#[test]
fn killed_at_every_step_of_a_take_over_with_tasks_it_ends_as_if_nothing_happened() {
    killed("tasks of an older operator", Older::WithTasks, &["busy", "fresh", "gone"]);
}

#[test]
fn killed_at_every_step_of_a_take_over_of_states_it_ends_as_if_nothing_happened() {
    killed("states with secrets", Older::WithTasks, &["api", "docs"]);
}

#[test]
fn killed_at_every_step_of_a_take_over_with_finalizers_it_ends_as_if_nothing_happened() {
    killed("finalizers of an older operator", Older::WithFinalizers, &["api", "moved", "off"]);
}
