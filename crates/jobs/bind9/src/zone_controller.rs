//! The controller of zones: complete on the server that they are written to before anybody sees them, and followed by all others.
//!
//! ```text
//! instances, pods, keys ─► who has the zone ─► asked how it is there ─► steps ─► taken ─► asked again … ─► no step left: told
//! ```
//!
//! A pass takes the steps that can be taken now, and another one follows at once until there is none: so every step is seen, and one that is
//! cut off is gone on from. What a pass remembers only spares questions.

mod apex;
mod apply;
mod catalogs;
mod gather;
mod inputs;
mod links;
mod look;
mod memory;
mod report;

use std::sync::Arc;

use jiff::SignedDuration;
use portolan_bind9_model::kinds::DNSZone;
use portolan_bind9_model::names;
use portolan_bind9_model::zone_plan::{ZoneStep, steps};
use portolan_core::{Change, ObjectKey, Plan, Problem, Target};
use portolan_engine::{Outcome, Profile, Projected, Reconcile, Report};
use serde_json::{Value, json};

use crate::shared::Bind9Context;
use crate::zone_controller::apply::StepFailures;
use crate::zone_controller::catalogs::Catalogs;
use crate::zone_controller::inputs::ZoneInputs;
use crate::zone_controller::links::ServerLinks;
use crate::zone_controller::memory::ZoneMemory;

/// After how long a follower that is behind is told to look, and told of: catalogs are looked at every second, and a zone takes as long.
const LATE: SignedDuration = SignedDuration::from_secs(5);

/// Reconciles zones.
pub(crate) struct ZoneController {
    shared: Arc<Bind9Context>,
    links: ServerLinks,
    catalogs: Catalogs,
    memory: ZoneMemory,
}

/// What is to be done about a zone.
#[derive(Default)]
pub(crate) struct ZoneStepPlan {
    /// The zone's name.
    name: String,
    /// Catalogs of servers that it is written to no longer let go of it: server, follower.
    stale: Vec<(ObjectKey, ObjectKey)>,
    steps: Vec<ZoneStep>,
}

impl ZoneInputs {
    /// The steps that can be taken now.
    pub(crate) fn steps(&self) -> Vec<ZoneStep> {
        let mut all = steps(&self.view);
        // What a server has from one catalog it does not take from another.
        if !self.stale.is_empty() {
            all.retain(|step| !matches!(step, ZoneStep::AddCatalog(_) | ZoneStep::AddMember(_) | ZoneStep::Remove(_)));
        }
        all
    }
}

impl ZoneController {
    pub(crate) fn new(shared: Arc<Bind9Context>) -> Self {
        Self { shared, links: ServerLinks::default(), catalogs: Catalogs::default(), memory: ZoneMemory::default() }
    }
}

impl Reconcile for ZoneController {
    type Object = DNSZone;
    type Inputs = ZoneInputs;
    type Plan = ZoneStepPlan;
    type Applied = StepFailures;
    type Projection = ();

    fn profile(&self) -> Profile {
        Profile { finalizer: Some(names::ZONE_FINALIZER), ..Profile::of("DNSZone") }
    }

    fn project(&self, _: &DNSZone) {}

    fn seen(&self, key: &ObjectKey, _: Option<&Projected<()>>, after: Option<&Projected<()>>) {
        if after.is_none() {
            self.memory.forget(key);
        }
    }

    async fn gather(&self, zone: &DNSZone) -> Result<ZoneInputs, Problem> {
        self.look(zone).await
    }

    fn plan(&self, zone: &DNSZone, inputs: &ZoneInputs) -> Result<ZoneStepPlan, Problem> {
        let is_served = inputs.view.writer.is_none()
            || inputs
                .facts
                .servers
                .writer
                .as_ref()
                .is_some_and(|writer| inputs.facts.found.get(writer).is_some_and(|facts| facts.serial.is_some()));
        let stale = if is_served { inputs.stale.clone() } else { Vec::new() };
        Ok(ZoneStepPlan { name: zone.spec.zone_name.clone(), stale, steps: inputs.steps() })
    }

    fn changes(&self, plan: &ZoneStepPlan) -> Plan {
        let target = |server: &str| Target::new("zone", server, plan.name.clone());
        let stale = plan.stale.iter().map(|(server, follower)| {
            Change::delete(
                target(&server.to_string()),
                json!({"follower": follower.to_string()}),
                "it is written elsewhere",
            )
        });
        let steps = plan.steps.iter().map(|step| change(step, target));
        stale.chain(steps).collect()
    }

    fn intent(&self, zone: &DNSZone, inputs: &ZoneInputs, plan: &ZoneStepPlan) -> Option<Value> {
        report::intent(zone, inputs, plan)
    }

    async fn apply(&self, zone: &DNSZone, inputs: &ZoneInputs, plan: &ZoneStepPlan) -> Result<StepFailures, Problem> {
        let failures = self.carry_out(zone, inputs, plan).await;
        self.memory.note_steps(&zone.key(), &plan.steps);
        Ok(failures)
    }

    fn report(&self, zone: &DNSZone, outcome: Outcome<'_, Self>) -> Report {
        match outcome {
            Outcome::Applied { inputs, plan, applied } => report::taken(zone, inputs, plan, applied),
            Outcome::Unchanged { inputs, .. } => report::rested(zone, inputs),
            Outcome::Failed(failure) => Report::failed(failure.problem),
        }
    }
}

/// A step as everyone sees it.
fn change(step: &ZoneStep, target: impl Fn(&str) -> Target) -> Change {
    let nothing = Value::Null;
    match step {
        ZoneStep::Seed => Change::create(target("writer"), json!("seeded"), "the server does not have it"),
        ZoneStep::SeedAgain | ZoneStep::Open => {
            Change::create(target("writer"), json!("seeded"), "it is not complete there")
        }
        ZoneStep::Discard => Change::delete(target("writer"), nothing, "the server cannot load it"),
        ZoneStep::Update => Change::update(target("writer"), nothing, json!("updated"), "it differs"),
        ZoneStep::AddCatalog(server) => {
            Change::create(target(&server.to_string()), json!("catalog"), "the server has no catalog")
        }
        ZoneStep::AddMember(server) => {
            Change::create(target(&server.to_string()), json!("follows"), "the server is to follow")
        }
        ZoneStep::Refresh(server) => {
            Change::update(target(&server.to_string()), nothing, json!("refreshed"), "the server is behind")
        }
        ZoneStep::Retransfer(server) => Change::update(
            target(&server.to_string()),
            nothing,
            json!("transferred"),
            "the server has what nobody wrote",
        ),
        ZoneStep::RemoveMember(server) | ZoneStep::Remove(server) => {
            Change::delete(target(&server.to_string()), nothing, "the server is to have it no longer")
        }
    }
}
