//! Drift passes: what stands at Cloudflare for settled objects is listed anew, and objects whose part changed behind our
//! back are reconciled.
//!
//! A listing costs one call for some thousand objects of a zone or account. Calls go in the lane of drift, which gets a
//! share of the budget: where everything fits, everything is looked at each time, else in rotation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use portolan_cloudflare_api::{Client, DriftSchedule, DriftScope, Freshness, Identity, Lane, Scope as RemoteScope};
use portolan_engine::{Metrics, Passed};

use crate::credentials;
use crate::job::JobContext;
use crate::kind::{Kind, Management};
use crate::reconciler::KindReconciler;

/// A kind, and the zone or account that its objects stand in.
pub(crate) type ScopeKey = (&'static str, Arc<str>);

/// A kind that can be checked for drift.
pub(crate) trait Drifts: Send + Sync {
    /// Where its objects stand, who asks there, and what that costs.
    fn scopes(&self) -> Vec<(DriftScope<ScopeKey>, Client)>;

    /// Looks at one of them.
    fn look(&self, scope: Arc<str>, client: Client) -> BoxFuture<'_, Passed>;

    /// What the kind is called.
    fn kind(&self) -> &'static str;
}

impl<K: Kind> Drifts for KindReconciler<K> {
    fn scopes(&self) -> Vec<(DriftScope<ScopeKey>, Client)> {
        if K::MANAGEMENT == Management::Observed {
            return Vec::new();
        }
        let scopes = self.drift_memory.scopes().into_iter();
        let scope = |(id, client): (Arc<str>, Client)| {
            let pages = client.records(K::REMOTE, &id).pages();
            let scope = DriftScope {
                parts: vec![(format!("{} {id}", K::KIND).into(), pages)],
                names: self.shared.zone_names(K::REMOTE.scope, &id),
                ids: Vec::new(),
                of_account: K::REMOTE.scope != RemoteScope::Zone,
                key: (K::KIND, id),
            };
            (scope, client)
        };
        scopes.map(scope).collect()
    }

    fn look(&self, scope: Arc<str>, client: Client) -> BoxFuture<'_, Passed> {
        Box::pin(async move {
            let mut passed = Passed { scopes: 1, ..Passed::default() };
            let remote = client.records(K::REMOTE, &scope);
            if let Err(error) = remote.refresh(Lane::Drift, Freshness::AfterNow).await {
                tracing::warn!(kind = K::KIND, scope = %scope, %error, "A zone or account could not be checked for drift");
                passed.failed = 1;
                return passed;
            }
            let Some(handle) = self.handle.get() else { return passed };
            let drifted =
                remote.with(|snapshot| handle.read(|store| self.drift_memory.drifted::<K>(&scope, snapshot, store)));
            passed.drifted = drifted.len();
            handle.enqueue_all(&drifted);
            passed
        })
    }

    fn kind(&self) -> &'static str {
        K::KIND
    }
}

impl JobContext {
    /// The name of a zone that a `CloudflareDomain` shows; none for accounts.
    fn zone_names(&self, scope: RemoteScope, id: &str) -> Vec<String> {
        let domains = if scope == RemoteScope::Zone { self.domains_of_zone(id) } else { Vec::new() };
        domains.iter().map(|one| one.spec.domain.to_ascii_lowercase()).collect()
    }

    /// The accounts that credentials are for.
    async fn accounts(&self) -> BTreeMap<Identity, BTreeSet<String>> {
        let mut accounts: BTreeMap<Identity, BTreeSet<String>> = BTreeMap::new();
        for one in self.credentials.iter() {
            let opened = credentials::open(&one, &self.secrets, &self.clients, &self.operator_namespace).await;
            if let Ok(access) = opened
                && let Some(account) = access.account
            {
                accounts.entry(access.client.identity().clone()).or_default().insert(account.to_string());
            }
        }
        accounts
    }
}

/// All kinds, and when their scopes were looked at.
pub(crate) struct Drifting {
    pub(crate) kinds: Vec<Arc<dyn Drifts>>,
    pub(crate) schedule: DriftSchedule<ScopeKey>,
    pub(crate) shared: Arc<JobContext>,
    pub(crate) metrics: Arc<Metrics>,
}

/// What the scopes of one credential are, and who asks about each.
#[derive(Default)]
struct ScopesAsked {
    scopes: Vec<DriftScope<ScopeKey>>,
    clients: BTreeMap<ScopeKey, Client>,
}

impl Drifting {
    /// Looks at everything.
    pub(crate) async fn pass(&self) -> Passed {
        let mut all = Passed::default();
        for asked in self.asked().into_values() {
            let keys: Vec<ScopeKey> = asked.clients.keys().cloned().collect();
            if let Some(client) = asked.clients.values().next() {
                self.schedule.all(&client.reader(), &keys);
            }
            all += self.look(asked, keys).await;
        }
        self.metrics.passed_for_drift(crate::job::NAME, all);
        all
    }

    /// Looks at what is due and fits into the share of the budget.
    pub(crate) async fn pass_in_turn(&self) -> Passed {
        let crowded = self.schedule.is_crowded();
        let accounts = if crowded { self.shared.accounts().await } else { BTreeMap::new() };
        let mut all = Passed::default();
        for (identity, mut asked) in self.asked() {
            let Some(client) = asked.clients.values().next().cloned() else { continue };
            let accounts = accounts.get(&identity).cloned().unwrap_or_default();
            let keys = self.schedule.next(&client.reader(), &accounts, std::mem::take(&mut asked.scopes)).await;
            all += self.look(asked, keys).await;
        }
        self.metrics.passed_for_drift(crate::job::NAME, all);
        all
    }

    fn asked(&self) -> BTreeMap<Identity, ScopesAsked> {
        let mut all: BTreeMap<Identity, ScopesAsked> = BTreeMap::new();
        for (scope, client) in self.kinds.iter().flat_map(|kind| kind.scopes()) {
            let asked = all.entry(client.identity().clone()).or_default();
            asked.clients.insert(scope.key.clone(), client);
            asked.scopes.push(scope);
        }
        all
    }

    async fn look(&self, mut asked: ScopesAsked, keys: Vec<ScopeKey>) -> Passed {
        let mut all = Passed::default();
        for key in keys {
            let kind = self.kinds.iter().find(|kind| kind.kind() == key.0);
            if let (Some(kind), Some(client)) = (kind, asked.clients.remove(&key)) {
                all += kind.look(key.1, client).await;
            }
        }
        all
    }
}
