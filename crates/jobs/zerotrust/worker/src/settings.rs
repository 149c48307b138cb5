//! How a worker runs.

use std::time::Duration;

/// How a worker runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name that claims carry, unique among workers at one time: the pod's.
    pub identity: String,
    /// Tells this life of the worker from an earlier one under the same name.
    pub epoch: String,
    /// No other worker is meant to exist: nobody is told that this one lives, and no turns are taken. Where others are seen
    /// all the same, as while an installation is divided into roles, their claims are respected; the lease by which this
    /// process leads tells them that it lives.
    pub alone: bool,
    /// How long a worker counts as living after its last sign.
    pub lease: Duration,
    /// Tasks carried out at once. Most of them wait for a write that they share.
    pub in_flight: usize,
}

impl Settings {
    /// A worker among others, with the usual times.
    pub fn new(identity: impl Into<String>, epoch: impl Into<String>) -> Self {
        Self {
            identity: identity.into(),
            epoch: epoch.into(),
            alone: false,
            lease: Duration::from_secs(60),
            in_flight: 2000,
        }
    }

    /// The same worker, with nobody beside it.
    pub fn alone(self) -> Self {
        Self { alone: true, ..self }
    }
}

impl Default for Settings {
    /// The only worker there is.
    fn default() -> Self {
        Self::new("cloudflare-worker", "").alone()
    }
}
