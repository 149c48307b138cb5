//! The sign that this worker lives: a Lease, written before the first claim and renewed only while claims are held.
//!
//! A worker with nothing to do writes nothing. One that is alone needs no sign at all.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Resource as _};
use portolan_core::{Clock, OwnerId, Problem, text};
use portolan_engine::{CancellationToken, Context, FIELD_MANAGER, in_time, kubernetes_problem};
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::settings::Settings;

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
pub(crate) struct Presence {
    leases: Api<Lease>,
    settings: Settings,
    clock: Clock,
    written: Mutex<Option<Instant>>,
    held: watch::Sender<usize>,
}

/// A claim for which this worker says that it lives. Dropped, the claim no longer counts.
pub(crate) struct Sign {
    presence: Arc<Presence>,
}

impl Presence {
    pub(crate) fn new(context: &Context, settings: &Settings) -> Arc<Self> {
        Arc::new(Self {
            leases: Api::namespaced(context.client.clone(), &context.operator_namespace),
            settings: settings.clone(),
            clock: context.clock.clone(),
            written: Mutex::default(),
            held: watch::channel(0).0,
        })
    }

    /// Makes sure that the sign is fresh; to be held as long as the claim that follows.
    pub(crate) async fn sign(self: &Arc<Self>) -> Result<Sign, Problem> {
        self.held.send_modify(|held| *held += 1);
        let sign = Sign { presence: Arc::clone(self) };
        if !self.settings.alone {
            self.freshen().await?;
        }
        Ok(sign)
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
        loop {
            // The sender lives as long as this value.
            let _ = held.wait_for(|held| *held > 0).await;
            tokio::time::sleep(self.renewal()).await;
            if *held.borrow() > 0
                && let Err(error) = self.freshen().await
            {
                tracing::warn!(%error, "The worker's lease could not be renewed and will be tried again");
            }
        }
    }

    /// How old the sign may get: after three that failed it is still good.
    fn renewal(&self) -> Duration {
        self.settings.lease / 6
    }

    async fn freshen(&self) -> Result<(), Problem> {
        let mut written = self.written.lock().await;
        if written.is_some_and(|at| at.elapsed() < self.renewal()) {
            return Ok(());
        }
        let begun = Instant::now();
        self.write().await?;
        *written = Some(begun);
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
async fn remove(leases: &Api<Lease>, worker: &str) {
    let name = lease_name(worker);
    if let Err(error) = in_time(leases.delete(&name, &DeleteParams::default())).await {
        tracing::debug!(lease = %name, %error, "The lease of a worker stays");
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        self.presence.held.send_modify(|held| *held = held.saturating_sub(1));
    }
}

/// Whether another worker lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It does; worth another look after this.
    Lives(Duration),
    /// It gave no sign for as long as it said itself.
    Dead,
}

/// Other workers, by what is seen of their leases: their clocks are not trusted.
pub(crate) struct Others {
    leases: Api<Lease>,
    usual: Duration,
    seen: std::sync::Mutex<std::collections::BTreeMap<String, Seen>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Seen {
    renewed: Option<MicroTime>,
    since: Instant,
}

impl Others {
    pub(crate) fn new(context: &Context, settings: &Settings) -> Self {
        let leases = Api::namespaced(context.client.clone(), &context.operator_namespace);
        Self { leases, usual: settings.lease, seen: std::sync::Mutex::default() }
    }

    /// Looks for a sign of a worker.
    pub(crate) async fn look(&self, worker: &str) -> Result<Life, Problem> {
        let name = lease_name(worker);
        let found = in_time(self.leases.get_opt(&name)).await;
        let found = found.map_err(|error| kubernetes_problem(format_args!("reading the lease {name}"), &error))?;
        let life = self.judge(worker, found.as_ref(), Instant::now());
        if life == Life::Dead && found.is_some() {
            remove(&self.leases, worker).await;
        }
        Ok(life)
    }

    fn judge(&self, worker: &str, lease: Option<&Lease>, now: Instant) -> Life {
        let mut seen = self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        let Some(spec) = spec.filter(|spec| spec.holder_identity.as_deref() == Some(worker)) else {
            seen.remove(worker);
            return Life::Dead;
        };
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.map_or(self.usual, Duration::from_secs);
        let fresh = Seen { renewed: spec.renew_time.clone(), since: now };
        let known = seen.entry(worker.to_owned()).or_insert_with(|| fresh.clone());
        if known.renewed != fresh.renewed {
            *known = fresh;
        }
        if let Some(left) = duration.checked_sub(now - known.since).filter(|left| !left.is_zero()) {
            return Life::Lives(left);
        }
        seen.remove(worker);
        Life::Dead
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn others() -> Others {
        let service = tower::service_fn(|_| async { Err::<http::Response<kube::client::Body>, _>("no server") });
        let leases = Api::namespaced(kube::Client::new(service, "default"), "default");
        Others { leases, usual: MINUTE, seen: std::sync::Mutex::default() }
    }

    fn lease(worker: &str, renewed: i64) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(worker.to_owned()),
            lease_duration_seconds: Some(60),
            renew_time: Some(MicroTime(jiff::Timestamp::from_second(renewed).unwrap())),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    #[tokio::test]
    async fn a_worker_without_a_lease_is_dead() {
        let (others, now) = (others(), Instant::now());

        assert_eq!(others.judge("w1", None, now), Life::Dead);
        assert_eq!(others.judge("w1", Some(&lease("w2", 1)), now), Life::Dead);
    }

    #[tokio::test]
    async fn a_worker_is_dead_when_its_lease_stood_still_for_as_long_as_we_looked() {
        let (others, now) = (others(), Instant::now());

        assert_eq!(others.judge("w1", Some(&lease("w1", 1)), now), Life::Lives(MINUTE));
        assert_eq!(others.judge("w1", Some(&lease("w1", 1)), now + MINUTE / 2), Life::Lives(MINUTE / 2));
        assert_eq!(others.judge("w1", Some(&lease("w1", 1)), now + MINUTE), Life::Dead);
    }

    #[tokio::test]
    async fn a_renewed_lease_counts_from_the_renewal_whatever_its_clock_says() {
        let (others, now) = (others(), Instant::now());

        others.judge("w1", Some(&lease("w1", 9_000)), now);

        assert_eq!(others.judge("w1", Some(&lease("w1", 1)), now + MINUTE), Life::Lives(MINUTE));
    }

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
