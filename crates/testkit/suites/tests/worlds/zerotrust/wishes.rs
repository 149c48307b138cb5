//! What users wish, where it is unclear, taken back or takes protection away: what stands stays, and a loss is loud.

use std::time::Duration;

use portolan_testkit_suites::World;
use portolan_testkit_suites::manifests::ZONE_ID;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use portolan_testkit_suites::zerotrust::manifests::{in_namespace, open_tenant};
use portolan_testkit_suites::zerotrust::{OPERATOR_NAMESPACE, RouteManifest, template, tenant, world};
use serde_json::{Value, json};

use super::{publish, settled};

const TENANT: &str = "CloudflareZeroTrustTenant/default/prod";
const USER: &str = "user@example.com";

fn app() -> RouteManifest {
    RouteManifest::to("app", "app.example.com")
}

async fn told(world: &World, route: &str) -> Vec<String> {
    world.cluster.events(&format!("HTTPRoute/default/{route}")).await
}

/// A condition of the tenant as `status/reason: message`.
async fn condition(world: &World, kind: &str) -> Option<String> {
    let tenant = world.cluster.get(TENANT).await?;
    let conditions = tenant["status"]["conditions"].as_array()?.clone();
    let found = conditions.into_iter().find(|one| one["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some(format!("{}/{}: {}", text("status"), text("reason"), text("message")))
}

fn assert_guarded(world: &World, hostname: &str) {
    let name = world.name(hostname);
    assert!(name.is_published() && !name.is_public(), "{hostname} is published and not open");
}

#[tokio::test(start_paused = true)]
async fn ux_c2_a_misspelt_key_keeps_what_stands() {
    let world = settled([app().allowing(USER)]).await;

    for misspelt in ["accesApp", "access.enable", "accessEnabled", "accessapp", "access.Enabled"] {
        publish(&world, app().with(misspelt, "true").with("allowEmails", USER)).await;

        assert_guarded(&world, "app.example.com");
        assert!(world.name("app.example.com").lets_in(USER), "{misspelt}");
        assert_eq!(world.writes(), [""; 0], "{misspelt}");
    }
    assert!(told(&world, "app").await.contains(&"UnknownAnnotation".to_owned()));
    assert_eq!(world.cluster.ready(TENANT).await, "False/PartialFailure");
    publish(&world, RouteManifest::to("new", "new.example.com").with("acessApp", "true")).await;
    assert!(world.name("new.example.com").is_gone(), "nothing new is published");

    publish(&world, app().allowing(USER).with("sessionDuration", "8h")).await;
    assert_eq!(world.name("app.example.com").app()["session_duration"], "8h");
}

#[tokio::test(start_paused = true)]
async fn ux_c2_a_misspelt_enabled_does_not_take_a_name_down() {
    let world = settled([app().allowing(USER)]).await;

    publish(&world, app().allowing(USER).without("enabled").with("enable", "true")).await;

    assert_guarded(&world, "app.example.com");
    assert!(told(&world, "app").await.contains(&"UnknownAnnotation".to_owned()));
    publish(&world, app().allowing(USER).with("enabled", "false")).await;
    assert!(world.name("app.example.com").is_gone());
}

#[tokio::test(start_paused = true)]
async fn ux_c2_who_may_pass_is_enough_to_ask_for_access() {
    let world = settled([app().allowing(USER)]).await;

    publish(&world, app().with("allowEmails", USER)).await;
    assert!(world.name("app.example.com").lets_in(USER));
    assert_guarded(&world, "app.example.com");

    publish(&world, RouteManifest::to("new", "new.example.com").with("access.allowEmails", USER)).await;
    assert!(world.name("new.example.com").lets_in(USER));
    assert_guarded(&world, "new.example.com");
    world.assert_sound("who may pass").await;
}

#[tokio::test(start_paused = true)]
async fn ux_c3_a_service_token_is_needed_where_one_is_asked_for() {
    let world = settled([app().with("serviceToken.enabled", "true")]).await;

    assert_guarded(&world, "app.example.com");
    assert!(world.name("app.example.com").opens_with_token_of("app").await);
    world.assert_sound("a token asks for Access").await;
}

#[tokio::test(start_paused = true)]
async fn ux_c2_a_name_that_becomes_public_is_told_loudly() {
    let world = settled([app().allowing(USER), RouteManifest::to("other", "other.example.com")]).await;
    assert_eq!(condition(&world, "ProtectionLost").await, None);

    publish(&world, app().with("access.enabled", "false").with("allowEmails", USER)).await;
    world.pass(Duration::from_secs(5)).await;

    assert!(world.name("app.example.com").is_public());
    let events = told(&world, "app").await;
    assert!(events.contains(&"ProtectionRemoved".to_owned()), "{events:?}");
    assert!(!told(&world, "other").await.contains(&"ProtectionRemoved".to_owned()), "it was public from the first");
    let said = condition(&world, "ProtectionLost").await.expect("it is said");
    assert!(said.starts_with("True/ProtectionRemoved: ") && said.contains("app.example.com"), "{said}");
    assert!(!said.contains("other.example.com"), "{said}");
    world.crash().await;
    world.restart().await;
    world.settle().await;
    assert_eq!(condition(&world, "ProtectionLost").await, Some(said), "also after a restart");

    publish(&world, app().allowing(USER)).await;
    world.pass(Duration::from_secs(5)).await;
    let said = condition(&world, "ProtectionLost").await.expect("it was said once");
    assert!(said.starts_with("False/ProtectionKept"), "{said}");
    world.assert_sound("a loss is loud").await;
}

#[tokio::test(start_paused = true)]
async fn a_loss_of_protection_is_told_for_a_day() {
    let world = settled([app().allowing(USER)]).await;
    publish(&world, app()).await;
    world.pass(Duration::from_secs(5)).await;
    assert!(condition(&world, "ProtectionLost").await.is_some_and(|said| said.starts_with("True/")));

    world.pass(Duration::from_secs(25 * 3600)).await;

    assert!(condition(&world, "ProtectionLost").await.is_some_and(|said| said.starts_with("False/")));
    assert_eq!(world.cluster.get("HTTPRoute/default/app").await.map(|_| Value::Null), Some(Value::Null));
}

/// A template that protects.
fn protecting(name: &str) -> Value {
    template(name, json!({ "accessApplication": { "enabled": true, "allowEmails": [USER] } }))
}

fn template_id(name: &str) -> String {
    format!("CloudflareZeroTrustTemplate/default/{name}")
}

/// A world in which a template protects the route, and nothing else does.
async fn protected_by(name: &str) -> World {
    let world = settled([]).await;
    world.cluster.apply(&protecting(name)).await;
    publish(&world, app()).await;
    assert_guarded(&world, "app.example.com");
    world.forget();
    world
}

#[tokio::test(start_paused = true)]
async fn finding_2_deleting_an_implicit_template_keeps_every_name_as_it_is() {
    for name in ["base-prod", "default"] {
        let world = protected_by(name).await;

        world.cluster.delete(&template_id(name)).await;
        world.settle().await;
        assert_guarded(&world, "app.example.com");
        assert_eq!(world.writes(), [""; 0]);
        let told = world.cluster.told("HTTPRoute/default/app").await;
        assert!(told.iter().any(|one| one.starts_with("TemplateNotFound") && one.contains(name)), "{told:?}");
        assert_eq!(world.cluster.ready(TENANT).await, "False/PartialFailure");

        world.crash().await;
        world.restart().await;
        world.settle().await;
        world.drift_pass().await;
        publish(&world, app().with("origin.url", "http://other:80")).await;
        assert_guarded(&world, "app.example.com");
        assert_eq!(world.writes(), [""; 0], "also after a restart, and for another edit of the route");

        world.cluster.apply(&protecting(name)).await;
        world.settle_within(Duration::from_secs(10)).await;
        assert_guarded(&world, "app.example.com");
        assert_eq!(world.name("app.example.com").rule()["service"], "http://other:80");
        assert_eq!(world.cluster.ready(TENANT).await, "True/ReconcileSuccess");
        world.assert_sound(name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn finding_2_a_route_without_templates_and_an_empty_template_are_the_ways_out() {
    let world = protected_by("base-prod").await;
    world.cluster.delete(&template_id("base-prod")).await;
    world.settle().await;
    assert_guarded(&world, "app.example.com");

    publish(&world, app().with("template", "none")).await;
    assert!(world.name("app.example.com").is_public());
    assert!(told(&world, "app").await.contains(&"ProtectionRemoved".to_owned()));
    publish(&world, app()).await;
    assert!(world.name("app.example.com").is_public(), "no template takes part any more");

    let world = protected_by("base-prod").await;
    world.cluster.delete(&template_id("base-prod")).await;
    world.settle().await;
    world.cluster.apply(&template("base-prod", json!({}))).await;
    world.settle().await;
    assert!(world.name("app.example.com").is_public());
    world.assert_sound("ways out").await;
}

#[tokio::test(start_paused = true)]
async fn finding_2_a_weaker_default_of_the_operator_does_not_take_the_place_of_the_routes_own() {
    let world = protected_by("default").await;
    world.cluster.apply(&in_namespace(template("default", json!({})), OPERATOR_NAMESPACE)).await;
    world.settle().await;

    world.cluster.delete(&template_id("default")).await;
    world.settle().await;

    assert_guarded(&world, "app.example.com");
    assert!(told(&world, "app").await.contains(&"TemplateNotFound".to_owned()));
}

/// The definition of templates.
async fn definition(world: &World) -> Value {
    let id = "CustomResourceDefinition/cloudflarezerotrusttemplates.cfzt.cloudflare.com";
    let mut found = world.cluster.get(id).await.expect("it is installed");
    for field in ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"] {
        found["metadata"].as_object_mut().map(|metadata| metadata.remove(field));
    }
    found.as_object_mut().map(|all| all.remove("status"));
    found
}

#[tokio::test(start_paused = true)]
async fn finding_2_a_template_that_cannot_be_read_keeps_what_stands_and_publishes_nothing_new() {
    let world = protected_by("base-prod").await;
    let good = definition(&world).await;
    let mut loose = good.clone();
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    world.cluster.replace_definition(&loose).await;
    world.cluster.apply(&template("base-prod", json!({ "accessApplication": "none of your business" }))).await;
    world.settle().await;
    assert_guarded(&world, "app.example.com");

    publish(&world, RouteManifest::to("new", "new.example.com")).await;
    assert!(world.name("new.example.com").is_gone());
    assert!(told(&world, "new").await.contains(&"TemplateNotFound".to_owned()));
    assert_eq!(world.writes(), [""; 0]);

    world.cluster.apply(&protecting("base-prod")).await;
    world.settle_within(Duration::from_secs(10)).await;
    assert_guarded(&world, "app.example.com");
    assert_guarded(&world, "new.example.com");
}

#[tokio::test(start_paused = true)]
async fn finding_2_a_definition_that_is_removed_and_installed_again_opens_nothing() {
    let world = protected_by("base-prod").await;
    let definition = definition(&world).await;

    world.cluster.delete("CustomResourceDefinition/cloudflarezerotrusttemplates.cfzt.cloudflare.com").await;
    world.pass(Duration::from_secs(700)).await;
    publish(&world, RouteManifest::to("new", "new.example.com")).await;
    assert_guarded(&world, "app.example.com");
    assert!(world.name("new.example.com").is_gone(), "nobody can tell what its template says");
    world.crash().await;
    world.restart().await;
    world.pass(Duration::from_secs(100)).await;
    assert_guarded(&world, "app.example.com");
    assert!(world.name("new.example.com").is_gone(), "also for an operator that never saw the kind");
    assert_eq!(world.writes(), [""; 0]);

    world.cluster.replace_definition(&definition).await;
    world.pass(Duration::from_secs(200)).await;
    assert_guarded(&world, "app.example.com");
    assert_eq!(world.name("app.example.com").apps().len(), 1, "the kind is back, the template is not");
    world.cluster.apply(&protecting("base-prod")).await;
    world.settle_within(Duration::from_secs(10)).await;
    assert_guarded(&world, "app.example.com");
}

#[tokio::test(start_paused = true)]
async fn finding_2_a_template_that_goes_while_its_task_is_under_way_is_missed_too() {
    for wait in [0, 100, 400, 900] {
        let world = world().latency(Duration::from_millis(150)).start().await;
        world.cluster.apply(&protecting("base-prod")).await;
        world.settle().await;
        world.cluster.apply(app().manifest()).await;
        while world.tasks().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(wait)).await;

        world.cluster.delete(&template_id("base-prod")).await;
        world.settle().await;

        assert_guarded(&world, "app.example.com");
    }
}

#[tokio::test(start_paused = true)]
async fn finding_2_a_state_of_an_earlier_version_opens_nothing() {
    let world = protected_by("base-prod").await;
    let state = format!("ConfigMap/{OPERATOR_NAMESPACE}/cfzt-default-app");
    let forgets = json!({ "data": { "templates": null } });

    world.cluster.patch(&state, &forgets).await;
    world.settle().await;
    let noted = world.state_of("app").await.expect("it is kept")["data"]["templates"].clone();
    assert_eq!(noted, "default/base-prod", "what stands was made with the templates of now: that is recorded");

    world.crash().await;
    world.cluster.patch(&state, &forgets).await;
    world.cluster.delete(&template_id("base-prod")).await;
    world.restart().await;
    world.settle().await;
    assert_guarded(&world, "app.example.com");
    assert!(told(&world, "app").await.contains(&"TemplateNotFound".to_owned()));
    publish(&world, app().with("access.enabled", "false")).await;
    assert!(world.name("app.example.com").is_public(), "it is said");
}

#[tokio::test(start_paused = true)]
async fn finding_15_a_name_outside_of_the_tenants_zone_is_refused() {
    let world = settled([]).await;
    let mut zoned = tenant("prod");
    zoned["spec"]["zoneId"] = json!(ZONE_ID);
    world.cluster.apply(&zoned).await;

    publish(&world, RouteManifest::to("out", "app.other.org")).await;
    publish(&world, RouteManifest::to("in", "in.example.com")).await;

    let told = world.cluster.told("HTTPRoute/default/out").await;
    assert!(told.iter().any(|one| one.starts_with("ZoneMismatch") && one.contains("example.com")), "{told:?}");
    assert!(world.name("in.example.com").is_public());
    assert_eq!(world.cloudflare.all("dns_records").len(), 1, "{:#?}", world.cloudflare.all("dns_records"));
    assert!(world.name("app.other.org").rules().is_empty());
}

/// Lets routes of another namespace use the tenant.
async fn serve_apps(world: &World) {
    world.cluster.apply(&open_tenant("prod")).await;
    world.settle().await;
    world.forget();
}

/// What remembers that a route had a protected name.
async fn former(world: &World, route: &str) -> Option<String> {
    let maps = world.cluster.list("ConfigMap").await;
    let map = maps.iter().find(|one| one["data"]["former_name"] == route)?;
    Some(format!("ConfigMap/{OPERATOR_NAMESPACE}/{}", map["metadata"]["name"].as_str()?))
}

#[tokio::test(start_paused = true)]
async fn ux_m22_a_waiting_route_does_not_take_a_protected_name_over_open() {
    let first = RouteManifest::to("first", "app.example.com").allowing(USER);
    let world = settled([first.clone()]).await;
    serve_apps(&world).await;
    let thief = || RouteManifest::to("thief", "app.example.com").within("apps").with("tenant", "default/prod");
    publish(&world, thief()).await;
    assert_eq!(world.cluster.events("HTTPRoute/apps/thief").await, ["HostnameConflict"]);

    world.cluster.delete(&first.id()).await;
    world.settle_within(Duration::from_secs(30)).await;
    assert!(world.name("app.example.com").is_gone());
    let told = world.cluster.told("HTTPRoute/apps/thief").await;
    let said = told.iter().find(|one| one.starts_with("ProtectionWouldBeLost")).expect("it is told");
    assert!(!said.contains("first"), "nothing of another namespace is named: {said}");

    for _ in 0..2 {
        publish(&world, thief().with("access.enabled", "false")).await;
        assert!(world.name("app.example.com").is_gone(), "that is not for another namespace to say");
        world.cluster.delete(&thief().id()).await;
        world.settle().await;
        world.crash().await;
        world.restart().await;
        world.settle().await;
    }
    publish(&world, thief().allowing("thief@example.com")).await;
    assert_guarded(&world, "app.example.com");
    world.assert_sound("a name changes hands").await;
    publish(&world, thief()).await;
    assert!(world.name("app.example.com").is_public(), "it is its own name now");
}

#[tokio::test(start_paused = true)]
async fn ux_m22_a_neighbour_may_say_that_the_name_is_to_be_open_and_one_who_asks_for_more_goes_first() {
    let first = RouteManifest::to("first", "app.example.com").allowing(USER);
    let world = settled([first.clone()]).await;
    let second = || RouteManifest::to("second", "app.example.com");
    publish(&world, second()).await;
    world.pass(Duration::from_secs(5)).await;
    let third = RouteManifest::to("third", "app.example.com").allowing(USER).with("origin.url", "http://third:80");
    publish(&world, third.clone()).await;

    world.cluster.delete(&first.id()).await;
    world.settle_within(Duration::from_secs(30)).await;
    assert_guarded(&world, "app.example.com");
    assert_eq!(world.name("app.example.com").rule()["service"], "http://third:80");

    world.cluster.delete(&third.id()).await;
    world.settle_within(Duration::from_secs(30)).await;
    assert!(world.name("app.example.com").is_gone());
    publish(&world, second().with("access.enabled", "false")).await;
    assert!(world.name("app.example.com").is_public());
    world.assert_sound("a neighbour").await;
}

#[tokio::test(start_paused = true)]
async fn ux_m22_a_renamed_route_leaves_its_name_protected_and_an_operator_may_let_it_go() {
    let world = settled([app().allowing(USER)]).await;
    serve_apps(&world).await;
    publish(&world, RouteManifest::to("app", "renamed.example.com").allowing(USER)).await;
    let thief = RouteManifest::to("thief", "app.example.com").within("apps").with("tenant", "default/prod");
    publish(&world, thief).await;
    assert!(world.name("app.example.com").is_gone());

    world.cluster.delete(&former(&world, "app").await.expect("it is remembered")).await;
    world.settle().await;
    assert!(world.name("app.example.com").is_public());
}

#[tokio::test(start_paused = true)]
async fn ux_m22_a_name_that_nobody_takes_is_forgotten_after_a_month() {
    let world = settled([app().allowing(USER)]).await;
    world.cluster.delete(&app().id()).await;
    world.settle().await;
    let former = former(&world, "app").await.expect("it is remembered");
    world.drift_pass().await;
    assert!(world.cluster.get(&former).await.is_some());

    world.cluster.patch(&former, &json!({ "data": { "let_go_at": "2020-01-01T00:00:00Z" } })).await;
    world.settle().await;
    world.drift_pass().await;

    assert_eq!(world.cluster.get(&former).await, None);
}
