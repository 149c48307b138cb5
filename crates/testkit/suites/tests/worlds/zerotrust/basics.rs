//! Scenarios 1–14: what a route becomes, where its settings come from, and that rest is rest.

use std::time::Duration;

use portolan_testkit_suites::World;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::manifests::{PREFIX, load_balancer, reference_grant};
use portolan_testkit_suites::zerotrust::{self as z, ORIGIN, RouteManifest, TUNNEL, template, tenant};
use serde_json::{Value, json};

use super::{publish, settled, tasks_made};

fn protected() -> RouteManifest {
    RouteManifest::to("admin-panel", "admin.example.com").allowing("admin@example.com")
}

#[tokio::test(start_paused = true)]
async fn scenario_01_a_plain_route_gets_rule_record_outputs_and_state() {
    let world = settled([]).await;

    publish(&world, RouteManifest::to("simple-app", "simple.example.com")).await;

    let name = world.name("simple.example.com");
    assert_eq!(name.rule(), json!({ "hostname": "simple.example.com", "service": ORIGIN }));
    assert_eq!(name.record()["content"], json!(format!("{TUNNEL}.cfargotunnel.com")));
    assert!(name.is_public());
    assert_eq!(world.output("simple-app", "hostnameRouteId").await.as_deref(), Some(TUNNEL));
    assert_eq!(world.output("simple-app", "cnameRecordId").await, name.record()["id"].as_str().map(str::to_owned));
    assert!(world.state_of("simple-app").await.is_some());
    assert_eq!(world.tasks().await, Vec::<Value>::new());
    world.assert_sound("scenario 1").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_02_legacy_annotations_make_an_application_for_two_addresses() {
    let route = RouteManifest::to("admin-panel", "admin.example.com")
        .allowing("admin@example.com,manager@example.com")
        .with("sessionDuration", "8h");
    let world = settled([route]).await;

    let app = world.name("admin.example.com").app();

    assert_eq!((&app["name"], &app["session_duration"]), (&json!("admin-panel"), &json!("8h")));
    let includes =
        json!([{ "email": { "email": "admin@example.com" } }, { "email": { "email": "manager@example.com" } }]);
    assert_eq!(app["policies"].as_array().map(Vec::len), Some(1));
    assert_eq!(app["policies"][0]["include"], includes);
    assert!(world.name("admin.example.com").lets_in("manager@example.com"));
    assert!(!world.name("admin.example.com").lets_in("stranger@example.com"));
    assert!(!world.name("admin.example.com").is_public());
    world.assert_sound("scenario 2").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_03_a_service_token_opens_the_name_and_stands_in_a_secret() {
    let route = RouteManifest::to("api-service", "api.example.com")
        .with("accessApp", "true")
        .with("allowGroups", "Engineering")
        .with("serviceToken", "true");
    let world = settled([route]).await;

    let secret = world.cluster.get("Secret/default/api-service-cfzt-service-token").await.expect("the Secret is there");
    let keys: Vec<&String> = secret["data"].as_object().expect("it has data").keys().collect();
    assert_eq!(keys, ["CF_ACCESS_CLIENT_ID", "CF_ACCESS_CLIENT_SECRET", "client_id", "client_secret"]);
    let token = world.cloudflare.one("service_tokens", |one| one["name"] == "api-service-service-token");
    let app = world.name("api.example.com").app();
    let policies = app["policies"].as_array().cloned().unwrap_or_default();
    let service: Vec<&Value> = policies.iter().filter(|one| one["decision"] == "non_identity").collect();
    assert_eq!(service.len(), 1, "{policies:#?}");
    assert_eq!(service[0]["include"], json!([{ "service_token": { "token_id": token["id"] } }]));
    assert!(world.name("api.example.com").opens_with_token_of("api-service").await);
    assert!(!world.name("api.example.com").is_public());
    world.assert_sound("scenario 3").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_04_an_added_address_updates_the_same_application_and_policy() {
    let world = settled([RouteManifest::to("app", "app.example.com").allowing("user1@example.com")]).await;
    let before = world.name("app.example.com").app();

    publish(&world, RouteManifest::to("app", "app.example.com").allowing("user1@example.com,user2@example.com")).await;

    let after = world.name("app.example.com").app();
    assert_eq!(after["id"], before["id"]);
    assert_eq!(after["policies"][0]["id"], before["policies"][0]["id"]);
    assert_eq!(after["policies"][0]["include"].as_array().map(Vec::len), Some(2));
    assert_eq!(after["policies"].as_array().map(Vec::len), Some(1));
    let writes = world.writes();
    assert!(writes.len() == 1 && writes[0].contains("access/"), "{writes:?}");
    world.assert_sound("scenario 4").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_05_over_a_hundred_cycles_nothing_is_written() {
    let world = settled([
        RouteManifest::to("plain", "plain.example.com"),
        protected(),
        RouteManifest::to("api", "api.example.com")
            .with("accessApp", "true")
            .with("allowGroups", "Engineering")
            .with("serviceToken", "true"),
    ])
    .await;

    for _ in 0..100 {
        world.drift_pass().await;
        world.pass(Duration::from_secs(60)).await;
    }
    world.settle().await;

    assert_eq!(world.writes(), [""; 0]);
    assert_eq!(world.cluster_writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn scenario_06_the_operators_own_outputs_make_no_new_task() {
    let world = settled([]).await;

    publish(&world, protected()).await;
    world.pass(Duration::from_secs(300)).await;

    assert_eq!(tasks_made(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn scenario_07_outputs_that_a_user_edits_are_put_right_without_a_task() {
    let world = settled([protected()]).await;
    let before = world.output("admin-panel", "accessAppId").await;
    let time = world.output("admin-panel", "lastReconcile").await;

    for (suffix, value) in
        [("accessAppId", "11111111-1111-1111-1111-111111111111"), ("lastReconcile", "2001-01-01T00:00:00Z")]
    {
        world.cluster.annotate("HTTPRoute/default/admin-panel", &format!("{PREFIX}{suffix}"), value).await;
        world.settle().await;
    }

    assert_eq!(world.output("admin-panel", "accessAppId").await, before);
    assert_eq!(world.output("admin-panel", "lastReconcile").await, time);
    assert_eq!(tasks_made(&world), 0);
    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn scenario_08_outputs_and_finalizer_that_a_replace_strips_come_back_without_a_call() {
    let world = settled([protected()]).await;
    let outputs = ["hostnameRouteId", "cnameRecordId", "accessAppId", "accessPolicyIds", "lastReconcile"];
    let mut before = Vec::new();
    for suffix in outputs {
        before.push(world.output("admin-panel", suffix).await.expect("the output is there"));
    }
    let finalizers = async |world: &World| {
        let route = world.cluster.get("HTTPRoute/default/admin-panel").await.expect("the route is there");
        route["metadata"]["finalizers"].clone()
    };
    let held = finalizers(&world).await;
    assert_eq!(held.as_array().map(Vec::len), Some(1));

    let bare = world.cluster.replace(protected().manifest()).await;
    assert_eq!(bare["metadata"]["finalizers"], Value::Null);
    assert_eq!(bare["metadata"]["annotations"], protected().manifest()["metadata"]["annotations"]);
    world.settle().await;

    for (suffix, value) in outputs.iter().zip(before) {
        assert_eq!(world.output("admin-panel", suffix).await, Some(value), "{suffix}");
    }
    assert_eq!(finalizers(&world).await, held);
    assert_eq!(world.cloudflare.take_requests(), [""; 0]);
    assert_eq!(tasks_made(&world), 0);
}

/// What the fields that every layer can set are on a layer: 1 is the dotted annotation, 5 the tenant's defaults.
struct Layer(usize);

impl Layer {
    fn session(&self) -> String {
        format!("{}h", self.0)
    }

    fn url(&self) -> String {
        format!("https://layer-{}:443", self.0)
    }

    fn server_name(&self) -> String {
        format!("layer-{}.example.net", self.0)
    }

    /// As annotations, by the names of these fields.
    fn annotate(&self, route: RouteManifest, [session, url, server_name, timeout]: [&str; 4]) -> RouteManifest {
        let route = route.with(session, &self.session()).with(url, &self.url());
        route.with(server_name, &self.server_name()).with(timeout, &self.0.to_string())
    }

    /// As the spec of a template.
    fn template(&self) -> Value {
        let tls = json!({ "originServerName": self.server_name(), "tlsTimeout": self.0 });
        json!({
            "accessApplication": { "sessionDuration": self.session() },
            "originService": { "url": self.url(), "originTLS": tls },
        })
    }

    /// As the defaults of a tenant.
    fn defaults(&self) -> Value {
        let tls = json!({ "originServerName": self.server_name(), "tlsTimeout": self.0 });
        json!({ "sessionDuration": self.session(), "originService": self.url(), "originTLS": tls })
    }

    /// Session, origin, server name and timeout, as they are at Cloudflare.
    fn seen(&self) -> Value {
        json!([self.session(), self.url(), self.server_name(), self.0])
    }
}

const DOTTED: [&str; 4] = ["access.sessionDuration", "origin.url", "origin.originServerName", "origin.tlsTimeout"];
const ALIASES: [&str; 4] = ["sessionDuration", "originService", "origin-server-name", "tls-timeout"];

/// Says the fields on this layer and all below it, and nothing on those above.
async fn say_from(world: &World, highest: usize) {
    let nothing = json!({ "dnsOnly": { "enabled": false } });
    let layer = |number: usize| if highest <= number { Layer(number).template() } else { nothing.clone() };
    let mut prod = tenant("prod");
    let spec = prod["spec"].as_object_mut().expect("a tenant has a spec");
    spec.remove("defaults");
    spec.extend((highest <= 5).then(|| ("defaults".to_owned(), Layer(5).defaults())));
    world.cluster.apply(&prod).await;
    world.cluster.apply(&template("base-prod", layer(4))).await;
    world.cluster.apply(&template("mine", layer(3))).await;
    let mut route = RouteManifest::to("app", "app.example.com").allowing("user1@example.com").with("template", "mine");
    if highest <= 2 {
        route = Layer(2).annotate(route, ALIASES);
    }
    if highest <= 1 {
        route = Layer(1).annotate(route, DOTTED);
    }
    world.cluster.apply(route.manifest()).await;
    world.settle().await;
}

/// Session, origin, server name and timeout at Cloudflare.
fn seen(world: &World) -> Value {
    let name = world.name("app.example.com");
    let (app, rule) = (name.app(), name.rule());
    let tls = &rule["originRequest"];
    json!([app["session_duration"], rule["service"], tls["originServerName"], tls["tlsTimeout"]])
}

#[tokio::test(start_paused = true)]
async fn scenario_09_whatever_layer_is_the_highest_to_set_them_gives_all_fields() {
    let world = settled([]).await;
    for highest in 1..=5 {
        say_from(&world, highest).await;
        assert_eq!(seen(&world), Layer(highest).seen(), "layer {highest}");
    }
    say_from(&world, 6).await;

    let built_in = seen(&world);
    assert_eq!(built_in[0], "24h");
    assert_eq!(built_in[1], "http://app.default.svc.cluster.local:8080", "the route's own backend");
    assert_eq!(built_in[2], Value::Null);
    world.assert_sound("scenario 9, layer by layer").await;
}

async fn session(world: &World) -> String {
    world.settle().await;
    world.name("app.example.com").app()["session_duration"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn scenario_09_each_field_comes_from_the_highest_layer_that_sets_it() {
    let with_session = |layer: &str| json!({ "accessApplication": { "sessionDuration": layer } });
    let route = RouteManifest::to("app", "app.example.com").allowing("user1@example.com").with("template", "mine");
    let world = settled([]).await;
    let mut with_default = tenant("prod");
    with_default["spec"]["defaults"]["sessionDuration"] = json!("4h");
    world.cluster.apply(&with_default).await;
    world.cluster.apply(&template("base-prod", with_session("3h"))).await;
    world.cluster.apply(&template("mine", with_session("2h"))).await;

    world
        .cluster
        .apply(route.clone().with("access.sessionDuration", "1h").with("sessionDuration", "90m").manifest())
        .await;
    assert_eq!(session(&world).await, "1h", "the dotted annotation");
    world.cluster.apply(route.clone().with("sessionDuration", "90m").manifest()).await;
    assert_eq!(session(&world).await, "90m", "the legacy alias");
    world.cluster.apply(route.manifest()).await;
    assert_eq!(session(&world).await, "2h", "the route's template");
    world
        .cluster
        .apply(&template("mine", json!({ "accessApplication": { "logoUrl": "https://example.com/logo.png" } })))
        .await;
    assert_eq!(session(&world).await, "3h", "the base template");
    assert_eq!(world.name("app.example.com").app()["logo_url"], "https://example.com/logo.png", "field by field");
    let timed = json!({ "originService": { "url": "https://mine.example.svc", "originTLS": { "tlsTimeout": 7 } } });
    world.cluster.apply(&template("mine", timed)).await;
    world.cluster.apply(route.clone().with("origin-server-name", "alias.example.net").manifest()).await;
    world.settle().await;
    assert_eq!(
        seen(&world),
        json!(["3h", "https://mine.example.svc", "alias.example.net", 7]),
        "four fields, three layers"
    );
    world.cluster.apply(route.manifest()).await;
    world.cluster.apply(&template("base-prod", json!({ "dnsOnly": { "enabled": false } }))).await;
    assert_eq!(session(&world).await, "4h", "the tenant's defaults");
    world.cluster.apply(&tenant("prod")).await;
    assert_eq!(session(&world).await, "24h", "the built-in default");
    world.assert_sound("scenario 9").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_10_a_template_that_sets_one_tls_field_keeps_the_base_templates_others() {
    let world = settled([]).await;
    let base =
        json!({ "originService": { "url": "https://traefik.traefik.svc:443", "originTLS": { "noTLSVerify": true } } });
    world.cluster.apply(&template("base-prod", base)).await;
    world.cluster.apply(&template("slow", json!({ "originService": { "originTLS": { "tlsTimeout": 15 } } }))).await;

    publish(&world, RouteManifest::to("app", "app.example.com").with("template", "slow")).await;

    let rule = world.name("app.example.com").rule();
    assert_eq!(rule["service"], "https://traefik.traefik.svc:443");
    assert_eq!(rule["originRequest"]["noTLSVerify"], true);
    assert_eq!(rule["originRequest"]["tlsTimeout"], 15);
    assert_eq!(rule["originRequest"]["httpHostHeader"], "app.example.com");
}

#[tokio::test(start_paused = true)]
async fn scenario_11_the_template_named_default_is_used_where_none_is_named() {
    let world = settled([RouteManifest::to("app", "app.example.com")]).await;
    assert!(world.name("app.example.com").apps().is_empty());
    assert_eq!(world.name("app.example.com").rule()["service"], ORIGIN);

    let spec = json!({ "originService": { "url": "http://other.example.svc:81" } });
    world.cluster.apply(&template("default", spec)).await;
    world.settle_within(Duration::from_secs(30)).await;

    assert_eq!(world.name("app.example.com").rule()["service"], "http://other.example.svc:81");
}

#[tokio::test(start_paused = true)]
async fn scenario_12_the_hostname_is_put_into_the_server_name() {
    let world = settled([]).await;
    let origin =
        json!({ "url": "https://traefik.traefik.svc:443", "originTLS": { "originServerName": "{{hostname}}" } });
    world.cluster.apply(&template("sni", json!({ "originService": origin }))).await;

    publish(&world, RouteManifest::to("app", "app.example.com").with("template", "sni")).await;

    assert_eq!(world.name("app.example.com").rule()["originRequest"]["originServerName"], "app.example.com");
}

#[tokio::test(start_paused = true)]
async fn scenario_13_without_an_origin_the_backend_is_it_and_its_edits_count() {
    let world = settled([]).await;
    let mut bare = tenant("prod");
    bare["spec"]["defaults"] = json!({ "sessionDuration": "24h" });
    world.cluster.apply(&bare).await;

    let elsewhere = RouteManifest::to("app", "app.example.com")
        .backend(json!({ "name": "shop", "namespace": "apps", "port": 8080 }));
    publish(&world, elsewhere).await;
    assert_eq!(world.cluster.events("HTTPRoute/default/app").await, ["RefNotPermitted"]);
    assert!(world.name("app.example.com").is_gone());
    world.cluster.apply(&reference_grant("default", "apps")).await;
    world.pass(Duration::from_secs(60)).await;
    assert_eq!(world.name("app.example.com").rule()["service"], "http://shop.apps.svc.cluster.local:8080");
    publish(&world, RouteManifest::to("app", "app.example.com").backend(json!({ "name": "shop", "port": 9090 }))).await;

    assert_eq!(world.name("app.example.com").rule()["service"], "http://shop.default.svc.cluster.local:9090");
    world.assert_sound("scenario 13").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_14_dns_only_takes_its_address_from_the_right_place_and_no_tunnel() {
    let world = settled([]).await;
    world.cluster.apply(&load_balancer("default", "ingress")).await;
    let address = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.168.7.3" }] } } });
    world.cluster.patch_status("Service/default/ingress", &address).await;
    let by_service = json!({ "dnsOnly": { "enabled": true, "ttl": 300, "ingressServiceRef": { "name": "ingress" } } });
    let mut by_address = by_service.clone();
    by_address["dnsOnly"]["staticIp"] = json!("192.168.7.2");
    world.cluster.apply(&template("by-service", by_service)).await;
    world.cluster.apply(&template("by-address", by_address)).await;
    let route = |template: &str| RouteManifest::to("lan", "lan.example.com").with("template", template);

    publish(&world, route("by-address").with("dnsIp", "192.168.7.1")).await;
    assert_eq!(world.name("lan.example.com").record()["content"], "192.168.7.1");
    publish(&world, route("by-address")).await;
    assert_eq!(world.name("lan.example.com").record()["content"], "192.168.7.2");
    publish(&world, route("by-service")).await;

    let record = world.name("lan.example.com").record();
    assert_eq!((&record["type"], &record["content"]), (&json!("A"), &json!("192.168.7.3")));
    assert_eq!((&record["ttl"], &record["proxied"]), (&json!(300), &json!(false)));
    assert_eq!(world.output("lan", "dnsRecordId").await.as_deref(), record["id"].as_str());
    assert_eq!(world.output("lan", "dnsRecordIp").await.as_deref(), Some("192.168.7.3"));
    assert_eq!(world.output("lan", "cnameRecordId").await, None);
    let writes = world.writes();
    assert!(!writes.iter().any(|write| write.contains("configurations") || write.contains("access")), "{writes:?}");
    assert_eq!(z::config(&world, TUNNEL), z::foreign_config());
    world.assert_sound("scenario 14").await;
}
