//! Other workers, by what is seen of their leases: one whose lease stands still for as long as it said itself is dead.
//!
//! A worker says that it lives by a lease of its own; a process that does everything by the one under which it leads.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use portolan_core::Problem;
use portolan_engine::{Context, in_time, kubernetes_problem};
use portolan_zerotrust_model::OPERATOR_LEASE;
use tokio::time::Instant;

use crate::due::Holder;
use crate::liveness::heartbeat::{RENEWALS, lease_name, remove};
use crate::settings::Settings;

/// Whether another worker lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerLife {
    /// It does; worth another look after this.
    Lives(Duration),
    /// It gave no sign for as long as it said itself.
    Dead,
}

/// Other workers, by what is seen of their leases: their clocks are not trusted.
pub(crate) struct Peers {
    leases: Api<Lease>,
    usual: Duration,
    /// One look at a time, which all tasks of a worker share.
    looking: tokio::sync::Mutex<()>,
    seen: Mutex<BTreeMap<Holder, SeenPeer>>,
}

#[derive(Clone, Debug, PartialEq)]
struct SeenPeer {
    renewed: Option<MicroTime>,
    since: Instant,
    /// When it was looked at last, and what that said.
    looked: Instant,
    life: PeerLife,
}

impl Peers {
    pub(crate) fn new(context: &Context, settings: &Settings) -> Self {
        let leases = Api::namespaced(context.client.clone(), &context.operator_namespace);
        Self { leases, usual: settings.lease, looking: tokio::sync::Mutex::default(), seen: Mutex::default() }
    }

    /// Looks for a sign of a worker.
    pub(crate) async fn look(&self, holder: &Holder) -> Result<PeerLife, Problem> {
        let _one_at_a_time = self.looking.lock().await;
        if let Some(life) = self.just_seen(holder, Instant::now()) {
            return Ok(life);
        }
        let own = self.heartbeat(holder).await?;
        let is_own = own.is_some();
        let found = if is_own { own } else { self.leadership(holder).await? };
        let life = self.judge(holder, found.as_ref(), Instant::now());
        if life == PeerLife::Dead && is_own {
            remove(&self.leases, &holder.worker).await;
        }
        Ok(life)
    }

    /// What a look a moment ago said. Who is taken for dead is looked for once more each time.
    fn just_seen(&self, holder: &Holder, now: Instant) -> Option<PeerLife> {
        let seen = self.seen();
        let seen = seen.get(holder).filter(|seen| now - seen.looked < self.usual / (2 * RENEWALS))?;
        Some(seen.life).filter(|life| *life != PeerLife::Dead)
    }

    /// The worker's own lease.
    async fn heartbeat(&self, holder: &Holder) -> Result<Option<Lease>, Problem> {
        let lease = self.lease(&lease_name(&holder.worker)).await?;
        Ok(lease.filter(|lease| holder_of(lease) == Some(holder.worker.as_str())))
    }

    /// The lease by which it leads, where it does everything.
    async fn leadership(&self, holder: &Holder) -> Result<Option<Lease>, Problem> {
        let lease = self.lease(OPERATOR_LEASE).await?;
        Ok(lease.filter(|lease| !holder.epoch.is_empty() && holder_of(lease) == Some(holder.epoch.as_str())))
    }

    async fn lease(&self, name: &str) -> Result<Option<Lease>, Problem> {
        let found = in_time(self.leases.get_opt(name)).await;
        found.map_err(|error| kubernetes_problem(format_args!("reading the lease {name}"), &error))
    }

    fn judge(&self, holder: &Holder, lease: Option<&Lease>, now: Instant) -> PeerLife {
        let mut all = self.seen();
        // Of claims that nobody asks for any more nothing has to be known.
        all.retain(|_, seen| now - seen.looked < self.usual * 2);
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        let renewed = spec.and_then(|spec| spec.renew_time.clone());
        let known = all.get(holder).filter(|seen| spec.is_some() && seen.renewed == renewed);
        let since = known.map_or(now, |seen| seen.since);
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.map_or(self.usual, Duration::from_secs);
        let left = duration.saturating_sub(now - since);
        let life = if spec.is_none() || left.is_zero() {
            PeerLife::Dead
        } else {
            PeerLife::Lives(left.min(duration / RENEWALS))
        };
        all.insert(holder.clone(), SeenPeer { renewed, since, looked: now, life });
        life
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<Holder, SeenPeer>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn holder_of(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const SOON: Duration = Duration::from_secs(10);

    fn peers() -> Peers {
        let service = tower::service_fn(|_| async { Err::<http::Response<kube::client::Body>, _>("no server") });
        let leases = Api::namespaced(kube::Client::new(service, "default"), "default");
        Peers { leases, usual: MINUTE, looking: tokio::sync::Mutex::default(), seen: Mutex::default() }
    }

    fn holder() -> Holder {
        Holder { worker: "w1".to_owned(), epoch: "e1".to_owned() }
    }

    fn lease(renewed: i64) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some("w1".to_owned()),
            lease_duration_seconds: Some(60),
            renew_time: Some(MicroTime(jiff::Timestamp::from_second(renewed).unwrap())),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    #[tokio::test]
    async fn a_worker_without_a_lease_is_dead() {
        assert_eq!(peers().judge(&holder(), None, Instant::now()), PeerLife::Dead);
    }

    #[tokio::test]
    async fn a_worker_is_dead_when_its_lease_stood_still_for_as_long_as_we_looked() {
        let (peers, now) = (peers(), Instant::now());

        assert_eq!(peers.judge(&holder(), Some(&lease(1)), now), PeerLife::Lives(SOON));
        assert_eq!(peers.judge(&holder(), Some(&lease(1)), now + MINUTE / 2), PeerLife::Lives(SOON));
        assert_eq!(peers.judge(&holder(), Some(&lease(1)), now + MINUTE - SOON / 2), PeerLife::Lives(SOON / 2));
        assert_eq!(peers.judge(&holder(), Some(&lease(1)), now + MINUTE), PeerLife::Dead);
    }

    #[tokio::test]
    async fn a_renewed_lease_counts_from_the_renewal_whatever_its_clock_says() {
        let (peers, now) = (peers(), Instant::now());

        peers.judge(&holder(), Some(&lease(9_000)), now);

        assert_eq!(peers.judge(&holder(), Some(&lease(1)), now + MINUTE), PeerLife::Lives(SOON));
        assert_eq!(peers.judge(&holder(), Some(&lease(1)), now + MINUTE + SOON), PeerLife::Lives(SOON));
    }

    #[tokio::test]
    async fn many_tasks_of_one_worker_are_one_look() {
        let (peers, now) = (peers(), Instant::now());
        let life = peers.judge(&holder(), Some(&lease(1)), now);

        assert_eq!(peers.just_seen(&holder(), now + SOON / 4), Some(life));
        assert_eq!(peers.just_seen(&holder(), now + SOON), None);
        let another_life = Holder { epoch: "e2".to_owned(), ..holder() };
        assert_eq!(peers.just_seen(&another_life, now), None);
        peers.judge(&holder(), None, now);
        assert_eq!(peers.just_seen(&holder(), now), None, "nobody is dead by hearsay");
    }
}
