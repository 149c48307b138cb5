//! How the job is divided into processes, and what each of them is told.

use portolan_cloudflare_api::RetryPolicy;
use portolan_engine::Drift;
use portolan_zerotrust::{Role, Settings, manager};
use portolan_zerotrust_routes as routes;
use portolan_zerotrust_worker as worker;

use crate::pace::WorldPace;

/// A process of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperatorProcess {
    /// Everything in one.
    All,
    /// What keeps the Deployments in shape: `manager`.
    Manager,
    /// The side of the cluster: `kube_worker`.
    Routes,
    /// The n-th that talks to Cloudflare: `cloudflare_worker`.
    Worker(usize),
}

/// How many processes there are, and how they are set.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    workers: usize,
    watched: Vec<String>,
    /// The pod that the process with the manager believes to run in.
    pod: Option<String>,
    /// Whether that process does nothing else.
    manages: bool,
}

impl Roles {
    /// One process for the routes and so many for Cloudflare, which know of each other by their leases.
    pub fn apart(workers: usize) -> Self {
        Self { workers, ..Self::default() }
    }

    /// One process that keeps the Deployments in shape and does nothing else, in this pod.
    pub fn manager(pod: &str) -> Self {
        Self { pod: Some(pod.to_owned()), manages: true, ..Self::default() }
    }

    /// One process that does everything, in this pod.
    pub fn single(pod: &str) -> Self {
        Self { pod: Some(pod.to_owned()), ..Self::default() }
    }

    /// Routes of these namespaces alone.
    pub fn watching(namespaces: &[&str]) -> Self {
        Self { watched: namespaces.iter().map(|name| (*name).to_owned()).collect(), ..Self::default() }
    }

    pub(crate) fn parts(&self) -> Vec<OperatorProcess> {
        match self.workers {
            _ if self.manages => vec![OperatorProcess::Manager],
            0 => vec![OperatorProcess::All],
            workers => {
                [OperatorProcess::Routes].into_iter().chain((1..=workers).map(OperatorProcess::Worker)).collect()
            }
        }
    }

    /// What a process is told in its so-manieth life.
    pub(crate) fn settings(&self, part: OperatorProcess, life: u64, drift: Drift, pace: &WorldPace) -> Settings {
        let (role, identity) = match part {
            OperatorProcess::All => (Role::All, "operator-0".to_owned()),
            OperatorProcess::Manager => (Role::Manager, "operator-0".to_owned()),
            OperatorProcess::Routes => (Role::KubeWorker, "kube-worker-0".to_owned()),
            OperatorProcess::Worker(number) => (Role::CloudflareWorker, format!("cloudflare-worker-{number}")),
        };
        let usual = Settings::default();
        let retry =
            RetryPolicy { first: pace.scaled(usual.retry.first), most: pace.scaled(usual.retry.most), ..usual.retry };
        let mut worker = worker::Settings::new(identity, format!("life-{life}"));
        worker.alone = self.workers == 0;
        let routes = routes::Settings { watch_namespaces: self.watched.clone(), drift, ..usual.routes };
        let workers = if self.manages { manager::Workers::Kept } else { manager::Workers::None };
        let manager = manager::Settings { pod: self.pod.clone(), workers, ..manager::Settings::default() };
        Settings { role, retry, manager, routes, worker, ..usual }
    }
}
