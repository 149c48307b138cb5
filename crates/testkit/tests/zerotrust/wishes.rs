//! What users wish, where it is unclear, taken back or takes protection away: what stands stays, and a loss is loud.

use std::time::Duration;

use portolan_testkit::World;
use portolan_testkit::zerotrust::Route;
use serde_json::Value;

use crate::{publish, settled};

const TENANT: &str = "CloudflareZeroTrustTenant/default/prod";
const USER: &str = "user@example.com";

fn app() -> Route {
    Route::to("app", "app.example.com")
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
    publish(&world, Route::to("new", "new.example.com").with("acessApp", "true")).await;
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

    publish(&world, Route::to("new", "new.example.com").with("access.allowEmails", USER)).await;
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
    let world = settled([app().allowing(USER), Route::to("other", "other.example.com")]).await;
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
