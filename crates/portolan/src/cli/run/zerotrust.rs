//! Flags and environment of the zerotrust job: the older operators' names, as their manifests set them.

use std::time::Duration;

use portolan_engine::Drift;
use portolan_zerotrust::{Role, Settings, manager};

use crate::zerotrust::NamespaceArgs;

/// How the zerotrust job runs.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "The zerotrust job")]
pub(super) struct ZerotrustArgs {
    /// Which part of the job this process does; one that is not known counts as manager, as it did before
    #[arg(long, value_name = "all|manager|kube_worker|cloudflare_worker", env = "ROLE", default_value = "all", value_parser = chosen)]
    role: ChosenRole,

    #[command(flatten)]
    pub(super) namespace: NamespaceArgs,

    /// Namespaces whose routes are looked at, with commas between them; all of them without it
    #[arg(long, value_name = "NAMES", env = "WATCH_NAMESPACES", value_delimiter = ',')]
    pub(super) watch_namespaces: Vec<String>,

    /// How often it is looked for what no route asks for any more
    #[arg(long, value_name = "SECONDS", env = "POLL_INTERVAL_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    poll_interval_seconds: u64,

    /// Longest time between two comparisons of a name with what stands at Cloudflare, as far as 30 % of the API's budget
    /// allow it; where they allow more, names are compared every minute; 0 for never
    #[arg(long, value_name = "SECONDS", env = "DRIFT_RESYNC_SECONDS", default_value_t = 3600)]
    drift_resync_seconds: u64,

    /// How long a worker counts as living after its last sign
    #[arg(long, value_name = "SECONDS", env = "TASK_LEASE_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..))]
    task_lease_seconds: u64,

    /// This process's name in claims, unique among those that run at one time
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pod_name: Option<String>,

    /// Account of the workers in the cluster that the manager makes; its own without it
    #[arg(long, value_name = "NAME", env = "KUBE_WORKER_SERVICE_ACCOUNT")]
    kube_worker_service_account: Option<String>,

    /// Account of the workers at Cloudflare that the manager makes; its own without it
    #[arg(long, value_name = "NAME", env = "CLOUDFLARE_WORKER_SERVICE_ACCOUNT")]
    cloudflare_worker_service_account: Option<String>,

    /// Origins that may be published though they reach what protects the cluster, as bastion, `unix:/run/app.sock` or
    /// `https://kubernetes.default.svc`, with commas between them; none without it
    #[arg(long, value_name = "ORIGINS", env = "ALLOW_ORIGINS", value_delimiter = ',')]
    allow_origins: Vec<String>,

    /// Put no finalizers on routes and tenants; what deleted routes leave is then found by sweeps
    #[arg(long, env = "CFZT_NO_FINALIZERS")]
    no_finalizers: bool,
}

/// A role, and what was written where nobody knows it.
#[derive(Clone, Debug)]
struct ChosenRole {
    role: Role,
    unknown: Option<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of a parser")]
fn chosen(text: &str) -> Result<ChosenRole, std::convert::Infallible> {
    let role = if text.trim().is_empty() { Some(Role::All) } else { Role::parse(text) };
    let unknown = role.is_none().then(|| text.to_owned());
    Ok(ChosenRole { role: role.unwrap_or(Role::Manager), unknown })
}

impl ZerotrustArgs {
    /// Which part of the job this process does.
    pub(super) fn role(&self) -> Role {
        self.role.role
    }

    /// Says where a role is not known.
    pub(super) fn tell(&self) {
        if let Some(unknown) = &self.role.unknown {
            tracing::warn!(
                "The role {unknown:?} is not known, and counts as manager: write all, manager, kube_worker or cloudflare_worker"
            );
        }
    }

    /// The job's settings. `candidate` is a name that no other process has; `is_elected` says that only one works at a time.
    pub(super) fn settings(&self, candidate: &str, is_elected: bool) -> Settings {
        let mut settings = Settings {
            role: self.role(),
            operator_namespace: self.namespace.operator_namespace.clone(),
            ..Settings::default()
        };
        let named = self.watch_namespaces.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        settings.routes.watch_namespaces = named.collect();
        let origins = self.allow_origins.iter().map(|origin| origin.trim().to_owned());
        settings.routes.allow_origins = origins.filter(|origin| !origin.is_empty()).collect();
        // As the kubelet tells every pod.
        let api_server = std::env::var("KUBERNETES_SERVICE_HOST").ok();
        settings.routes.api_server = api_server.and_then(|address| address.trim().parse().ok()).into_iter().collect();
        settings.routes.finalizers = !self.no_finalizers;
        settings.routes.drift = match self.drift_resync_seconds {
            0 => Drift::Off,
            seconds => Drift::at_least_every(Duration::from_secs(seconds)),
        };
        settings.routes.sweep = Duration::from_secs(self.poll_interval_seconds);
        settings.manager = self.manager();
        self.pod().unwrap_or(candidate).clone_into(&mut settings.worker.identity);
        candidate.clone_into(&mut settings.worker.epoch);
        settings.worker.alone = is_elected && self.role() == Role::All;
        settings.worker.lease = Duration::from_secs(self.task_lease_seconds);
        settings
    }

    /// The pod that this process runs in, where it says.
    fn pod(&self) -> Option<&str> {
        self.pod_name.as_deref().filter(|name| !name.is_empty() && *name != "unknown")
    }

    fn manager(&self) -> manager::Settings {
        let workers = if self.role() == Role::Manager { manager::Workers::Kept } else { manager::Workers::None };
        let account = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
        manager::Settings {
            pod: self.pod().map(str::to_owned),
            workers,
            kube_worker_account: account(&self.kube_worker_service_account),
            cloudflare_worker_account: account(&self.cloudflare_worker_service_account),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        zerotrust: ZerotrustArgs,
    }

    fn settings(arguments: &[&str]) -> Settings {
        let line = Line::parse_from(std::iter::once(&"portolan").chain(arguments));
        line.zerotrust.settings("host_1", false)
    }

    #[test]
    fn namespaces_are_a_list_without_blanks() {
        let settings = settings(&["--watch-namespaces", "shop, apps,,"]);

        assert_eq!(settings.routes.watch_namespaces, ["shop", "apps"]);
    }

    #[test]
    fn finding_12_origins_that_protect_the_cluster_are_allowed_here_alone() {
        let allowed = settings(&["--allow-origins", "bastion, https://kubernetes.default.svc,"]).routes.allow_origins;

        assert_eq!(allowed, ["bastion", "https://kubernetes.default.svc"]);
        assert!(settings(&[]).routes.allow_origins.is_empty());
    }

    #[test]
    fn a_worker_has_its_pods_name_or_one_that_nobody_has() {
        assert_eq!(settings(&["--pod-name", "worker-7"]).worker.identity, "worker-7");
        assert_eq!(settings(&["--pod-name", "unknown"]).worker.identity, "host_1");
        assert_eq!(settings(&[]).worker.identity, "host_1");
    }

    #[test]
    fn roles_are_read_with_hyphens_too() {
        assert_eq!(settings(&["--role", "cloudflare-worker"]).role, Role::CloudflareWorker);
        assert_eq!(settings(&["--role", "", "--operator-namespace", ""]).operator_namespace, "cloudflare-zero-trust");
    }

    #[test]
    fn without_a_role_a_process_does_everything_and_an_unknown_one_is_the_managers() {
        assert_eq!((settings(&[]).role, settings(&["--role", " "]).role), (Role::All, Role::All));
        assert_eq!(settings(&["--role", "captain"]).role, Role::Manager);
    }

    #[test]
    fn workers_are_made_by_a_manager_alone_and_under_the_accounts_that_are_named() {
        let accounts = ["--kube-worker-service-account", "k", "--cloudflare-worker-service-account", "c"];
        let manager = settings(&[&["--role", "manager", "--pod-name", "p-1"], &accounts[..]].concat()).manager;

        assert_eq!((manager.pod.as_deref(), manager.workers), (Some("p-1"), manager::Workers::Kept));
        assert_eq!(
            (manager.kube_worker_account, manager.cloudflare_worker_account),
            (Some("k".into()), Some("c".into()))
        );
        assert_eq!(settings(&["--role", "all"]).manager.workers, manager::Workers::None);
    }

    #[test]
    fn a_worker_counts_as_living_for_a_minute_unless_somebody_says_otherwise() {
        assert_eq!(settings(&[]).worker.lease, Duration::from_secs(60));
        assert_eq!(settings(&["--task-lease-seconds", "15"]).worker.lease, Duration::from_secs(15));
    }

    #[test]
    fn drift_can_be_switched_off() {
        assert_eq!(settings(&["--drift-resync-seconds", "0"]).routes.drift, Drift::Off);
    }

    #[test]
    fn names_are_compared_every_minute_or_more_often_if_somebody_says_so() {
        assert_eq!(settings(&[]).routes.drift, Drift::Every(Duration::from_secs(60)));
        assert_eq!(settings(&["--drift-resync-seconds", "20"]).routes.drift, Drift::Every(Duration::from_secs(20)));
    }
}
