//! The controller of instances: keys, configuration, workload and Services of a server, in this order, and how its pods stand.
//!
//! Nothing is made or changed of a configuration that no server would start with: what runs goes on, and the instance says why.

mod gather;
mod inputs;
mod plan;
mod report;
mod running;

use std::sync::Arc;

use portolan_bind9_model::kinds::Bind9Instance;
use portolan_bind9_model::names;
use portolan_core::{ObjectKey, Plan, Problem};
use portolan_engine::{Outcome, Profile, Projected, Reconcile, Report};

use crate::instance_controller::inputs::InstanceInputs;
use crate::instance_controller::plan::InstancePlan;
pub(crate) use crate::instance_controller::running::{RunningFiles, algorithm, limits};
use crate::shared::Bind9Context;

/// Reconciles instances.
pub(crate) struct InstanceController {
    pub(crate) shared: Arc<Bind9Context>,
    /// What servers are known to run with.
    pub(crate) running: RunningFiles,
}

impl Reconcile for InstanceController {
    type Object = Bind9Instance;
    type Inputs = InstanceInputs;
    type Plan = InstancePlan;
    type Applied = Vec<String>;
    type Projection = ();

    fn profile(&self) -> Profile {
        Profile { finalizer: Some(names::INSTANCE_FINALIZER), ..Profile::of("Bind9Instance") }
    }

    fn project(&self, _: &Bind9Instance) {}

    fn seen(&self, key: &ObjectKey, _: Option<&Projected<()>>, after: Option<&Projected<()>>) {
        if after.is_none() {
            self.shared.forget_reads(key);
            self.shared.forget_keys(key);
        }
    }

    async fn gather(&self, instance: &Bind9Instance) -> Result<InstanceInputs, Problem> {
        if instance.metadata.deletion_timestamp.is_some() {
            return Ok(InstanceInputs::default());
        }
        self.look(instance).await
    }

    /// What belongs to one that goes, goes by its owner.
    fn plan(&self, instance: &Bind9Instance, inputs: &InstanceInputs) -> Result<InstancePlan, Problem> {
        if instance.metadata.deletion_timestamp.is_some() {
            return Ok(InstancePlan::default());
        }
        InstancePlan::of(instance, inputs)
    }

    fn changes(&self, plan: &InstancePlan) -> Plan {
        plan.changes()
    }

    /// Objects are written, or servers are asked whether they run with what was written.
    fn has_work(&self, plan: &InstancePlan) -> bool {
        !self.changes(plan).is_empty() || !plan.unconfirmed.is_empty()
    }

    async fn apply(&self, _: &Bind9Instance, _: &InstanceInputs, plan: &InstancePlan) -> Result<Vec<String>, Problem> {
        plan.children.carry_out(&self.shared).await?;
        Ok(self.running.bring_in_line(plan).await)
    }

    fn report(&self, instance: &Bind9Instance, outcome: Outcome<'_, Self>) -> Report {
        match outcome {
            Outcome::Applied { inputs, plan, applied } => report::told(instance, inputs, plan, applied),
            Outcome::Unchanged { inputs, plan } => report::told(instance, inputs, plan, &[]),
            Outcome::Failed(failure) => Report::failed(failure.problem),
        }
    }

    /// Zones are written with the keys that are stored by now.
    fn remember(&self, instance: &Bind9Instance, outcome: Outcome<'_, Self>) {
        if let Outcome::Applied { inputs, plan, .. } | Outcome::Unchanged { inputs, plan } = outcome
            && let Some(ring) = plan.ring.as_ref().or(inputs.stored.as_ref())
        {
            self.shared.note_keys(instance, ring);
        }
    }
}

/// The instance that an object of a server belongs to, by its labels.
pub(crate) fn server_of(meta: &kube::api::ObjectMeta) -> Option<ObjectKey> {
    let labels = meta.labels.as_ref()?;
    let is_server = labels.get("app").is_some_and(|app| app == "bind9");
    let name = labels.get("instance").filter(|_| is_server)?.clone();
    Some(ObjectKey { namespace: meta.namespace.clone(), name })
}
