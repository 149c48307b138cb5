//! Who may do what: users in process, tokens over TLS, the roles of the system over restarts.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::support::{MAPS, delete, exchange, get, map, post, put, server};
use jiff::Timestamp;
use portolan_apiserver::{ApiServer, ApiService, Config, RunningServer};
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

async fn bind(admin: &ApiService, verbs: &[&str], user: &str) {
    let role = json!({"metadata": {"name": user}, "rules": [
        {"verbs": verbs, "apiGroups": [""], "resources": ["configmaps"]},
    ]});
    let binding = json!({
        "metadata": {"name": user}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    post(admin, &format!("{RBAC}/namespaces/default/roles"), &role).await.ok();
    post(admin, &format!("{RBAC}/namespaces/default/rolebindings"), &binding).await.ok();
}

#[tokio::test]
async fn a_user_in_process_may_do_what_a_binding_allows() {
    let server = server().await;
    let (admin, bob) = (server.service(), server.service_as("bob", &["staff"]));

    assert_eq!(get(&bob, MAPS).await.code, 403);
    bind(&admin, &["list"], "bob").await;

    assert_eq!(get(&bob, MAPS).await.code, 200);
    let refused = post(&bob, MAPS, &map("a", "1")).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.json()["message"],
        r#"configmaps is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "default""#
    );
}

#[tokio::test]
async fn what_is_taken_away_is_gone_with_the_next_request() {
    let server = server().await;
    let (admin, bob) = (server.service(), server.service_as("bob", &[]));
    bind(&admin, &["list"], "bob").await;
    assert_eq!(get(&bob, MAPS).await.code, 200);

    delete(&admin, &format!("{RBAC}/namespaces/default/rolebindings/bob")).await.ok();

    assert_eq!(get(&bob, MAPS).await.code, 403);
}

#[tokio::test]
async fn an_update_that_would_create_needs_the_right_to_create() {
    let server = server().await;
    let (admin, bob) = (server.service(), server.service_as("bob", &[]));
    bind(&admin, &["patch", "update"], "bob").await;

    let apply = "application/apply-patch+yaml";
    let path = format!("{MAPS}/a?fieldManager=me");
    let refused = crate::support::send(&bob, "PATCH", &path, apply, map("a", "1").to_string()).await;
    post(&admin, MAPS, &map("a", "0")).await.ok();
    let allowed = put(&bob, &format!("{MAPS}/a"), &map("a", "1")).await;

    assert_eq!(refused.code, 403);
    assert_eq!(allowed.code, 200);
}

#[tokio::test]
async fn the_roles_of_the_system_are_aggregated_before_the_first_request() {
    let service = server().await.service();

    let view = get(&service, &format!("{RBAC}/clusterroles/view")).await.ok();
    let admin = get(&service, &format!("{RBAC}/clusterroles/admin")).await.ok();

    assert!(view["rules"].as_array().is_some_and(|rules| rules.len() > 5));
    assert!(admin["rules"].as_array().unwrap().len() > view["rules"].as_array().unwrap().len());
}

#[tokio::test]
async fn a_settled_restart_writes_nothing_and_a_missing_right_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let config = || Config { data_dir: Some(folder.path().to_owned()), ..Config::default() };
    let first = ApiServer::open(config()).await.unwrap();
    let settled = first.store().version();
    first.store().close().await;
    drop(first);

    let second = ApiServer::open(config()).await.unwrap();
    assert_eq!(second.store().version(), settled);
    let path = format!("{RBAC}/clusterroles/system:basic-user");
    crate::support::merge(&second.service(), &path, &json!({"rules": null})).await.ok();
    second.store().close().await;
    drop(second);

    let third = ApiServer::open(config()).await.unwrap();
    let role = get(&third.service(), &path).await.ok();
    assert!(role["rules"].as_array().is_some_and(|rules| !rules.is_empty()));
}

/// A server that listens, and a clock that can be moved.
async fn listening(folder: Option<&std::path::Path>) -> (RunningServer, ApiService, Arc<AtomicI64>) {
    let seconds = Arc::new(AtomicI64::new(1_800_000_000));
    let clock = seconds.clone();
    let config = Config {
        data_dir: folder.map(ToOwned::to_owned),
        clock: Arc::new(move || Timestamp::from_second(clock.load(Ordering::SeqCst)).unwrap()),
        ..Config::default()
    };
    let server = ApiServer::open(config).await.unwrap();
    let service = server.service();
    let running = server.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    (running, service, seconds)
}

async fn token(service: &ApiService, account: &str, request: Value) -> String {
    let answer = post(service, &format!("{ACCOUNTS}/{account}/token"), &request).await.ok();
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// The status line of a request with a token.
async fn code(server: &RunningServer, token: &str, path: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n");
    let answer = exchange(server, request.as_bytes()).await;
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_token_stands_for_its_account_until_it_expires() {
    let (server, service, seconds) = listening(None).await;
    post(&service, ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.ok();
    let token = token(&service, "robot", json!({"spec": {"expirationSeconds": 600}})).await;

    assert_eq!(code(&server, &token, "/version").await, "200");
    assert_eq!(code(&server, &token, MAPS).await, "403");
    assert_eq!(code(&server, "nonsense", "/version").await, "401");
    bind(&service, &["list"], "system:serviceaccount:default:robot").await;
    assert_eq!(code(&server, &token, MAPS).await, "200");

    seconds.fetch_add(700, Ordering::SeqCst);

    assert_eq!(code(&server, &token, "/version").await, "401");
}

#[tokio::test]
async fn a_token_ends_with_what_it_is_bound_to() {
    let (server, service, _) = listening(None).await;
    post(&service, ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.ok();
    post(&service, "/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}})).await.ok();
    let bound = json!({"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}}});
    let bound = token(&service, "robot", bound).await;
    let free = token(&service, "robot", json!({})).await;
    let foreign = token(&service, "robot", json!({"spec": {"audiences": ["others"]}})).await;
    assert_eq!(code(&server, &foreign, "/version").await, "401");

    delete(&service, "/api/v1/namespaces/default/secrets/s").await.ok();
    assert_eq!(code(&server, &bound, "/version").await, "401");
    assert_eq!(code(&server, &free, "/version").await, "200");

    delete(&service, &format!("{ACCOUNTS}/robot")).await.ok();
    post(&service, ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.ok();
    assert_eq!(code(&server, &free, "/version").await, "401");
}

#[tokio::test]
async fn tokens_are_good_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (server, service, _) = listening(Some(folder.path())).await;
    post(&service, ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.ok();
    let token = token(&service, "robot", json!({})).await;
    drop(service);
    server.shutdown().await;

    let (server, _, _) = listening(Some(folder.path())).await;

    assert_eq!(code(&server, &token, "/version").await, "200");
}

#[tokio::test]
async fn a_review_is_answered_and_not_stored() {
    let server = server().await;
    let version = server.store().version();
    let bob = server.service_as("bob", &["staff"]);

    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let answer = post(&bob, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await;
    let me = post(&bob, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await.ok();

    assert_eq!((answer.code, &answer.json()["status"]), (201, &json!({"allowed": false})));
    assert_eq!(me["status"]["userInfo"], json!({"username": "bob", "groups": ["staff", "system:authenticated"]}));
    assert_eq!(server.store().version(), version);
}
