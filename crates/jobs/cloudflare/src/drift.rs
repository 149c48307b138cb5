//! Drift passes: everything that stands at Cloudflare for settled objects is listed anew, and objects whose part
//! changed behind our back are reconciled.
//!
//! A pass costs one call for some thousand objects of a zone or account. Its calls go in the lane of drift, which gets
//! a share of the budget: small accounts are checked every minute, huge ones in rotation.

use std::sync::Arc;

use futures::future::BoxFuture;
use portolan_cloudflare_api::{Freshness, Lane};
use portolan_engine::{Metrics, Passed};

use crate::kind::{Kind, Life};
use crate::life::Living;

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
pub(crate) async fn pass(kinds: &[Arc<dyn Drifts>], metrics: &Metrics) -> Passed {
    let mut all = Passed::default();
    for kind in kinds {
        all += kind.pass().await;
    }
    metrics.passed_for_drift(crate::job::NAME, all);
    all
}
