use serde_json::json;

use crate::world::{applied, names, object, pods_become_ready, world, world_watching};

const CLUSTER: &str = "Bind9Cluster/dns/main";

#[tokio::test(start_paused = true)]
async fn scenario_13_a_cluster_has_the_instances_that_it_asks_for_with_labels_owner_and_number() {
    let world = world().await;
    let spec =
        json!({"version": "9.18", "primary": {"replicas": 2, "labels": {"tier": "dns"}}, "secondary": {"replicas": 1}});
    applied(&world, "Bind9Cluster", "dns/main", spec).await;

    assert_eq!(
        names(&world, "Bind9Instance").await,
        ["dns/main-primary-0", "dns/main-primary-1", "dns/main-secondary-0"]
    );
    let one = world.cluster.get("Bind9Instance/dns/main-primary-1").await.unwrap();
    assert_eq!(one["metadata"]["ownerReferences"][0]["name"], "main");
    assert_eq!(one["metadata"]["annotations"]["bindy.firestoned.io/instance-index"], "1");
    assert_eq!((&one["metadata"]["labels"]["tier"], &one["spec"]["role"]), (&json!("dns"), &json!("primary")));
    assert_eq!(world.cluster.ready(CLUSTER).await, "False/NotReady");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_ready_when_all_pods_of_its_instances_are() {
    let world = world().await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 1}, "secondary": {"replicas": 1}}))
        .await;
    assert_eq!(world.cluster.message(CLUSTER).await, "0/2 instances are ready");

    pods_become_ready(&world).await;

    assert_eq!(world.cluster.ready("Bind9Instance/dns/main-primary-0").await, "True/AllReady");
    assert_eq!(world.cluster.message(CLUSTER).await, "All 2 instances are ready");
    let status = &world.cluster.get(CLUSTER).await.unwrap()["status"];
    assert_eq!((&status["instanceCount"], &status["readyInstances"]), (&json!(2), &json!(2)));
    assert_eq!(status["instances"], json!(["main-primary-0", "main-secondary-0"]));
}

#[tokio::test(start_paused = true)]
async fn scenario_14_an_instance_that_is_deleted_comes_back_and_scaling_down_takes_the_highest() {
    let world = world().await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 3}})).await;

    world.cluster.delete("Bind9Instance/dns/main-primary-0").await;
    world.settle().await;
    assert_eq!(names(&world, "Bind9Instance").await.len(), 3);

    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 1}})).await;
    assert_eq!(names(&world, "Bind9Instance").await, ["dns/main-primary-0"]);
}

#[tokio::test(start_paused = true)]
async fn scenario_15_a_cluster_of_none_has_none_and_instances_that_a_user_made_stay() {
    let world = world().await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 1}, "secondary": {"replicas": 1}}))
        .await;
    applied(&world, "Bind9Instance", "dns/by-hand", json!({"clusterRef": "main", "role": "secondary"})).await;

    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 0}, "secondary": {"replicas": 0}}))
        .await;

    assert_eq!(names(&world, "Bind9Instance").await, ["dns/by-hand"]);
    world.cluster.delete("Bind9Cluster/dns/main").await;
    world.settle().await;
    assert_eq!((names(&world, "Bind9Cluster").await.len(), names(&world, "Bind9Instance").await.len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn scenario_16_labels_that_a_role_gets_and_loses_are_got_and_lost_by_its_instances() {
    let world = world().await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 1, "labels": {"a": "1"}}})).await;
    let labels =
        async || world.cluster.get("Bind9Instance/dns/main-primary-0").await.unwrap()["metadata"]["labels"].clone();
    assert_eq!(labels().await["a"], "1");

    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 1, "labels": {"b": "2"}}})).await;

    let now = labels().await;
    assert_eq!((&now["b"], now.get("a")), (&json!("2"), None));
}

#[tokio::test(start_paused = true)]
async fn scenario_17_a_provider_has_a_cluster_where_it_is_used_and_takes_it_along() {
    let world = world().await;
    applied(&world, "ClusterBind9Provider", "shared", json!({"primary": {"replicas": 1}})).await;
    assert_eq!(names(&world, "Bind9Cluster").await, ["bindy-system/shared"]);
    assert_eq!(names(&world, "Bind9Instance").await, ["bindy-system/shared-primary-0"]);

    applied(&world, "Bind9Instance", "team/own", json!({"clusterRef": "shared", "role": "primary"})).await;
    assert_eq!(names(&world, "Bind9Cluster").await, ["bindy-system/shared", "team/shared"]);

    world.cluster.delete("ClusterBind9Provider/shared").await;
    world.settle().await;
    assert_eq!(names(&world, "Bind9Cluster").await, Vec::<String>::new());
    assert_eq!(names(&world, "Bind9Instance").await, ["team/own"], "what a user made stays");
}

#[tokio::test(start_paused = true)]
async fn a_settled_world_writes_nothing_over_a_hundred_resyncs() {
    let world = world().await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 2}, "secondary": {"replicas": 1}}))
        .await;
    pods_become_ready(&world).await;
    world.forget();

    for number in 0..100 {
        for id in ["Bind9Cluster/dns/main", "Bind9Instance/dns/main-primary-0", "Bind9Instance/dns/main-secondary-0"] {
            world.cluster.annotate(id, "portolan.dev/reconcile-at", &number.to_string()).await;
        }
        world.settle().await;
    }

    assert_eq!(world.cluster_writes(), Vec::<String>::new());
    assert_eq!(world.take_refusals(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn after_a_kill_at_any_time_the_next_operator_ends_where_the_first_would_have() {
    let world = world().await;
    world.cluster.apply(&object("Bind9Cluster", "dns/main", json!({"primary": {"replicas": 2}}))).await;
    world.crash().await;
    world.restart().await;
    world.settle().await;

    assert_eq!(names(&world, "Bind9Instance").await, ["dns/main-primary-0", "dns/main-primary-1"]);
    assert_eq!(names(&world, "Deployment").await, ["dns/main-primary-0", "dns/main-primary-1"]);
}

#[tokio::test(start_paused = true)]
async fn an_instance_or_cluster_of_somebody_else_with_a_name_of_ours_is_left_alone_and_told() {
    let world = world().await;
    applied(&world, "Bind9Instance", "dns/main-primary-0", json!({"clusterRef": "", "role": "secondary"})).await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 2}})).await;
    assert_eq!(world.cluster.ready(CLUSTER).await, "False/ObjectNotOurs");
    let theirs = world.cluster.get("Bind9Instance/dns/main-primary-0").await.unwrap();
    assert_eq!((&theirs["spec"]["role"], &theirs["spec"]["clusterRef"]), (&json!("secondary"), &json!("")));
    assert_eq!(
        names(&world, "Bind9Instance").await,
        ["dns/main-primary-0", "dns/main-primary-1"],
        "the others are made"
    );

    world.cluster.delete("Bind9Instance/dns/main-primary-0").await;
    world.settle().await;
    let ours = world.cluster.get("Bind9Instance/dns/main-primary-0").await.unwrap();
    assert_eq!(
        (&ours["spec"]["role"], world.cluster.ready(CLUSTER).await.as_str()),
        (&json!("primary"), "False/NotReady")
    );

    applied(&world, "ClusterBind9Provider", "main", json!({"namespace": "dns", "version": "9.20"})).await;
    assert_eq!(world.cluster.ready("ClusterBind9Provider/main").await, "False/ObjectNotOurs");
    assert_eq!(world.cluster.get(CLUSTER).await.unwrap()["spec"].get("version"), None);
}

#[tokio::test(start_paused = true)]
async fn scenario_70_what_stands_outside_of_the_watched_namespaces_is_no_business_of_ours() {
    let world = world_watching(&["dns"]).await;
    applied(&world, "Bind9Cluster", "dns/main", json!({"primary": {"replicas": 1}})).await;
    applied(&world, "Bind9Cluster", "team/other", json!({"primary": {"replicas": 1}})).await;

    assert_eq!(names(&world, "Bind9Instance").await, ["dns/main-primary-0"]);
    assert_eq!(world.cluster.get("Bind9Cluster/team/other").await.unwrap().get("status"), None);
}
