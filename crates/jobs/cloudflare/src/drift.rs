//! Drift passes: everything that stands at Cloudflare for settled objects is listed anew, and objects whose part
//! changed behind our back are reconciled.
//!
//! A pass costs one call for some thousand objects of a zone or account. Its calls go in the lane of drift, which gets
//! a share of the budget: small accounts are checked every minute, huge ones in rotation.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use portolan_cloudflare_api::{Freshness, Lane};
use tokio::time::Instant;

use crate::kind::{Kind, Life};
use crate::life::Living;

/// When drift passes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// Only when asked for.
    Off,
    /// One after the other, each beginning at least so long after the last.
    Every(Duration),
}

impl Default for Drift {
    fn default() -> Self {
        Self::Every(Duration::from_secs(60))
    }
}

/// What a pass found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Zones and account collections that were listed.
    pub scopes: usize,
    /// Of those, how many could not be.
    pub failed: usize,
    /// Objects that are reconciled because something differs.
    pub drifted: usize,
}

/// A kind that can be checked for drift.
pub(crate) trait Drifts: Send + Sync {
    fn pass(&self) -> BoxFuture<'_, Passed>;
}

impl<K: Kind> Drifts for Living<K> {
    fn pass(&self) -> BoxFuture<'_, Passed> {
        Box::pin(async {
            let mut passed = Passed::default();
            if K::LIFE == Life::Observed {
                return passed;
            }
            for (scope, client) in self.settled.scopes() {
                let remote = client.records::<K::Body>(K::REMOTE, &scope);
                passed.scopes += 1;
                if let Err(error) = remote.refresh(Lane::Drift, Freshness::AfterNow).await {
                    tracing::warn!(kind = K::KIND, scope = %scope, %error, "A zone or account could not be checked for drift");
                    passed.failed += 1;
                    continue;
                }
                let Some(handle) = self.handle.get() else { continue };
                let drifted =
                    remote.with(|snapshot| handle.read(|store| self.settled.drifted(&scope, snapshot, store)));
                passed.drifted += drifted.len();
                handle.enqueue_all(&drifted);
            }
            passed
        })
    }
}

/// One pass over all kinds.
pub(crate) async fn pass(kinds: &[Arc<dyn Drifts>]) -> Passed {
    let mut all = Passed::default();
    for kind in kinds {
        let one = kind.pass().await;
        all.scopes += one.scopes;
        all.failed += one.failed;
        all.drifted += one.drifted;
    }
    all
}

/// Passes, one after the other, for good.
pub(crate) async fn keep_passing(drift: Drift, kinds: &[Arc<dyn Drifts>]) {
    let Drift::Every(least) = drift else { return std::future::pending().await };
    loop {
        let began = Instant::now();
        tokio::time::sleep_until(began + least).await;
        let passed = pass(kinds).await;
        tracing::debug!(?passed, duration_ms = began.elapsed().as_millis(), "Checked for drift");
    }
}
