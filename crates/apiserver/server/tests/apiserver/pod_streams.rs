//! Connections into pods: what a client must be allowed and must ask for, and what a WebSocket carries.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::sync::Arc;

use crate::support::{connect, get, merge, post, server, soon};
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{SinkExt as _, StreamExt as _, stream};
use portolan_apiserver::{
    ApiServer, ApiService, Config, ExecOrder, ExecSession, PageLimits, PodPort, PodSocket, PodStreams, RunningServer,
    StreamRefusal, TerminalSize,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A runner whose programs give back their input until it ends, and whose ports give back what they hear.
struct Mirror {
    sizes: mpsc::UnboundedSender<TerminalSize>,
    /// Told when a session is over, however it ended.
    left: mpsc::UnboundedSender<()>,
}

struct Leaving(mpsc::UnboundedSender<()>);

impl Drop for Leaving {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl PodStreams for Mirror {
    fn exec(&self, order: ExecOrder) -> BoxFuture<'static, Result<ExecSession, StreamRefusal>> {
        let (sizes, leaving) = (self.sizes.clone(), Leaving(self.left.clone()));
        Box::pin(async move {
            if order.command == ["none"] {
                return Err(StreamRefusal("there is no such program".to_owned()));
            }
            // Dropping one end is the end of what the other reads.
            let (reader, writer) = tokio::io::duplex(1024);
            let (done, ended) = oneshot::channel::<()>();
            let output = stream::unfold((reader, done), |(mut reader, done)| async {
                let mut part = BytesMut::new();
                let count = reader.read_buf(&mut part).await.unwrap();
                (count > 0).then(|| (part.freeze(), (reader, done)))
            });
            let end = async move {
                let _leaving = leaving;
                // The output has come to its end.
                let _ = ended.await;
                Ok(3)
            };
            Ok(ExecSession {
                input: order.has_input.then(|| Box::new(writer) as _),
                output: output.boxed(),
                errors: stream::iter([Bytes::from(order.command.join(" "))]).boxed(),
                resize: Some(Box::new(move |size| sizes.send(size).unwrap_or_default())),
                end: Box::pin(end),
            })
        })
    }

    fn dial(&self, port: PodPort) -> BoxFuture<'static, Result<Box<dyn PodSocket>, StreamRefusal>> {
        Box::pin(async move {
            if port.port == 81 {
                return Err(StreamRefusal("nobody listens".to_owned()));
            }
            let (ours, mut theirs) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                let mut heard = vec![0; 4];
                theirs.read_exact(&mut heard).await.unwrap();
                theirs.write_all(&heard).await.unwrap();
            });
            Ok(Box::new(ours) as Box<dyn PodSocket>)
        })
    }
}

/// A server with the pod `web` whose container `a` runs.
async fn with_pod(config: Config) -> (ApiServer, ApiService) {
    let server = ApiServer::open(config).await.unwrap();
    let service = server.service();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "here"}});
    post(&service, "/api/v1/nodes", &node).await.ok();
    let container = |name: &str| json!({"name": name, "image": "a"});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"nodeName": "here", "containers": [container("a"), container("b")]},
    });
    post(&service, PODS, &pod).await.ok();
    let running =
        json!({"name": "a", "image": "a", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let status = json!({"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": [running]});
    merge(&service, &format!("{PODS}/web/status"), &json!({"status": status})).await.ok();
    (server, service)
}

/// The same with a runner, on a port.
struct Harbour {
    server: RunningServer,
    sizes: mpsc::UnboundedReceiver<TerminalSize>,
    left: mpsc::UnboundedReceiver<()>,
}

impl Harbour {
    async fn open(config: Config) -> Self {
        let (server, _) = with_pod(config).await;
        let ((sizes, got), (left, seen)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        server.set_pod_streams(Arc::new(Mirror { sizes, left }));
        let server = server.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
        Self { server, sizes: got, left: seen }
    }

    /// Asks for a WebSocket; gives back the head of the answer and the connection after it.
    async fn ask(&self, path: &str, protocols: &str) -> (String, TlsStream<TcpStream>) {
        let mut socket = connect(&self.server).await;
        let token = self.server.token();
        let request = format!(
            "GET {PODS}/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: {protocols}\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(soon(socket.read_u8()).await.unwrap());
        }
        (String::from_utf8(head).unwrap(), socket)
    }

    async fn web_socket(&self, path: &str, protocol: &str) -> WebSocketStream<TlsStream<TcpStream>> {
        let (head, socket) = self.ask(path, protocol).await;
        assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
        assert!(head.to_lowercase().contains(&format!("sec-websocket-protocol: {protocol}\r\n")), "{head}");
        WebSocketStream::from_raw_socket(socket, Role::Client, None).await
    }
}

type Socket = WebSocketStream<TlsStream<TcpStream>>;

async fn say(socket: &mut Socket, message: &[u8]) {
    socket.send(Message::Binary(Bytes::copy_from_slice(message))).await.unwrap();
}

/// What comes on each channel until the server closes.
async fn heard(socket: &mut Socket) -> [String; 4] {
    let mut channels = [const { String::new() }; 4];
    while let Some(message) = soon(socket.next()).await {
        match message.unwrap() {
            Message::Binary(bytes) => {
                let (channel, text) = bytes.split_first().unwrap();
                channels[usize::from(*channel)].push_str(&String::from_utf8_lossy(text));
            }
            Message::Close(end) => {
                // An end without a code is a connection that broke.
                assert!(end.is_some_and(|end| u16::from(end.code) == 1000));
                break;
            }
            _ => {}
        }
    }
    channels
}

const EXEC: &str = "web/exec?container=a&command=cat&command=-n&stdin=true&stdout=true&stderr=true";

#[tokio::test]
async fn a_program_is_spoken_with_on_channels_and_its_end_is_told_last() {
    let mut harbour = Harbour::open(Config::default()).await;
    let mut socket = harbour.web_socket(EXEC, "v5.channel.k8s.io").await;

    say(&mut socket, b"\x00hello ").await;
    say(&mut socket, b"\x04{\"Width\":80,\"Height\":24}").await;
    say(&mut socket, b"\x00you").await;
    say(&mut socket, b"\xff\x00").await;
    let [_, output, errors, status] = heard(&mut socket).await;

    assert_eq!((output.as_str(), errors.as_str()), ("hello you", "cat -n"));
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["status"], &status["reason"]), (&json!("Failure"), &json!("NonZeroExitCode")));
    assert_eq!(status["details"]["causes"][0]["message"], "3");
    assert_eq!(harbour.sizes.recv().await, Some(TerminalSize { width: 80, height: 24 }));
}

#[tokio::test]
async fn a_runner_that_refuses_says_why_on_the_channel_of_errors() {
    let harbour = Harbour::open(Config::default()).await;
    let mut socket = harbour.web_socket("web/exec?container=a&command=none&stdout=true", "v4.channel.k8s.io").await;

    let [.., status] = heard(&mut socket).await;

    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["message"], "Internal error occurred: there is no such program");
}

#[tokio::test]
async fn the_session_of_a_client_that_goes_is_dropped() {
    let mut harbour = Harbour::open(Config::default()).await;
    let mut socket = harbour.web_socket(EXEC, "v5.channel.k8s.io").await;
    say(&mut socket, b"\x00x").await;
    let first = soon(socket.next()).await.unwrap().unwrap();
    assert!(first.is_binary());

    drop(socket);

    assert_eq!(soon(harbour.left.recv()).await, Some(()));
}

#[tokio::test]
async fn ports_have_two_channels_each_which_begin_with_their_number() {
    let harbour = Harbour::open(Config::default()).await;
    let mut socket = harbour.web_socket("web/portforward?ports=80,81", "v4.channel.k8s.io").await;

    say(&mut socket, b"\x00ping").await;
    let channels = heard(&mut socket).await;

    assert_eq!((channels[0].as_str(), channels[1].as_str()), ("P\0ping", "P\0"));
    assert_eq!(channels[2], "Q\0");
    assert!(channels[3].starts_with("Q\0error forwarding port 81 to pod web, uid "), "{}", channels[3]);
    assert!(channels[3].ends_with(": nobody listens"), "{}", channels[3]);
}

#[tokio::test]
async fn not_more_connections_are_open_than_may_be() {
    let limits = PageLimits { streams: 1, ..PageLimits::default() };
    let mut harbour = Harbour::open(Config { limits, ..Config::default() }).await;
    let mut first = harbour.web_socket(EXEC, "v5.channel.k8s.io").await;

    let (head, _) = harbour.ask(EXEC, "v5.channel.k8s.io").await;
    assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
    say(&mut first, b"\xff\x00").await;
    heard(&mut first).await;
    drop(first);
    assert_eq!(soon(harbour.left.recv()).await, Some(()));

    let again = soon(async {
        loop {
            let (head, _) = harbour.ask(EXEC, "v5.channel.k8s.io").await;
            if !head.starts_with("HTTP/1.1 429 ") {
                return head;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(again.starts_with("HTTP/1.1 101 "), "{again}");
}

async fn refused(service: &ApiService, path: &str) -> (u16, String) {
    let answer = get(service, &format!("{PODS}/{path}")).await;
    (answer.code, answer.json()["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_request_that_cannot_be_carried_out_is_told_why() {
    let (server, service) = with_pod(Config::default()).await;
    let (_, unrun) = refused(&service, EXEC).await;
    assert!(unrun.contains("no runner on this server runs pod \"web\""), "{unrun}");
    let (sizes, left) = (mpsc::unbounded_channel().0, mpsc::unbounded_channel().0);
    server.set_pod_streams(Arc::new(Mirror { sizes, left }));

    let cases = [
        ("web/exec?container=a&command=sh&stdout=true", 400, "Upgrade request required"),
        ("web/exec?container=a&command=sh", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("web/exec?container=a&stdout=true", 400, "you must specify at least one command for the container"),
        ("web/exec?container=b&command=sh&stdout=true", 500, "container not found (\"b\")"),
        ("web/exec?container=c&command=sh&stdout=true", 400, "container c is not valid for pod web"),
        ("other/exec?command=sh&stdout=true", 404, "pods \"other\" not found"),
        ("web/portforward?ports=x", 400, "invalid port \"x\""),
        ("web/proxy", 501, "the embedded API does not serve pods/proxy"),
    ];
    for (path, code, wanted) in cases {
        let (told, message) = refused(&service, path).await;
        assert!(told == code && message.contains(wanted), "{path}: {told} {message}");
    }
}

#[tokio::test]
async fn a_web_socket_needs_the_right_to_create_although_it_is_a_get() {
    let (server, service) = with_pod(Config::default()).await;
    let rights = |verbs: &[&str]| {
        let rule = json!({"apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs});
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "in"}, "rules": [rule]})
    };
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    post(&service, &format!("{roles}/roles"), &rights(&["get"])).await.ok();
    let subject = json!({"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"});
    let role = json!({"kind": "Role", "name": "in", "apiGroup": "rbac.authorization.k8s.io"});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "in"},
        "roleRef": role, "subjects": [subject],
    });
    post(&service, &format!("{roles}/rolebindings"), &binding).await.ok();
    let bob = server.service_as("bob", &[]);
    let path = "web/exec?container=a&command=sh&stdout=true";

    let (code, message) = refused(&bob, path).await;
    assert_eq!((code, message.as_str()), (403, "pods \"web\" is forbidden: "));
    merge(&service, &format!("{roles}/roles/in"), &json!({"rules": rights(&["get", "create"])["rules"]})).await.ok();
    let (code, message) = refused(&bob, path).await;
    assert!(code == 500 && message.contains("no runner"), "{code} {message}");
}

#[tokio::test]
async fn without_a_node_a_pod_has_no_host() {
    let server = server().await;
    let service = server.service();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    });
    post(&service, PODS, &pod).await.ok();

    for word in ["exec?command=sh&stdout=true", "attach?stdout=true", "portforward"] {
        let (code, message) = refused(&service, &format!("web/{word}")).await;
        assert_eq!((code, message.as_str()), (400, "pod web does not have a host assigned"));
    }
}
