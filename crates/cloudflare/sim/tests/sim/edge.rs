//! The edge on a socket, with real origins.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::{net::SocketAddr, sync::Arc};

use portolan_cloudflare_sim::{Edge, EdgeRequest, Options, OriginAddress, OriginPlace, Serving, Simulator};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

const TUNNEL: &str = "11111111-2222-3333-4444-555555555555";

/// A simulator in which `app.example.com` leads to a service.
async fn stage(service: &str, settings: Value) -> Simulator {
    let simulator = Simulator::new(Options::default());
    let account = simulator.add_account("Example");
    let zone = simulator.add_zone("example.com", &account, "free").unwrap();
    simulator.put("cfd_tunnel", &account, json!({"id": TUNNEL, "name": "home", "config_src": "cloudflare"})).unwrap();
    let record = json!({
        "type": "CNAME", "name": "app.example.com", "content": format!("{TUNNEL}.cfargotunnel.com"), "proxied": true, "ttl": 1,
    });
    simulator.put("dns_records", &zone, record).unwrap();
    let config = json!({"config": {"ingress": [
        {"hostname": "app.example.com", "service": service, "originRequest": settings},
        {"service": "http_status:404"},
    ]}});
    let request = http::Request::put(format!("/client/v4/accounts/{account}/cfd_tunnel/{TUNNEL}/configurations"))
        .header("authorization", "Bearer any")
        .body(config.to_string().into())
        .unwrap();
    assert_eq!(simulator.answer(request).await.unwrap().status(), 200);
    simulator
}

/// An origin that answers with the request's head, over TLS where a configuration is given.
async fn origin(tls: Option<Arc<rustls::ServerConfig>>) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let acceptor = tls.map(tokio_rustls::TlsAcceptor::from);
        while let Ok((stream, _)) = listener.accept().await {
            match &acceptor {
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let name = stream.get_ref().1.server_name().unwrap_or_default().to_owned();
                        echo(stream, &name).await;
                    }
                }
                None => echo(stream, "").await,
            }
        }
    });
    (address, tasks)
}

async fn echo(mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin, sni: &str) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&buffer[..count]),
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let answer = format!(
        "HTTP/1.1 201 Created\r\nx-origin: yes\r\nx-sni: {sni}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn serve(edge: Edge) -> Serving {
    edge.serve("127.0.0.1:0").await.unwrap()
}

async fn get(edge: &Serving, path: &str) -> reqwest::Response {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let url = format!("http://{}{path}", edge.address);
    client.get(url).header("host", "app.example.com").header("x-own", "1").send().await.unwrap()
}

fn at(host: &str, address: SocketAddr) -> OriginAddress {
    OriginAddress { host: host.to_owned(), place: OriginPlace::At(address) }
}

#[tokio::test]
async fn a_request_reaches_a_cluster_service_at_its_address() {
    let (address, _origin) = origin(None).await;
    let simulator = stage("http://traefik.traefik.svc:80", json!({})).await;
    let edge = serve(simulator.edge().origin(at("traefik.traefik.svc", address))).await;

    let answer = get(&edge, "/path?query=1").await;

    assert_eq!(answer.status(), 201);
    assert_eq!(
        (&answer.headers()["x-origin"], &answer.headers()["server"]),
        (&"yes".parse().unwrap(), &"cloudflare".parse().unwrap())
    );
    let head = answer.text().await.unwrap().to_lowercase();
    assert!(head.starts_with("get /path?query=1 "), "{head}");
    assert!(head.contains("host: app.example.com\r\n") && head.contains("x-own: 1\r\n"), "{head}");
    assert!(head.contains("x-forwarded-proto: https\r\n"), "{head}");
    edge.shutdown().await;
}

#[tokio::test]
async fn the_host_header_of_the_rule_is_sent() {
    let (address, _origin) = origin(None).await;
    let simulator = stage("http://traefik", json!({"httpHostHeader": "inner.example.com"})).await;
    let edge = serve(simulator.edge().origin(at("traefik:80", address))).await;

    let head = get(&edge, "/").await.text().await.unwrap().to_lowercase();

    assert!(head.contains("host: inner.example.com\r\n"), "{head}");
}

#[tokio::test]
async fn a_service_that_is_not_there_is_named_in_the_answer() {
    let simulator = stage("http://traefik.traefik.svc:80", json!({})).await;
    let edge = serve(simulator.edge()).await;

    let answer = get(&edge, "/").await;

    assert_eq!(answer.status(), 502);
    let text = answer.text().await.unwrap();
    assert!(text.contains("http://traefik.traefik.svc:80") && text.contains("--edge-origin"), "{text}");
}

#[tokio::test]
async fn the_edge_may_answer_in_the_place_of_all_origins() {
    let simulator = stage("http://traefik.traefik.svc:80", json!({})).await;
    let edge = simulator.edge().origin("*=echo".parse().unwrap());

    let answer = edge.ask(EdgeRequest::get("app.example.com", "/a?b=1", &[("X-Own", "1")])).await;

    assert_eq!(answer.status, 200);
    let text = answer.text();
    assert!(text.contains("http://traefik.traefik.svc:80") && text.contains("GET /a?b=1\n"), "{text}");
    assert!(text.contains("host: app.example.com\n") && text.contains("x-own: 1\n"), "{text}");
}

fn certificate() -> (Arc<rustls::ServerConfig>, String) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["inner.example.com".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (Arc::new(config), made.cert.pem())
}

#[tokio::test]
async fn certificates_of_origins_are_checked_unless_the_rule_says_no() {
    let (tls, pem) = certificate();
    let (address, _origin) = origin(Some(tls)).await;
    let pool = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(pool.path(), pem).unwrap();
    let cases = [
        (json!({}), 502),
        (json!({"noTLSVerify": true}), 201),
        (json!({"caPool": pool.path(), "originServerName": "inner.example.com"}), 201),
        (json!({"caPool": pool.path(), "originServerName": "other.example.com"}), 502),
        (json!({"originServerName": "inner.example.com"}), 502),
    ];
    for (settings, status) in cases {
        let simulator = stage("https://traefik.traefik.svc:443", settings.clone()).await;
        let edge = serve(simulator.edge().origin(at("traefik.traefik.svc", address))).await;

        let answer = get(&edge, "/").await;

        assert_eq!(answer.status(), status, "{settings}: {}", answer.text().await.unwrap());
        if settings["originServerName"] == "inner.example.com" && status == 201 {
            assert_eq!(answer.headers()["x-sni"], "inner.example.com");
        }
    }
}
