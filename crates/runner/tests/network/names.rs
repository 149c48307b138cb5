//! Names of Services and pods, asked of the runner's resolver over real sockets; variables of containers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::DeleteParams;
use portolan_runner::network::dns::message::{RecordContent, RecordKind, kinds, read_addresses, write_question};
use portolan_runner::node::WhichRun;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::support::{Stage, echo, in_time, until};

const NO_NAME: u8 = 3;

/// The code of an answer by UDP, and the addresses in it.
async fn asked(resolver: SocketAddr, name: &str, kind: RecordKind) -> (u8, Vec<Ipv4Addr>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(resolver).await.unwrap();
    let question = write_question(7, name, kind);
    // A datagram may be lost.
    let answer = until(|| async {
        socket.send(&question).await.unwrap();
        let mut answer = vec![0; 4096];
        let length = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut answer)).await.ok()?.ok()?;
        Some(answer[..length].to_vec())
    })
    .await;
    (answer[3] & 0xF, addresses(&answer))
}

fn addresses(answer: &[u8]) -> Vec<Ipv4Addr> {
    let found = read_addresses(answer, 7).into_iter().filter_map(|content| match content {
        RecordContent::A(address) => Some(address),
        _ => None,
    });
    found.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_services_and_of_pods_of_a_stateful_set_are_found_as_long_as_they_are_there() {
    let stage = Stage::begin().await;
    let resolver = stage.runner.network().report().resolver.unwrap();
    let address = stage.service("web", json!({"ports": [{"name": "http", "port": 80}]})).await;
    stage.service("db", json!({"clusterIP": "None", "ports": [{"name": "sql", "port": 5432}]})).await;
    for name in ["db-0", "db-1"] {
        let spec = json!({"hostname": name, "subdomain": "db", "containers": [echo(8080)]});
        let _: Pod = stage.create(json!({"metadata": {"name": name, "labels": {"app": "db"}}, "spec": spec})).await;
    }
    let (first, second) = (stage.ready("db-0").await, stage.ready("db-1").await);
    let mut both = vec![first, second];
    both.sort();

    until(|| async {
        (asked(resolver, "db.default.svc.cluster.local", kinds::A).await == (0, both.clone())).then_some(())
    })
    .await;
    until(|| async { (asked(resolver, "web.default.svc.cluster.local", kinds::A).await.1 == [address]).then_some(()) })
        .await;
    assert_eq!(asked(resolver, "db-1.db.default.svc.cluster.local", kinds::A).await, (0, vec![second]));
    assert_eq!(asked(resolver, "web.default.svc.cluster.local", kinds::AAAA).await, (0, Vec::new()));
    assert_eq!(asked(resolver, "none.default.svc.cluster.local", kinds::A).await, (NO_NAME, Vec::new()));
    assert_eq!(stage.runner.network().address_of_name("web.default"), Some(address));

    stage.api::<Service>().delete("web", &DeleteParams::default()).await.unwrap();
    until(|| async { (asked(resolver, "web.default.svc.cluster.local", kinds::A).await.0 == NO_NAME).then_some(()) })
        .await;
    stage.runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_questions_of_one_connection_are_answered_one_after_the_other() {
    let stage = Stage::begin().await;
    let resolver = stage.runner.network().report().resolver.unwrap();
    let address = stage.service("web", json!({"ports": [{"port": 80}]})).await;
    until(|| async { stage.runner.network().address_of_name("web.default") }).await;
    let mut stream = TcpStream::connect(resolver).await.unwrap();

    for (name, expected) in [("web.default.svc.cluster.local", vec![address]), ("x.cluster.local", Vec::new())] {
        let question = write_question(7, name, kinds::A);
        stream.write_u16(u16::try_from(question.len()).unwrap()).await.unwrap();
        stream.write_all(&question).await.unwrap();
        let length = in_time(stream.read_u16()).await.unwrap();
        let mut answer = vec![0; usize::from(length)];
        in_time(stream.read_exact(&mut answer)).await.unwrap();
        assert_eq!(addresses(&answer), expected, "{name}");
    }
    stage.runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_are_told_where_the_services_of_their_namespace_are_and_where_the_api_server_is() {
    let network = portolan_runner::network::NetworkSettings {
        api_server: Some("127.0.0.1:6440".parse().unwrap()),
        ..Default::default()
    };
    let stage = Stage::with(network).await;
    let address = stage.service("web", json!({"ports": [{"name": "http", "port": 80}]})).await;
    until(|| async { stage.runner.network().address_of_name("web.default") }).await;
    let script = "echo $WEB_SERVICE_HOST $WEB_SERVICE_PORT_HTTP $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT";
    let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script]});

    let pod: Pod = stage
        .create(json!({"metadata": {"name": "told"}, "spec": {"restartPolicy": "Never", "containers": [container]}}))
        .await;

    let uid = pod.metadata.uid.unwrap();
    let line = until(|| async {
        let (lines, _) = stage.runner.outputs().lines(&uid, "a", WhichRun::Current, None).unwrap()?;
        Some(String::from_utf8_lossy(&lines.first()?.text).into_owned())
    })
    .await;
    assert_eq!(line, format!("{address} 80 127.0.0.1 6440"));
    stage.runner.stop().await;
}
