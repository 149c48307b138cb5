//! Other workers, by what is seen of their leases: one whose lease stands still for as long as it said itself is dead.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use portolan_core::Problem;
use portolan_engine::{Context, in_time, kubernetes_problem};
use tokio::time::Instant;

use crate::presence::{lease_name, remove};
use crate::settings::Settings;

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
    seen: Mutex<BTreeMap<String, Seen>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Seen {
    renewed: Option<MicroTime>,
    since: Instant,
}

impl Others {
    pub(crate) fn new(context: &Context, settings: &Settings) -> Self {
        let leases = Api::namespaced(context.client.clone(), &context.operator_namespace);
        Self { leases, usual: settings.lease, seen: Mutex::default() }
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
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
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
        Others { leases, usual: MINUTE, seen: Mutex::default() }
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
}
