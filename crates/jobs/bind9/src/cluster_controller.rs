//! The controller of clusters: as many instances as asked for, and how they stand.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt as _;
use portolan_bind9_model::cluster::{self, Child};
use portolan_bind9_model::kinds::{Bind9Cluster, Bind9Instance, ClusterStatus};
use portolan_bind9_model::{names, objects, reasons};
use portolan_core::{Action, Change, ConditionStatus, NewCondition, ObjectKey, Plan, Problem, Target};
use portolan_engine::{Notice, Outcome, Profile, Reconcile, Report};
use serde_json::Value;

use crate::kubernetes::name_of;
use crate::shared::{Bind9Context, is_ready};

/// Reconciles clusters.
pub(crate) struct ClusterController {
    pub(crate) shared: Arc<Bind9Context>,
}

/// The instances that there are.
pub(crate) struct ClusterInputs {
    instances: Vec<Arc<Bind9Instance>>,
    /// Instances of names that ours are to have, and that somebody else made.
    taken: Vec<ObjectKey>,
}

/// What is to be done: objects to apply, each with what is there; and objects to delete, in order.
#[derive(Default)]
pub(crate) struct ChildrenPlan {
    pub(crate) apply: Vec<(Value, Option<Value>)>,
    pub(crate) delete: Vec<Value>,
    /// Names that somebody else has: those are left alone.
    pub(crate) taken: Vec<ObjectKey>,
}

impl ChildrenPlan {
    /// The same without what somebody else has.
    pub(crate) fn leaving_alone(mut self, taken: &[ObjectKey]) -> Self {
        self.apply.retain(|(object, _)| !taken.contains(&name_of(object).1));
        Self { taken: taken.to_vec(), ..self }
    }

    /// What there is to say of names that somebody else has.
    pub(crate) fn trouble(&self) -> Option<Problem> {
        let first = self.taken.first()?;
        let message = format!("{first} is there and was made by somebody else; rename it, or delete it");
        Some(Problem::invalid(reasons::OBJECT_NOT_OURS, message))
    }

    /// What is to be applied: those that do not stand as they are to.
    pub(crate) fn applying(wanted: Vec<Value>, there: impl Fn(&ObjectKey) -> Option<Value>) -> Self {
        let pairs = wanted.into_iter().map(|object| {
            let object = objects::stamped(object);
            let found = there(&name_of(&object).1);
            (object, found)
        });
        let apply = pairs.filter(|(object, found)| !found.as_ref().is_some_and(|found| objects::stands(object, found)));
        Self { apply: apply.collect(), ..Self::default() }
    }

    /// The same as everyone sees it.
    pub(crate) fn changes(&self) -> Plan {
        let target = |object: &Value| {
            let (kind, key) = name_of(object);
            Target::new(kind, key.namespace.unwrap_or_default(), key.name)
        };
        let applied = self.apply.iter().map(|(object, found)| match found {
            None => Change::create(target(object), object["spec"].clone(), "it does not exist"),
            Some(found) => Change::update(target(object), found["spec"].clone(), object["spec"].clone(), "it differs"),
        });
        let deleted = self
            .delete
            .iter()
            .map(|object| Change::delete(target(object), object["spec"].clone(), "it is one too many"));
        applied.chain(deleted).collect()
    }

    /// Carries it out: first what is to be there, then what is to go.
    pub(crate) async fn carry_out(&self, shared: &Bind9Context) -> Result<(), Problem> {
        for (object, _) in &self.apply {
            shared.objects.apply(object).await?;
        }
        for object in &self.delete {
            shared.objects.delete(object).await?;
        }
        Ok(())
    }

    /// What happened, in events.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        let counts = self.changes().counts();
        let (made, gone) = (counts.of(Action::Create), counts.of(Action::Delete));
        let told = (made > 0 || gone > 0).then(|| {
            Notice::normal(reasons::INSTANCES_SCALING, format!("{made} made and {gone} deleted, as many as asked for"))
        });
        told.into_iter().collect()
    }
}

impl Reconcile for ClusterController {
    type Object = Bind9Cluster;
    type Inputs = ClusterInputs;
    type Plan = ChildrenPlan;
    type Applied = ();
    type Projection = ();

    fn profile(&self) -> Profile {
        Profile { finalizer: Some(names::CLUSTER_FINALIZER), ..Profile::of("Bind9Cluster") }
    }

    fn project(&self, _: &Bind9Cluster) {}

    async fn gather(&self, cluster: &Bind9Cluster) -> Result<ClusterInputs, Problem> {
        let instances = self.shared.instances_of(&cluster.name_any(), cluster.namespace().as_deref());
        let keys = cluster::instances(cluster).iter().map(|one| name_of(one).1).collect::<Vec<_>>();
        let is_taken =
            |key: &ObjectKey| self.shared.instances.get(key).is_some_and(|one| !is_made_for(one.labels(), cluster));
        let taken = keys.into_iter().filter(is_taken).collect();
        Ok(ClusterInputs { instances, taken })
    }

    /// One that goes takes its instances along by their owner; those that a user made stay.
    fn plan(&self, cluster: &Bind9Cluster, inputs: &ClusterInputs) -> Result<ChildrenPlan, Problem> {
        if cluster.metadata.deletion_timestamp.is_some() {
            return Ok(ChildrenPlan::default());
        }
        let there =
            |key: &ObjectKey| inputs.instances.iter().find(|one| one.key() == *key).map(|one| plain(one.as_ref()));
        let mut plan = ChildrenPlan::applying(cluster::instances(cluster), there).leaving_alone(&inputs.taken);
        let labelled =
            inputs.instances.iter().map(|one| (one.metadata.name.as_deref().unwrap_or_default(), one.labels()));
        let surplus = cluster::surplus(cluster, labelled);
        let living = |name: &String| {
            inputs.instances.iter().find(|one| one.name_any() == *name && one.metadata.deletion_timestamp.is_none())
        };
        plan.delete = surplus.iter().filter_map(living).map(|one| plain(one.as_ref())).collect();
        Ok(plan)
    }

    fn changes(&self, plan: &ChildrenPlan) -> Plan {
        plan.changes()
    }

    async fn apply(&self, _: &Bind9Cluster, _: &ClusterInputs, plan: &ChildrenPlan) -> Result<(), Problem> {
        plan.carry_out(&self.shared).await
    }

    fn report(&self, cluster: &Bind9Cluster, outcome: Outcome<'_, Self>) -> Report {
        let (inputs, plan, notices) = match outcome {
            Outcome::Applied { inputs, plan, .. } => (inputs, plan, plan.notices()),
            Outcome::Unchanged { inputs, plan } => (inputs, plan, Vec::new()),
            Outcome::Failed(failure) => return Report::failed(failure.problem),
        };
        let children: Vec<Child> = inputs
            .instances
            .iter()
            .filter(|one| one.metadata.deletion_timestamp.is_none())
            .map(|one| Child { key: one.key(), ready: is_ready(one) })
            .collect();
        about(plan, notices, told(cluster.status.as_ref(), &children, |key| key.name.clone()))
    }
}

/// Whether an instance was made for a cluster.
fn is_made_for(labels: &BTreeMap<String, String>, cluster: &Bind9Cluster) -> bool {
    let by_cluster = labels.get(names::MANAGED_BY).is_some_and(|by| by == "Bind9Cluster");
    by_cluster && labels.get(names::CLUSTER) == Some(&cluster.name_any())
}

/// Adds to what is told what was done, and what could not be.
pub(crate) fn about(plan: &ChildrenPlan, events: Vec<Notice>, told: Report) -> Report {
    let Some(problem) = plan.trouble() else { return Report { events, ..told } };
    let mut conditions = told.conditions;
    conditions[0] = NewCondition::not_ready(problem.reason, &problem.message);
    Report { conditions, events, problem: Some(problem), ..told }
}

/// What is told of a cluster or provider by its instances. A condition of an instance that is there no longer says so.
pub(crate) fn told(status: Option<&ClusterStatus>, children: &[Child], name: impl Fn(&ObjectKey) -> String) -> Report {
    let mut conditions = vec![cluster::readiness(children)];
    let shown = cluster::child_conditions(children);
    let stale = cluster::CHILD_TYPES[shown.len()..]
        .iter()
        .copied()
        .filter(|kind| status.is_some_and(|status| status.conditions.iter().any(|one| one.r#type == *kind)));
    let gone = |kind| {
        NewCondition::of(kind, ConditionStatus::False, reasons::NO_CHILDREN, "There is no such instance any more")
    };
    let stale: Vec<NewCondition> = stale.map(gone).collect();
    conditions.extend(shown);
    conditions.extend(stale);
    Report { status: cluster::counts(children, name), conditions, ..Report::default() }
}

pub(crate) fn plain(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).expect("objects are plain JSON")
}
