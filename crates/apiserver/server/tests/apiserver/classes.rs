//! Classes that new objects get: of priority, of storage and of ingress.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, Patch, PatchParams, PostParams};
use portolan_apiserver::{ApiServer, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

async fn client() -> (ApiServer, kube::Client) {
    let server = ApiServer::open(Config::default()).await.expect("memory opens");
    let client = kube::Client::new(server.service(), "default");
    (server, client)
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the literal is of its kind")
}

fn class(name: &str, value: i32, default: bool) -> PriorityClass {
    read(json!({"metadata": {"name": name}, "value": value, "globalDefault": default}))
}

fn pod(name: &str, class: Option<&str>) -> Pod {
    read(json!({
        "metadata": {"name": name},
        "spec": {"priorityClassName": class, "containers": [{"name": "a", "image": "a"}]},
    }))
}

fn refusal(error: kube::Error) -> (u16, String) {
    let kube::Error::Api(status) = error else { return (0, error.to_string()) };
    (status.code, status.message)
}

#[tokio::test]
async fn a_pod_gets_the_priority_of_its_class_or_of_the_default_one() {
    let (_server, client) = client().await;
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client);
    classes.create(&PostParams::default(), &class("low", 3, true)).await.unwrap();
    classes.create(&PostParams::default(), &class("high", 9, false)).await.unwrap();

    let named = pods.create(&PostParams::default(), &pod("named", Some("high"))).await.unwrap().spec.unwrap();
    let other = pods.create(&PostParams::default(), &pod("other", None)).await.unwrap().spec.unwrap();
    let error = pods.create(&PostParams::default(), &pod("unknown", Some("none"))).await.unwrap_err();

    assert_eq!((named.priority, named.priority_class_name.as_deref()), (Some(9), Some("high")));
    assert_eq!((other.priority, other.priority_class_name.as_deref()), (Some(3), Some("low")));
    let wanted = "pods \"unknown\" is forbidden: no PriorityClass with name none was found";
    assert_eq!(refusal(error), (403, wanted.to_owned()));
}

#[tokio::test]
async fn there_is_one_default_priority() {
    let (_server, client) = client().await;
    let classes: Api<PriorityClass> = Api::all(client);
    classes.create(&PostParams::default(), &class("a", 1, true)).await.unwrap();
    classes.create(&PostParams::default(), &class("b", 2, false)).await.unwrap();
    let patch = Patch::Merge(json!({"globalDefault": true}));

    let created = classes.create(&PostParams::default(), &class("c", 3, true)).await.unwrap_err();
    let patched = classes.patch("b", &PatchParams::default(), &patch).await.unwrap_err();
    let same = classes.patch("a", &PatchParams::default(), &patch).await;

    let why = "PriorityClass a is already marked as default. Only one default can exist";
    let wanted = |name: &str| (403, format!("priorityclasses.scheduling.k8s.io \"{name}\" is forbidden: {why}"));
    assert_eq!(refusal(created), wanted("c"));
    assert_eq!(refusal(patched), wanted("b"));
    assert!(same.is_ok());
}

#[tokio::test]
async fn claims_and_ingresses_without_a_class_get_the_default_one() {
    let (_server, client) = client().await;
    let storage: StorageClass = read(json!({
        "metadata": {"name": "disk", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "example.com/disk",
    }));
    let ingress: IngressClass = read(json!({
        "metadata": {"name": "web", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "example.com/web"},
    }));
    Api::all(client.clone()).create(&PostParams::default(), &storage).await.unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &ingress).await.unwrap();
    let claim = |name: &str, class: Option<&str>| -> PersistentVolumeClaim {
        read(json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }))
    };
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(client.clone());
    let ingresses: Api<Ingress> = Api::default_namespaced(client);
    let backend: Ingress = read(json!({
        "metadata": {"name": "a"},
        "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}},
    }));

    let open = claims.create(&PostParams::default(), &claim("open", None)).await.unwrap();
    let none = claims.create(&PostParams::default(), &claim("none", Some(""))).await.unwrap();
    let ingress = ingresses.create(&PostParams::default(), &backend).await.unwrap();

    assert_eq!(open.spec.unwrap().storage_class_name.as_deref(), Some("disk"));
    assert_eq!(none.spec.unwrap().storage_class_name.as_deref(), Some(""));
    assert_eq!(ingress.spec.unwrap().ingress_class_name.as_deref(), Some("web"));
}
