//! Owners that cannot own are told of.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use crate::support::{Lines, MAPS, get, map, post, server};
use serde_json::json;

/// As the garbage collector of kube-controller-manager 1.36.3 tells it.
#[tokio::test]
async fn an_owner_in_another_namespace_is_told_and_its_dependent_goes() {
    let server = server().await;
    let service = server.service();
    let elsewhere = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}});
    post(&service, "/api/v1/namespaces", &elsewhere).await.ok();
    let mut far = map("far", "1");
    far["metadata"]["namespace"] = json!("elsewhere");
    let owner = post(&service, "/api/v1/namespaces/elsewhere/configmaps", &far).await.ok();
    let uid = owner["metadata"]["uid"].as_str().unwrap();
    let mut events = Lines::watch(&service, "/api/v1/namespaces/default/events", "").await;
    let mut maps = Lines::watch(&service, MAPS, &format!("&resourceVersion={}", server.store().version())).await;

    let mut dependent = map("near", "1");
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "far", "uid": uid});
    dependent["metadata"]["ownerReferences"] = json!([reference]);
    post(&service, MAPS, &dependent).await.ok();

    let told = events.event().await.unwrap()["object"].clone();
    assert_eq!((&told["reason"], &told["type"]), (&json!("OwnerRefInvalidNamespace"), &json!("Warning")));
    let wanted = format!(
        "ownerRef [v1/ConfigMap, namespace: default, name: far, uid: {uid}] does not exist in namespace \"default\""
    );
    assert_eq!(told["message"], wanted);
    assert_eq!(told["involvedObject"]["name"], "near");
    assert_eq!(told["source"]["component"], "garbage-collector-controller");
    let seen: Vec<String> = maps.seen(2).await.into_iter().map(|(kind, name, _)| format!("{kind} {name}")).collect();
    assert_eq!(seen, ["ADDED near", "DELETED near"]);
    assert_eq!(get(&service, "/api/v1/namespaces/elsewhere/configmaps/far").await.code, 200);
}

#[tokio::test]
async fn an_owner_that_never_was_is_not_told() {
    let server = server().await;
    let service = server.service();
    let mut maps = Lines::watch(&service, MAPS, &format!("&resourceVersion={}", server.store().version())).await;

    let mut dependent = map("near", "1");
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "far", "uid": "no-such-uid"});
    dependent["metadata"]["ownerReferences"] = json!([reference]);
    post(&service, MAPS, &dependent).await.ok();

    assert_eq!(maps.seen(2).await[1].0, "DELETED");
    let events = get(&service, "/api/v1/namespaces/default/events").await.ok();
    assert_eq!(events["items"], json!([]));
}
