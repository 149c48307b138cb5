//! Scenarios 50, 61 and 83: Access groups, which nothing at Cloudflare marks, and the Gateway's configuration.

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault};
use portolan_testkit_suites::manifests::{self as m, with};
use portolan_testkit_suites::{World, cloudflare_world};
use serde_json::{Value, json};

const STAFF: &str = "AccessGroup/staff";

fn group(include: &Value) -> Value {
    m::cluster_object("AccessGroup", "staff", json!({ "include": include, "cloudflare": {} }))
}

fn of_domain() -> Value {
    group(&json!([{ "emailDomain": { "domain": "example.com" } }]))
}

fn groups(world: &World) -> Vec<Value> {
    world.cloudflare.all("access_groups")
}

async fn status(world: &World) -> Value {
    world.cluster.get(STAFF).await.expect("it exists")["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn scenario_50_every_network_and_country_is_a_rule_of_its_own() {
    let world = cloudflare_world().start().await;
    let networks = json!({ "ipRanges": { "ip": ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"] } });

    world.cluster.apply(&group(&json!([networks, { "country": { "country": ["CH", "NZ"] } }]))).await;
    world.until_ready(STAFF, "True/Synced").await;

    assert_eq!(groups(&world)[0]["include"].as_array().map(Vec::len), Some(5));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_named_by_an_object_that_is_not_there_is_waited_for_and_nothing_is_sent() {
    let world = cloudflare_world().start().await;

    world.cluster.apply(&group(&json!([{ "okta": { "name": "all", "idpRef": { "name": "corp" } } }]))).await;
    world.settle().await;

    assert_eq!(world.cluster.ready(STAFF).await, "False/DependencyError");
    assert!(world.cluster.message(STAFF).await.contains("AccessIdentityProvider corp does not exist"));
    assert_eq!(world.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_named_by_its_id_is_written_with_the_rule() {
    let world = cloudflare_world().start().await;
    let provider = json!({ "name": "corp", "type": "okta", "config": {} });
    let id = world.cloudflare.plant("identity_providers", &provider);

    world.cluster.apply(&group(&json!([{ "okta": { "name": "all", "idpRef": { "cloudflareId": id } } }]))).await;
    world.until_ready(STAFF, "True/Synced").await;

    assert_eq!(groups(&world)[0]["include"], json!([{ "okta": { "name": "all", "identity_provider_id": id } }]));
}

fn of_provider(reference: &Value) -> Value {
    group(&json!([{ "okta": { "name": "all", "idpRef": reference } }]))
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_named_as_at_cloudflare_is_looked_up_once_for_all_who_name_it() {
    let world = cloudflare_world().start().await;
    let id = world.cloudflare.plant("identity_providers", &json!({ "name": "Corp", "type": "okta", "config": {} }));
    world.cloudflare.plant("identity_providers", &json!({ "name": "Other", "type": "okta", "config": {} }));
    let named = of_provider(&json!({ "cloudflareName": "Corp" }));
    let mut second = named.clone();
    second["metadata"]["name"] = json!("second");

    world.cluster.apply(&named).await;
    world.cluster.apply(&second).await;
    world.until_ready(STAFF, "True/Synced").await;
    world.until_ready("AccessGroup/second", "True/Synced").await;

    let written = json!([{ "okta": { "name": "all", "identity_provider_id": id } }]);
    assert!(groups(&world).iter().all(|one| one["include"] == written), "{:?}", groups(&world));
    let requests = world.cloudflare.take_requests();
    let asked = requests.iter().filter(|request| request.contains("identity_providers"));
    assert_eq!(asked.count(), 1, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_is_not_there_by_its_name_is_waited_for_and_found_when_it_is_made() {
    let world = cloudflare_world().start().await;

    world.cluster.apply(&of_provider(&json!({ "cloudflareName": "Corp" }))).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(STAFF).await, "False/DependencyError");
    let message = world.cluster.message(STAFF).await;
    assert!(message.contains("has no identity provider named Corp; create it, or correct idpRef"), "{message}");
    assert_eq!(world.writes(), [""; 0]);

    world.cloudflare.plant("identity_providers", &json!({ "name": "Corp", "type": "okta", "config": {} }));
    world.until_ready(STAFF, "True/Synced").await;
    assert_eq!(groups(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn scenario_61_a_group_that_is_used_stays_until_it_is_not() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&of_domain()).await;
    world.until_ready(STAFF, "True/Synced").await;
    let user = json!({ "name": "p", "decision": "allow", "include": [{ "group": { "id": groups(&world)[0]["id"] } }] });
    let user = world.cloudflare.plant("access_policies", &user);

    world.cluster.delete(STAFF).await;
    world.settle().await;
    assert_eq!(world.cluster.ready(STAFF).await, "False/DependencyError");
    assert_eq!(groups(&world).len(), 1);

    world.cloudflare.remove("access_policies", &user);
    world.until_ready(STAFF, "gone").await;
    assert!(groups(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_was_adopted_without_a_mark_is_released_by_an_operator_that_never_saw_it() {
    let world = cloudflare_world().start().await;
    let theirs = json!({ "name": "staff", "include": [{ "email_domain": { "domain": "example.com" } }] });
    let theirs = world.cloudflare.plant_foreign("access_groups", &theirs);
    world.cluster.apply(&of_domain()).await;
    world.until_ready(STAFF, "True/Synced").await;
    assert_eq!(status(&world).await["adoptedId"], json!(theirs));
    assert_eq!(world.writes(), [""; 0], "what is as wanted is taken over without a word");
    world.crash().await;
    world.restart().await;

    world.cluster.delete(STAFF).await;
    world.until_ready(STAFF, "gone").await;
    world.settle().await;

    assert_eq!(groups(&world).len(), 1);
    portolan_testkit_suites::invariants::assert_all(&world, "released").await;
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_was_refused_is_noted_no_longer() {
    let world = cloudflare_world().start().await;

    world.cluster.apply(&group(&json!([{ "emailDomain": { "domain": "not a domain" } }]))).await;
    world.settle().await;

    assert!(world.cluster.ready(STAFF).await.starts_with("False/"));
    assert!(status(&world).await["creating"].is_null(), "nobody else's group is taken for it later");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_renamed_between_a_crash_and_the_restart_leaves_nothing_behind() {
    let world = cloudflare_world().start().await;
    world.cloudflare.fault(Fault::on("POST", "/access/groups", Effect::Reset).after_write().times(1));
    world.cluster.apply(&of_domain()).await;
    assert!(world.holds_within(Duration::from_secs(60), async |world| groups(world).len() == 1).await);
    world.crash().await;

    world.cluster.apply(&with(of_domain(), "name", json!("people"))).await;
    world.restart().await;
    world.until_ready(STAFF, "True/Synced").await;
    world.settle().await;

    let names: Vec<Value> = groups(&world).iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["people"]);
}

#[tokio::test(start_paused = true)]
async fn two_objects_that_name_one_account_differently_do_not_share_a_group() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&of_domain()).await;
    world.until_ready(STAFF, "True/Synced").await;
    let mut second = with(of_domain(), "cloudflare", json!({ "accountId": m::ACCOUNT }));
    second["metadata"]["name"] = json!("second");
    second["spec"]["name"] = json!("staff");

    world.cluster.apply(&second).await;
    world.settle().await;

    assert_eq!(world.cluster.ready("AccessGroup/second").await, "False/ConflictError");
    assert!(world.cluster.message("AccessGroup/second").await.contains(STAFF));
    world.cluster.delete("AccessGroup/second").await;
    world.until_ready("AccessGroup/second", "gone").await;
    assert_eq!(groups(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_never_shown_is_written_once_when_it_changes() {
    let world = cloudflare_world().start().await;
    world.cluster.apply(&of_domain()).await;
    world.until_ready(STAFF, "True/Synced").await;

    for is_default in [true, false] {
        world.settle().await;
        world.forget();
        world.cluster.apply(&with(of_domain(), "isDefault", json!(is_default))).await;
        world.settle().await;
        world.drift_pass().await;
        world.settle().await;

        assert_eq!(world.writes().len(), 1, "isDefault: {is_default}");
        let told = &groups(&world)[0]["is_default"];
        assert_eq!(told.as_bool().unwrap_or_default(), is_default);
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_83_settings_that_are_not_mentioned_stay_and_a_second_object_of_the_account_is_a_conflict() {
    let world = cloudflare_world().start().await;
    let configuration = |name: &str, settings: Value| {
        m::cluster_object("GatewayConfiguration", name, json!({ "settings": settings, "cloudflare": {} }))
    };

    world.cluster.apply(&configuration("gateway", json!({ "fips": { "tls": true } }))).await;
    world.until_ready("GatewayConfiguration/gateway", "True/Synced").await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    world.cluster.apply(&configuration("again", json!({ "fips": { "tls": false } }))).await;
    world.settle().await;

    assert_eq!(world.cluster.ready("GatewayConfiguration/again").await, "False/ConflictError");
    let there = world.cloudflare.one("gateway_configuration", |_| true);
    assert_eq!(there["settings"]["fips"], json!({ "tls": true }));
    assert_eq!(there["settings"]["activity_log"], json!({ "enabled": true }));
}
