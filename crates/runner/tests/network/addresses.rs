//! Addresses of pods: carried by the loopback interface as long as the pod is there, and none left by a runner that was killed.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use portolan_apiserver::{ApiServer, Config, Workloads};
use portolan_runner::network::loopback::Loopback;
use portolan_runner::network::{InterfaceUse, Network, NetworkSettings};
use portolan_runner::node::PodRunner;
use serde_json::json;
use tokio::net::TcpStream;

use crate::support::{Stage, echo, in_time, open_to_pods, settings, until};

/// Tells a copy of these tests to be a runner that is to be killed, in this folder.
const TO_BE_KILLED: &str = "PORTOLAN_TEST_TO_BE_KILLED";

fn is_carried(address: Ipv4Addr) -> bool {
    Loopback::open().unwrap().carried().unwrap().iter().any(|one| one.address == address)
}

fn may_change() -> bool {
    Loopback::open().unwrap().may_change().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_pod_has_an_address_of_its_own_that_is_carried_until_it_is_gone() {
    let stage = Stage::begin().await;
    let report = stage.runner.network().report();
    assert_eq!((report.can_add_addresses, report.command_that_helps.is_none()), (may_change(), may_change()));
    for name in ["a", "b"] {
        let _: Pod = stage.create(json!({"metadata": {"name": name}, "spec": {"containers": [echo(8080)]}})).await;
    }

    let (a, b) = (stage.ready("a").await, stage.ready("b").await);

    assert_ne!(a, b);
    assert_eq!((is_carried(a), is_carried(b)), (may_change(), may_change()));
    stage.api::<Pod>().delete("a", &DeleteParams::default()).await.unwrap();
    until(|| async { stage.api::<Pod>().get_opt("a").await.unwrap().is_none().then_some(()) }).await;
    assert_eq!((is_carried(a), is_carried(b)), (false, may_change()));
    stage.runner.stop().await;
    assert!(!is_carried(b));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_keeps_its_address_with_the_next_runner() {
    let home = tempfile::tempdir().unwrap();
    open_to_pods(home.path());
    let server = ApiServer::open(Config { workloads: Workloads::On, ..Config::default() }).await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let runner = PodRunner::start(client.clone(), settings(home.path())).await.unwrap();
    let pod = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {"containers": [echo(8080)]}})).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let address_after = |restarts: i32| {
        let pods = pods.clone();
        until(move || {
            let pods = pods.clone();
            async move {
                let status = pods.get("a").await.unwrap().status?;
                let container = status.container_statuses?.first().cloned()?;
                (container.ready && container.restart_count == restarts).then_some(status.pod_ip?)
            }
        })
    };
    let before = address_after(0).await;
    runner.stop().await;

    let next = PodRunner::start(client, settings(home.path())).await.unwrap();

    assert_eq!(address_after(1).await, before);
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_to_change_the_interface_all_goes_on_and_the_pod_names_the_command_that_helps() {
    let network = NetworkSettings { interface: InterfaceUse::Untouched, ..NetworkSettings::default() };
    let stage = Stage::with(network).await;
    let metadata = json!({"name": "web", "labels": {"app": "web"}});
    let service = stage.service("web", json!({"ports": [{"port": 8888, "targetPort": 8080}]})).await;
    let pod: Pod = stage.create(json!({"metadata": metadata, "spec": {"containers": [echo(8080)]}})).await;

    let address = stage.ready("web").await;

    assert!(!is_carried(address));
    TcpStream::connect(SocketAddr::from((address, 8080))).await.unwrap();
    until(|| async { TcpStream::connect(SocketAddr::from((service, 8888))).await.ok() }).await;
    let report = stage.runner.network().report();
    let command = report.command_that_helps.unwrap();
    assert!(!report.can_add_addresses && command.starts_with("sudo setcap cap_net_admin"), "{command}");
    let status = stage.api::<Pod>().get(&pod.metadata.name.unwrap()).await.unwrap().status.unwrap();
    let conditions = status.conditions.unwrap();
    let carried = conditions.iter().find(|one| one.type_ == "portolan.dev/AddressCarried").unwrap();
    assert!(carried.status == "False" && carried.message.as_ref().unwrap().contains(&command), "{carried:?}");
    stage.runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_that_was_killed_leaves_no_address_to_the_next_one() {
    if let Ok(folder) = std::env::var(TO_BE_KILLED) {
        return run_until_killed(folder.as_ref()).await;
    }
    let home = tempfile::tempdir().unwrap();
    open_to_pods(home.path());
    let mut killed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "addresses::a_runner_that_was_killed_leaves_no_address_to_the_next_one", "--nocapture"])
        .env(TO_BE_KILLED, home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.contains("has address")).expect("it says so");
    let address: Ipv4Addr = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(is_carried(address), may_change());
    // By its number, without a chance to put anything away.
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(is_carried(address), may_change(), "nobody has taken it away yet");

    let server = ApiServer::open(Config::default()).await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let next = in_time(PodRunner::start(client, settings(home.path()))).await.unwrap();

    assert!(!is_carried(address));
    assert!(TcpStream::connect(SocketAddr::from((address, 8080))).await.is_err(), "its process is gone as well");
    next.stop().await;
}

/// A runner with a pod, in a process that is killed.
async fn run_until_killed(folder: &std::path::Path) {
    let server = ApiServer::open(Config { workloads: Workloads::On, ..Config::default() }).await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let _runner = PodRunner::start(client.clone(), settings(folder)).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client);
    let pod = serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {"containers": [echo(8080)]}})).unwrap();
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let address = until(|| async {
        let pod = pods.get("a").await.unwrap();
        crate::support::is_ready(&pod).then(|| pod.status.unwrap().pod_ip.unwrap())
    })
    .await;
    println!("the pod has address {address}");
    // Longer than the test that kills it waits for anything.
    tokio::time::sleep(crate::support::PATIENCE * 2).await;
}

#[tokio::test]
async fn a_network_without_pods_starts_and_ends_leaving_nothing() {
    let server = ApiServer::open(Config::default()).await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let network = Network::start(client, "here", "/opt/portolan".into(), NetworkSettings::default()).await.unwrap();
    let resolver = network.report().resolver.unwrap();

    network.shutdown();

    until(|| async { TcpStream::connect(resolver).await.is_err().then_some(()) }).await;
    assert_eq!(network.report().resolver, None);
}
