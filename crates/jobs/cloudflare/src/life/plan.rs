//! What is to be done for an object, as steps and as users read it. Pure.

use portolan_core::{Plan, Problem};
use portolan_engine::annotations;

use super::{FoundThere, Inputs, KindReconciler, key_of};
use crate::kind::{Kind, Recorded, Resolved};
use portolan_core::ownership::{Matched, Matching, RemoteWrite, match_bodies};

impl<K: Kind> KindReconciler<K> {
    pub(super) fn matched(
        &self,
        object: &K,
        found: &FoundThere<K::Body>,
        wanted: Vec<K::Body>,
        resolved: &Resolved,
        recorded: &Recorded,
    ) -> Result<Matched<K::Body>, Problem> {
        match_bodies(Matching {
            noun: K::NOUN,
            wanted,
            candidates: found.candidates.clone(),
            recorded: &recorded.ids,
            mark: &self.mark(object),
            mark_limit: K::mark_limit(resolved),
            adopt: annotations::is_adopting(object.meta()),
            annotation: "cloudflare-operator.io/adopt",
        })
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
