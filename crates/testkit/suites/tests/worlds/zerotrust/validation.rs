//! Scenarios 15–29: what is refused, what is waited for, and how it recovers.

use std::time::Duration;

use portolan_cloudflare_sim::{Grant, RightLevel};
use portolan_testkit_suites::World;
use portolan_testkit_suites::manifests::{CANARY, ZONE_ID};
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::manifests::{in_namespace, load_balancer, open_tenant};
use portolan_testkit_suites::zerotrust::{self as z, ACCOUNT, RouteManifest, TUNNEL, template, tenant, token_secret};
use serde_json::{Value, json};

use super::{publish, settled, tasks_made};

const SECOND_TUNNEL: &str = "22222222-2222-3333-4444-555555555555";

/// Recovery is by watch, not by luck.
const SECONDS: Duration = Duration::from_secs(10);

async fn told(world: &World, route: &str) -> Vec<String> {
    world.cluster.events(&format!("HTTPRoute/default/{route}")).await
}

#[tokio::test(start_paused = true)]
async fn scenario_15_a_bad_hostname_is_said_and_others_go_on() {
    let world = settled([]).await;
    let long = format!("{}.example.com", ["a"; 122].join("."));
    let bad = [
        "https://x.y/",
        "a..b",
        long.as_str(),
        "192.0.2.1",
        "x.example.com:443",
        "a.example.com,b.example.com",
        "single",
    ];

    for (number, hostname) in bad.iter().enumerate() {
        world.cluster.apply(RouteManifest::to(&format!("bad-{number}"), hostname).manifest()).await;
    }
    publish(&world, RouteManifest::to("good", "Good.Example.com.")).await;

    for (number, hostname) in bad.iter().enumerate() {
        assert_eq!(told(&world, &format!("bad-{number}")).await, ["InvalidHostname"], "{hostname}");
    }
    assert!(world.name("good.example.com").is_public());
    assert_eq!(tasks_made(&world), 1);
    assert_eq!(world.cloudflare.all("dns_records").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn scenario_16_a_route_without_a_hostname_is_told_so() {
    let world = settled([]).await;

    publish(&world, RouteManifest::new("nameless").with("enabled", "true")).await;

    assert_eq!(told(&world, "nameless").await, ["InvalidHostname"]);
    assert_eq!(tasks_made(&world), 0);
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn scenario_17_a_missing_template_publishes_nothing_until_it_is_there() {
    let world = settled([]).await;
    publish(&world, RouteManifest::to("app", "app.example.com").with("template", "typo")).await;
    assert_eq!(told(&world, "app").await, ["TemplateNotFound"]);
    assert!(world.cluster.told("HTTPRoute/default/app").await[0].contains("typo"));
    assert!(world.name("app.example.com").is_gone());
    assert_eq!(world.writes(), [""; 0]);

    let spec = json!({ "accessApplication": { "enabled": true, "allowEmails": ["user@example.com"] } });
    world.cluster.apply(&template("typo", spec)).await;
    world.settle_within(SECONDS).await;

    assert!(world.name("app.example.com").lets_in("user@example.com"));
    assert!(!world.name("app.example.com").is_public());
    world.assert_sound("scenario 17").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_18_a_missing_tenant_is_waited_for() {
    let world = settled([]).await;
    publish(&world, RouteManifest::to("app", "app.example.com").with("tenant", "later")).await;
    assert_eq!(told(&world, "app").await, ["TenantNotFound"]);
    assert!(world.name("app.example.com").is_gone());

    world.cluster.apply(&tenant("later")).await;
    world.settle_within(SECONDS).await;

    assert!(world.name("app.example.com").is_public());
    world.assert_sound("scenario 18").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_19_two_tenants_and_no_choice_are_ambiguous() {
    let world = settled([]).await;
    world.cluster.apply(&tenant("staging")).await;
    publish(&world, RouteManifest::to("app", "app.example.com")).await;
    assert_eq!(told(&world, "app").await, ["TenantAmbiguous"]);
    assert!(world.name("app.example.com").is_gone());

    publish(&world, RouteManifest::to("app", "app.example.com").with("tenant", "staging")).await;

    assert!(world.name("app.example.com").is_public());
    assert_eq!(world.state_of("app").await.expect("it is kept")["data"]["tenant_name"], "staging");
}

#[tokio::test(start_paused = true)]
async fn scenario_20_of_two_tenants_of_one_name_the_nearer_is_used() {
    let world = settled([]).await;
    z::add_tunnel(&world, ACCOUNT, SECOND_TUNNEL, "second");
    world.cloudflare.keep_seeded();
    world.cluster.apply(&open_tenant("prod")).await;
    let mut near = in_namespace(tenant("prod"), "apps");
    near["spec"]["tunnelId"] = json!(SECOND_TUNNEL);
    world.cluster.apply(&token_secret("apps", "cloudflare-api-token", CANARY)).await;
    world.cluster.apply(&near).await;

    publish(&world, RouteManifest::to("near", "near.example.com").within("apps").with("tenant", "prod")).await;
    publish(&world, RouteManifest::to("far", "far.example.com").within("apps").with("tenant", "default/prod")).await;

    assert_eq!(z::rules(&world, SECOND_TUNNEL, "near.example.com").len(), 1);
    assert!(world.name("near.example.com").rules().is_empty());
    assert_eq!(world.name("far.example.com").rules().len(), 1);
    assert!(z::rules(&world, SECOND_TUNNEL, "far.example.com").is_empty());
    world.assert_sound("scenario 20").await;
}

fn tenant_of_apps(secret: &str) -> Value {
    let mut tenant = in_namespace(tenant("apps"), "apps");
    tenant["spec"]["credentialRef"]["name"] = json!(secret);
    tenant
}

const APPS_TENANT: &str = "CloudflareZeroTrustTenant/apps/apps";

#[tokio::test(start_paused = true)]
async fn scenario_21_a_missing_secret_stops_its_own_tenant_alone() {
    let world = settled([]).await;
    world.cluster.apply(&tenant_of_apps("later")).await;
    world.cluster.apply(RouteManifest::to("waits", "waits.example.com").within("apps").manifest()).await;

    publish(&world, RouteManifest::to("goes", "goes.example.com")).await;

    assert_eq!(world.cluster.ready(APPS_TENANT).await, "False/CredentialNotFound");
    let message = world.cluster.message(APPS_TENANT).await;
    assert!(message.contains("Secret not found") && message.contains("later"), "{message}");
    assert_eq!(world.cluster.ready("CloudflareZeroTrustTenant/default/prod").await, "True/ReconcileSuccess");
    assert!(world.name("goes.example.com").is_public() && world.name("waits.example.com").is_gone());

    world.cluster.apply(&token_secret("apps", "later", CANARY)).await;
    world.settle_within(Duration::from_secs(30)).await;

    assert!(world.name("waits.example.com").is_public());
    assert_eq!(world.cluster.ready(APPS_TENANT).await, "True/ReconcileSuccess");
}

#[tokio::test(start_paused = true)]
async fn scenario_22_a_secret_without_its_key_and_a_refused_token_are_told_apart() {
    let world = settled([]).await;
    let mut secret = token_secret("apps", "keyless", CANARY);
    secret["stringData"] = json!({ "password": CANARY });
    world.cluster.apply(&secret).await;
    world.cluster.apply(&tenant_of_apps("keyless")).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(APPS_TENANT).await, "False/CredentialKeyMissing");

    world.cloudflare.simulator.revoke_token(CANARY);
    world.forget();
    publish(&world, RouteManifest::to("app", "app.example.com")).await;
    world.pass(Duration::from_secs(1200)).await;

    assert_eq!(world.cluster.ready("CloudflareZeroTrustTenant/default/prod").await, "False/CredentialInvalid");
    assert!(world.name("app.example.com").is_gone());
    let calls = world.cloudflare.take_requests();
    assert!(calls.len() <= 20, "no storm in twenty minutes: {calls:#?}");

    world.cloudflare.simulator.add_token("a-new-token", Grant::all());
    world.cluster.apply(&token_secret("default", "cloudflare-api-token", "a-new-token")).await;
    world.settle_within(Duration::from_secs(60)).await;

    assert!(world.name("app.example.com").is_public());
    assert_eq!(world.cluster.ready("CloudflareZeroTrustTenant/default/prod").await, "True/ReconcileSuccess");
}

#[tokio::test(start_paused = true)]
async fn scenario_23_without_a_zone_an_open_name_goes_on_without_dns_and_what_needs_a_zone_waits() {
    let world = settled([]).await;

    publish(&world, RouteManifest::to("open", "open.unknown.test")).await;
    publish(&world, RouteManifest::to("app", "app.unknown.test").allowing("user@example.com")).await;
    publish(
        &world,
        RouteManifest::to("lan", "lan.unknown.test").with("dnsOnly.enabled", "true").with("dnsIp", "10.0.0.1"),
    )
    .await;

    let (open, app) = (world.name("open.unknown.test"), world.name("app.unknown.test"));
    assert_eq!((open.rules().len(), open.records().len()), (1, 0));
    assert!(told(&world, "open").await.contains(&"DNSSkipped".to_owned()));
    for route in ["app", "lan"] {
        assert_eq!(told(&world, route).await, ["ZoneNotFound"], "{route}");
        assert!(world.name(&format!("{route}.unknown.test")).is_gone(), "{route}");
    }

    world.cloudflare.simulator.add_zone("unknown.test", ACCOUNT, "free").expect("the zone is new");
    world.pass(Duration::from_secs(120)).await;
    world.drift_pass().await;
    world.settle().await;
    assert_eq!(open.records().len(), 1, "found when looked for again");
    assert!(app.lets_in("user@example.com") && !app.is_public());
    world.assert_sound("scenario 23").await;
}

#[tokio::test(start_paused = true)]
async fn without_zero_trust_a_protected_name_waits_and_says_what_to_do() {
    let world = settled([]).await;
    world.cloudflare.simulator.disable_zero_trust(ACCOUNT);

    publish(&world, RouteManifest::to("open", "open.example.com")).await;
    publish(&world, RouteManifest::to("app", "app.example.com").allowing("user@example.com")).await;
    world.pass(Duration::from_secs(300)).await;

    assert!(world.name("open.example.com").is_public());
    assert!(!world.name("app.example.com").is_published());
    let events = world.cluster.told("HTTPRoute/default/app").await;
    let told = |event: &String| event.starts_with("ZeroTrustNotEnabled") && event.contains("choose a team name");
    assert!(events.iter().any(told), "{events:?}");
    assert_eq!(world.cluster.ready("CloudflareZeroTrustTenant/default/prod").await, "False/PartialFailure");

    world.cloudflare.simulator.enable_zero_trust(ACCOUNT);
    let opened = world.holds_within(Duration::from_secs(1200), async |world: &World| {
        world.name("app.example.com").lets_in("user@example.com")
    });
    assert!(opened.await, "it is tried again by itself");
}

#[tokio::test(start_paused = true)]
async fn scenario_24_the_longest_zone_is_chosen() {
    let world = settled([]).await;
    let zone = world.cloudflare.simulator.add_zone("dev.example.com", ACCOUNT, "free").expect("the zone is new");
    world.pass(Duration::from_secs(700)).await;

    publish(&world, RouteManifest::to("app", "a.dev.example.com")).await;

    let state = world.cloudflare.simulator.state();
    assert_eq!(state["dns_records"][&zone].as_array().map(Vec::len), Some(1));
    assert_eq!(state["dns_records"][ZONE_ID].as_array().map_or(0, Vec::len), 0);
    assert_eq!(world.state_of("app").await.expect("it is kept")["data"]["zone_id"], json!(zone));
}

#[tokio::test(start_paused = true)]
async fn scenario_25_a_tenants_zone_is_compared_and_trusted_where_zones_cannot_be_read() {
    let world = settled([]).await;
    let other = world.cloudflare.simulator.add_zone("example.org", ACCOUNT, "free").expect("the zone is new");
    let mut zoned = tenant("prod");
    zoned["spec"]["zoneId"] = json!(other);
    world.cluster.apply(&zoned).await;
    publish(&world, RouteManifest::to("app", "app.example.com")).await;
    assert!(told(&world, "app").await.contains(&"ZoneMismatch".to_owned()), "{:?}", told(&world, "app").await);
    assert_eq!(world.writes(), [""; 0]);

    let mut grant = Grant::all();
    for group in ["access_apps", "access_groups", "access_service_tokens", "dns", "rulesets", "tunnel"] {
        grant = grant.only(group, RightLevel::Edit);
    }
    world.cloudflare.simulator.add_token("cannot-read-zones", grant);
    world.cluster.apply(&token_secret("default", "cloudflare-api-token", "cannot-read-zones")).await;
    zoned["spec"]["zoneId"] = json!(ZONE_ID);
    world.cluster.apply(&zoned).await;
    world.settle_within(Duration::from_secs(60)).await;

    assert!(world.name("app.example.com").is_public());
}

#[tokio::test(start_paused = true)]
async fn scenario_26_only_addresses_that_can_be_published_safely_are() {
    let world = settled([]).await;
    let to = |name: &str, address: &str| {
        RouteManifest::to(name, &format!("{name}.example.com")).with("dnsOnly.enabled", "true").with("dnsIp", address)
    };
    for (name, address) in [
        ("six", "2001:db8::1"),
        ("multicast", "224.0.0.1"),
        ("loopback", "127.0.0.1"),
        ("garbage", "1.2.3"),
        ("zero", "0.0.0.0"),
    ] {
        publish(&world, to(name, address)).await;
        assert_eq!(told(&world, name).await, ["InvalidTargetIP"], "{address}");
    }
    publish(&world, to("public", "192.0.2.1").allowing("user@example.com")).await;
    assert_eq!(told(&world, "public").await, ["ProtectionImpossible"]);
    assert_eq!(world.writes(), [""; 0]);
    publish(&world, to("private", "100.64.0.1").allowing("user@example.com")).await;
    assert_eq!(world.name("private.example.com").record()["content"], "100.64.0.1");

    world.cluster.apply(&load_balancer("default", "ingress")).await;
    let spec = json!({ "dnsOnly": { "enabled": true, "ingressServiceRef": { "name": "ingress" } } });
    world.cluster.apply(&template("balanced", spec)).await;
    publish(&world, RouteManifest::to("lb", "lb.example.com").with("template", "balanced")).await;
    assert!(told(&world, "lb").await.contains(&"NoLoadBalancerIP".to_owned()));
    for address in ["10.0.0.7", "10.0.0.8"] {
        let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": address }] } } });
        world.cluster.patch_status("Service/default/ingress", &status).await;
        world.settle_within(SECONDS).await;
        assert_eq!(world.name("lb.example.com").record()["content"], address);
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_27_unknown_policies_and_groups_publish_nothing_until_they_are_there() {
    let world = settled([]).await;
    let app = |name: &str| RouteManifest::to(name, &format!("{name}.example.com")).with("accessApp", "true");
    publish(&world, app("by-policy").with("access.existingPolicyNames", "Staff")).await;
    publish(&world, app("by-group").with("allowGroups", "Enginering")).await;
    publish(&world, app("by-both").with("allowGroups", "Engineering,Enginering")).await;

    for (name, reason) in [("by-policy", "PolicyNotFound"), ("by-group", "GroupNotFound"), ("by-both", "GroupNotFound")]
    {
        let events = world.cluster.told(&format!("HTTPRoute/default/{name}")).await;
        assert!(events.iter().any(|event| event.starts_with(reason)), "{name}: {events:?}");
        assert!(world.name(&format!("{name}.example.com")).is_gone());
    }
    assert_eq!(world.writes(), [""; 0]);

    let body =
        json!({ "name": "Staff", "decision": "allow", "include": [{ "email": { "email": "boss@example.com" } }] });
    world.cloudflare.plant_in("access_policies", ACCOUNT, &body);
    world.cloudflare.plant_in(
        "access_groups",
        ACCOUNT,
        &json!({ "name": "Enginering", "include": [{ "everyone": {} }] }),
    );
    world.pass(Duration::from_secs(65)).await;
    world.settle().await;

    assert!(world.name("by-policy.example.com").lets_in("boss@example.com"));
    assert!(!world.name("by-policy.example.com").lets_in("other@example.com"));
    assert!(world.name("by-group.example.com").lets_in("anybody@example.org"));
    assert!(world.name("by-both.example.com").lets_in("anybody@example.org"));
}

#[tokio::test(start_paused = true)]
async fn scenario_28_access_without_rules_lets_nobody_in() {
    let world = settled([RouteManifest::to("app", "app.example.com").with("accessApp", "true")]).await;

    let name = world.name("app.example.com");

    assert_eq!(name.app()["policies"].as_array().map_or(0, Vec::len), 0);
    assert!(told(&world, "app").await.contains(&"NoAccessPolicy".to_owned()));
    assert!(!name.is_public() && !name.lets_in("user@example.com"));
    publish(
        &world,
        RouteManifest::to("app", "app.example.com").with("accessApp", "true").with("allowGroups", "everyone"),
    )
    .await;
    assert!(!name.is_public() && name.lets_in("anybody@example.org"), "everyone is let in only if asked for");
    world.assert_sound("scenario 28").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_29_one_routes_groups_are_not_anothers() {
    let world = settled([]).await;
    world
        .cluster
        .apply(
            RouteManifest::to("a", "a.example.com")
                .with("accessApp", "true")
                .with("allowGroups", "Engineering")
                .manifest(),
        )
        .await;
    world.cluster.apply(RouteManifest::to("b", "b.example.com").allowing("only@example.org").manifest()).await;
    world.settle().await;

    let app = world.name("b.example.com").app();

    assert_eq!(app["policies"][0]["include"], json!([{ "email": { "email": "only@example.org" } }]));
    assert!(world.name("a.example.com").lets_in("engineer@example.com"));
    assert!(!world.name("b.example.com").lets_in("engineer@example.com"));
    assert_eq!(z::config(&world, TUNNEL)["ingress"].as_array().map(Vec::len), Some(5));
}
