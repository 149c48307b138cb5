//! Steps of a plan → writes, in their order; makings and deletions that follow each other go together.

use std::sync::Arc;

use futures::future::join_all;
use portolan_workloads::{CREATED, Dependents, Endpoint, Event, Plan, Step, StepFailure, StepTarget};
use serde_json::Value;

use super::recorder::Recorder;
use crate::api::Api;
use crate::call::{Call, DeleteOptions, Propagation};
use crate::object;
use crate::status::ApiError;
use crate::strategy::ObjectPart;

pub(super) const MANAGER: &str = "kube-controller-manager";

/// Most writes that are on their way at once.
const MOST_AT_ONCE: usize = 64;

/// Why a plan was not carried out to its end.
pub(super) enum PlanStop {
    /// Its object, or one that it is about, is another one now.
    Changed,
    /// Its namespace goes, and everything in it.
    Pointless,
    /// The server refused a step.
    Refused { step: Box<Step>, failure: StepFailure },
}

pub(super) struct Performer {
    api: Arc<Api>,
    recorder: Recorder,
}

/// A write and what is told once it is done.
struct Unit {
    write: Option<Step>,
    told: Vec<Event>,
}

impl Unit {
    /// Whether it does not depend on the write before it.
    fn stands_alone(&self) -> bool {
        matches!(self.write, Some(Step::Create { .. } | Step::Delete { .. }))
    }
}

impl Performer {
    pub(super) fn new(api: Arc<Api>) -> Self {
        Self { recorder: Recorder::new(api.clone()), api }
    }

    /// Carries out steps until one fails. Batches begin with one write and double, so that what is refused for all is
    /// tried once.
    pub(super) async fn carry_out(&mut self, component: &'static str, plan: Plan) -> Result<(), PlanStop> {
        let mut units: std::collections::VecDeque<Unit> = units(plan.steps).into();
        let mut most = 1;
        while !units.is_empty() {
            let alone = units.iter().take(most).take_while(|unit| unit.stands_alone()).count();
            let batch: Vec<Unit> = units.drain(..alone.max(1)).collect();
            most = if alone == 0 { 1 } else { (most * 2).min(MOST_AT_ONCE) };
            self.perform(component, batch).await?;
        }
        Ok(())
    }

    async fn perform(&mut self, component: &'static str, batch: Vec<Unit>) -> Result<(), PlanStop> {
        let api = &self.api;
        let writes = batch.into_iter().map(|unit| async move {
            let done = match &unit.write {
                Some(step) => write(api, step).await,
                None => Ok(Some(String::new())),
            };
            (unit, done)
        });
        let mut stop = None;
        for (unit, done) in join_all(writes).await {
            match (done, unit.write) {
                (Ok(Some(created)), _) => self.tell(component, unit.told, &created).await,
                (Err(error), Some(step)) => stop = stop.or(Some(reason_to_stop(step, &error))),
                (Ok(None), _) | (Err(_), None) => {}
            }
        }
        stop.map_or(Ok(()), Err)
    }

    async fn tell(&mut self, component: &'static str, told: Vec<Event>, created: &str) {
        for mut event in told {
            event.message = event.message.replace(CREATED, created);
            self.recorder.record(component, event).await;
        }
    }
}

fn units(steps: Vec<Step>) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for step in steps {
        match (step, units.last_mut()) {
            (Step::Event(event), Some(unit)) => unit.told.push(event),
            (Step::Event(event), None) => units.push(Unit { write: None, told: vec![event] }),
            (write, _) => units.push(Unit { write: Some(write), told: Vec::new() }),
        }
    }
    units
}

fn reason_to_stop(step: Step, error: &ApiError) -> PlanStop {
    let causes = error.details.iter().flat_map(|details| &details.causes);
    if causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating") {
        return PlanStop::Pointless;
    }
    match error.reason {
        "Conflict" | "NotFound" => PlanStop::Changed,
        reason => {
            let failure = StepFailure { reason: reason.to_owned(), message: error.message.clone() };
            PlanStop::Refused { step: Box::new(step), failure }
        }
    }
}

/// Carries one write out. Answers the name of what was made (empty for other steps), or nothing where there was nothing
/// left to do.
async fn write(api: &Arc<Api>, step: &Step) -> Result<Option<String>, ApiError> {
    match step {
        Step::Create { collection, object } => {
            let call = call(api, collection, object::namespace(object), object::name(object))?;
            let created = call.system_create(MANAGER, object.clone()).await?;
            Ok(Some(object::name(&created).to_owned()))
        }
        Step::Patch { target, part, patch } => change(api, target, *part, patch).await,
        Step::Delete { target, dependents } => delete(api, target, *dependents).await,
        Step::Event(_) => Ok(Some(String::new())),
    }
}

/// A call about one object; the kinds that controllers write are always served.
fn call(api: &Arc<Api>, collection: &str, namespace: &str, name: &str) -> Result<Call, ApiError> {
    let registry = api.registry();
    let resource = registry.by_collection(collection).ok_or_else(ApiError::no_such_resource)?;
    Ok(crate::controllers::call(api, resource, namespace, name))
}

async fn change(
    api: &Arc<Api>,
    target: &StepTarget,
    endpoint: Endpoint,
    patch: &Value,
) -> Result<Option<String>, ApiError> {
    let call = call(api, target.collection, &target.namespace, &target.name)?;
    let part = match endpoint {
        Endpoint::Main => ObjectPart::Main,
        Endpoint::Status => ObjectPart::Status,
    };
    let stale = std::sync::atomic::AtomicBool::new(false);
    let edit = |live: &mut Value| {
        let same = is_meant(target, live);
        stale.store(!same, std::sync::atomic::Ordering::Relaxed);
        if same {
            json_patch::merge(live, patch);
        }
        same
    };
    call.system_change(part, MANAGER, edit).await?;
    if stale.into_inner() {
        return Err(ApiError::modified(call.resource.about(&target.name)));
    }
    Ok(Some(String::new()))
}

/// Whether a step was planned for this object as it is.
fn is_meant(target: &StepTarget, live: &Value) -> bool {
    let version = object::meta_text(live, "resourceVersion");
    object::meta_text(live, "uid") == target.uid && target.version.as_ref().is_none_or(|planned| planned == version)
}

async fn delete(api: &Arc<Api>, target: &StepTarget, dependents: Dependents) -> Result<Option<String>, ApiError> {
    let call = call(api, target.collection, &target.namespace, &target.name)?;
    let propagation = match dependents {
        Dependents::After => Propagation::Background,
        Dependents::Before => Propagation::Foreground,
    };
    let options = DeleteOptions {
        uid: Some(target.uid.clone()),
        resource_version: target.version.clone(),
        propagation: Some(propagation),
        ..DeleteOptions::default()
    };
    match call.delete_object(&target.name, &options).await {
        Ok(_) => Ok(Some(String::new())),
        Err(error) if error.reason == "NotFound" => Ok(None),
        Err(error) => Err(error),
    }
}
