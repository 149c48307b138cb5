//! Scenarios 30–40: names that two want, documents that many share, things that others made.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use portolan_cloudflare_sim::RecordedRequest;
use portolan_testkit_suites::World;
use portolan_testkit_suites::failpoints::StopSide;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, RouteManifest, TUNNEL};
use serde_json::{Value, json};

use super::{publish, settled};

/// How often somebody looks.
const TICK: Duration = Duration::from_millis(100);

async fn told(world: &World, route: &str) -> Vec<String> {
    world.cluster.events(&format!("HTTPRoute/default/{route}")).await
}

#[tokio::test(start_paused = true)]
async fn scenario_30_the_older_route_has_the_name_and_the_newer_takes_over() {
    let older = RouteManifest::to("older", "app.example.com").with("origin.url", "http://older:80");
    let newer = RouteManifest::to("newer", "app.example.com").with("origin.url", "http://newer:80");
    let world = settled([older.clone()]).await;
    world.pass(Duration::from_secs(5)).await;

    publish(&world, newer).await;
    assert_eq!(told(&world, "newer").await, ["HostnameConflict"]);
    assert_eq!(world.name("app.example.com").rule()["service"], "http://older:80");
    world.crash().await;
    world.restart().await;
    world.settle().await;
    assert_eq!(world.name("app.example.com").rule()["service"], "http://older:80", "also after a restart");

    world.cluster.delete(&older.id()).await;
    world.settle_within(Duration::from_secs(20)).await;

    assert_eq!(world.name("app.example.com").rule()["service"], "http://newer:80");
    assert_eq!(world.name("app.example.com").records().len(), 1);
    assert!(world.name("app.example.com").is_public());
    world.assert_sound("scenario 30").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_30_of_two_that_nobody_holds_yet_the_older_wins_whatever_it_is_called() {
    let world = z::world().asleep().start().await;
    // By name the newer one would come first.
    world
        .cluster
        .apply(RouteManifest::to("z-older", "app.example.com").with("origin.url", "http://older:80").manifest())
        .await;
    world.pass(Duration::from_secs(5)).await;
    world
        .cluster
        .apply(RouteManifest::to("a-newer", "app.example.com").with("origin.url", "http://newer:80").manifest())
        .await;

    world.restart().await;
    world.settle().await;

    assert_eq!(world.name("app.example.com").rule()["service"], "http://older:80");
    assert_eq!(told(&world, "a-newer").await, ["HostnameConflict"]);
    assert!(!told(&world, "z-older").await.contains(&"HostnameConflict".to_owned()));
    world.assert_sound("scenario 30, by age").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_30_the_name_is_away_for_no_longer_than_one_reconcile() {
    let older = RouteManifest::to("older", "app.example.com").with("origin.url", "http://older:80");
    let world = settled([older.clone()]).await;
    world.pass(Duration::from_secs(5)).await;
    publish(&world, RouteManifest::to("newer", "app.example.com").with("origin.url", "http://newer:80")).await;

    world.cluster.delete(&older.id()).await;
    let (mut away, mut back) = (Duration::ZERO, false);
    for _ in 0..600 {
        let service = world.name("app.example.com").visited(&[]).rule.map(|rule| rule.service);
        back = service.as_deref() == Some("http://newer:80");
        if back {
            break;
        }
        away += if service.is_none() { TICK } else { Duration::ZERO };
        world.pass(TICK).await;
    }

    assert!(back, "the newer one has the name");
    // A reconcile of each side: the older one's withdrawal is told, the newer one's task is made and carried out.
    assert!(away <= Duration::from_secs(5), "away for {away:?}");
    world.settle().await;
    world.assert_sound("scenario 30, the gap").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_31_names_that_join_alike_have_states_and_tasks_of_their_own() {
    let world = z::world().latency(Duration::from_secs(2)).start().await;
    world.cluster.apply(&z::manifests::open_tenant("prod")).await;
    for namespace in ["a-b", "a"] {
        world.cluster.apply(&portolan_testkit_suites::manifests::namespace(namespace)).await;
    }

    world
        .cluster
        .apply(RouteManifest::to("c", "one.example.com").within("a-b").with("tenant", "default/prod").manifest())
        .await;
    world
        .cluster
        .apply(RouteManifest::to("b-c", "two.example.com").within("a").with("tenant", "default/prod").manifest())
        .await;
    let both = async |world: &World| world.tasks().await.len() == 2;
    assert!(world.holds_within(Duration::from_secs(60), both).await, "each has a task: {:#?}", world.tasks().await);
    let route_of = |task: &Value| {
        let route = &task["spec"]["httprouteRef"];
        format!("{}/{}", route["namespace"].as_str().unwrap_or_default(), route["name"].as_str().unwrap_or_default())
    };
    let mut tasks: Vec<(String, Value)> =
        world.tasks().await.iter().map(|task| (route_of(task), task["metadata"]["name"].clone())).collect();
    tasks.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!((tasks[0].0.as_str(), tasks[1].0.as_str()), ("a-b/c", "a/b-c"));
    assert_ne!(tasks[0].1, tasks[1].1, "and the tasks have names of their own");
    world.settle().await;

    assert!(world.name("one.example.com").is_public() && world.name("two.example.com").is_public());
    let states = world.cluster.list("ConfigMap").await;
    let mut names: Vec<String> = states
        .iter()
        .filter(|one| one["data"]["httproute_name"].is_string())
        .map(|one| {
            format!(
                "{}/{}",
                one["data"]["httproute_namespace"].as_str().unwrap_or_default(),
                one["data"]["httproute_name"].as_str().unwrap_or_default()
            )
        })
        .collect();
    names.sort();
    assert_eq!(names, ["a-b/c", "a/b-c"]);
    world.cluster.delete("HTTPRoute/a/b-c").await;
    world.settle().await;
    assert!(world.name("one.example.com").is_public() && world.name("two.example.com").is_gone());
    world.assert_sound("scenario 31").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_32_a_name_of_253_characters_is_no_trouble() {
    let long = vec!["x".repeat(62); 4].join(".") + "y";
    assert_eq!(long.len(), 252);
    let long = format!("{long}z");
    let route =
        RouteManifest::to(&long, "long.example.com").with("accessApp", "true").with("allowEmails", "user@example.com");
    let world = settled([route.clone()]).await;

    assert!(world.name("long.example.com").lets_in("user@example.com"));
    assert_eq!(world.tasks().await, Vec::<Value>::new());
    world.assert_sound("scenario 32").await;
    world.cluster.delete(&route.id()).await;
    world.settle().await;
    assert!(world.name("long.example.com").is_gone());
}

#[tokio::test(start_paused = true)]
async fn scenario_33_twenty_routes_at_once_lose_no_rule() {
    let world = z::world().latency(Duration::from_millis(150)).start().await;
    let routes: Vec<Value> =
        (0..20).map(|n| RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com")).into()).collect();

    world.cluster.create_all(&routes).await;
    world.settle().await;

    for n in 0..20 {
        assert!(world.name(&format!("r{n}.example.com")).is_public(), "r{n}");
    }
    world.assert_sound("scenario 33").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_34_edits_of_others_survive_and_one_between_read_and_write_is_told() {
    let world = settled([]).await;
    let path = format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations");
    let rule_of =
        |name: &str| json!({ "hostname": format!("{name}.example.com"), "service": format!("http://{name}:80") });
    let (earlier, theirs, later) = (rule_of("earlier"), rule_of("theirs"), rule_of("later"));
    let insert = |world: &World, rule: &Value| {
        let mut config = z::config(world, TUNNEL);
        config["ingress"].as_array_mut().expect("there are rules").insert(0, rule.clone());
        z::as_somebody(world, "PUT", &path, &json!({ "config": config }));
    };
    insert(&world, &earlier);
    let raced = std::sync::atomic::AtomicBool::new(false);
    let (edit_path, edit_rule) = (path.clone(), theirs.clone());
    world.cloudflare.hooks.add(StopSide::Before, move |call, simulator| {
        let writes = call.method == http::Method::PUT && call.path.ends_with("/configurations");
        if writes && !raced.swap(true, std::sync::atomic::Ordering::Relaxed) {
            let mut config = z::ask(simulator, "GET", &edit_path, &Value::Null)["result"]["config"].clone();
            config["ingress"].as_array_mut().expect("there are rules").insert(0, edit_rule.clone());
            z::ask(simulator, "PUT", &edit_path, &json!({ "config": config }));
        }
    });

    publish(&world, RouteManifest::to("app", "app.example.com")).await;

    assert_eq!(world.name("app.example.com").rules().len(), 1, "ours is there");
    let events = world.cluster.told("HTTPRoute/default/app").await;
    let race = events.iter().find(|event| event.starts_with("TunnelConfigRaced")).expect("the race is told");
    let versions: Vec<&str> = race.split(|c: char| !c.is_ascii_digit()).filter(|one| !one.is_empty()).collect();
    assert!(versions.len() >= 2, "both versions are told: {race}");
    insert(&world, &later);
    world.drift_pass().await;
    publish(&world, RouteManifest::to("second", "second.example.com")).await;
    let config = z::config(&world, TUNNEL);
    let rules = config["ingress"].as_array().expect("there are rules");
    assert!(
        rules.contains(&earlier) && rules.contains(&later),
        "edits before our read and after our write: {config:#}"
    );
    for name in ["app", "second"] {
        assert_eq!(world.name(&format!("{name}.example.com")).rules().len(), 1, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_35_what_others_have_in_the_document_stays_byte_for_byte() {
    let world = settled([]).await;
    let path = format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations");
    let answered = z::as_somebody(&world, "GET", &path, &Value::Null)["config"].clone();
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let texts = sent.clone();
    world.cloudflare.hooks.add(StopSide::Before, move |call, _| {
        if call.is_write() && call.path.ends_with("/configurations") {
            texts.lock().expect("nobody panics").push(call.text().to_owned());
        }
    });

    publish(&world, RouteManifest::to("app", "app.example.com")).await;
    world.cluster.delete("HTTPRoute/default/app").await;
    world.settle().await;

    let sent = sent.lock().expect("nobody panics");
    assert!(sent.len() >= 2, "written and taken out: {sent:#?}");
    let rules = answered["ingress"].as_array().expect("there are rules");
    let parts = rules.iter().chain([&answered["originRequest"], &answered["warp-routing"]]);
    for part in parts.map(Value::to_string) {
        assert!(sent.iter().all(|text| text.contains(&part)), "{part} is in each of {sent:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_35_what_others_have_in_the_document_stays_as_it_was() {
    let world =
        settled([RouteManifest::to("app", "app.example.com"), RouteManifest::to("other", "other.example.com")]).await;

    let mut config = z::config(&world, TUNNEL);
    let rules = config["ingress"].as_array_mut().expect("there are rules");
    rules.retain(|rule| !matches!(rule["hostname"].as_str(), Some("app.example.com" | "other.example.com")));

    assert_eq!(config.to_string(), z::foreign_config().to_string());
    assert_eq!(
        z::config(&world, TUNNEL)["ingress"].as_array().and_then(|all| all.last().cloned()),
        Some(json!({ "service": "http_status:503" }))
    );
    world.cluster.delete("HTTPRoute/default/app").await;
    world.cluster.delete("HTTPRoute/default/other").await;
    world.settle().await;
    assert_eq!(z::config(&world, TUNNEL).to_string(), z::foreign_config().to_string());
}

#[tokio::test(start_paused = true)]
async fn scenario_36_exact_names_come_before_wildcards() {
    let world = settled([
        RouteManifest::to("a", "a.example.com").with("origin.url", "http://exact:80"),
        RouteManifest::to("wild", "*.example.com").with("origin.url", "http://wild:80"),
        RouteManifest::to("b", "b.example.com").with("origin.url", "http://later:80"),
        RouteManifest::to("deep", "*.deep.example.com").with("origin.url", "http://deep:80"),
    ])
    .await;

    let served = |host: &str| world.name(host).visited(&[]).rule.map(|rule| rule.service);

    assert_eq!(served("a.example.com").as_deref(), Some("http://exact:80"));
    assert_eq!(served("b.example.com").as_deref(), Some("http://later:80"));
    assert_eq!(served("other.example.com").as_deref(), Some("http://wild:80"));
    assert_eq!(served("x.deep.example.com").as_deref(), Some("http://deep:80"));
    world.assert_sound("scenario 36").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_37_a_foreign_record_is_refused_or_adopted_and_then_not_deleted() {
    for (kind, content) in [("CNAME", "elsewhere.example.net"), ("A", "203.0.113.5")] {
        let world = settled([]).await;
        let body = json!({ "type": kind, "name": "app.example.com", "content": content, "ttl": 1, "proxied": true, "comment": "by hand" });
        let id = world.cloudflare.plant("dns_records", &body);
        publish(&world, RouteManifest::to("app", "app.example.com")).await;
        assert!(told(&world, "app").await.contains(&"DNSRecordConflict".to_owned()), "{kind}");
        assert_eq!(world.name("app.example.com").record()["content"], content);

        publish(&world, RouteManifest::to("app", "app.example.com").with("adopt", "true")).await;
        let record = world.name("app.example.com").record();
        assert_eq!((&record["id"], &record["content"]), (&json!(id), &json!(format!("{TUNNEL}.cfargotunnel.com"))));
        assert!(world.name("app.example.com").is_public());
        world.cluster.delete("HTTPRoute/default/app").await;
        world.settle().await;

        assert_eq!(world.name("app.example.com").record()["id"], json!(id), "adopted things are released");
        assert!(world.name("app.example.com").rules().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_38_an_application_on_page_three_is_found_and_a_lost_race_is_handled() {
    let world = z::world().largest_page(25).start().await;
    world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
    let app =
        |n: usize| json!({ "name": format!("app {n}"), "domain": format!("n{n}.example.org"), "type": "self_hosted" });
    for n in 0..60 {
        world.cloudflare.plant_in("access_apps", ACCOUNT, &app(n));
    }
    let theirs = json!({ "name": "made by hand", "domain": "app.example.com", "type": "self_hosted", "tags": [] });
    let id = world.cloudflare.simulator.put("access_apps", ACCOUNT, theirs).expect("it is made");
    let route = RouteManifest::to("app", "app.example.com").allowing("user@example.com");
    publish(&world, route.clone()).await;
    assert!(told(&world, "app").await.contains(&"AccessAppConflict".to_owned()), "{:?}", told(&world, "app").await);
    assert!(!world.name("app.example.com").is_published());
    let asked = world.cloudflare.simulator.requests();
    let third = |one: &RecordedRequest| one.route().ends_with("/access/apps") && one.query["page"] == "3";
    assert!(asked.iter().any(third), "the application stands on the third page");
    publish(&world, route.with("adopt", "true")).await;
    assert_eq!(world.name("app.example.com").app()["id"], json!(id));
    assert!(world.name("app.example.com").lets_in("user@example.com"));

    for (name, adopt) in [("raced", "true"), ("lost", "false")] {
        let hostname = format!("{name}.example.com");
        lose_the_race_for(&world, &hostname);
        publish(&world, RouteManifest::to(name, &hostname).allowing("user@example.com").with("adopt", adopt)).await;

        let raced = world.name(&hostname);
        assert_eq!(raced.apps().len(), 1, "{name}");
        assert!(!raced.is_public(), "{name}");
        assert_eq!(
            (raced.lets_in("user@example.com"), raced.is_published()),
            (adopt == "true", adopt == "true"),
            "{name}"
        );
    }
    assert!(told(&world, "lost").await.contains(&"AccessAppConflict".to_owned()));
}

/// Somebody makes the application of a name right before the operator does.
fn lose_the_race_for(world: &portolan_testkit_suites::World, hostname: &str) {
    let (once, hostname) = (std::sync::atomic::AtomicBool::new(false), hostname.to_owned());
    world.cloudflare.hooks.add(StopSide::Before, move |call, simulator| {
        let creates = call.method == http::Method::POST && call.path.ends_with("/access/apps");
        if creates && !once.swap(true, std::sync::atomic::Ordering::Relaxed) {
            let body = json!({ "name": "faster", "domain": hostname, "type": "self_hosted" });
            z::ask(simulator, "POST", &format!("accounts/{ACCOUNT}/access/apps"), &body);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn names_come_and_go_rightly_while_lists_lag_behind_writes() {
    let world = settled([]).await;
    for collection in ["access_apps", "access_policies", "service_tokens", "dns_records", "cfd_tunnel"] {
        world.cloudflare.simulator.set_lag(collection, Duration::from_secs(10));
    }
    let api = || RouteManifest::to("api", "api.example.com").with("serviceToken", "true");

    publish(&world, api().allowing("one@example.com")).await;
    publish(&world, RouteManifest::to("web", "web.example.com")).await;
    publish(&world, api().allowing("two@example.com")).await;
    // A listing that begins now shows what we wrote as gone.
    world.drift_pass().await;
    world.settle().await;

    let name = world.name("api.example.com");
    assert_eq!((name.rules().len(), name.records().len(), name.apps().len()), (1, 1, 1));
    assert_eq!(world.cloudflare.all("service_tokens").len(), 1);
    assert!(name.lets_in("two@example.com") && !name.lets_in("one@example.com") && !name.is_public());
    assert!(name.opens_with_token_of("api").await, "{:#?}", name.app());
    assert!(world.name("web.example.com").is_public());

    for route in ["api", "web"] {
        world.cluster.delete(&format!("HTTPRoute/default/{route}")).await;
    }
    world.settle().await;
    assert!(name.is_gone() && world.name("web.example.com").is_gone());
    assert_eq!(world.cloudflare.all("service_tokens"), Vec::<Value>::new());
    world.assert_sound("lagging lists").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_39_what_was_deleted_in_the_dashboard_is_made_again() {
    let route = RouteManifest::to("api", "api.example.com").allowing("user@example.com").with("serviceToken", "true");
    let world = settled([route]).await;
    let name = world.name("api.example.com");
    let token = world.cloudflare.all("service_tokens")[0]["id"].as_str().unwrap_or_default().to_owned();
    let (app, record) = (name.app(), name.record());

    world.cloudflare.remove("access_apps", app["id"].as_str().unwrap_or_default());
    world.cloudflare.remove("dns_records", record["id"].as_str().unwrap_or_default());
    world.cloudflare.remove("service_tokens", &token);
    world.drift_pass().await;
    world.settle().await;

    assert_ne!(name.app()["id"], app["id"]);
    assert_eq!(name.records().len(), 1);
    assert_eq!(world.cloudflare.all("service_tokens").len(), 1);
    assert!(name.opens_with_token_of("api").await, "{:#?}", name.app());
    assert_eq!(world.output("api", "accessAppId").await.as_deref(), name.app()["id"].as_str());
    let config = z::config(&world, TUNNEL);
    let path = format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations");
    let mut without = config.clone();
    without["ingress"].as_array_mut().expect("there are rules").retain(|rule| rule["hostname"] != "api.example.com");
    z::as_somebody(&world, "PUT", &path, &json!({ "config": without }));
    world.drift_pass().await;
    world.settle().await;
    assert_eq!(z::config(&world, TUNNEL), config, "the rule, too");
    world.assert_sound("scenario 39").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_40_a_reusable_policy_is_linked_and_left_as_it_was() {
    let world = settled([]).await;
    let body =
        json!({ "name": "Staff", "decision": "allow", "include": [{ "email": { "email": "boss@example.com" } }] });
    let policy = world.cloudflare.plant_in("access_policies", ACCOUNT, &body);
    let route = RouteManifest::to("app", "app.example.com").with("accessApp", "true");

    publish(&world, route.clone().with("access.existingPolicyNames", "Staff")).await;
    assert_eq!(world.name("app.example.com").app()["policies"][0]["id"], json!(policy));
    assert!(world.name("app.example.com").lets_in("boss@example.com"));
    publish(&world, route.clone().with("access.existingPolicyIds", &policy).with("allowEmails", "user@example.com"))
        .await;
    assert!(
        world.name("app.example.com").lets_in("boss@example.com")
            && world.name("app.example.com").lets_in("user@example.com")
    );
    assert_eq!(world.cloudflare.all("access_policies").len(), 2, "ours is reusable beside it");
    publish(&world, route.with("allowEmails", "user@example.com")).await;

    let name = world.name("app.example.com");
    assert!(name.lets_in("user@example.com") && !name.lets_in("boss@example.com"));
    assert_eq!(world.cloudflare.all("access_policies").len(), 1, "ours is inline again, theirs stays");
    world.assert_sound("scenario 40").await;
    world.cluster.delete("HTTPRoute/default/app").await;
    world.settle().await;
    assert_eq!(world.cloudflare.all("access_policies")[0]["id"], json!(policy));
}
