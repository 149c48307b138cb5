//! A Service under load while its pods are replaced one by one: no request is lost.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Patch, PatchParams};
use portolan_runner::network::round_trip::{median, round_trips};
use portolan_runner::network::service::Transport;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::support::{Stage, echo, is_ready, until};

/// Clients of each sort.
const CLIENTS: usize = 16;
/// Requests that a client sends from one socket before it takes a new one.
const FROM_ONE_SOCKET: usize = 8;
/// Longer than any answer takes on a machine that does much else.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
/// What forwarding may add to a round trip.
const MOST_ADDED: Duration = Duration::from_micros(300);

/// How much is asked: a short while, or as `PORTOLAN_SOAK` says, so many minutes at the full rate.
struct LoadPlan {
    /// Requests a second, of each sort.
    rate: usize,
    /// How often all pods are replaced.
    rollouts: usize,
    is_soak: bool,
}

impl LoadPlan {
    fn wanted() -> Self {
        if std::env::var_os("PORTOLAN_SOAK").is_some() {
            return Self { rate: 2000, rollouts: 20, is_soak: true };
        }
        Self { rate: 1000, rollouts: 1, is_soak: false }
    }
}

/// What became of all requests.
#[derive(Default)]
struct LoadOutcome {
    answered: AtomicUsize,
    lost: Mutex<Vec<String>>,
    pods: Mutex<BTreeSet<String>>,
    is_over: AtomicBool,
}

impl LoadOutcome {
    async fn take(&self, answer: Result<String, String>) {
        match answer {
            Ok(pod) => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                self.pods.lock().await.insert(pod);
            }
            Err(why) => self.lost.lock().await.push(why),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_lost_while_pods_are_replaced_one_by_one() {
    let plan = LoadPlan::wanted();
    let stage = Stage::begin().await;
    let ports = json!([{"name": "http", "port": 8081, "targetPort": 8080},
        {"name": "echo", "port": 8081, "targetPort": 8080, "protocol": "UDP"}]);
    let address = SocketAddr::from((stage.service("web", json!({"ports": ports})).await, 8081));
    let _: Deployment = stage.create(deployment()).await;
    until(|| async { (ready_pods(&stage).await.len() == 3).then_some(()) }).await;
    until(|| async { TcpStream::connect(address).await.ok() }).await;

    let outcome = Arc::new(LoadOutcome::default());
    let mut clients = JoinSet::new();
    let pause = Duration::from_secs(1) * u32::try_from(CLIENTS).unwrap() / u32::try_from(plan.rate).unwrap();
    for number in 0..CLIENTS {
        clients.spawn(by_tcp(address, pause, outcome.clone()));
        clients.spawn(by_udp(address, pause, number, outcome.clone()));
    }
    let began = Instant::now();
    for rollout in 0..plan.rollouts {
        replace_all(&stage, rollout).await;
    }
    let (answered, taken) = (outcome.answered.load(Ordering::Relaxed), began.elapsed());
    outcome.is_over.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }

    let rate = f64::from(u32::try_from(answered).unwrap()) / taken.as_secs_f64();
    let (lost, pods) = (outcome.lost.lock().await.clone(), outcome.pods.lock().await.clone());
    let added = added_round_trip(&stage, address).await;
    println!("{answered} requests, {rate:.0} a second, answered by {} pods; forwarding adds {added:?}", pods.len());
    assert_eq!(lost, Vec::<String>::new(), "of {answered}");
    assert!(answered > 100, "{answered} requests");
    assert!(pods.len() >= 3 * (plan.rollouts + 1), "old and new pods answered: {pods:?}");
    if plan.is_soak {
        assert!(rate > 3600.0, "{rate} a second");
    }
    // What forwarding costs is said of programs as they are shipped.
    assert!(cfg!(debug_assertions) || added.iter().all(|added| *added <= MOST_ADDED), "{added:?}");
    stage.runner.stop().await;
}

/// Three pods, of which one more may be there while one is replaced, and none fewer.
fn deployment() -> serde_json::Value {
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 30, "containers": [echo(8080)]},
    });
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        },
    })
}

async fn ready_pods(stage: &Stage) -> BTreeSet<String> {
    let pods = stage.pods("web").await.into_iter().filter(is_ready);
    pods.filter_map(|pod| pod.metadata.name).collect()
}

/// Changes the template, and waits until three other pods are there alone.
async fn replace_all(stage: &Stage, rollout: usize) {
    let before = ready_pods(stage).await;
    let annotations = json!({"rollout": rollout.to_string()});
    let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
    stage.api::<Deployment>().patch("web", &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
    until(|| async {
        let (all, ready) = (stage.pods("web").await.len(), ready_pods(stage).await);
        (all == 3 && ready.len() == 3 && ready.is_disjoint(&before)).then_some(())
    })
    .await;
}

/// What the way through the Service adds to a round trip, by TCP and by UDP.
async fn added_round_trip(stage: &Stage, service: SocketAddr) -> [Duration; 2] {
    let pod = stage.pods("web").await.into_iter().find(is_ready).unwrap();
    let address: Ipv4Addr = pod.status.unwrap().pod_ip.unwrap().parse().unwrap();
    let direct = SocketAddr::from((address, 8080));
    let mut added = [Duration::ZERO; 2];
    for (added, transport) in added.iter_mut().zip([Transport::Tcp, Transport::Udp]) {
        let (mut by_service, mut by_pod) = (Vec::new(), Vec::new());
        // By turns, so that what else the machine does is in both.
        for _ in 0..20 {
            by_service.extend(round_trips(transport, service, 20).await.unwrap());
            by_pod.extend(round_trips(transport, direct, 20).await.unwrap());
        }
        *added = median(by_service).saturating_sub(median(by_pod));
    }
    added
}

async fn by_tcp(address: SocketAddr, pause: Duration, outcome: Arc<LoadOutcome>) {
    let mut next = tokio::time::interval(pause);
    while !outcome.is_over.load(Ordering::Relaxed) {
        next.tick().await;
        let answer = tokio::time::timeout(ANSWERED_WITHIN, one_by_tcp(address)).await;
        let answer = answer.unwrap_or_else(|_| Err("TCP: no answer".to_owned()));
        outcome.take(answer).await;
    }
}

/// The pod that answered.
async fn one_by_tcp(address: SocketAddr) -> Result<String, String> {
    let failed = |step: &'static str| move |error: std::io::Error| format!("TCP: {step}: {error}");
    let mut stream = TcpStream::connect(address).await.map_err(failed("connecting"))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: web\r\n\r\n").await.map_err(failed("asking"))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(failed("reading"))?;
    let body = answer.split("\r\n\r\n").nth(1).ok_or_else(|| format!("TCP: the answer is {answer:?}"))?;
    let pod = body.strip_suffix("GET / HTTP/1.1\nHost: web\n").ok_or_else(|| format!("TCP: it says {body:?}"))?;
    Ok(pod.trim_end().to_owned())
}

async fn by_udp(address: SocketAddr, pause: Duration, client: usize, outcome: Arc<LoadOutcome>) {
    let mut next = tokio::time::interval(pause);
    let mut number = 0_usize;
    while !outcome.is_over.load(Ordering::Relaxed) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(address).await.unwrap();
        for _ in 0..FROM_ONE_SOCKET {
            next.tick().await;
            number += 1;
            let question = format!("{client}/{number}");
            let answer = tokio::time::timeout(ANSWERED_WITHIN, one_by_udp(&socket, &question)).await;
            let answer = answer.unwrap_or_else(|_| Err(format!("UDP: no answer to {question}")));
            outcome.take(answer).await;
        }
    }
}

/// The pod that answered this question.
async fn one_by_udp(socket: &UdpSocket, question: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("UDP: {error}");
    socket.send(question.as_bytes()).await.map_err(failed)?;
    let mut bytes = [0; 1024];
    loop {
        let length = socket.recv(&mut bytes).await.map_err(failed)?;
        let answer = String::from_utf8_lossy(&bytes[..length]).into_owned();
        if let Some((pod, echoed)) = answer.rsplit_once(' ')
            && echoed == question
        {
            return Ok(pod.to_owned());
        }
    }
}
