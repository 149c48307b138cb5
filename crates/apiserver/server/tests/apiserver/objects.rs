//! Objects through `kube::Client`, in process.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use portolan_apiserver::{ApiServer, Config};
use serde_json::json;

async fn client() -> (ApiServer, kube::Client) {
    let server = ApiServer::open(Config::default()).await.expect("memory opens");
    let client = kube::Client::new(server.service(), "default");
    (server, client)
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}})).expect("it is one")
}

#[tokio::test]
async fn an_object_is_created_read_changed_listed_and_deleted() {
    let (_server, client) = client().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);

    let created = api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    let patched = api.patch("one", &PatchParams::default(), &Patch::Merge(json!({"data": {"b": "2"}}))).await.unwrap();
    let applied = api
        .patch(
            "one",
            &PatchParams::apply("me"),
            &Patch::Apply(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"c": "3"}}),
            ),
        )
        .await
        .unwrap();
    let listed = api.list(&ListParams::default()).await.unwrap();
    api.delete("one", &DeleteParams::default()).await.unwrap();

    assert!(created.metadata.uid.is_some());
    assert_eq!(patched.data.unwrap().len(), 2);
    assert_eq!(applied.data.unwrap().len(), 3);
    assert_eq!(listed.items.len(), 1);
    let error = api.get("one").await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.code == 404 && status.reason == "NotFound"));
}

#[tokio::test]
async fn a_namespace_goes_with_everything_in_it() {
    let (_server, client) = client().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "web"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "web");
    maps.create(&PostParams::default(), &config_map("one")).await.unwrap();

    namespaces.delete("web", &DeleteParams::default()).await.unwrap();
    let gone = kube::runtime::wait::await_condition(namespaces, "web", kube::runtime::conditions::is_deleted(""));
    let _ = tokio::time::timeout(std::time::Duration::from_secs(5), gone).await.unwrap();

    assert!(maps.get_opt("one").await.unwrap().is_none());
}

#[tokio::test]
async fn a_pod_that_is_born_on_a_node_says_where_that_is() {
    let (_server, client) = client().await;
    let nodes: Api<Node> = Api::all(client.clone());
    let labels = json!({"topology.kubernetes.io/zone": "north", "other": "x"});
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "pier", "labels": labels}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let spec = json!({"nodeName": "pier", "containers": [{"name": "a", "image": "a"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec});

    let applied = pods.patch("one", &PatchParams::apply("test"), &Patch::Apply(&pod)).await.unwrap();

    let labels: Vec<(String, String)> = applied.metadata.labels.unwrap().into_iter().collect();
    assert_eq!(labels, [("topology.kubernetes.io/zone".to_owned(), "north".to_owned())]);
}
