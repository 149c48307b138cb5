//! How the route side runs.

use std::net::IpAddr;
use std::time::Duration;

use portolan_engine::{Drift, Selection};

/// How the route side runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespaces whose routes are looked at; all, where none is named. Tenants and templates are read everywhere.
    pub watch_namespaces: Vec<String>,
    /// When what stands at Cloudflare is compared anew.
    pub drift: Drift,
    /// Whether routes and tenants get a finalizer; without one, what a deleted route leaves is found by sweeps.
    pub finalizers: bool,
    /// How often what no route asks for is looked for.
    pub sweep: Duration,
    /// Origins that may be published though they reach what protects the cluster, as tenants list theirs.
    pub allow_origins: Vec<String>,
    /// Addresses of the API server that are known already.
    pub api_server: Vec<IpAddr>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            watch_namespaces: Vec::new(),
            drift: Drift::default(),
            finalizers: true,
            sweep: Duration::from_secs(300),
            allow_origins: Vec::new(),
            api_server: Vec::new(),
        }
    }
}

impl Settings {
    /// The routes that are looked at.
    pub(crate) fn selection(&self) -> Selection {
        Selection::namespaces(self.watch_namespaces.iter().map(|name| name.trim()).filter(|name| !name.is_empty()))
    }
}
