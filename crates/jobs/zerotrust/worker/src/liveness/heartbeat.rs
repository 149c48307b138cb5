//! The sign that this worker lives: a Lease, written before the first claim and renewed only while claims are held.
//!
//! A worker with nothing to do writes nothing. One that is alone needs no sign at all. One whose sign gets too old stops its
//! attempts and sends no more writes, before others take it for dead.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Resource as _};
use portolan_core::{Clock, OwnerId, Problem, WriteGate, reasons, text};
use portolan_engine::{CancellationToken, Context, FIELD_MANAGER, in_time, kubernetes_problem};
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout};

use crate::settings::Settings;

/// How often a sign is renewed while it holds: after three that failed it is still good.
pub(crate) const RENEWALS: u32 = 6;
/// Longest name of an object.
const LONGEST_NAME: usize = 253;

/// The lease of a worker. Where the worker's name is no name for an object, its hash keeps it apart from others.
pub(crate) fn lease_name(worker: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = worker.chars().map(fits).collect();
    let name = format!("cfzt-worker-{}", name.trim_matches('-'));
    if name.len() <= LONGEST_NAME && name["cfzt-worker-".len()..] == *worker {
        return name;
    }
    let room = LONGEST_NAME - "-12345678".len();
    format!("{}-{}", text::truncate(&name, room).trim_end_matches('-'), OwnerId::derive(worker))
}

/// Tells others that this worker lives, while it must.
pub(crate) struct Heartbeat {
    leases: Api<Lease>,
    settings: Settings,
    clock: Clock,
    written: Mutex<Option<Instant>>,
    held: watch::Sender<usize>,
    trust: watch::Sender<Trust>,
}

/// How long others surely take this worker for alive.
#[derive(Clone, Copy, Debug)]
struct Trust {
    /// Counts the times that it was broken: an attempt does not outlive the one it began in.
    term: u64,
    until: Instant,
}

/// A claim for which this worker says that it lives. Dropped, the claim no longer counts.
pub(crate) struct HeartbeatGuard {
    heartbeat: Arc<Heartbeat>,
    term: u64,
}

impl HeartbeatGuard {
    /// Open while this worker has been taken for alive ever since the claim.
    pub(crate) fn gate(&self) -> WriteGate {
        let (heartbeat, term) = (Arc::clone(&self.heartbeat), self.term);
        WriteGate::new(move || heartbeat.is_trusted(term))
    }

    /// Waits until others may take this worker for dead.
    pub(crate) fn lapsed(&self) -> impl Future<Output = ()> + Send + 'static {
        let (heartbeat, term) = (Arc::clone(&self.heartbeat), self.term);
        async move {
            if heartbeat.settings.alone {
                return std::future::pending().await;
            }
            while heartbeat.is_trusted(term) {
                let until = heartbeat.trust.borrow().until;
                tokio::time::sleep_until(until).await;
            }
        }
    }
}

impl Heartbeat {
    pub(crate) fn new(context: &Context, settings: &Settings) -> Arc<Self> {
        Arc::new(Self {
            leases: Api::namespaced(context.client.clone(), &context.operator_namespace),
            settings: settings.clone(),
            clock: context.clock.clone(),
            written: Mutex::default(),
            held: watch::channel(0).0,
            trust: watch::channel(Trust { term: 0, until: Instant::now() }).0,
        })
    }

    /// Makes sure that the sign is fresh; to be held as long as the claim that follows.
    pub(crate) async fn hold(self: &Arc<Self>) -> Result<HeartbeatGuard, Problem> {
        portolan_core::waypoint!();
        self.held.send_modify(|held| *held += 1);
        let mut guard = HeartbeatGuard { heartbeat: Arc::clone(self), term: 0 };
        if !self.settings.alone {
            self.freshen().await?;
            guard.term = self.trust.borrow().term;
        }
        Ok(guard)
    }

    /// Whether nobody can have taken this worker for dead in this term. Time alone ends it: no task has to run for that.
    fn is_trusted(&self, term: u64) -> bool {
        let trust = *self.trust.borrow();
        self.settings.alone || (trust.term == term && Instant::now() < trust.until)
    }

    /// Renews the sign while claims are held, and takes it away at the end.
    pub(crate) async fn keep(self: Arc<Self>, shutdown: CancellationToken) {
        if self.settings.alone {
            return;
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.keep_fresh() => {}
        }
        // Who still works holds its claims to the end.
        let _ = self.held.subscribe().wait_for(|held| *held == 0).await;
        self.withdraw().await;
    }

    async fn keep_fresh(&self) {
        let mut held = self.held.subscribe();
        let mut pause = self.renewal();
        loop {
            // The sender lives as long as this value.
            let _ = held.wait_for(|held| *held > 0).await;
            tokio::time::sleep(pause).await;
            pause = self.renewal();
            if *held.borrow() > 0
                && let Err(error) = self.freshen().await
            {
                tracing::warn!(%error, "The worker's lease could not be renewed and will be tried again");
                pause /= 2;
            }
        }
    }

    /// How long after a sign was sent this worker still writes: what is under way then arrives before the lease is over.
    fn trusted_for(&self) -> Duration {
        self.settings.lease * 3 / 4
    }

    /// How old the sign may get.
    fn renewal(&self) -> Duration {
        self.settings.lease / RENEWALS
    }

    async fn freshen(&self) -> Result<(), Problem> {
        let mut written = self.written.lock().await;
        if written.is_some_and(|at| at.elapsed() < self.renewal()) {
            return Ok(());
        }
        // Others cannot have seen it before it was sent.
        let begun = Instant::now();
        let silent = || Problem::transient(reasons::API_ERROR, "writing the worker's lease failed: no answer in time");
        timeout(self.renewal(), self.write()).await.unwrap_or_else(|_| Err(silent()))?;
        *written = Some(begun);
        self.trust.send_modify(|trust| {
            trust.term += u64::from(Instant::now() >= trust.until);
            trust.until = begun + self.trusted_for();
        });
        Ok(())
    }

    async fn write(&self) -> Result<(), Problem> {
        let name = lease_name(&self.settings.identity);
        let lease = json!({
            "apiVersion": Lease::api_version(&()), "kind": Lease::kind(&()),
            "metadata": { "name": name },
            "spec": {
                "holderIdentity": self.settings.identity,
                "leaseDurationSeconds": self.settings.lease.as_secs(),
                "renewTime": MicroTime((self.clock)()),
            },
        });
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let written = in_time(self.leases.patch(&name, &parameters, &Patch::Apply(&lease))).await;
        written.map(drop).map_err(|error| kubernetes_problem(format_args!("writing the lease {name}"), &error))
    }

    async fn withdraw(&self) {
        if self.written.lock().await.take().is_some() {
            remove(&self.leases, &self.settings.identity).await;
        }
    }
}

/// A lease that nobody needs any more. One that stays does no harm.
pub(crate) async fn remove(leases: &Api<Lease>, worker: &str) {
    let name = lease_name(worker);
    if let Err(error) = in_time(leases.delete(&name, &DeleteParams::default())).await {
        tracing::debug!(lease = %name, %error, "The lease of a worker stays");
    }
}

impl Drop for HeartbeatGuard {
    fn drop(&mut self) {
        self.heartbeat.held.send_modify(|held| *held = held.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_named_after_its_worker() {
        assert_eq!(lease_name("worker-1"), "cfzt-worker-worker-1");
        assert_eq!(lease_name(&"x".repeat(300)).len(), 253);
    }

    #[test]
    fn a_worker_whose_name_is_no_object_name_has_a_lease_of_its_own() {
        let names = ["host_1", "host.1", "HOST-1", "host-1", "-host-1-", "höst"].map(lease_name);

        for name in &names {
            let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(valid) && !name.ends_with('-'), "{name}");
        }
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), names.len());
    }
}
