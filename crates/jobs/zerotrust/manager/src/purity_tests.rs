//! The manager's controllers are held to their word: what is shipped, with one step broken from outside, ends in a panic.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, CustomResourceExt as _, ResourceExt as _};
use portolan_core::job::plain;
use portolan_engine::key_of;
use portolan_testkit::breach::{BreachWorld, PureStep, missed};
use portolan_zerotrust_model::CloudflareZeroTrustOperatorConfig as Config;
use serde_json::json;

use crate::config_controller::ConfigController;
use crate::deployment_controller::DeploymentController;
use crate::own_deployment::{OwnDeployment, Search};
use crate::settings::{Settings, Workers};
use crate::shared::ManagerContext;
use crate::worker::WorkerKind;

fn shared(world: &BreachWorld, workers: Workers) -> Arc<ManagerContext> {
    let settings = Settings { workers, ..Settings::default() };
    Arc::new(ManagerContext::new(Arc::clone(&world.context), settings))
}

/// The operator's own Deployment, whose workers are not there yet.
async fn own_deployment() -> (BreachWorld, DeploymentController) {
    let labels = json!({ "app.kubernetes.io/component": "manager" });
    let container = json!({ "name": "manager", "image": "portolan:1", "args": ["run"] });
    let own = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "manager", "namespace": "default", "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    });
    let world = BreachWorld::with::<DeploymentController>(&[], &own).await;
    let own = deployments(&world).get("manager").await.expect("it was made");
    let shared = shared(&world, Workers::Kept);
    let own = OwnDeployment { deployment: key_of(&own.metadata), uid: own.uid().unwrap_or_default() };
    shared.search.send_replace(Search::Found(own));
    (world, DeploymentController { shared })
}

fn deployments(world: &BreachWorld) -> Api<Deployment> {
    Api::namespaced(world.context.client.clone(), "default")
}

/// A configuration that nobody has looked at yet.
async fn configuration() -> (BreachWorld, ConfigController) {
    let config = json!({
        "apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustOperatorConfig",
        "metadata": { "name": "operator-config", "namespace": "default" }, "spec": {},
    });
    let world = BreachWorld::with::<ConfigController>(&[plain(Config::crd())], &config).await;
    let shared = shared(&world, Workers::None);
    (world, ConfigController { shared })
}

#[tokio::test(start_paused = true)]
async fn a_pure_step_over_the_own_deployment_that_asks_the_world_outside_is_found() {
    assert_eq!(missed(PureStep::all(), own_deployment).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_pure_step_over_a_configuration_that_asks_the_world_outside_is_found() {
    assert_eq!(missed(PureStep::OF_EVERY_PASS, configuration).await, []);
}

#[tokio::test(start_paused = true)]
async fn the_controller_of_the_own_deployment_keeps_its_word() {
    let (world, controller) = own_deployment().await;
    assert!(!world.panics_by_itself(controller).await);
    for kind in WorkerKind::ALL {
        assert!(
            deployments(&world).get_opt(kind.name()).await.expect("the cluster answers").is_some(),
            "{}",
            kind.name()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_controller_of_configurations_keeps_its_word() {
    let (world, controller) = configuration().await;
    assert!(!world.panics_by_itself(controller).await);
}
