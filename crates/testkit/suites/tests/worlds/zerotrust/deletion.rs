//! Scenarios 51–63: what goes, in which order, what stays, and what older operators left.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault, Grant};
use portolan_testkit_suites::World;
use portolan_testkit_suites::manifests::{CANARY, ZONE_ID};
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::manifests::PREFIX;
use portolan_testkit_suites::zerotrust::{
    self as z, ACCOUNT, OPERATOR_NAMESPACE, Roles, RouteManifest, TUNNEL, template, tenant, token_secret,
};
use serde_json::{Value, json};

use super::{publish, settled};

const SECOND_ACCOUNT: &str = "fedcba9876543210fedcba9876543210";
const SECOND_TUNNEL: &str = "22222222-2222-3333-4444-555555555555";

fn with_token() -> RouteManifest {
    RouteManifest::to("api", "api.example.com").allowing("user@example.com").with("serviceToken", "true")
}

const API: &str = "HTTPRoute/default/api";

/// Nothing of a route is left, at Cloudflare or in the cluster.
async fn assert_clean(world: &World, place: &str) {
    assert_eq!(z::config(world, TUNNEL), z::foreign_config(), "{place}");
    for collection in ["dns_records", "access_apps", "service_tokens", "access_policies"] {
        assert_eq!(world.cloudflare.all(collection), Vec::<Value>::new(), "{place}: {collection}");
    }
    assert_eq!(world.tasks().await, Vec::<Value>::new(), "{place}");
    let maps = world.cluster.list("ConfigMap").await;
    let states: Vec<&Value> = maps.iter().filter(|one| one["data"]["httproute_name"].is_string()).collect();
    assert!(states.is_empty(), "{place}: {states:#?}");
    let secrets = world.cluster.list("Secret").await;
    let tokens: Vec<&Value> = secrets.iter().filter(|one| one.to_string().contains("service-token")).collect();
    assert!(tokens.is_empty(), "{place}: {tokens:#?}");
}

#[tokio::test(start_paused = true)]
async fn scenario_51_a_deleted_route_goes_in_the_safe_order() {
    let world = settled([with_token()]).await;

    world.cluster.delete(API).await;
    world.settle().await;

    let steps: Vec<String> = world.failpoints.steps().into_iter().map(|step| step.text).collect();
    let place = |fits: &dyn Fn(&str) -> bool, what: &str| {
        steps.iter().position(|step| fits(step)).unwrap_or_else(|| panic!("{what} is a step of {steps:#?}"))
    };
    let order = [
        place(&|step| !step.starts_with("GET") && step.contains("/dns_records"), "DNS"),
        place(&|step| step.starts_with("PUT") && step.contains("/configurations"), "rule"),
        place(&|step| step.starts_with("DELETE") && step.contains("/access/apps/"), "application"),
        place(&|step| step.starts_with("DELETE") && step.contains("/access/service_tokens/"), "token"),
        place(&|step| step.starts_with("DELETE") && step.contains("/secrets/api-cfzt-service-token"), "Secret"),
        place(&|step| step.starts_with("DELETE") && step.contains("/configmaps/cfzt-default-api"), "state"),
        steps.iter().rposition(|step| step.contains("/httproutes/api")).expect("the finalizer is taken off"),
    ];
    assert!(order.is_sorted(), "{order:?}: {steps:#?}");
    assert_eq!(world.cluster.get(API).await, None);
    assert_clean(&world, "scenario 51").await;
    world.assert_sound("scenario 51").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_52_deleted_under_way_nothing_remains() {
    for moment in [0, 1, 3, 5, 7, 9, 12, 15] {
        let world = z::world().latency(Duration::from_secs(2)).start().await;
        world.cluster.apply(with_token().manifest()).await;
        world.pass(Duration::from_secs(moment)).await;

        world.cluster.delete(API).await;
        world.settle().await;

        assert_eq!(world.cluster.get(API).await, None, "after {moment} s");
        assert_clean(&world, &format!("deleted after {moment} s")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_53_gone_already_is_success_and_a_failure_is_tried_again() {
    let world = settled([with_token()]).await;
    for collection in ["access_apps", "dns_records", "service_tokens"] {
        for one in world.cloudflare.all(collection) {
            world.cloudflare.remove(collection, one["id"].as_str().unwrap_or_default());
        }
    }
    let path = format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations");
    z::as_somebody(&world, "PUT", &path, &json!({ "config": z::foreign_config() }));
    world.cluster.delete(API).await;
    world.settle().await;
    assert_eq!(world.cluster.get(API).await, None);
    assert_clean(&world, "everything was gone").await;

    publish(&world, with_token()).await;
    world.cloudflare.fault(Fault::on("DELETE", "/access/apps/", Effect::status(500)));
    world.cluster.delete(API).await;
    world.pass(Duration::from_secs(300)).await;
    assert!(world.state_of("api").await.is_some(), "the state stays");
    assert!(world.cluster.get(API).await.is_some(), "the finalizer holds");
    assert!(!world.name("api.example.com").is_published(), "what was public is gone");

    world.cloudflare.simulator.clear_faults();
    let gone =
        world.holds_within(Duration::from_secs(1800), async |world: &World| world.cluster.get(API).await.is_none());
    assert!(gone.await);
    world.settle().await;
    assert_clean(&world, "after the failure").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_54_deleted_and_made_again_it_is_published() {
    for latency in [0, 300, 1000] {
        let world = z::world().latency(Duration::from_millis(latency)).start().await;
        publish(&world, with_token()).await;

        world.cluster.delete(API).await;
        world.pass(Duration::from_millis(400)).await;
        let made = world.holds_within(Duration::from_secs(60), async |world: &World| {
            world.cluster.try_create(with_token().manifest()).await.is_ok()
        });
        assert!(made.await, "the name is free again");
        world.settle().await;

        let name = world.name("api.example.com");
        assert_eq!((name.rules().len(), name.records().len(), name.apps().len()), (1, 1, 1), "{latency} ms");
        assert!(name.opens_with_token_of("api").await, "{latency} ms");
        world.assert_sound("scenario 54").await;
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_54_made_again_without_a_finalizer_it_keeps_what_it_had() {
    let world = settled([with_token()]).await;
    let app = world.name("api.example.com").app();
    world.crash().await;
    world.cluster.patch(API, &json!({ "metadata": { "finalizers": null } })).await;
    world.cluster.delete(API).await;
    assert_eq!(world.cluster.get(API).await, None);

    world.cluster.apply(with_token().manifest()).await;
    world.restart().await;
    world.settle().await;

    assert_eq!(world.name("api.example.com").app()["id"], app["id"], "adopted by its state");
    assert!(world.name("api.example.com").opens_with_token_of("api").await);
    world.assert_sound("made again").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_55_a_route_that_opts_out_is_cleaned_and_kept() {
    let world = settled([with_token()]).await;

    publish(&world, with_token().with("enabled", "false")).await;

    assert_clean(&world, "scenario 55").await;
    let route = world.cluster.get(API).await.expect("the route stays");
    assert_eq!(route["metadata"]["finalizers"].as_array().map_or(0, Vec::len), 0);
    for suffix in [
        "hostnameRouteId",
        "cnameRecordId",
        "accessAppId",
        "accessPolicyIds",
        "serviceTokenId",
        "serviceTokenSecretName",
        "lastReconcile",
    ] {
        assert_eq!(world.output("api", suffix).await, None, "{suffix}");
    }
    publish(&world, with_token()).await;
    assert!(world.name("api.example.com").opens_with_token_of("api").await, "and back");
}

#[tokio::test(start_paused = true)]
async fn scenario_56_a_new_hostname_leaves_nothing_of_the_old_one() {
    let world = settled([with_token()]).await;
    world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
    world.pass(Duration::from_secs(700)).await;
    let app = world.name("api.example.com").app()["id"].clone();
    let mut before = "api.example.com";

    let monitor = z::edge_monitor::EdgeMonitor::post(&world);
    monitor.wish(&world, before, z::wishes::NameWish::Protected);
    for hostname in ["api2.example.com", "api.example.org"] {
        monitor.wish(&world, before, z::wishes::NameWish::Gone);
        monitor.wish(&world, hostname, z::wishes::NameWish::Protected);
        publish(&world, with_token().with("hostname", hostname)).await;

        assert!(world.name(before).is_gone(), "{before}");
        assert_eq!(world.name(hostname).app()["id"], app, "the application keeps its id");
        assert!(world.name(hostname).opens_with_token_of("api").await, "{hostname}");
        monitor.assert_closed(&world, hostname);
        before = hostname;
    }
    world.assert_sound("scenario 56").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_57_another_account_gets_everything_and_the_old_one_keeps_nothing() {
    let world = settled([with_token()]).await;
    let simulator = &world.cloudflare.simulator;
    simulator.add_account_with_id(SECOND_ACCOUNT, "Second");
    simulator.add_token("second-token", Grant::all().account(SECOND_ACCOUNT));
    simulator.add_zone("example.net", SECOND_ACCOUNT, "free").expect("the zone is new");
    z::add_tunnel(&world, SECOND_ACCOUNT, SECOND_TUNNEL, "second");
    let mut second = tenant("second");
    second["spec"]["accountId"] = json!(SECOND_ACCOUNT);
    second["spec"]["tunnelId"] = json!(SECOND_TUNNEL);
    second["spec"]["credentialRef"]["name"] = json!("second-token");
    world.cluster.apply(&token_secret("default", "second-token", "second-token")).await;
    world.cluster.apply(&second).await;

    publish(&world, with_token().with("hostname", "api.example.net").with("tenant", "second")).await;

    let state = simulator.state();
    let count = |collection: &str, scope: &str| state[collection][scope].as_array().map_or(0, Vec::len);
    for collection in ["access_apps", "service_tokens"] {
        assert_eq!((count(collection, ACCOUNT), count(collection, SECOND_ACCOUNT)), (0, 1), "{collection}");
    }
    assert_eq!(count("dns_records", ZONE_ID), 0);
    assert_eq!(z::config(&world, TUNNEL), z::foreign_config());
    assert_eq!(z::rules(&world, SECOND_TUNNEL, "api.example.net").len(), 1);
    assert!(world.name("api.example.net").opens_with_token_of("api").await);
    assert_eq!(world.tasks().await, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn scenario_58_from_tunnel_to_dns_only_and_back_there_is_one_record() {
    let world = settled([RouteManifest::to("app", "app.example.com").with("template", "mode")]).await;
    world.cluster.apply(&template("mode", json!({ "dnsOnly": { "enabled": false } }))).await;
    world.settle().await;
    let direct = json!({ "dnsOnly": { "enabled": true, "staticIp": "192.168.1.1" } });

    for (spec, kind, rules) in
        [(direct.clone(), "A", 0), (json!({ "dnsOnly": { "enabled": false } }), "CNAME", 1), (direct, "A", 0)]
    {
        world.cluster.apply(&template("mode", spec)).await;
        world.settle().await;
        assert_eq!(world.name("app.example.com").record()["type"], kind);
        assert_eq!(world.name("app.example.com").rules().len(), rules);
        let id = if kind == "A" { "dnsRecordId" } else { "cnameRecordId" };
        let other = if kind == "A" { "cnameRecordId" } else { "dnsRecordId" };
        assert!(world.output("app", id).await.is_some() && world.output("app", other).await.is_none());
    }
    let refused = world.cloudflare.simulator.requests().iter().filter(|one| one.status >= 400).count();
    assert_eq!(refused, 0, "no conflict on the way");
    world.assert_sound("scenario 58").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_59_what_is_switched_off_is_removed_with_its_outputs() {
    let world = settled([with_token()]).await;
    let app = world.name("api.example.com").app()["id"].clone();

    publish(&world, RouteManifest::to("api", "api.example.com").allowing("user@example.com")).await;
    assert_eq!(world.cloudflare.all("service_tokens"), Vec::<Value>::new());
    assert_eq!(world.token_secret("api").await, None);
    assert_eq!(world.output("api", "serviceTokenId").await, None);
    assert_eq!(world.output("api", "serviceTokenSecretName").await, None);
    assert_eq!(world.name("api.example.com").app()["id"], app);
    assert_eq!(world.name("api.example.com").app()["policies"].as_array().map(Vec::len), Some(1));
    publish(&world, RouteManifest::to("api", "api.example.com")).await;

    assert!(world.name("api.example.com").apps().is_empty() && world.name("api.example.com").is_public());
    assert_eq!(world.output("api", "accessAppId").await, None);
    assert_eq!(world.output("api", "accessPolicyIds").await, None);
    world.assert_sound("scenario 59").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_60_a_tenant_that_goes_first_takes_nothing_along_unseen() {
    let world = settled([with_token()]).await;
    world.cluster.delete("CloudflareZeroTrustTenant/default/prod").await;
    world.settle().await;
    assert!(world.name("api.example.com").is_published(), "nothing goes because the tenant does");
    assert!(world.state_of("api").await.is_some());

    world.cluster.delete(API).await;
    world.settle().await;

    assert_clean(&world, "scenario 60").await;
    assert_eq!(world.cluster.get("CloudflareZeroTrustTenant/default/prod").await, None);

    let world = settled([with_token()]).await;
    world.cluster.delete("Secret/default/cloudflare-api-token").await;
    // A token that was just read is used for a few seconds more.
    world.pass(Duration::from_secs(10)).await;
    world.cluster.delete(API).await;
    world.pass(Duration::from_secs(600)).await;
    assert!(world.state_of("api").await.is_some(), "without a credential the state stays");
    world.cluster.apply(&token_secret("default", "cloudflare-api-token", CANARY)).await;
    let gone =
        world.holds_within(Duration::from_secs(600), async |world: &World| world.cluster.get(API).await.is_none());
    assert!(gone.await);
    world.settle().await;
    assert_clean(&world, "when the credential is back").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_61_what_is_out_of_sight_is_not_gone() {
    let world = z::world().start().await;
    for n in 0..3 {
        publish(&world, RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com"))).await;
    }
    world.stop().await;
    let world = world.with_roles(Roles::watching(&["apps"]));
    world.forget();
    world.restart().await;
    for _ in 0..3 {
        world.pass(Duration::from_secs(600)).await;
        world.drift_pass().await;
    }
    world.settle().await;
    assert_eq!(world.writes(), [""; 0], "a narrowed watch deletes nothing");
    world.stop().await;

    let world = world.with_roles(Roles::default());
    let definition = "CustomResourceDefinition/httproutes.gateway.networking.k8s.io";
    for n in 0..3 {
        world.cluster.patch(&format!("HTTPRoute/default/r{n}"), &json!({ "metadata": { "finalizers": null } })).await;
    }
    world.cluster.delete(definition).await;
    let gone = world
        .holds_within(Duration::from_secs(60), async |world: &World| world.cluster.get(definition).await.is_none());
    assert!(gone.await);
    world.restart().await;
    world.pass(Duration::from_secs(900)).await;
    assert_eq!(world.writes(), [""; 0], "a missing definition deletes nothing");

    world.cluster.install_definitions().await;
    for n in 0..3 {
        world.cluster.apply(RouteManifest::to(&format!("r{n}"), &format!("r{n}.example.com")).manifest()).await;
    }
    world.pass(Duration::from_secs(600)).await;
    world.settle().await;
    for n in 0..3 {
        assert!(world.name(&format!("r{n}.example.com")).is_public());
    }
    let writes = world.writes();
    assert!(!writes.iter().any(|write| write.contains("posts") || write.contains("deletes")), "{writes:?}");
    world.assert_sound("scenario 61").await;
}

/// A state as the Python operator left it, with its objects at Cloudflare.
async fn left_by_the_python_operator(world: &World) -> (String, String) {
    let record = json!({
        "type": "CNAME", "name": "app.example.com", "content": format!("{TUNNEL}.cfargotunnel.com"), "ttl": 1, "proxied": true,
    });
    let record = world.cloudflare.plant("dns_records", &record);
    let app = json!({
        "name": "cfzt-app.example.com", "domain": "app.example.com", "type": "self_hosted", "session_duration": "24h",
        "policies": [{ "name": "cfzt-app.example.com-allow", "decision": "allow", "precedence": 1, "include": [{ "email": { "email": "user@example.com" } }] }],
    });
    let app = world.cloudflare.simulator.put("access_apps", ACCOUNT, app).expect("the application is made");
    let path = format!("accounts/{ACCOUNT}/cfd_tunnel/{TUNNEL}/configurations");
    let mut config = z::config(world, TUNNEL);
    let rule = json!({ "hostname": "app.example.com", "service": z::ORIGIN });
    config["ingress"].as_array_mut().expect("there are rules").insert(0, rule);
    z::as_somebody(world, "PUT", &path, &json!({ "config": config }));
    world.cluster.apply(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "cfzt-default-app", "namespace": OPERATOR_NAMESPACE,
            "labels": { "app.kubernetes.io/managed-by": "cfzt-operator", format!("{PREFIX}httproute-name"): "app", format!("{PREFIX}httproute-namespace"): "default" },
        },
        "data": {
            "annotation_hash": "0123", "httproute_namespace": "default", "httproute_name": "app", "hostname": "app.example.com",
            "tunnel_id": TUNNEL, "zone_id": ZONE_ID, "tenant_name": "prod", "last_reconcile": "2026-01-01T00:00:00Z",
            "hostname_route_id": TUNNEL, "cname_record_id": record, "access_app_id": app,
        },
    })).await;
    (record, app)
}

#[tokio::test(start_paused = true)]
async fn scenario_62_what_the_python_operator_left_is_taken_over() {
    let world = z::world().asleep().start().await;
    let (record, app) = left_by_the_python_operator(&world).await;
    let mut route =
        Value::from(RouteManifest::to("app", "app.example.com").with("tenant", "prod").allowing("user@example.com"));
    route["metadata"]["finalizers"] = json!(["kopf.zalando.org/KopfFinalizerMarker"]);
    route["metadata"]["annotations"]["kopf.cfzt.cloudflare.com/last-handled-configuration"] = json!("{}");
    world.cluster.apply(&route).await;
    world.forget();

    world.restart().await;
    world.settle().await;

    let name = world.name("app.example.com");
    assert_eq!((&name.record()["id"], &name.app()["id"]), (&json!(record), &json!(app)));
    assert_eq!(name.rules().len(), 1);
    assert!(name.lets_in("user@example.com") && !name.is_public());
    let route = world.cluster.get("HTTPRoute/default/app").await.expect("it is there");
    assert_eq!(route["metadata"]["finalizers"], json!(["cfzt.cloudflare.com/cleanup"]));
    assert!(!route["metadata"]["annotations"].to_string().contains("kopf"), "{}", route["metadata"]["annotations"]);
    let made: Vec<String> = world
        .writes()
        .into_iter()
        .filter(|write| {
            write.starts_with("POST access/apps ")
                || write.contains("posts")
                || write.contains("deletes")
                || write.starts_with("DELETE")
        })
        .collect();
    assert_eq!(made, [""; 0], "nothing is made twice");
    world.cluster.delete("HTTPRoute/default/app").await;
    world.settle().await;
    assert_eq!(world.cluster.get("HTTPRoute/default/app").await, None);
}

#[tokio::test(start_paused = true)]
async fn scenario_63_a_secret_in_an_older_state_is_scrubbed() {
    let world = settled([RouteManifest::to("app", "app.example.com")]).await;
    world.stop().await;
    let record = world.name("app.example.com").record()["id"].clone();
    let ids = json!({
        "tunnelRouteId": TUNNEL, "cnameRecordId": record, "serviceTokenClientSecret": "canary-client-secret-in-a-state",
        "serviceTokenClientId": "x.access",
    });
    world.cluster.delete(&format!("ConfigMap/{OPERATOR_NAMESPACE}/cfzt-default-app")).await;
    world.cluster.apply(&json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "cfzt-default-app", "namespace": OPERATOR_NAMESPACE,
            "labels": {
                "app.kubernetes.io/name": "cloudflare-zero-trust-operator", "app.kubernetes.io/component": "state-tracker",
                format!("{PREFIX}httproute-name"): "app", format!("{PREFIX}httproute-namespace"): "default", format!("{PREFIX}tenant"): "prod",
            },
        },
        "data": {
            "annotation_hash": "abcdef", "cloudflare_ids": ids.to_string(), "last_sync_time": "2026-01-01T00:00:00Z",
            "httproute_namespace": "default", "httproute_name": "app", "hostname": "app.example.com",
            "tunnel_id": TUNNEL, "zone_id": ZONE_ID, "tenant_name": "prod",
        },
    })).await;
    world.forget();

    world.restart().await;
    world.settle().await;

    let state = world.state_of("app").await.expect("it is kept").to_string();
    assert!(!state.contains("canary-client-secret") && !state.contains("serviceTokenClientSecret"), "{state}");
    assert_eq!(world.name("app.example.com").record()["id"], record);
    let writes = world.writes();
    assert!(
        !writes.iter().any(|write| write.contains("posts") || write.contains("deletes") || write.starts_with("DELETE")),
        "{writes:?}"
    );
    world.assert_sound("scenario 63").await;
}

#[tokio::test(start_paused = true)]
async fn deleting_everything_leaves_cloudflare_as_it_was_seeded() {
    let world = settled([
        RouteManifest::to("plain", "plain.example.com"),
        with_token(),
        RouteManifest::to("team", "team.example.com").with("accessApp", "true").with("allowGroups", "Engineering"),
        RouteManifest::to("lan", "lan.example.com").with("dnsOnly.enabled", "true").with("dnsIp", "10.1.2.3"),
        RouteManifest::to("wild", "*.example.com").allowing("user@example.com"),
        RouteManifest::to("redirected", "redirected.example.com").with("origin.httpRedirect", "true"),
    ])
    .await;

    for route in world.cluster.list("HTTPRoute").await {
        world.cluster.delete(&portolan_testkit_suites::manifests::id(&route)).await;
    }
    world.settle().await;

    let (now, seeded) = (world.cloudflare.simulator.state(), world.cloudflare.seeded());
    assert_eq!(steady_dump(&now), steady_dump(&seeded));
    assert_clean(&world, "after deleting everything").await;
}

/// Everything but versions, times, empty scopes and rulesets without a rule: nobody can delete one only if it is empty.
fn steady_dump(state: &Value) -> Value {
    let mut steady = z::canonical::steady(state);
    for rulesets in steady["rulesets"].as_object_mut().into_iter().flat_map(|zones| zones.values_mut()) {
        if let Some(rulesets) = rulesets.as_array_mut() {
            rulesets.retain(|ruleset| ruleset["rules"].as_array().is_some_and(|rules| !rules.is_empty()));
        }
    }
    for collection in steady.as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
        if let Some(scopes) = collection.as_object_mut() {
            scopes.retain(|_, objects| objects.as_array().is_none_or(|objects| !objects.is_empty()));
        }
    }
    steady
}
