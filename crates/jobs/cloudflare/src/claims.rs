//! Who wants what: of two objects of a kind that want the same, the older one has it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kube::api::ObjectMeta;
use portolan_core::ObjectKey;
use portolan_engine::{Handle, Projected};

use crate::projection::Projection;

/// How many objects have wanted the same at some time. Where that is one, nobody else has to be looked for; else the
/// controller's store is looked through. A few bytes for each object.
#[derive(Default)]
pub(crate) struct Claims {
    wanted: Mutex<HashMap<u64, u32>>,
}

impl Claims {
    /// Notes what an object claims now, if that is new.
    pub(crate) fn note(&self, before: Option<u64>, now: Option<u64>) {
        if let Some(claim) = now.filter(|_| before != now) {
            *self.wanted.lock().unwrap_or_else(PoisonError::into_inner).entry(claim).or_default() += 1;
        }
    }

    /// The oldest object that claims the same and is older than the given one. Objects that are being deleted claim
    /// nothing any more.
    pub(crate) fn older_than(&self, claim: u64, meta: &ObjectMeta, handle: &Handle<Projection>) -> Option<ObjectKey> {
        portolan_core::waypoint!();
        let alone =
            self.wanted.lock().unwrap_or_else(PoisonError::into_inner).get(&claim).is_none_or(|count| *count < 2);
        if alone {
            return None;
        }
        let own = portolan_engine::key_of(meta);
        let own_age = (age(meta.creation_timestamp.as_ref().map(|time| time.0)), &own);
        let claims = |one: &Projected<Projection>| {
            !one.deleting && one.projection.as_ref().is_some_and(|projection| projection.claim == Some(claim))
        };
        handle.read(|store| {
            let rivals = store.iter().filter(|(key, one)| **key != own && claims(one));
            let oldest = rivals.map(|(key, one)| (age(one.created), key)).filter(|rival| *rival < own_age).min();
            oldest.map(|(_, key)| key.clone())
        })
    }
}

fn age(created: Option<jiff::Timestamp>) -> jiff::Timestamp {
    created.unwrap_or(jiff::Timestamp::MAX)
}
