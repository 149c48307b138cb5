//! What tenants and templates say of themselves.

use portolan_core::condition;
use portolan_zerotrust_model::CloudflareZeroTrustTemplate as Template;
use serde_json::json;

use crate::world::World;

fn says(template: &Template, r#type: &str) -> String {
    let conditions = template.status.clone().unwrap_or_default().conditions;
    condition::find(&conditions, r#type)
        .map_or_else(String::new, |one| format!("{}/{}", one.status.as_str(), one.reason))
}

#[tokio::test(start_paused = true)]
async fn a_tenant_counts_what_stands_and_says_when_it_last_changed() {
    let world = World::start().await;
    assert_eq!(world.tenant_says("Ready").await, "True/ReconcileSuccess");
    world.settled("one").await;
    world.settled("two").await;
    world.after(5).await;

    let status = world.tenant().await.status.unwrap();
    let summary = status.summary.unwrap();
    assert_eq!((summary.managed_http_routes, summary.hostname_routes, summary.access_applications), (2, 2, 0));
    let first = status.last_sync_time.clone().unwrap();
    assert_eq!(world.note("two", "lastReconcile").await, Some(first));
    assert_eq!(status.observed_generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn scenario_21_a_tenant_says_which_secret_is_missing_and_recovers() {
    let world = World::start().await;
    world.secrets("default").delete("cloudflare-api-token", &kube::api::DeleteParams::default()).await.unwrap();
    world.after(2).await;
    assert_eq!(world.tenant_says("Ready").await, "False/CredentialNotFound");
    let status = world.tenant().await.status.unwrap();
    let message = &condition::find(&status.conditions, "Ready").unwrap().message;
    assert!(message.starts_with("Secret not found: default/cloudflare-api-token"), "{message}");

    let secret =
        json!({ "metadata": { "name": "cloudflare-api-token" }, "stringData": { "token": crate::world::TOKEN } });
    world.apply("v1", "Secret", secret).await;
    world.after(2).await;

    assert_eq!(world.tenant_says("Ready").await, "True/ReconcileSuccess");
}

#[tokio::test(start_paused = true)]
async fn a_template_says_who_uses_it_and_whether_it_can_be_used() {
    let world = World::start().await;
    let spec = |seconds| json!({ "originService": { "originTLS": { "tlsTimeout": seconds } } });
    world.apply_cfzt("CloudflareZeroTrustTemplate", json!({ "metadata": { "name": "web" }, "spec": spec(15) })).await;
    world.after(2).await;
    let unused = world.templates().get("web").await.unwrap();
    assert_eq!((says(&unused, "Valid"), says(&unused, "InUse")), ("True/Valid".to_owned(), "False/NotUsed".to_owned()));

    world.publish("app", "app.example.com", &[("template", "web")]).await;
    world.after(2).await;

    let used = world.templates().get("web").await.unwrap();
    assert_eq!(says(&used, "InUse"), "True/InUse");
    let status = used.status.unwrap();
    assert_eq!((status.used_by_http_routes, status.used_by_count), (vec!["default/app".to_owned()], Some(1)));
}

#[tokio::test(start_paused = true)]
async fn scenario_17_a_route_waits_for_its_template_and_goes_on_when_it_is_there() {
    let world = World::start().await;
    world.publish("app", "app.example.com", &[("template", "later")]).await;
    assert_eq!(world.told("app").await, ["TemplateNotFound"]);
    assert_eq!(world.task_names().await, Vec::<String>::new());

    world.apply_cfzt("CloudflareZeroTrustTemplate", json!({ "metadata": { "name": "later" }, "spec": {} })).await;
    world.after(1).await;

    assert_eq!(world.task_names().await, ["cfzt-default-app"]);
}
