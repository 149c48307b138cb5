//! `kubectl port-forward`.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Child;

use crate::support::{Harbour, Written, free_port, soon};

/// A kubectl that forwards, and the port of this machine that it took.
async fn forwarding(harbour: &Harbour, way: &str, port: u16) -> (Child, u16) {
    let mut command = harbour.command(&["port-forward", "pod/web", &format!(":{port}"), "--address=127.0.0.1"]);
    let mut forward = command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", way).spawn().unwrap();
    let mut written = Written::by(forward.stdout.take().unwrap());
    let line = written.line().await.expect("it says where it listens");
    let local = line.strip_prefix("Forwarding from 127.0.0.1:").unwrap().split(' ').next().unwrap().parse().unwrap();
    // What it says further is read, so that it is not stopped by a pipe that is full.
    tokio::spawn(async move { while written.line().await.is_some() {} });
    (forward, local)
}

async fn ask(port: u16, path: &str) -> String {
    soon(async {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: web\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    })
    .await
}

fn echo(port: u16, text: &str) -> Value {
    let arguments = [format!("--port={port}"), format!("--text={text}")];
    let probe = json!({"tcpSocket": {"port": port}, "periodSeconds": 1});
    // Another user may not reach the executable in this checkout.
    let own = json!({"runAsUser": rustix::process::geteuid().as_raw()});
    json!({"containers": [
        {"name": "a", "image": "portolan-echo", "args": arguments, "readinessProbe": probe, "securityContext": own},
    ]})
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["ready"] == true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_to_the_pod_and_answers_come_back_on_many_connections() {
    let Some(harbour) = Harbour::open().await else { return };
    let (port, long) = (free_port(), "x".repeat(100_000));
    harbour.run(echo(port, &long), is_ready).await;

    for way in ["true", "false"] {
        let (mut forward, local) = forwarding(&harbour, way, port).await;
        let asked = (0..8).map(|index| async move { ask(local, &format!("/{index}")).await });
        for answer in futures::future::join_all(asked).await {
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with(&long), "{} bytes", answer.len());
        }
        forward.kill().await.unwrap();
    }
    harbour.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_nobody_listens_on_is_told_and_the_others_go_on() {
    let Some(harbour) = Harbour::open().await else { return };
    let (port, closed) = (free_port(), free_port());
    harbour.run(echo(port, "hello"), is_ready).await;
    let (mut forward, local) = forwarding(&harbour, "true", closed).await;
    let mut errors = Written::by(forward.stderr.take().unwrap());

    let _ = TcpStream::connect(("127.0.0.1", local)).await.unwrap();
    let told = errors.line().await.expect("kubectl says what went wrong");

    assert!(told.contains(&format!("error forwarding port {closed} to pod web")), "{told}");
    assert!(told.contains("Connection refused"), "{told}");
    forward.kill().await.unwrap();
    harbour.close().await;
}
