//! The HTTP transport over real sockets: a served simulator, a closed port, a server that hangs up.

use std::sync::Arc;

use portolan_cloudflare_api::collections::{DNS_RECORDS, ZONES};
use portolan_cloudflare_api::{
    Clients, Credential, Effect, Freshness, HttpTransport, Lane, Op, Request, RetryPolicy, Settings, Snapshot,
};
use portolan_cloudflare_sim::{Options, Simulator};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

fn clients(base_url: String) -> Clients {
    // Another test of this process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let transport = HttpTransport::new().expect("the TLS provider is installed");
    let settings = Settings { base_url, retry: RetryPolicy::NONE, ..Settings::default() };
    Clients::new(settings, Arc::new(transport), Arc::new(jiff::Timestamp::now))
}

fn post() -> Request {
    Request::new(http::Method::POST, "/zones", &[]).with_body(json!({}))
}

#[tokio::test]
async fn records_are_written_and_listed_over_a_socket() {
    let sim = Simulator::new(Options::default());
    let account = sim.add_account("Test");
    let zone = sim.add_zone("example.com", &account, "free").unwrap();
    let served = sim.serve("127.0.0.1:0").await.unwrap();
    let clients = clients(format!("http://{}/client/v4", served.address));
    let client = clients.client(&Credential::token("t0ken-canary"));

    let zones = client.list_all(Lane::Change, &ZONES, "").await.unwrap();
    let remote = client.records(&DNS_RECORDS, &zone);
    let body = json!({"type": "A", "name": "www.example.com", "content": "192.0.2.1", "ttl": 300});
    remote.write(Lane::Change, vec![Op::Create(body)]).await.unwrap();
    remote.refresh(Lane::Change, Freshness::AfterNow).await.unwrap();

    assert_eq!(zones[0]["name"], "example.com");
    assert_eq!(remote.with(Snapshot::len), 1);
    assert_eq!(clients.metrics().requests_sent("/zones/{zone_id}/dns_records", "POST", 200), 1);
}

#[tokio::test]
async fn a_closed_port_surely_took_nothing() {
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let client = clients(format!("http://{address}")).client(&Credential::token("t0ken-canary"));

    let error = client.send(Lane::Change, &post()).await.unwrap_err();

    assert_eq!(error.effect, Effect::None);
    assert!(error.message.contains("cannot connect"), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_up_may_have_taken_the_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        socket.read(&mut request).await.unwrap()
    }));
    let client = clients(format!("http://{address}")).client(&Credential::token("t0ken-canary"));

    let error = client.send(Lane::Change, &post()).await.unwrap_err();

    assert!(server.await.unwrap() > 0);
    assert_eq!(error.effect, Effect::Unknown);
}
