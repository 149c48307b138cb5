//! What was seen of a cluster and of Cloudflare: plain values, from which everything else is judged.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portolan_cloudflare_api::Budget;
use portolan_core::Hostname;
use portolan_zerotrust::model::zone::Zone;

use super::definition::Definition;
use super::permission::{Permission, ProbeAnswer};
use crate::pods_page::RunnerFacts;

/// What was seen, or why it was not.
pub(crate) type Observation<T> = Result<T, String>;

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) cluster: Option<Cluster>,
    /// What the runner of `portolan up` tells of itself, where it runs the cluster's pods.
    pub(crate) runner: Option<RunnerFacts>,
    pub(crate) accounts: Vec<Account>,
}

/// What was seen of a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The server and the kubeconfig that names it.
    pub(crate) place: String,
    /// When all this was seen.
    pub(crate) now: Timestamp,
    /// Its version, and how long it took to tell.
    pub(crate) version: Observation<(String, Duration)>,
    /// The rest, where it answers.
    pub(crate) inside: Option<Inside>,
}

/// What a cluster that answers holds.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) definitions: Vec<Definition>,
    /// Whether `HTTPRoute` is served in v1.
    pub(crate) routes_served: Observation<bool>,
    pub(crate) rights: Rights,
    pub(crate) operator_namespace: String,
    pub(crate) leases: Observation<Vec<Lease>>,
    pub(crate) deployments: Observation<Vec<Deployment>>,
    pub(crate) tenants: Observation<usize>,
    /// Enabled routes that cannot be published, each with why.
    pub(crate) stray_routes: Vec<(String, String)>,
    /// How many routes are enabled.
    pub(crate) enabled_routes: usize,
}

/// What whoever asks may do.
#[derive(Debug)]
pub(crate) struct Rights {
    pub(crate) role: &'static str,
    /// Whose rights these are.
    pub(crate) whose: String,
    pub(crate) asked: usize,
    /// Those that are missing, or why nobody knows.
    pub(crate) missing: Observation<Vec<String>>,
}

/// A lease by which one process leads.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) name: String,
    pub(crate) holder: Option<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) renewed: Option<Timestamp>,
    pub(crate) duration: Duration,
}

/// Whose Deployment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Portolan's.
    Ours,
    /// An older operator's for the same kinds.
    Older,
}

/// A Deployment that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deployment {
    pub(crate) name: String,
    pub(crate) whose: Whose,
    pub(crate) wanted: i64,
    pub(crate) ready: i64,
    pub(crate) image: String,
}

/// What was seen of an account, by one token.
#[derive(Debug)]
pub(crate) struct Account {
    /// `tenant default/prod`, or where the token was taken from.
    pub(crate) subject: String,
    /// The account's id.
    pub(crate) id: String,
    /// The zone that the tenant names: it stands in where zones cannot be listed.
    pub(crate) zone_id: Option<String>,
    pub(crate) needs: TokenNeeds,
    /// Where the token was found, or what is wrong there.
    pub(crate) secret: Secret,
    /// What Cloudflare said, where there is a token to ask with.
    pub(crate) api: Option<Api>,
}

/// Where a token is.
#[derive(Debug)]
pub(crate) enum Secret {
    /// There.
    Found(String),
    /// Not there, or without the key.
    Missing(String),
    /// It may not be read from here.
    Unreadable(String),
}

/// What routes ask for that not all of them do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenNeeds {
    pub(crate) groups: AskedOf,
    pub(crate) redirects: AskedOf,
}

/// Whether something is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedOf {
    Yes,
    No,
}

impl From<bool> for AskedOf {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// What Cloudflare said.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) token: TokenFacts,
    /// How long the first answer took.
    pub(crate) latency: Duration,
    pub(crate) probes: Vec<Probed>,
    pub(crate) zones: Observation<Vec<Zone>>,
    pub(crate) tunnels: Vec<(String, Observation<Option<TunnelFacts>>)>,
    pub(crate) names: Vec<NameFacts>,
    /// Certificates by the zone's id, where they were asked for.
    pub(crate) certificates: BTreeMap<String, Observation<Vec<Certificate>>>,
    pub(crate) budget: Budget,
    /// How far Cloudflare's clock is ahead of ours.
    pub(crate) ahead: Option<SignedDuration>,
    pub(crate) now: Timestamp,
}

/// Whether another request would take from the last tenth of a budget, which every client holds back.
pub(crate) fn is_spent(budget: Budget) -> bool {
    budget.left.saturating_sub(1).saturating_mul(10) < budget.limit
}

/// What Cloudflare said about a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenFacts {
    /// It is known: its status, and when it ends.
    Known { status: String, expires: Option<Timestamp> },
    /// It is not.
    Refused(String),
    /// Nothing: the API was not reached.
    Unreached(String),
}

impl TokenFacts {
    /// Whether it is worth asking anything with it.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self, Self::Known { status, .. } if status == "active")
    }
}

/// A permission that was tried.
#[derive(Debug)]
pub(crate) struct Probed {
    pub(crate) permission: &'static Permission,
    /// The zone that it was tried on, by name; none for permissions of the account, or without any zone.
    pub(crate) zone: Option<String>,
    /// None where there was nothing to try it on.
    pub(crate) read: Option<ProbeAnswer>,
    /// None where it was not tried.
    pub(crate) write: Option<ProbeAnswer>,
    /// Whether it is to be tried at all.
    pub(crate) edits: Edits,
}

/// Whether a permission allows changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edits {
    /// It does.
    Yes,
    /// Looking is all it allows.
    No,
}

/// A tunnel of the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TunnelFacts {
    pub(crate) name: String,
    /// `cloudflare` or `local`.
    pub(crate) config_src: Option<String>,
    /// `healthy`, `degraded`, `down`, `inactive`.
    pub(crate) status: String,
    pub(crate) connections: usize,
    pub(crate) deleted: bool,
}

/// A name that is to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameFacts {
    pub(crate) hostname: Hostname,
    /// Whether the edge answers for it, so that it needs a certificate there.
    pub(crate) at_the_edge: bool,
}

/// A certificate pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) hosts: Vec<String>,
}
