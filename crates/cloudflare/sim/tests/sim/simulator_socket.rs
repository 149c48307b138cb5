//! The simulator on a socket.

#![expect(clippy::unwrap_used, reason = "tests stop where something is missing")]

use std::time::Duration;

use portolan_cloudflare_sim::{Effect, Fault, Options, Serving, Simulator};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

async fn serve() -> (Simulator, Serving, Client) {
    // Another test of this process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let simulator = Simulator::new(Options { rate_limit: None, ..Options::default() });
    simulator.seed_example();
    let running = simulator.serve("127.0.0.1:0").await.unwrap();
    (simulator, running, Client::builder().no_proxy().build().unwrap())
}

async fn admin(running: &Serving, client: &Client, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    let url = format!("http://{}{path}", running.address);
    let response = client.request(method, url).json(&body).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

#[tokio::test]
async fn the_api_and_the_admin_pages_are_served() {
    let (_, running, client) = serve().await;
    let url = format!("{}/zones?name=example.com", running.base_url());

    let zones: Value = client.get(&url).bearer_auth("any").send().await.unwrap().json().await.unwrap();
    assert_eq!(zones["result"][0]["name"], "example.com");
    let page = client.get(format!("http://{}/", running.address)).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("/zones/{zone_id}/dns_records/batch") && page.contains("virtual_networks"), "{page}");
    let (_, health) = admin(&running, &client, Method::GET, "/health", json!(null)).await;
    assert_eq!(health["status"], "ok");
    let (_, requests) = admin(&running, &client, Method::GET, "/admin/requests", json!(null)).await;
    assert_eq!(requests.as_array().unwrap().len(), 1, "admin pages are not recorded: {requests}");
    let (status, _) = admin(&running, &client, Method::GET, "/admin/nonsense", json!(null)).await;
    assert_eq!(status, 400);
    running.shutdown().await;
    assert!(client.get(&url).send().await.is_err());
}

#[tokio::test]
async fn quotas_are_set_by_admin_requests() {
    let (_, running, client) = serve().await;
    let tokens = format!("{}/accounts/0123456789abcdef0123456789abcdef/access/service_tokens", running.base_url());
    let make = async || {
        let request = client.post(&tokens).bearer_auth("any").json(&json!({"name": "t"}));
        request.send().await.unwrap().status().as_u16()
    };

    assert_eq!(admin(&running, &client, Method::POST, "/admin/quotas", json!({"service_tokens": 1})).await.0, 200);
    assert_eq!((make().await, make().await), (201, 400));
    assert_eq!(admin(&running, &client, Method::POST, "/admin/quotas", json!({"tokens": 1})).await.0, 400);
    assert_eq!(admin(&running, &client, Method::POST, "/admin/quotas", json!({})).await.0, 200);
    assert_eq!(make().await, 201, "what is not named is as documented");
}

#[tokio::test]
async fn objects_and_faults_are_managed_by_admin_requests() {
    let (simulator, running, client) = serve().await;
    let zone = "00000000000000000000000000000001";
    let record = json!({"type": "A", "name": "www", "content": "192.0.2.1"});

    let put = json!({"action": "put", "collection": "dns_records", "scope": zone, "object": record});
    let (_, made) = admin(&running, &client, Method::POST, "/admin/objects", put).await;
    let edit = json!({"action": "edit", "collection": "dns_records", "id": made["id"], "object": {"ttl": 60}});
    admin(&running, &client, Method::POST, "/admin/objects", edit).await;
    assert_eq!(simulator.object("dns_records", made["id"].as_str().unwrap()).unwrap()["ttl"], 60);
    let remove = json!({"action": "remove", "collection": "dns_records", "id": made["id"]});
    admin(&running, &client, Method::POST, "/admin/objects", remove.clone()).await;
    assert_eq!(admin(&running, &client, Method::POST, "/admin/objects", remove).await.0, 400);
    let fault = json!({"path": "/zones", "type": "server_error", "times": 1});
    assert_eq!(admin(&running, &client, Method::POST, "/admin/faults", fault).await.1["faults"], 1);
    let answer = client.get(format!("{}/zones", running.base_url())).bearer_auth("t").send().await.unwrap();
    assert_eq!(answer.status(), 500);
    admin(&running, &client, Method::POST, "/admin/reset", json!(null)).await;
    assert_eq!(simulator.state()["zones"], json!([]));
}

#[tokio::test]
async fn resets_and_timeouts_reach_the_client_as_such() {
    let (simulator, running, client) = serve().await;
    let get = || client.get(format!("{}/zones", running.base_url())).bearer_auth("t");

    simulator.fault(Fault::on("GET", "/zones", Effect::Reset).times(1));
    let reset = get().send().await.unwrap_err();
    assert!(!reset.is_timeout() && reset.is_request(), "{reset:?}");
    simulator.fault(Fault::on("GET", "/zones", Effect::Timeout).times(1));
    let timeout = get().timeout(Duration::from_millis(50)).send().await.unwrap_err();
    assert!(timeout.is_timeout(), "{timeout:?}");
    assert_eq!(get().send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn dropping_it_closes_everything() {
    let (_, running, client) = serve().await;
    let url = format!("{}/zones", running.base_url());
    client.get(&url).bearer_auth("t").send().await.unwrap();

    drop(running);

    assert!(client.get(&url).bearer_auth("t").send().await.is_err());
}
