//! Who may ask, how much, how slowly, and what happens to them when the server stops. The requests are written by hand
//! on TLS connections, so that they can be as incomplete as they like.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use portolan_apiserver::{ApiBody, ApiServer, Config, PageLimits, RunningServer};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tower::ServiceExt as _;

/// Nothing here takes a second on an idle machine, unless it says so.
const PATIENCE: Duration = Duration::from_secs(60);
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LIMIT: usize = 3 << 20;

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it happens in time")
}

async fn serve(config: Config) -> RunningServer {
    let server = ApiServer::open(config).await.expect("it opens");
    server.serve(([127, 0, 0, 1], 0).into()).await.expect("loopback has a free port")
}

fn keeping(directory: &Path) -> Config {
    Config { data_dir: Some(directory.to_owned()), ..Config::default() }
}

/// One connection that speaks HTTP/1.1.
struct Line(TlsStream<TcpStream>);

impl Line {
    async fn to(server: &RunningServer) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(server.ca_pem().as_bytes()).expect("the CA is a certificate");
        roots.add(ca).expect("the CA is usable");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring knows them")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(server.address()).await.expect("it listens");
        let name = ServerName::try_from("localhost").expect("it is a name");
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream);
        Self(stream.await.expect("the certificate is trusted"))
    }

    async fn say(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).await.expect("the server reads");
        self.0.flush().await.expect("the server reads");
    }

    /// Reads on until the text so far ends like this.
    async fn hear(&mut self, end: &str) -> String {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            let byte = soon(self.0.read_u8()).await;
            assert!(byte.is_ok(), "{byte:?} after {}", String::from_utf8_lossy(&text));
            text.extend(byte);
        }
        String::from_utf8(text).expect("it is text")
    }

    /// Reads on until the server closes. Not all of its ends are closed politely.
    async fn rest(&mut self) -> String {
        let mut text = Vec::new();
        let _ = soon(self.0.read_to_end(&mut text)).await;
        String::from_utf8(text).expect("it is text")
    }
}

fn bearer(server: &RunningServer) -> String {
    format!("Authorization: Bearer {}\r\n", server.token())
}

/// A request's first lines, for a connection that ends with the answer.
fn head(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
}

fn posting(server: &RunningServer, headers: &str) -> String {
    head("POST", MAPS, &format!("{}Content-Type: application/json\r\n{headers}", bearer(server)))
}

fn code_of(answer: &str) -> u16 {
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    assert!(code.is_some(), "no answer: {answer:?}");
    code.unwrap_or_default()
}

fn status_of(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").expect("the answer has a body");
    serde_json::from_str(body).expect("the body is JSON")
}

async fn get(server: &RunningServer, path: &str, headers: &str) -> String {
    let mut line = Line::to(server).await;
    line.say(head("GET", path, headers)).await;
    line.rest().await
}

#[tokio::test]
async fn only_the_token_opens_the_door() {
    let server = serve(Config::default()).await;
    let token = server.token().to_owned();
    let wrong = [
        String::new(),
        "Authorization: Bearer \r\n".to_owned(),
        "Authorization: Bearer wrong\r\n".to_owned(),
        format!("Authorization: Bearer {}\r\n", &token[1..]),
        format!("Authorization: Bearer {token}0\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: {token}\r\n"),
    ];
    let watching = format!("{MAPS}?watch=true");
    for headers in &wrong {
        for path in ["/api", "/version", "/nowhere", MAPS, &watching] {
            let answer = get(&server, path, headers).await;
            assert_eq!(code_of(&answer), 401, "{path} with {headers:?}");
            assert_eq!(status_of(&answer)["reason"], "Unauthorized", "{path} with {headers:?}");
        }
    }
    assert_eq!(code_of(&get(&server, MAPS, &bearer(&server)).await), 200);
}

#[tokio::test]
async fn health_is_told_to_everybody() {
    let server = serve(Config::default()).await;
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = get(&server, path, "").await;
        assert_eq!(code_of(&answer), 200, "{answer}");
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_over_three_mebibytes_is_too_large() {
    let server = serve(Config::default()).await;
    let body = vec![b' '; LIMIT + 1];

    let mut declared = Line::to(&server).await;
    declared.say(posting(&server, &format!("Content-Length: {}\r\n", body.len()))).await;
    declared.say(&body).await;
    let mut chunked = Line::to(&server).await;
    chunked.say(posting(&server, "Transfer-Encoding: chunked\r\n")).await;
    for chunk in body.chunks(64 << 10) {
        chunked.say([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()).await;
    }
    chunked.say("0\r\n\r\n").await;
    let mut only_said = Line::to(&server).await;
    only_said.say(posting(&server, "Content-Length: 1000000000000\r\n")).await;
    let mut just_fits = Line::to(&server).await;
    just_fits.say(posting(&server, &format!("Content-Length: {LIMIT}\r\n"))).await;
    just_fits.say(&body[..LIMIT]).await;

    for line in [&mut declared, &mut chunked, &mut only_said] {
        let answer = line.rest().await;
        assert_eq!(code_of(&answer), 413, "{answer}");
        assert_eq!(status_of(&answer)["reason"], "RequestEntityTooLarge");
    }
    assert_eq!(code_of(&just_fits.rest().await), 400, "blanks alone are no object");
}

fn small_map(name: &str) -> (String, String) {
    let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
    let (first, second) = body.split_at(body.len() / 2);
    (first.to_owned(), second.to_owned())
}

/// A request that stops in the middle of its body; the server is reading it already.
async fn half_sent(server: &RunningServer, name: &str) -> (Line, String) {
    let (first, second) = small_map(name);
    let length = first.len() + second.len();
    let mut line = Line::to(server).await;
    line.say(posting(server, &format!("Content-Length: {length}\r\nExpect: 100-continue\r\n"))).await;
    assert!(line.hear("\r\n\r\n").await.starts_with("HTTP/1.1 100 "));
    line.say(first).await;
    (line, second)
}

#[tokio::test]
async fn slow_clients_hold_up_nobody_else() {
    let server = serve(Config::default()).await;
    let (mut silent, mut heads, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..20 {
        silent.push(TcpStream::connect(server.address()).await.expect("it listens"));
        let mut line = Line::to(&server).await;
        line.say(format!("GET {MAPS} HTTP/1.1\r\nHo")).await;
        heads.push(line);
        bodies.push(half_sent(&server, &format!("slow-{number}")).await);
    }

    let meanwhile = get(&server, MAPS, &bearer(&server)).await;

    assert_eq!(code_of(&meanwhile), 200);
    assert_eq!(status_of(&meanwhile)["items"].as_array().map(Vec::len), Some(0), "half an object is none");
    for (line, second) in &mut bodies {
        line.say(second).await;
        assert_eq!(code_of(&line.rest().await), 201, "slow is not wrong");
    }
    for line in &mut heads {
        line.say(format!("st: localhost\r\nConnection: close\r\n{}\r\n", bearer(&server))).await;
        assert_eq!(code_of(&line.rest().await), 200, "slow is not wrong");
    }
}

/// Takes the ten seconds that a handshake may take.
#[tokio::test]
async fn a_connection_that_never_says_anything_is_closed() {
    let server = serve(Config::default()).await;
    let mut silent = TcpStream::connect(server.address()).await.expect("it listens");
    let mut nothing = Vec::new();
    // A reset is an end as well.
    let _ = soon(silent.read_to_end(&mut nothing)).await;
    assert!(nothing.is_empty());
}

async fn ask(server: &ApiServer, path: &str) -> http::Response<ApiBody> {
    let request = Request::get(path).body(Empty::<bytes::Bytes>::new()).expect("it is a request");
    server.service().oneshot(request).await.unwrap_or_else(|never| match never {})
}

#[tokio::test]
async fn watches_beyond_the_limit_are_refused_until_one_ends() {
    let limits = PageLimits { watches: 2, ..PageLimits::default() };
    let server = ApiServer::open(Config { limits, ..Config::default() }).await.expect("memory opens");
    let watching = format!("{MAPS}?watch=true");
    let first = ask(&server, &watching).await;
    let second = ask(&server, &watching).await;

    let third = ask(&server, &watching).await;
    let list = ask(&server, MAPS).await;
    drop(first);
    let fourth = ask(&server, &watching).await;

    assert_eq!(second.status(), StatusCode::OK);
    assert_eq!(third.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(third.headers().contains_key(http::header::RETRY_AFTER));
    let body = third.into_body().collect().await.unwrap_or_else(|never| match never {}).to_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&body).expect("it is a Status")["reason"], "TooManyRequests");
    assert_eq!(list.status(), StatusCode::OK, "only watches are counted");
    assert_eq!(fourth.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_hangs_up_gives_its_watch_back() {
    let limits = PageLimits { watches: 1, ..PageLimits::default() };
    let server = serve(Config { limits, ..Config::default() }).await;
    let watching = head("GET", &format!("{MAPS}?watch=true&timeoutSeconds=1"), &bearer(&server));
    let endless = head("GET", &format!("{MAPS}?watch=true"), &bearer(&server));
    let mut first = Line::to(&server).await;
    first.say(endless).await;
    assert_eq!(code_of(&first.hear("\r\n\r\n").await), 200);
    let mut second = Line::to(&server).await;
    second.say(&watching).await;
    assert_eq!(code_of(&second.rest().await), 429);

    drop(first);

    // The server learns of it a moment later.
    let again = async {
        loop {
            let mut line = Line::to(&server).await;
            line.say(&watching).await;
            if code_of(&line.rest().await) == 200 {
                break;
            }
        }
    };
    soon(again).await;
}

/// Everything below a directory, itself first.
fn below(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("it is read");
        found.extend(entries.flat_map(|entry| below(&entry.expect("it is read").path())));
    }
    found
}

#[tokio::test]
async fn what_the_server_keeps_is_its_owners_alone() {
    let home = tempfile::tempdir().expect("there is room");
    let made_before = home.path().join("open-to-all");
    std::fs::create_dir(&made_before).expect("there is room");
    std::fs::set_permissions(&made_before, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    for directory in [home.path().join("new"), made_before] {
        let server = serve(keeping(&directory)).await;
        let mut line = Line::to(&server).await;
        let (first, second) = small_map("one");
        line.say(posting(&server, &format!("Content-Length: {}\r\n", first.len() + second.len()))).await;
        line.say(first + &second).await;
        assert_eq!(code_of(&line.rest().await), 201);

        let files = below(&directory);

        for name in ["kubeconfig", "portolan.sqlite", "pki/server.key", "pki/token"] {
            assert!(files.contains(&directory.join(name)), "{name} is among {files:?}");
        }
        for path in files {
            let mode = std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}: {mode:o}", path.display());
        }
        soon(server.shutdown()).await;
    }
}

#[tokio::test]
async fn a_stop_ends_watches_and_lets_requests_end() {
    let home = tempfile::tempdir().expect("there is room");
    let server = serve(keeping(home.path())).await;
    let (address, authorization) = (server.address(), bearer(&server));
    let mut watch = Line::to(&server).await;
    watch.say(head("GET", &format!("{MAPS}?watch=true"), &authorization)).await;
    assert_eq!(code_of(&watch.hear("\r\n\r\n").await), 200);
    let (mut slow, second) = half_sent(&server, "last").await;

    let stopping = tokio::spawn(server.shutdown());
    assert_eq!(watch.rest().await, "0\r\n\r\n", "the stream is closed, not cut");
    slow.say(second).await;
    let answer = slow.rest().await;
    soon(stopping).await.expect("it does not panic");

    assert_eq!(code_of(&answer), 201, "a request that has begun is answered");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    let server = serve(keeping(home.path())).await;
    assert_eq!(bearer(&server), authorization, "the token is kept");
    assert_eq!(code_of(&get(&server, &format!("{MAPS}/last"), &authorization).await), 200, "the answer was no lie");
}
