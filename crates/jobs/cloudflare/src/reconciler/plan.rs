//! What is to be done for an object, as steps and as users read it. Pure.

use portolan_core::ownership::{CreatingNote, Matched, Matching, Ownership, RemoteWrite, match_bodies};
use portolan_core::{Plan, Problem};
use serde_json::{Value, json};

use super::{FoundThere, Inputs, KindReconciler, Steps, key_of};
use crate::definition::STEERING;
use crate::kind::{Kind, Management, Recorded, Resolved};

impl<K: Kind> KindReconciler<K> {
    pub(super) fn matched(
        &self,
        object: &K,
        found: &FoundThere<K::Body>,
        wanted: Vec<K::Body>,
        resolved: &Resolved,
        recorded: &Recorded,
    ) -> Result<Matched<K::Body>, Problem> {
        portolan_core::waypoint!();
        match_bodies(Matching {
            noun: K::NOUN,
            wanted,
            candidates: found.candidates.clone(),
            recorded: recorded.own(),
            elsewhere: &found.elsewhere,
            mark: &self.mark(object),
            mark_limit: K::mark_limit(resolved),
            adopt: STEERING.is_adopting(object.meta()),
            annotation: "cloudflare-operator.io/adopt",
        })
    }
}

/// What of a place is the object's by what it recorded; what there is one of is whosever object may write it.
pub(super) fn owned_there<K: Kind>(found: &FoundThere<K::Body>, recorded: &Recorded) -> Recorded {
    match K::MANAGEMENT {
        Management::Owned | Management::Observed => recorded.clone(),
        Management::Singleton => {
            let ids = found.candidates.iter().map(|entry| entry.id.clone()).collect();
            Recorded { ids, ..recorded.clone() }
        }
    }
}

/// What the status must say before the first step is taken.
pub(super) fn intent<K: Kind>(object: &K, inputs: &Inputs<K::Body>, plan: &Steps<K::Body>) -> Option<Value> {
    match K::SHEET.ownership {
        // What is given back must not be known by its id any more: once its mark is gone too, a second try would take it
        // for an object that was made before there were marks, and delete it.
        Ownership::Mark => {
            let releases = plan.here.steps.iter().chain(&plan.former).any(RemoteWrite::releases);
            releases.then(|| object.without_ids())
        }
        Ownership::Intent => plan.here.steps.iter().find_map(|step| match step {
            RemoteWrite::Create { body } => {
                let before = object.recorded().intent.creating;
                Some(json!({ "creating": CreatingNote::of(body, &inputs.checked_at, before.as_ref()) }))
            }
            // What is taken over becomes what was noted, and is not what the note is about.
            RemoteWrite::Adopt { .. } => Some(json!({ "creating": null })),
            RemoteWrite::Update { .. } | RemoteWrite::Delete { .. } | RemoteWrite::Release { .. } => None,
        }),
    }
}

/// The steps as users read them.
pub(super) fn changes<K: Kind>(
    object: &K,
    inputs: &Inputs<K::Body>,
    here: &[RemoteWrite<K::Body>],
    former: &[RemoteWrite<K::Body>],
) -> Plan {
    let deleting = object.meta().deletion_timestamp.is_some();
    let why = format!("{} {} {}", K::KIND, key_of(object), if deleting { "is being deleted" } else { "asks for it" });
    let moved = format!("{} {} moved elsewhere", K::KIND, key_of(object));
    let in_place = |steps: &[RemoteWrite<K::Body>], found: &Option<FoundThere<K::Body>>, why: &str| {
        let label = found.as_ref().map_or("", |found| found.place.label.as_str()).to_owned();
        steps.iter().map(|step| step.change(K::NOUN, &label, why)).collect::<Vec<_>>()
    };
    let mut changes = in_place(here, &inputs.here, &why);
    changes.extend(in_place(former, &inputs.former, &moved));
    if inputs.ends_itself {
        changes.push(own_end::<K>(object));
    }
    changes.into_iter().collect()
}

fn own_end<K: Kind>(object: &K) -> portolan_core::Change {
    portolan_core::Change {
        target: portolan_core::Target {
            kind: K::KIND.to_owned(),
            scope: "Kubernetes".to_owned(),
            name: key_of(object).to_string(),
            id: None,
        },
        action: portolan_core::Action::Delete,
        before: None,
        after: None,
        why: "what it was made from is gone".to_owned(),
    }
}
