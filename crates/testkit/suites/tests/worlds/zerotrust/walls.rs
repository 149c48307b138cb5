//! Both walls before a name: its application, read before the name goes out, and the tunnel's rule, which asks for its token.

use portolan_cloudflare_sim::{EdgeRequest, Effect, Fault};
use portolan_testkit_suites::World;
use portolan_testkit_suites::zerotrust::RouteManifest;
use portolan_testkit_suites::zerotrust::RouteWorld as _;
use serde_json::json;

use super::{publish, settled};

const USER: &str = "user@example.com";

fn app() -> RouteManifest {
    RouteManifest::to("app", "app.example.com").allowing(USER)
}

async fn told(world: &World, route: &str, reason: &str) -> bool {
    world.cluster.events(&format!("HTTPRoute/default/{route}")).await.contains(&reason.to_owned())
}

fn stranger_gets(world: &World, host: &str) -> Option<u16> {
    world.cloudflare.simulator.decide(&EdgeRequest::get(host, "/", &[])).status()
}

#[tokio::test(start_paused = true)]
async fn finding_3_a_protected_wildcard_is_closed_below_the_depths_of_its_application() {
    let world = settled([RouteManifest::to("all", "*.example.com").allowing(USER)]).await;

    assert_eq!(stranger_gets(&world, "a.b.c.d.e.example.com"), Some(403));
    assert_eq!(stranger_gets(&world, "a.example.com"), Some(302));
    let (rule, app) = (world.name("*.example.com").rule(), world.name("*.example.com").app());
    assert_eq!(rule["originRequest"]["access"]["audTag"], json!([app["aud"]]));
    world.assert_sound("wildcard").await;
}

#[tokio::test(start_paused = true)]
async fn finding_1_an_application_that_is_gone_is_made_before_the_name_leads_elsewhere() {
    let world = settled([app()]).await;
    let old = world.name("app.example.com").app()["id"].as_str().unwrap().to_owned();
    world.cloudflare.simulator.remove("access_apps", &old);
    assert_eq!(stranger_gets(&world, "app.example.com"), Some(403), "the tunnel goes on asking");

    publish(&world, app().with("origin.url", "http://other.default.svc.cluster.local:80")).await;

    let new = world.name("app.example.com").app();
    assert_ne!(new["id"], json!(old));
    assert_eq!(world.name("app.example.com").rule()["originRequest"]["access"]["audTag"], json!([new["aud"]]));
    let writes = world.writes();
    let at = |text: &str| writes.iter().position(|write| write.contains(text));
    assert!(at("/access/apps") < at("/configurations"), "{writes:?}");
    assert!(world.name("app.example.com").lets_in(USER) && !world.name("app.example.com").is_public());
}

#[tokio::test(start_paused = true)]
async fn finding_4_everyone_is_told() {
    let world = settled([RouteManifest::to("open", "open.example.com")
        .with("allowGroups", "everyone")
        .with("accessApp", "true")])
    .await;

    assert!(told(&world, "open", "EveryoneAllowed").await);
    assert!(world.name("open.example.com").lets_in("anybody@example.org"));
}

#[tokio::test(start_paused = true)]
async fn finding_3_without_the_team_a_new_wildcard_is_refused_and_an_exact_name_says_so() {
    let world = portolan_testkit_suites::zerotrust::world().start().await;
    world.cloudflare.simulator.fault(Fault::on("GET", "access/organizations", Effect::status(403)));

    publish(&world, RouteManifest::to("all", "*.example.com").allowing(USER)).await;
    publish(&world, app()).await;

    assert!(told(&world, "all", "ProtectionImpossible").await && world.name("*.example.com").is_gone());
    assert!(told(&world, "app", "SecondWallUnavailable").await);
    assert!(world.name("app.example.com").lets_in(USER) && !world.name("app.example.com").is_public());
}

#[tokio::test(start_paused = true)]
async fn finding_10_a_token_ends_up_with_its_own_name() {
    let world = settled([app().with("serviceToken", "true")]).await;

    let tokens = world.cloudflare.simulator.state()["service_tokens"].clone();

    let names: Vec<_> = tokens.as_object().unwrap().values().flat_map(|all| all.as_array().unwrap()).collect();
    assert_eq!((names.len(), &names[0]["name"]), (1, &json!("app-service-token")));
    assert!(world.name("app.example.com").opens_with_token_of("app").await);
}
