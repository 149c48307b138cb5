//! How the job is divided into processes, and what each of them is told.

use portolan_cloudflare_api::RetryPolicy;
use portolan_zerotrust::{Role, Settings, manager};
use portolan_zerotrust_routes as routes;
use portolan_zerotrust_worker as worker;

use crate::process::{OperatorProcess, ProcessStart, Processes};

/// The process on the side of the cluster, where there are several.
pub const ROUTES: OperatorProcess = OperatorProcess::of("kube_worker");

/// The n-th process that talks to Cloudflare, from 1 on.
pub const fn worker(number: usize) -> OperatorProcess {
    OperatorProcess { role: "cloudflare_worker", number }
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

    fn parts(&self) -> Vec<OperatorProcess> {
        match self.workers {
            _ if self.manages => vec![OperatorProcess::of("manager")],
            0 => vec![OperatorProcess::of("all")],
            workers => [ROUTES].into_iter().chain((1..=workers).map(worker)).collect(),
        }
    }

    /// What a process is told.
    fn settings(&self, start: &ProcessStart) -> Settings {
        let role = Role::parse(start.process.role).expect("the job has the role");
        let identity = match role {
            Role::All | Role::Manager => "operator-0".to_owned(),
            Role::KubeWorker => "kube-worker-0".to_owned(),
            Role::CloudflareWorker => format!("cloudflare-worker-{}", start.process.number),
        };
        let (usual, pace) = (Settings::default(), &start.pace);
        let retry =
            RetryPolicy { first: pace.scaled(usual.retry.first), most: pace.scaled(usual.retry.most), ..usual.retry };
        let mut worker = worker::Settings::new(identity, format!("life-{}", start.life));
        worker.alone = self.workers == 0;
        let routes = routes::Settings { watch_namespaces: self.watched.clone(), drift: start.drift, ..usual.routes };
        let workers = if self.manages { manager::Workers::Kept } else { manager::Workers::None };
        let manager = manager::Settings { pod: self.pod.clone(), workers, ..manager::Settings::default() };
        Settings { role, retry, manager, routes, worker, ..usual }
    }
}

impl From<Roles> for Processes {
    fn from(roles: Roles) -> Self {
        Self::told(roles.parts(), move |start, provisions| provisions.with(roles.settings(start)))
    }
}
