use std::time::Duration;

use portolan_testkit::World;
use serde_json::{Value, json};

use crate::world::{applied, pods_become_ready, world};

const ALONE: &str = "Bind9Instance/dns/alone";

async fn alone(world: &World, more: Value) {
    let mut spec = json!({"clusterRef": "", "role": "primary"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    applied(world, "Bind9Instance", "dns/alone", spec).await;
}

async fn options(world: &World, instance: &str) -> String {
    let map = world.cluster.get(&format!("ConfigMap/dns/{instance}-config")).await.unwrap();
    map["data"]["named.conf.options"].as_str().unwrap().to_owned()
}

async fn key_name(world: &World) -> Value {
    world.cluster.get("Secret/dns/alone-rndc-key").await.unwrap()["data"]["key-name"].clone()
}

#[tokio::test(start_paused = true)]
async fn scenario_12_configuration_is_made_before_the_workload_that_before_the_service_and_status_last() {
    let world = world().await;
    world.forget();
    alone(&world, json!({})).await;

    let writes = world.cluster_writes();
    let place = |part: &str| {
        writes.iter().position(|write| write.contains(part)).unwrap_or_else(|| panic!("{part} in {writes:#?}"))
    };
    let order = [
        "/secrets/alone-rndc-key",
        "/configmaps/alone-config",
        "/deployments/alone",
        "/services/alone",
        "/bind9instances/alone/status",
    ];
    let places: Vec<usize> = order.iter().map(|part| place(part)).collect();
    assert!(places.is_sorted(), "{writes:#?}");
    assert_eq!(world.cluster.ready(ALONE).await, "False/NotReady");
    assert_eq!(world.cluster.message(ALONE).await, "Waiting for pods to become ready");
    assert_eq!(world.take_refusals(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_instance_is_ready_when_its_pods_are_and_says_where_it_is_reached() {
    let world = world().await;
    alone(&world, json!({"replicas": 2})).await;
    pods_become_ready(&world).await;

    let status = &world.cluster.get(ALONE).await.unwrap()["status"];
    assert_eq!(world.cluster.message(ALONE).await, "All 2 pods are ready");
    assert!(status["serviceAddress"].is_string() && status["rndcKeyRotation"]["createdAt"].is_string(), "{status}");
    let service = world.cluster.get("Service/dns/alone").await.unwrap();
    assert_eq!(service["spec"]["clusterIP"], status["serviceAddress"]);
}

#[tokio::test(start_paused = true)]
async fn scenario_66_a_change_that_reconfig_takes_changes_the_configuration_and_no_pod() {
    let world = world().await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 1}})).await;
    let template =
        async || world.cluster.get("Deployment/dns/main-primary-0").await.unwrap()["spec"]["template"].clone();
    let before = (template().await, options(&world, "main-primary-0").await);

    applied(
        &world,
        "Bind9Cluster",
        "dns/main",
        json!({"primary": {"replicas": 1}, "global": {"allowQuery": ["10.0.0.0/8"]}}),
    )
    .await;

    let after = (template().await, options(&world, "main-primary-0").await);
    assert_eq!(before.0, after.0);
    assert!(after.1.contains("allow-query { bindy-servers; 10.0.0.0/8; };") && before.1 != after.1, "{}", after.1);
}

#[tokio::test(start_paused = true)]
async fn another_version_rolls_out() {
    let world = world().await;
    alone(&world, json!({})).await;
    alone(&world, json!({"version": "9.20"})).await;

    let deployment = world.cluster.get("Deployment/dns/alone").await.unwrap();
    assert_eq!(
        deployment["spec"]["template"]["spec"]["containers"][0]["image"],
        "internetsystemsconsortium/bind9:9.20"
    );
}

#[tokio::test(start_paused = true)]
async fn scenario_63_to_65_what_no_server_starts_with_is_told_and_what_runs_goes_on() {
    let world = world().await;
    alone(&world, json!({})).await;
    pods_become_ready(&world).await;
    let before = options(&world, "alone").await;

    for (wrong, field) in [
        (json!({"config": {"allowQuery": ["any; }; zone \"x\" {"]}}), "spec.config.allowQuery[0]"),
        (json!({"config": {"dnssec": {"signing": {"enabled": true, "kskLifetime": "1y"}}}}), "kskLifetime"),
        (json!({"config": {"dnssec": {"signing": {"enabled": true, "policy": "none"}}}}), "policy"),
        (json!({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}), "hostPath"),
        (
            json!({"volumes": [{"name": "v", "emptyDir": {}}], "volumeMounts": [{"name": "v", "mountPath": "/data/../etc"}]}),
            "mountPath",
        ),
        (json!({"rndcKey": {"secretRef": {"name": "missing"}}}), "Secret missing does not exist"),
        (json!({"configMapRefs": {"namedConf": "missing"}}), "ConfigMap missing does not exist"),
    ] {
        world.forget();
        alone(&world, wrong.clone()).await;

        assert_eq!(world.cluster.ready(ALONE).await, "False/ConfigurationInvalid", "{wrong}");
        assert!(world.cluster.message(ALONE).await.contains(field), "{}", world.cluster.message(ALONE).await);
        assert_eq!(options(&world, "alone").await, before, "{wrong}");
        let writes = world.cluster_writes();
        assert!(writes.iter().all(|write| write.contains("/status") || write.contains("/events")), "{writes:#?}");
    }
    alone(&world, json!({})).await;
    assert_eq!(world.cluster.ready(ALONE).await, "True/AllReady");
}

#[tokio::test(start_paused = true)]
async fn scenario_60_a_users_key_is_used_as_it_is_once_it_is_there() {
    let world = world().await;
    alone(&world, json!({"rndcKey": {"secretRef": {"name": "theirs"}}})).await;
    assert_eq!(world.cluster.ready(ALONE).await, "False/ConfigurationInvalid");

    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "dns", "name": "theirs"},
        "data": {"key-name": "dGhlaXJz", "algorithm": "aG1hYy1zaGE1MTI=", "secret": "UVVKRA=="}});
    world.cluster.apply(&secret).await;
    world.settle().await;

    let keys = world.cluster.get("Secret/dns/alone-server-keys").await.unwrap();
    assert_eq!(keys["data"]["key-name"], "dGhlaXJz");
    assert_eq!(world.cluster.get("Secret/dns/alone-rndc-key").await, None);
    assert_eq!(world.cluster.ready(ALONE).await, "False/NotReady", "its pods are still to come");
}

#[tokio::test(start_paused = true)]
async fn scenario_59_keys_are_renewed_when_they_are_due_and_those_before_stay_for_now() {
    let world = world().await;
    alone(&world, json!({"rndcKey": {"autoRotate": true, "rotateAfter": "1h"}})).await;
    let before = key_name(&world).await;
    let template = async || world.cluster.get("Deployment/dns/alone").await.unwrap()["spec"]["template"].clone();
    let pods = template().await;

    world.pass(Duration::from_secs(3590)).await;
    assert_eq!(key_name(&world).await, before);
    world.pass(Duration::from_secs(20)).await;

    assert_ne!(key_name(&world).await, before);
    let status = &world.cluster.get(ALONE).await.unwrap()["status"]["rndcKeyRotation"];
    assert_eq!(status["rotationCount"], 1);
    let secret = world.cluster.get("Secret/dns/alone-rndc-key").await.unwrap();
    assert_eq!(secret["data"]["previous-key-name"], before);
    assert_eq!(template().await, pods, "no pod is made anew");
    assert!(world.cluster.events(ALONE).await.contains(&"KeysRotated".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_secondary_follows_the_primaries_of_its_cluster_by_their_services_and_keys() {
    let world = world().await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 1}, "secondary": {"replicas": 1}}))
        .await;

    let address = world.cluster.get("Service/dns/main-primary-0").await.unwrap()["spec"]["clusterIP"]
        .as_str()
        .unwrap()
        .to_owned();
    let options = options(&world, "main-secondary-0").await;
    assert!(
        options.contains(&format!("default-primaries {{ {address} port 53 key \"transfer.main-primary-0.dns\"; }}")),
        "{options}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_or_changed_by_hand_is_put_right() {
    let world = world().await;
    alone(&world, json!({})).await;
    for id in ["Deployment/dns/alone", "Service/dns/alone", "ConfigMap/dns/alone-config"] {
        world.cluster.delete(id).await;
    }
    world.cluster.patch("Service/dns/alone-control", &json!({"spec": {"publishNotReadyAddresses": false}})).await;
    world.settle().await;
    world.pass(Duration::from_secs(60)).await;

    for id in ["Deployment/dns/alone", "Service/dns/alone", "ConfigMap/dns/alone-config"] {
        assert!(world.cluster.get(id).await.is_some(), "{id}");
    }
    let control = world.cluster.get("Service/dns/alone-control").await.unwrap();
    assert_eq!(control["spec"]["publishNotReadyAddresses"], true);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_is_left_alone_and_told() {
    let world = world().await;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "dns", "name": "alone"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    world.cluster.apply(&service).await;
    alone(&world, json!({})).await;

    assert_eq!(world.cluster.ready(ALONE).await, "False/ObjectNotOurs");
    assert_eq!(world.cluster.get("Service/dns/alone").await.unwrap()["spec"]["selector"], json!({"app": "web"}));
}

#[tokio::test(start_paused = true)]
async fn a_workload_with_the_selector_of_the_older_operator_keeps_it() {
    let world = world().await;
    let labels = json!({"app": "bind9", "instance": "alone", "app.kubernetes.io/part-of": "bindy", "older": "label"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "api", "image": "ghcr.io/firestoned/bindcar:v0.7.2"}]}});
    let older = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "dns", "name": "alone", "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}});
    world.cluster.apply(&older).await;
    alone(&world, json!({})).await;

    let deployment = world.cluster.get("Deployment/dns/alone").await.unwrap();
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"]["older"], "label");
    assert_eq!(deployment["metadata"]["ownerReferences"][0]["name"], "alone");
}
