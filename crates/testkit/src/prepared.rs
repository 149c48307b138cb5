//! What every embedded API server of a job begins with: definitions, namespaces, roles; made once in a process, then shared.

use std::time::Duration;

use kube::Client;
use portolan_apiserver::{ApiServer, Config, ServerSnapshot};
use serde_json::json;

use crate::cluster::Cluster;
use crate::job::WorldJob;
use crate::{clock, paused, rights};

/// No world has this seed, so that none gives out the same uids once more.
const SEED: u64 = u64::MAX;

/// The state that servers of a job begin with, for an operator of one process or of several.
pub(crate) fn prepared(job: &'static WorldJob, apart: bool) -> &'static ServerSnapshot {
    // In a thread of its own, so that no time passes on the clock of the world that happens to be the first.
    job.once.servers[usize::from(apart)].get_or_init(|| {
        let prepared = std::thread::spawn(move || paused(prepare(job, apart))).join();
        prepared.expect("a server in memory takes our own definitions and roles")
    })
}

async fn prepare(job: &'static WorldJob, apart: bool) -> ServerSnapshot {
    let config = Config { clock: clock::tokio_clock(clock::beginning()), seed: Some(SEED), ..Config::default() };
    let server = ApiServer::open(config).await.expect("a server in memory starts");
    let cluster = Cluster::new(Client::new(server.service(), "default"), job);
    furnish(&cluster, job, apart).await;
    // What the server's own controllers write of it belongs to it.
    loop {
        let version = server.store().version();
        tokio::time::sleep(Duration::from_secs(1)).await;
        if server.store().version() == version {
            return server.snapshot();
        }
    }
}

/// Installs definitions, namespaces and rights, on whatever server.
pub(crate) async fn furnish(cluster: &Cluster, job: &'static WorldJob, apart: bool) {
    cluster.install_definitions().await;
    for name in job.namespaces {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        cluster.apply(&namespace).await;
    }
    rights::install(cluster, job, apart).await;
}
