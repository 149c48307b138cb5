//! How the manager runs.

/// How the manager runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The pod that this process runs in; none outside of a cluster.
    pub pod: Option<String>,
    /// Whether there are workers beside it.
    pub workers: Workers,
    /// The account of the `kube_worker`; the manager's own where none is named.
    pub kube_worker_account: Option<String>,
    /// The account of the `cloudflare_worker`; the manager's own where none is named.
    pub cloudflare_worker_account: Option<String>,
}

/// Whether there are workers beside the manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workers {
    /// The two Deployments are made and kept.
    Kept,
    /// There are none: one process does everything.
    #[default]
    None,
}
