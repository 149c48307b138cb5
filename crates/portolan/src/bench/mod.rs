//! Repeatable measurements. This module is `bench apiserver`: the same load on the embedded server and on a peer →
//! figures of both and their ratio. [`dns`], [`drift`] and [`publish`] measure the controllers.

mod arena;
mod connection;
pub(crate) mod dns;
pub(crate) mod drift;
mod embedded;
mod fanout;
mod memory;
mod processes;
pub(crate) mod publish;
mod report;
mod target;
mod timing;
mod workload;

use std::path::PathBuf;

use serde_json::{Value, json};

use connection::Connection;
use embedded::Embedded;
use target::Target;
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
    let embedded = Embedded::start().await?;
    let own = measure("embedded", &embedded.target().await?, load, &[embedded.pid()]).await?;
    embedded.stop().await?;
    let other = match peer {
        Some(peer) => {
            let target = Target::from_kubeconfig(&peer.kubeconfig).await?;
            Some(measure("peer", &target, load, &peer.pids).await?)
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
        "protocol": "HTTP/2 over TLS, one connection a client",
    })
}

/// All phases against one server, in a namespace of their own.
async fn measure(name: &str, target: &Target, load: Load, pids: &[u32]) -> anyhow::Result<Figures> {
    eprintln!("{name}: {}", target.address());
    let namespace = format!("portolan-bench-{}", std::process::id());
    let mut control = Connection::open(target).await?;
    workload::create_namespace(&mut control, &namespace).await?;
    let outcome = phases(name, target, &namespace, load, pids).await;
    // The namespace goes whatever happened; its failure must not hide the first one.
    let removed = workload::delete_namespace(&mut control, &namespace).await;
    let figures = outcome?;
    removed?;
    Ok(figures)
}

async fn phases(name: &str, target: &Target, namespace: &str, load: Load, pids: &[u32]) -> anyhow::Result<Figures> {
    let mut figures = Figures::new(name);
    figures.memory("rss_idle_mib", pids);
    let workload = workload::Workload::connect(target, namespace, load).await?;
    workload.create_and_list(&mut figures, pids).await?;
    workload.read(&mut figures).await?;
    workload.patch(&mut figures).await?;
    fanout::run(target, namespace, load, &mut figures).await?;
    figures.memory("rss_at_end_mib", pids);
    Ok(figures)
}
