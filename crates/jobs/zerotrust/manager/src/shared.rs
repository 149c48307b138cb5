//! What the manager's two controllers share: the mirrored objects, the search for the own Deployment, and the verdicts.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use portolan_core::{ObjectKey, Problem};
use portolan_engine::{Cache, Context, Handle, Selection};
use portolan_zerotrust_model::CloudflareZeroTrustOperatorConfig as Config;
use tokio::sync::watch;

use crate::config_states::ConfigVerdicts;
use crate::own_deployment::{OwnDeployment, Search};
use crate::settings::{Settings, Workers};
use crate::worker::WorkerKind;

pub(crate) struct ManagerContext {
    pub(crate) context: Arc<Context>,
    pub(crate) settings: Settings,
    pub(crate) configs: Cache<Config>,
    pub(crate) deployments: Cache<Deployment>,
    pub(crate) search: watch::Sender<Search>,
    pub(crate) verdicts: ConfigVerdicts,
    /// Passes over configurations.
    pub(crate) reports: Handle<()>,
    /// Passes over Deployments.
    pub(crate) shapes: Handle<()>,
}

impl ManagerContext {
    pub(crate) fn new(context: Arc<Context>, settings: Settings) -> Self {
        let here = || Selection::all().within(context.operator_namespace.clone());
        Self {
            configs: Cache::of(here()),
            deployments: Cache::of(here()),
            search: watch::channel(Search::Begun).0,
            verdicts: ConfigVerdicts::default(),
            reports: Handle::new(),
            shapes: Handle::new(),
            settings,
            context,
        }
    }

    /// The own Deployment, where it is known.
    pub(crate) fn own(&self) -> Option<OwnDeployment> {
        match &*self.search.borrow() {
            Search::Found(own) => Some(own.clone()),
            Search::Begun | Search::Failed(_) => None,
        }
    }

    /// Why the own Deployment is not known.
    pub(crate) fn lost(&self) -> Option<Problem> {
        match &*self.search.borrow() {
            Search::Failed(problem) => Some(problem.clone()),
            Search::Begun | Search::Found(_) => None,
        }
    }

    /// Waits until the own Deployment was looked for once.
    pub(crate) async fn searched(&self) {
        // The sender lives as long as we do.
        let _ = self.search.subscribe().wait_for(|search| *search != Search::Begun).await;
    }

    /// The configuration in force: the oldest that is not on its way out.
    pub(crate) fn in_force(&self) -> Option<Arc<Config>> {
        oldest(self.configs.iter())
    }

    /// Whether there are workers to keep.
    pub(crate) fn keeps_workers(&self) -> bool {
        self.settings.workers == Workers::Kept
    }

    /// The account of a worker, where it is not the manager's.
    pub(crate) fn account(&self, kind: WorkerKind) -> Option<&str> {
        let account = match kind {
            WorkerKind::Kube => &self.settings.kube_worker_account,
            WorkerKind::Cloudflare => &self.settings.cloudflare_worker_account,
        };
        account.as_deref().map(str::trim).filter(|account| !account.is_empty())
    }

    pub(crate) fn key(&self, name: &str) -> ObjectKey {
        ObjectKey { namespace: Some(self.context.operator_namespace.clone()), name: name.to_owned() }
    }

    /// The own Deployment is looked at anew.
    pub(crate) fn shape_anew(&self) {
        if let Some(own) = self.own() {
            self.shapes.enqueue(&own.deployment);
        }
    }

    /// All configurations are reported anew.
    pub(crate) fn report_anew(&self) {
        let keys: Vec<ObjectKey> = self.configs.iter().map(|config| self.key(&config.name_any())).collect();
        self.reports.enqueue_all(&keys);
    }
}

/// The oldest of some configurations; of those made in one second, the first by name.
fn oldest(configs: impl Iterator<Item = Arc<Config>>) -> Option<Arc<Config>> {
    let living = configs.filter(|config| config.metadata.deletion_timestamp.is_none());
    living.min_by_key(|config| (config.metadata.creation_timestamp.clone(), config.name_any()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(name: &str, made: &str, deleted: Option<&str>) -> Arc<Config> {
        let meta = json!({"name": name, "creationTimestamp": made, "deletionTimestamp": deleted});
        let whole = json!({"apiVersion": "cfzt.cloudflare.com/v1alpha1", "kind": "CloudflareZeroTrustOperatorConfig", "metadata": meta, "spec": {}});
        Arc::new(serde_json::from_value(whole).unwrap())
    }

    fn chosen(configs: Vec<Arc<Config>>) -> Option<String> {
        oldest(configs.into_iter()).map(|config| config.name_any())
    }

    #[test]
    fn the_oldest_that_stays_is_in_force() {
        let (first, second) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");

        assert_eq!(chosen(vec![config("b", second, None), config("c", first, None)]).as_deref(), Some("c"));
        assert_eq!(chosen(vec![config("b", first, None), config("a", first, None)]).as_deref(), Some("a"));
        assert_eq!(chosen(vec![config("b", second, None), config("c", first, Some(second))]).as_deref(), Some("b"));
        assert_eq!(chosen(Vec::new()), None);
    }
}
