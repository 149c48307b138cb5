//! The controller of providers: a cluster in each namespace that uses one, and how their instances stand.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt as _;
use portolan_bind9_model::cluster::{self, Child};
use portolan_bind9_model::kinds::{Bind9Cluster, Bind9Instance, ClusterBind9Provider};
use portolan_bind9_model::names;
use portolan_core::{ObjectKey, Plan, Problem};
use portolan_engine::{Outcome, Profile, Reconcile, Report};

use crate::cluster_controller::{ChildrenPlan, about, plain, told};
use crate::kubernetes::name_of;
use crate::shared::{Bind9Context, is_ready};

/// Reconciles providers.
pub(crate) struct ProviderController {
    pub(crate) shared: Arc<Bind9Context>,
}

/// Where a provider is used, and what there is of it.
pub(crate) struct ProviderInputs {
    used_in: BTreeSet<String>,
    clusters: Vec<Arc<Bind9Cluster>>,
    instances: Vec<Arc<Bind9Instance>>,
    /// Clusters of its name that somebody else made, where ours are to be.
    taken: Vec<ObjectKey>,
}

impl Reconcile for ProviderController {
    type Object = ClusterBind9Provider;
    type Inputs = ProviderInputs;
    type Plan = ChildrenPlan;
    type Applied = ();
    type Projection = ();

    fn profile(&self) -> Profile {
        Profile { finalizer: Some(names::CLUSTER_FINALIZER), ..Profile::of("ClusterBind9Provider") }
    }

    fn project(&self, _: &ClusterBind9Provider) {}

    async fn gather(&self, provider: &ClusterBind9Provider) -> Result<ProviderInputs, Problem> {
        let name = provider.name_any();
        let clusters = self.shared.clusters.iter().filter(|one| is_of(one, provider)).collect();
        let used_in = self.shared.namespaces_using(&name);
        let wanted = cluster::clusters(provider, &used_in, &self.shared.settings.operator_namespace);
        let is_taken = |key: &ObjectKey| self.shared.clusters.get(key).is_some_and(|one| !is_of(&one, provider));
        let taken = wanted.iter().map(|one| name_of(one).1).filter(is_taken).collect();
        Ok(ProviderInputs { used_in, taken, clusters, instances: self.shared.instances_of(&name, None) })
    }

    /// A cluster where nobody uses the provider any more goes; one that goes takes its clusters along by their owner.
    fn plan(&self, provider: &ClusterBind9Provider, inputs: &ProviderInputs) -> Result<ChildrenPlan, Problem> {
        if provider.metadata.deletion_timestamp.is_some() {
            return Ok(ChildrenPlan::default());
        }
        let wanted = cluster::clusters(provider, &inputs.used_in, &self.shared.settings.operator_namespace);
        let places: BTreeSet<String> =
            wanted.iter().filter_map(|one| one["metadata"]["namespace"].as_str().map(str::to_owned)).collect();
        let there = |key: &ObjectKey| {
            inputs.clusters.iter().find(|one| one.namespace() == key.namespace).map(|one| plain(one.as_ref()))
        };
        let mut plan = ChildrenPlan::applying(wanted, there).leaving_alone(&inputs.taken);
        let surplus = inputs.clusters.iter().filter(|one| {
            one.metadata.deletion_timestamp.is_none() && !one.namespace().is_some_and(|place| places.contains(&place))
        });
        plan.delete = surplus.map(|one| plain(one.as_ref())).collect();
        Ok(plan)
    }

    fn changes(&self, plan: &ChildrenPlan) -> Plan {
        plan.changes()
    }

    async fn apply(&self, _: &ClusterBind9Provider, _: &ProviderInputs, plan: &ChildrenPlan) -> Result<(), Problem> {
        plan.carry_out(&self.shared).await
    }

    fn report(&self, provider: &ClusterBind9Provider, outcome: Outcome<'_, Self>) -> Report {
        let (inputs, plan, notices) = match outcome {
            Outcome::Applied { inputs, plan, .. } => (inputs, plan, plan.notices()),
            Outcome::Unchanged { inputs, plan } => (inputs, plan, Vec::new()),
            Outcome::Failed(failure) => return Report::failed(failure.problem),
        };
        let living = inputs.instances.iter().filter(|one| one.metadata.deletion_timestamp.is_none());
        let children: Vec<Child> = living.map(|one| Child { key: one.key(), ready: is_ready(one) }).collect();
        about(plan, notices, told(provider.status.as_ref(), &children, ToString::to_string))
    }
}

/// Whether a cluster was made for this provider.
fn is_of(cluster: &Bind9Cluster, provider: &ClusterBind9Provider) -> bool {
    let labels = cluster.labels();
    let by_provider = labels.get(names::MANAGED_BY).is_some_and(|by| by == "ClusterBind9Provider");
    by_provider && labels.get(names::CLUSTER) == Some(&provider.name_any())
}
