//! Repeatable measurements. This module is `bench apiserver`: the same load on the embedded server and on a peer →
//! figures of both and their ratio. [`dns`], [`drift`] and [`publish`] measure the controllers.

mod connection;
pub(crate) mod dns;
pub(crate) mod drift;
mod embedded;
mod fanout;
mod memory;
mod pods;
mod processes;
pub(crate) mod publish;
mod report;
pub(crate) mod running_pods;
mod target;
mod timing;
mod workload;
mod world;

use std::path::PathBuf;

use serde_json::{Value, json};

use connection::Connection;
use embedded::Embedded;
use target::BenchServer;
use timing::Figures;

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// `ConfigMaps` to create.
    pub(crate) objects: usize,
    /// Clients at once, each with its own connection.
    pub(crate) clients: usize,
    /// Watchers of the fan-out.
    pub(crate) watchers: usize,
    /// Pods that report their status.
    pub(crate) pods: usize,
}

/// A server to compare with.
pub(crate) struct Peer {
    /// How to reach it.
    pub(crate) kubeconfig: PathBuf,
    /// Its processes, for their memory.
    pub(crate) pids: Vec<u32>,
}

/// Runs the load on the embedded server, then on the peer, and reports both.
pub(crate) async fn run(load: Load, peer: Option<Peer>) -> anyhow::Result<Value> {
    let mut own = Figures::new("embedded");
    // A server of its own for each subject, so that its memory is that of one.
    for subject in [BenchSubject::Objects, BenchSubject::Pods] {
        let embedded = Embedded::start().await?;
        measure(subject, &embedded.target().await?, load, &[embedded.pid()], &mut own).await?;
        embedded.stop().await?;
    }
    let other = match peer {
        Some(peer) => {
            let target = BenchServer::from_kubeconfig(&peer.kubeconfig).await?;
            let mut other = Figures::new("peer");
            for subject in [BenchSubject::Objects, BenchSubject::Pods] {
                measure(subject, &target, load, &peer.pids, &mut other).await?;
            }
            Some(other)
        }
        None => None,
    };
    Ok(report::render(&setting(load), &own, other.as_ref()))
}

fn setting(load: Load) -> Value {
    json!({
        "bench": "apiserver",
        "version": env!("CARGO_PKG_VERSION"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "objects": load.objects,
        "object_data_bytes": workload::DATA_BYTES,
        "clients": load.clients,
        "watchers": load.watchers,
        "pods": load.pods,
        "protocol": "HTTP/2 over TLS, one connection a client",
    })
}

/// What is written and read.
#[derive(Clone, Copy, Debug)]
enum BenchSubject {
    /// Plain objects, by every verb.
    Objects,
    /// Pods and what follows from their statuses.
    Pods,
}

/// Where phases run, and how much they do.
#[derive(Clone, Copy)]
struct Site<'a> {
    target: &'a BenchServer,
    namespace: &'a str,
    load: Load,
    /// The server's processes, for their memory.
    pids: &'a [u32],
}

/// All phases of a subject against one server, in a namespace of their own.
async fn measure(
    subject: BenchSubject,
    target: &BenchServer,
    load: Load,
    pids: &[u32],
    figures: &mut Figures,
) -> anyhow::Result<()> {
    eprintln!("{}: {}", figures.server(), target.address());
    let namespace = format!("portolan-bench-{}-{}", format!("{subject:?}").to_lowercase(), std::process::id());
    let mut control = Connection::open(target).await?;
    workload::create_namespace(&mut control, &namespace).await?;
    let site = Site { target, namespace: &namespace, load, pids };
    let outcome = match subject {
        BenchSubject::Objects => objects(site, figures).await,
        BenchSubject::Pods => pods::run(site, figures).await,
    };
    // The namespace goes whatever happened; its failure must not hide the first one.
    let removed = workload::delete_namespace(&mut control, &namespace).await;
    outcome?;
    removed
}

async fn objects(site: Site<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let Site { target, namespace, load, pids } = site;
    figures.memory("rss_idle_mib", pids);
    let workload = workload::Workload::connect(target, namespace, load).await?;
    workload.create_and_list(figures, pids).await?;
    workload.read(figures).await?;
    workload.patch(figures).await?;
    fanout::run(target, namespace, load, figures).await?;
    figures.memory("rss_at_end_mib", pids);
    Ok(())
}
