//! What a pass knows of an instance → its keys, its files, and what is to be written. Pure.

use jiff::Timestamp;
use portolan_bind9_model::conf::{FileSet, ServerFiles, files};
use portolan_bind9_model::finding::{Finding, Weight};
use portolan_bind9_model::instance_status::PodState;
use portolan_bind9_model::keys::{self, KeyPolicy, KeyRing, KeyStep, KeysKnown};
use portolan_bind9_model::kinds::Bind9Instance;
use portolan_bind9_model::objects::{self, ObjectSet, ReadyWhen, workload_of};
use portolan_bind9_model::reasons;
use portolan_core::{Plan, Problem};
use serde_json::Value;

use crate::cluster_controller::ChildrenPlan;
use crate::instance_controller::inputs::InstanceInputs;
use crate::kubernetes::name_of;

/// What is to be done about an instance.
#[derive(Default)]
pub(crate) struct InstancePlan {
    /// What is to be written.
    pub(crate) children: ChildrenPlan,
    /// Its keys from now on; none where nothing is to be written.
    pub(crate) ring: Option<KeyRing>,
    /// Whether its keys are renewed.
    pub(crate) rotates: bool,
    /// When its keys are to be looked at again.
    pub(crate) again: Option<Timestamp>,
    /// What is wrong with what is said of it, or has no effect.
    pub(crate) findings: Vec<Finding>,
    /// What servers say of themselves once they run with their files.
    pub(crate) version: String,
    /// Pods of which nobody knows whether they do.
    pub(crate) unconfirmed: Vec<PodState>,
}

impl InstancePlan {
    /// What is to be done. What no server would start with gives findings, and nothing to do.
    pub(crate) fn of(instance: &Bind9Instance, inputs: &InstanceInputs) -> Result<Self, Problem> {
        let (Some(policy), Some(now)) = (&inputs.keys, inputs.now) else { return Ok(Self::default()) };
        let (ring, step) = next_ring(instance, inputs, policy, now, known(instance, inputs));
        let again = match step {
            KeyStep::Keep(again) => again,
            KeyStep::Create | KeyStep::Rotate | KeyStep::Retire => None,
        };
        let made = match planned_files(instance, inputs, &ring) {
            Ok(made) => made,
            Err(findings) => return Ok(Self { again, findings, ..Self::default() }),
        };
        let children = children(instance, inputs, &ring, policy, &made)?;
        let rotates = step == KeyStep::Rotate;
        let unconfirmed = unconfirmed(inputs, &made.version);
        Ok(Self {
            children,
            ring: Some(ring),
            rotates,
            again,
            findings: made.notes,
            version: made.version,
            unconfirmed,
        })
    }

    /// The same as everyone sees it. No secret comes in: of Secrets only that they change is told.
    pub(crate) fn changes(&self) -> Plan {
        self.children.changes()
    }
}

/// Whether all servers run with the keys that are stored: with the files that follow from them.
fn known(instance: &Bind9Instance, inputs: &InstanceInputs) -> KeysKnown {
    let Some(stored) = &inputs.stored else { return KeysKnown::NotYet };
    match planned_files(instance, inputs, stored) {
        Ok(made) if !inputs.pods.is_empty() && lagging(inputs, &made.version).next().is_none() => KeysKnown::Everywhere,
        Ok(_) | Err(_) => KeysKnown::NotYet,
    }
}

/// Pods that are not known to run with these files.
fn lagging<'a>(inputs: &'a InstanceInputs, version: &'a str) -> impl Iterator<Item = &'a PodState> {
    inputs
        .pods
        .iter()
        .filter(move |pod| inputs.confirmed.get(&(pod.uid.clone(), pod.restarts)).is_none_or(|known| known != version))
}

/// Those of them that can be asked.
fn unconfirmed(inputs: &InstanceInputs, version: &str) -> Vec<PodState> {
    lagging(inputs, version).filter(|pod| pod.address.is_some()).cloned().collect()
}

fn next_ring(
    instance: &Bind9Instance,
    inputs: &InstanceInputs,
    policy: &KeyPolicy,
    now: Timestamp,
    known: KeysKnown,
) -> (KeyRing, KeyStep) {
    let step = KeyRing::step(inputs.stored.as_ref(), policy, now, known);
    let fresh = inputs.fresh.clone().expect("gathering brings new secrets");
    let server = instance.key();
    let ring = match (inputs.stored.clone(), &step) {
        (None, _) | (_, KeyStep::Create) => KeyRing::created(&server, policy, fresh, now),
        (Some(ring), KeyStep::Keep(_)) => ring,
        (Some(ring), KeyStep::Rotate) => ring.rotated(&server, policy, fresh, now),
        (Some(ring), KeyStep::Retire) => ring.retired(),
    };
    (ring, step)
}

fn planned_files(
    instance: &Bind9Instance,
    inputs: &InstanceInputs,
    ring: &KeyRing,
) -> Result<ServerFiles, Vec<Finding>> {
    let set = FileSet {
        server: instance.key(),
        settings: &inputs.settings,
        ring,
        further: &inputs.further,
        following: &inputs.following,
        followers: &inputs.followers,
        address: inputs.address.clone(),
        given: inputs.given.clone(),
    };
    let mut made = files(&set);
    if inputs.findings.iter().any(|one| one.weight == Weight::Refused) {
        let more = made.err().unwrap_or_default();
        made = Err(inputs.findings.iter().cloned().chain(more).collect());
    }
    made
}

fn children(
    instance: &Bind9Instance,
    inputs: &InstanceInputs,
    ring: &KeyRing,
    policy: &KeyPolicy,
    made: &ServerFiles,
) -> Result<ChildrenPlan, Problem> {
    let kind = workload_of(&inputs.settings.storage).kind();
    let there = inputs.found(kind, &instance.key());
    let selector =
        there.and_then(|there| serde_json::from_value(there["spec"]["selector"]["matchLabels"].clone()).ok());
    let keys = keys::written(ring, policy);
    let set = ObjectSet {
        instance,
        settings: &inputs.settings,
        files: made,
        keys: &keys,
        selector,
        gate: ReadyWhen::Answers,
    };
    let wanted = objects::objects(&set);
    for object in &wanted {
        let (kind, key) = name_of(object);
        if let Some(found) = inputs.found(&kind, &key).filter(|found| is_foreign(instance, &kind, found)) {
            return Err(not_ours(&kind, found));
        }
    }
    let found = |object: &Value| {
        let (kind, key) = name_of(object);
        inputs.found(&kind, &key).cloned()
    };
    let pairs = wanted.into_iter().map(objects::stamped).map(|object| {
        let there = found(&object);
        (object, there)
    });
    let apply = pairs.filter(|(object, there)| !there.as_ref().is_some_and(|there| objects::stands(object, there)));
    let other = if kind == "Deployment" { "StatefulSet" } else { "Deployment" };
    let left = inputs.found(other, &instance.key()).filter(|found| is_owned(instance, found));
    Ok(ChildrenPlan { apply: apply.collect(), delete: left.cloned().into_iter().collect(), taken: Vec::new() })
}

/// Whether the instance is the owner that an object has.
fn is_owned(instance: &Bind9Instance, object: &Value) -> bool {
    owner(object).is_some_and(|uid| Some(uid) == instance.metadata.uid.as_deref())
}

fn owner(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|one| one["controller"] == true)?["uid"].as_str()
}

/// Whether an object of one of our names is somebody else's: it has another owner, or is a workload or Service that is no server's.
fn is_foreign(instance: &Bind9Instance, kind: &str, object: &Value) -> bool {
    match (kind, owner(object)) {
        ("ServiceAccount", _) => false,
        (_, Some(uid)) => Some(uid) != instance.metadata.uid.as_deref(),
        ("Deployment" | "StatefulSet" | "Service", None) => object["metadata"]["labels"]["app"] != "bind9",
        (_, None) => false,
    }
}

fn not_ours(kind: &str, object: &Value) -> Problem {
    let (_, key) = name_of(object);
    let message = format!(
        "Failed to create resources: {kind} {key} is there and belongs to somebody else; rename the instance, or remove it"
    );
    Problem::invalid(reasons::OBJECT_NOT_OURS, message)
}

#[cfg(test)]
mod tests;
