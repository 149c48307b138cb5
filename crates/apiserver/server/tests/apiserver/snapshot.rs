//! Servers that begin with what another one held.

use portolan_apiserver::{ApiServer, Config};
use serde_json::{Value, json};

use crate::support::{MAPS, open, send, server, soon, version_of};

const JSON: &str = "application/json";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRONS: &str = "/apis/example.com/v1/namespaces/default/crons";

fn definition() -> Value {
    let schema = json!({ "type": "object", "properties": { "spec": {
        "type": "object", "properties": { "times": { "type": "integer", "maximum": 5 } },
    } } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "crons.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": { "plural": "crons", "singular": "cron", "kind": "Cron", "listKind": "CronList" },
        },
    })
}

/// A server that serves a definition and holds an object.
async fn furnished() -> ApiServer {
    let server = server().await;
    let service = server.service();
    send(&service, "POST", DEFINITIONS, JSON, definition().to_string()).await.ok();
    let served = async {
        while send(&service, "GET", CRONS, "", "").await.code != 200 {
            tokio::task::yield_now().await;
        }
    };
    soon(served).await;
    send(&service, "POST", MAPS, JSON, json!({ "metadata": { "name": "one" } }).to_string()).await.ok();
    server
}

#[tokio::test]
async fn a_server_that_begins_with_a_snapshot_serves_its_objects_and_definitions() {
    let first = furnished().await;
    let before = send(&first.service(), "GET", &format!("{MAPS}/one"), "", "").await.ok();

    let second = ApiServer::open_from(Config::default(), &first.snapshot()).await;

    let service = second.service();
    assert_eq!(send(&service, "GET", &format!("{MAPS}/one"), "", "").await.ok(), before);
    let cron = |times: i64| {
        let spec = json!({ "times": times });
        json!({ "apiVersion": "example.com/v1", "kind": "Cron", "metadata": { "name": "c" }, "spec": spec }).to_string()
    };
    assert_eq!(send(&service, "POST", CRONS, JSON, cron(9)).await.code, 422, "its schema is in force");
    assert!(version_of(&send(&service, "POST", CRONS, JSON, cron(3)).await.ok()) > version_of(&before));
    send(&service, "DELETE", &format!("{DEFINITIONS}/crons.example.com"), "", "").await.ok();
    let gone = async {
        while send(&service, "GET", CRONS, "", "").await.code != 404 {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
}

#[tokio::test]
async fn servers_of_one_snapshot_share_nothing_that_they_write() {
    let first = furnished().await;
    let snapshot = first.snapshot();
    let (second, third) = (
        ApiServer::open_from(Config::default(), &snapshot).await,
        ApiServer::open_from(Config::default(), &snapshot).await,
    );

    send(&second.service(), "DELETE", &format!("{MAPS}/one"), "", "").await.ok();
    send(&second.service(), "DELETE", &format!("{DEFINITIONS}/crons.example.com"), "", "").await.ok();

    for other in [&first, &third] {
        assert_eq!(send(&other.service(), "GET", &format!("{MAPS}/one"), "", "").await.code, 200);
        assert_eq!(send(&other.service(), "GET", CRONS, "", "").await.code, 200);
    }
}

#[tokio::test]
async fn how_a_snapshot_came_to_be_cannot_be_watched() {
    let second = ApiServer::open_from(Config::default(), &furnished().await.snapshot()).await;

    let early = open(&second.service(), "GET", &format!("{MAPS}?watch=1&resourceVersion=1"), "", "".into()).await;

    let told = soon(http_body_util::BodyExt::collect(early.into_body())).await.expect("it ends").to_bytes();
    assert!(String::from_utf8_lossy(&told).contains("\"code\":410"), "{told:?}");
}
