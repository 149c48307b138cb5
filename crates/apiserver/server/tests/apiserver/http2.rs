//! Many watches on one connection: HTTP/2 carries them all, and one that is not read holds up no other.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::sync::Arc;

use crate::support::{MAPS, map, post, soon};
use bytes::Bytes;
use futures::future::join_all;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use portolan_apiserver::{ApiServer, Config, RunningServer};
use serde_json::Value;

const WATCHES: usize = 300;
const SMALL: usize = 20;
const LARGE: usize = 40;
/// As much as a client takes of one stream before it is read.
const STREAM_WINDOW: u32 = 64 * 1024;

/// One connection, with windows as Go's client has them: much for all streams, a share of it for each.
async fn connection(server: &RunningServer) -> SendRequest<Empty<Bytes>> {
    use rustls::pki_types::pem::PemObject as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).unwrap()).unwrap();
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(1 << 30)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

/// A watch as a stream of the connection.
async fn watch(mut sender: SendRequest<Empty<Bytes>>, server: &RunningServer, query: &str) -> Incoming {
    let request = Request::get(format!("{}{MAPS}?watch=true&{query}", server.url()))
        .header("authorization", format!("Bearer {}", server.token()))
        .body(Empty::new())
        .unwrap();
    sender.ready().await.unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

/// The names in the next events.
async fn names(mut body: Incoming, count: usize) -> Vec<String> {
    let mut text = Vec::new();
    while text.split(|byte| *byte == b'\n').count() <= count {
        let frame = body.frame().await.expect("the watch goes on").unwrap();
        text.extend_from_slice(&frame.into_data().unwrap());
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let event = |line: &[u8]| -> Value { serde_json::from_slice(line).unwrap() };
    lines.map(|line| event(line)["object"]["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_watches_share_a_connection_and_a_slow_one_holds_up_no_other() {
    let api = ApiServer::open(Config::default()).await.unwrap();
    let service = api.service();
    let from = api.store().version();
    let server = api.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let sender = connection(&server).await;
    let slow = soon(watch(sender.clone(), &server, &format!("resourceVersion={from}"))).await;
    let query = format!("resourceVersion={from}&labelSelector=size%3Dsmall");
    let quick = join_all((1..WATCHES).map(|_| watch(sender.clone(), &server, &query)));
    let quick = soon(quick).await;

    let large = "x".repeat(32 * 1024);
    for number in 0..LARGE {
        post(&service, MAPS, &map(&format!("large-{number}"), &large)).await.ok();
        if number % 2 == 0 {
            let mut small = map(&format!("small-{}", number / 2), "1");
            small["metadata"]["labels"] = serde_json::json!({"size": "small"});
            post(&service, MAPS, &small).await.ok();
        }
    }
    // The slow one is not read until all the others have seen everything.
    let seen = soon(join_all(quick.into_iter().map(|body| names(body, SMALL)))).await;
    let slow = soon(names(slow, SMALL + LARGE)).await;

    let expected: Vec<String> = (0..SMALL).map(|number| format!("small-{number}")).collect();
    assert_eq!(seen.len(), WATCHES - 1);
    assert!(seen.iter().all(|names| *names == expected));
    assert_eq!(slow.iter().filter(|name| name.starts_with("small-")).cloned().collect::<Vec<_>>(), expected);
    assert_eq!(slow.len(), SMALL + LARGE);
    server.shutdown().await;
}
