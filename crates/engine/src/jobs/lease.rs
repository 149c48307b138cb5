//! Who leads: one process at a time, by a `coordination.k8s.io` Lease.
//!
//! A lease has expired when nobody renewed it for its duration *as seen from here*: other machines' clocks are not
//! trusted. A leader that cannot renew gives up before others may take over; others cannot have seen a renewal before it was
//! sent, so that is when its time begins.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use portolan_core::Clock;
use tokio::time::{Instant, timeout};

use crate::context::Context;
use crate::jobs::leadership::Leadership;
use crate::observe::metrics::Metrics;
use crate::watch::{CollectionEvent, Following, Selection, follow};

/// How long a lease holds without being renewed.
pub(crate) const DURATION: Duration = Duration::from_secs(15);
/// How often a leader renews.
const RENEW: Duration = Duration::from_secs(2);
/// A leader that could not renew for this long stops leading.
const DEADLINE: Duration = Duration::from_secs(10);
/// A candidate that lost a race tries again after this, if nothing is seen before.
const RETRY: Duration = Duration::from_secs(2);

/// Which lease a process stands for, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidacy {
    /// Where the lease is: nothing is asked of other namespaces.
    pub namespace: String,
    /// The lease.
    pub lease: String,
    /// This process, by a name that no other one has.
    pub identity: String,
}

/// A candidate for one lease.
#[derive(Clone)]
pub struct Election {
    leases: Api<Lease>,
    name: String,
    identity: String,
    clock: Clock,
    seed: u64,
    metrics: Arc<Metrics>,
    leadership: Leadership,
}

/// The time in which a candidate leads.
pub struct Term {
    election: Election,
    lease: Lease,
    /// When the last renewal that succeeded was sent.
    renewed: Instant,
}

/// What a candidate has seen of its lease.
enum SeenLease {
    Nothing,
    Free(Option<Box<Lease>>),
    Held { lease: Box<Lease>, since: Instant },
}

impl Election {
    /// A candidate in the operator's namespace. Every process needs an identity of its own.
    pub fn new(context: &Context, name: impl Into<String>, identity: impl Into<String>) -> Self {
        let namespace = context.operator_namespace.clone();
        Self::of(context, Candidacy { namespace, lease: name.into(), identity: identity.into() })
    }

    /// A candidate where a job says.
    pub(crate) fn of(context: &Context, candidacy: Candidacy) -> Self {
        let Candidacy { namespace, lease, identity } = candidacy;
        Self {
            leases: Api::namespaced(context.client.clone(), &namespace),
            name: lease,
            identity,
            clock: context.clock.clone(),
            seed: context.seed,
            metrics: context.metrics.clone(),
            leadership: Leadership::default(),
        }
    }

    /// The same candidate; those who write in its name look here.
    pub(crate) fn granting(self, leadership: Leadership) -> Self {
        Self { leadership, ..self }
    }

    /// Waits until this candidate leads.
    pub async fn acquire(&self) -> Term {
        let following = Following {
            resource: "leases".to_owned(),
            selection: Selection::fields(format!("metadata.name={}", self.name)),
            seed: self.seed,
            metrics: self.metrics.clone(),
        };
        let mut events = follow(self.leases.clone(), following);
        let mut known = SeenLease::Nothing;
        let mut not_before = Instant::now();
        loop {
            let try_at = match &known {
                SeenLease::Nothing => None,
                SeenLease::Free(_) => Some(not_before),
                SeenLease::Held { lease, since } => Some((*since + duration_of(lease)).max(not_before)),
            };
            tokio::select! {
                biased;
                Some(event) = events.next() => {
                    known = self.seen(event, known);
                    if let SeenLease::Free(_) = known {
                        // It was lost to somebody who has given it back.
                        not_before = Instant::now();
                    }
                }
                () = until(try_at) => {
                    let old = match &known {
                        SeenLease::Nothing => None,
                        SeenLease::Free(lease) => lease.as_deref(),
                        SeenLease::Held { lease, .. } => Some(&**lease),
                    };
                    let sent = Instant::now();
                    if let Some(lease) = self.take(old).await {
                        let mut term = Term { election: self.clone(), lease, renewed: sent };
                        term.renewed_at(sent);
                        return term;
                    }
                    not_before = Instant::now() + RETRY;
                }
            }
        }
    }

    fn seen(&self, event: CollectionEvent<Lease>, known: SeenLease) -> SeenLease {
        match event {
            CollectionEvent::Restarted => SeenLease::Nothing,
            CollectionEvent::Found(lease) | CollectionEvent::Changed(lease)
                if is_free(&lease) || self.holds(&lease) =>
            {
                SeenLease::Free(Some(Box::new(lease)))
            }
            CollectionEvent::Found(lease) | CollectionEvent::Changed(lease) => {
                SeenLease::Held { lease: Box::new(lease), since: Instant::now() }
            }
            CollectionEvent::Listed => match known {
                SeenLease::Nothing => SeenLease::Free(None),
                known => known,
            },
            CollectionEvent::Gone(_) => SeenLease::Free(None),
            CollectionEvent::Failed { .. } => known,
        }
    }

    fn holds(&self, lease: &Lease) -> bool {
        lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()) == Some(self.identity.as_str())
    }

    /// Makes the lease ours; none where someone else was faster or the server refuses.
    async fn take(&self, old: Option<&Lease>) -> Option<Lease> {
        let now = MicroTime((self.clock)());
        let mut lease = old.cloned().unwrap_or_else(|| Lease {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            spec: None,
        });
        let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(DURATION.as_secs()).unwrap_or(i32::MAX)),
            lease_transitions: Some(transitions.map_or(0, |count| count.saturating_add(1))),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            ..LeaseSpec::default()
        });
        let parameters = PostParams::default();
        let write = async {
            match old {
                Some(_) => self.leases.replace(&self.name, &parameters, &lease).await,
                None => self.leases.create(&parameters, &lease).await,
            }
        };
        // One that arrives all the same is found to be ours, and is taken again.
        match timeout(DEADLINE, write).await.unwrap_or_else(|_| Err(silent())) {
            Ok(lease) => Some(lease),
            Err(kube::Error::Api(status)) if status.code == 409 => None,
            Err(error) => {
                tracing::warn!(lease = %self.name, %error, "The lease could not be taken and will be tried again");
                None
            }
        }
    }
}

impl Term {
    /// Renews the lease for as long as it can be; returns when it is lost. Stopping and starting again is fine.
    pub async fn hold(&mut self) {
        loop {
            tokio::time::sleep(RENEW).await;
            let sent = Instant::now();
            let left = DEADLINE.saturating_sub(self.renewed.elapsed());
            match timeout(left.max(Duration::from_millis(1)), self.renew()).await {
                Ok(Renewal::Done) => self.renewed_at(sent),
                Ok(Renewal::Lost) => break,
                Ok(Renewal::Failed) | Err(_) if self.renewed.elapsed() >= DEADLINE => break,
                Ok(Renewal::Failed) | Err(_) => {}
            }
        }
        self.election.leadership.ends();
    }

    /// Whether it still holds, for those who write in its name.
    pub fn leadership(&self) -> Leadership {
        self.election.leadership.clone()
    }

    fn renewed_at(&mut self, sent: Instant) {
        self.renewed = sent;
        self.election.leadership.until(sent + DEADLINE);
    }

    async fn renew(&mut self) -> Renewal {
        let mut lease = self.lease.clone();
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime((self.election.clock)()));
        let Election { leases, name, .. } = &self.election;
        match leases.replace(name, &PostParams::default(), &lease).await {
            Ok(lease) => {
                self.lease = lease;
                Renewal::Done
            }
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => self.reread().await,
            Err(error) => {
                tracing::warn!(lease = %name, %error, "The lease could not be renewed");
                Renewal::Failed
            }
        }
    }

    /// Somebody wrote the lease: it is lost unless it is still ours.
    async fn reread(&mut self) -> Renewal {
        match self.election.leases.get_opt(&self.election.name).await {
            Ok(Some(lease)) if self.election.holds(&lease) => {
                self.lease = lease;
                Renewal::Failed
            }
            Ok(_) => Renewal::Lost,
            Err(_) => Renewal::Failed,
        }
    }

    /// Gives the lease back, so that others need not wait for it to expire.
    pub async fn release(mut self) {
        self.election.leadership.ends();
        let given_back = timeout(DEADLINE, self.hand_back()).await.unwrap_or_else(|_| Err(silent()));
        if let Err(error) = given_back {
            tracing::debug!(lease = %self.election.name, %error, "The lease was not released and will expire");
        }
    }

    async fn hand_back(&mut self) -> Result<(), kube::Error> {
        match self.write_free().await {
            // A renewal whose answer was not waited for has made another version of it.
            Err(kube::Error::Api(status)) if status.code == 409 => match self.reread().await {
                Renewal::Done | Renewal::Lost => Ok(()),
                Renewal::Failed => self.write_free().await,
            },
            written => written,
        }
    }

    async fn write_free(&self) -> Result<(), kube::Error> {
        let mut lease = self.lease.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        let Election { leases, name, .. } = &self.election;
        leases.replace(name, &PostParams::default(), &lease).await.map(drop)
    }
}

enum Renewal {
    Done,
    Lost,
    Failed,
}

fn silent() -> kube::Error {
    kube::Error::Service(format!("no answer within {} s", DEADLINE.as_secs()).into())
}

fn is_free(lease: &Lease) -> bool {
    let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
    holder.is_none_or(str::is_empty)
}

fn duration_of(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(DURATION, Duration::from_secs)
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
