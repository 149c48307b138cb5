//! Service tokens: their secret is shown once, and must be in one place only.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PostParams};
use portolan_cloudflare_sim::{Effect, Fault};
use portolan_zerotrust_model::{CloudflareTaskStatus, Phase};
use portolan_zerotrust_worker::Settings;
use serde_json::json;

use crate::world::{ACCOUNT, World, task, with, with_token};

/// Client id and secret that lie ready for a task.
pub(crate) async fn handed(world: &World, status: &CloudflareTaskStatus) -> (String, String) {
    let name = status.result.as_ref().and_then(|result| result.service_token_secret_name.clone()).unwrap();
    let data = world.secrets().get(&name).await.unwrap().data.unwrap();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
    (text("client_id"), text("client_secret"))
}

/// Whether credentials open a name at the edge.
pub(crate) fn opens(world: &World, hostname: &str, (id, secret): &(String, String)) -> bool {
    let headers = [("CF-Access-Client-Id", id.as_str()), ("CF-Access-Client-Secret", secret.as_str())];
    world.simulator.decide(&portolan_cloudflare_sim::EdgeRequest::get(hostname, "/", &headers)).is_served()
}

#[tokio::test(start_paused = true)]
async fn scenario_03_new_credentials_lie_in_a_secret_of_the_task_and_open_the_name() {
    let world = World::start().await;

    let status = world.carry(&with_token(task("web"))).await;

    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    let result = status.result.clone().unwrap();
    assert_eq!(result.service_token_created, Some(true));
    let credentials = handed(&world, &status).await;
    assert!(opens(&world, "web.example.com", &credentials));
    assert!(!opens(&world, "web.example.com", &(String::new(), String::new())));
    let secret = world.secrets().get(&result.service_token_secret_name.unwrap()).await.unwrap();
    assert_eq!(secret.owner_references()[0].uid, world.get("cfzt-shop-web").await.uid().unwrap());
}

#[tokio::test(start_paused = true)]
async fn scenario_71_the_client_secret_is_in_that_secret_and_nowhere_else() {
    let world = World::start().await;

    let status = world.carry(&with_token(task("web"))).await;

    let (_, secret) = handed(&world, &status).await;
    let everything = world.everything_but_secrets().await;
    assert!(!everything.contains(&secret), "{everything}");
    assert!(!everything.contains(crate::world::TOKEN));
}

#[tokio::test(start_paused = true)]
async fn the_secret_goes_with_its_task() {
    let world = World::start().await;
    world.carry(&with_token(task("web"))).await;

    world.tasks().delete("cfzt-shop-web", &DeleteParams::default()).await.unwrap();
    world.after(5).await;

    let left = world.secrets().list(&ListParams::default()).await.unwrap().items;
    assert!(left.is_empty(), "{:?}", left.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_token_whose_secret_was_lost_is_rotated_and_not_made_twice() {
    let world = World::start().await;
    let first = world.carry(&with_token(task("web"))).await;
    let before = handed(&world, &first).await;
    let ids = first.result.unwrap().footprint();
    world.tasks().delete("cfzt-shop-web", &DeleteParams::default()).await.unwrap();
    world.after(5).await;
    let mut again =
        with(with_token(task("web")), json!({ "serviceToken": { "enabled": true, "secretPresent": false } }));
    again.spec.existing_ids = Some((&ids).into());

    let status = world.carry(&again).await;

    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    let after = handed(&world, &status).await;
    assert_eq!(world.service_tokens().len(), 1);
    assert_eq!(status.result.unwrap().footprint().service_token_id, ids.service_token_id);
    assert_ne!(before.1, after.1);
    assert!(opens(&world, "web.example.com", &after));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_the_creation_ends_in_one_token_whose_credentials_open() {
    let world = World::start().await;
    let path = "/accounts/{account_id}/access/service_tokens";
    world.simulator.fault(Fault::on("POST", path, Effect::Reset).after_write().times(1));

    let status = world.carry(&with_token(task("web"))).await;

    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    assert_eq!(world.service_tokens().len(), 1);
    assert!(opens(&world, "web.example.com", &handed(&world, &status).await));
}

#[tokio::test(start_paused = true)]
async fn a_token_of_another_route_with_the_same_name_is_never_taken() {
    let world = World::start().await;
    let first = world.carry(&with_token(task("web"))).await;
    let mut other = json!(with_token(task("web")));
    other["metadata"]["name"] = json!("cfzt-other-web");
    other["spec"]["httprouteRef"]["namespace"] = json!("other");
    other["spec"]["hostname"] = json!("web2.example.com");
    let path = "/accounts/{account_id}/access/apps";
    world.simulator.fault(Fault::on("POST", path, Effect::status(500)).times(9));

    let second = world.carry(&serde_json::from_value(other).unwrap()).await;
    world.simulator.clear_faults();
    world.after(60).await;
    let second = if second.phase == Some(Phase::Completed) { second } else { world.status("cfzt-other-web").await };

    assert_eq!(second.phase, Some(Phase::Completed), "{second:?}");
    assert_eq!(world.service_tokens().len(), 2);
    assert!(opens(&world, "web.example.com", &handed(&world, &first).await));
    assert!(opens(&world, "web2.example.com", &handed(&world, &second).await));
}

#[tokio::test(start_paused = true)]
async fn routes_of_one_name_in_many_namespaces_never_share_a_token_even_when_answers_are_lost() {
    let world = World::start().await;
    world.simulator.set_latency(std::time::Duration::from_millis(100));
    let path = "/accounts/{account_id}/access/service_tokens";
    world.simulator.fault(Fault::on("POST", path, Effect::Reset).after_write().times(4));
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        let mut task = json!(with_token(task("web")));
        task["metadata"]["name"] = json!(format!("cfzt-{name}-web"));
        task["spec"]["httprouteRef"]["namespace"] = json!(name);
        task["spec"]["hostname"] = json!(format!("{name}.example.com"));
        world.create(&serde_json::from_value(task).unwrap()).await;
    }

    world.settle().await;

    assert_eq!(world.service_tokens().len(), names.len());
    for name in names {
        let status = world.status(&format!("cfzt-{name}-web")).await;
        assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
        assert!(opens(&world, &format!("{name}.example.com"), &handed(&world, &status).await), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_the_state_of_another_route_records_is_never_taken_for_a_lost_one() {
    let world = World::start().await;
    let path = "/accounts/{account_id}/access/service_tokens";
    world.simulator.fault(Fault::on("POST", path, Effect::status(400)));
    let status = world.carry(&with_token(task("web"))).await;
    assert_eq!(status.phase, Some(Phase::Failed), "{status:?}");
    world.after(2).await;
    let planted = world.simulator.put("service_tokens", ACCOUNT, json!({ "name": "web-service-token" })).unwrap();
    let state = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "cfzt-other-web",
            "labels": { "app.kubernetes.io/component": "state-tracker" },
        },
        "data": {
            "annotation_hash": "x", "httproute_namespace": "other", "httproute_name": "web",
            "cloudflare_ids": json!({ "serviceTokenId": planted }).to_string(),
        },
    });
    world.config_maps().create(&PostParams::default(), &serde_json::from_value(state).unwrap()).await.unwrap();
    let before = world.simulator.object("service_tokens", &planted);

    world.simulator.clear_faults();
    world.patch_status("cfzt-shop-web", json!({ "phase": "Pending" })).await;
    world.settle().await;

    let status = world.status("cfzt-shop-web").await;
    assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
    assert_eq!(world.service_tokens().len(), 2);
    assert_eq!(world.simulator.object("service_tokens", &planted), before, "it is as it was");
}

#[tokio::test(start_paused = true)]
async fn two_workers_never_take_a_token_of_the_same_name_for_a_lost_one_of_their_own() {
    let mut world = World::empty().await;
    // The answer to a request is on its way for so long: the token is there, and nobody has recorded it.
    world.simulator.set_latency(Duration::from_secs(3));
    let tokens = "/accounts/{account_id}/access/service_tokens";
    world.simulator.fault(Fault::on("POST", tokens, Effect::status(503)).times(1));
    for worker in ["w1", "w2"] {
        world.run(Settings::new(worker, "1"));
    }
    world.settle().await;

    for namespace in ["shop", "store"] {
        let mut task = with_token(task("web"));
        task.metadata.name = Some(format!("cfzt-{namespace}-web"));
        task.spec.hostname = Some(format!("{namespace}.example.com"));
        if let Some(route) = &mut task.spec.httproute_ref {
            namespace.clone_into(&mut route.namespace);
        }
        world.create(&task).await;
    }
    world.after(120).await;

    assert_eq!(world.service_tokens().len(), 2);
    for namespace in ["shop", "store"] {
        let status = world.status(&format!("cfzt-{namespace}-web")).await;
        assert_eq!(status.phase, Some(Phase::Completed), "{status:?}");
        let credentials = handed(&world, &status).await;
        assert!(opens(&world, &format!("{namespace}.example.com"), &credentials), "{namespace}");
    }
}
