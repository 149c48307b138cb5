//! Endpoints and the slices that are there → which slices change, so that all endpoints have a place.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::draft::{Draft, SliceChanges, labels};
use super::endpoint::{EndpointIdentity, says_the_same};
use crate::common::object::list;

/// The most endpoints of a slice.
pub(super) const MOST: usize = 100;

/// Endpoints that serve the same ports.
#[derive(Default)]
pub(super) struct Endpoints {
    pub(super) ports: Vec<Value>,
    pub(super) endpoints: BTreeMap<EndpointIdentity, Value>,
}

/// Puts endpoints into slices: where they already are, then where something changes anyway, then into the fullest slice
/// that holds them all, else into new ones.
pub(super) fn fill(service: &Value, there: Vec<Arc<Value>>, wanted: Endpoints, family: &str) -> SliceChanges {
    let Endpoints { ports, mut endpoints } = wanted;
    let (mut changed, mut unchanged, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    for slice in there {
        match keep(service, &slice, &mut endpoints) {
            SliceFate::Same => unchanged.push(slice),
            SliceFate::Other(draft) => changed.push(draft),
            SliceFate::Nothing => empty.push(slice),
        }
    }
    changed.sort_by_key(|draft: &Draft| std::cmp::Reverse(draft.endpoints.len()));
    for draft in &mut changed {
        take(&mut endpoints, draft);
    }
    let mut create = Vec::new();
    while !endpoints.is_empty() {
        let fits = fullest_that_holds(&unchanged, endpoints.len());
        let mut draft = fits
            .map_or_else(|| Draft::new(family, ports.clone()), |index| Draft::changing(unchanged.swap_remove(index)));
        take(&mut endpoints, &mut draft);
        if draft.is_new() { create.push(draft) } else { changed.push(draft) }
    }
    SliceChanges { create, update: changed, delete: empty }
}

/// What becomes of a slice when endpoints that are gone leave it.
enum SliceFate {
    Same,
    Other(Draft),
    Nothing,
}

/// Takes the endpoints that the slice already has.
fn keep(service: &Value, slice: &Arc<Value>, wanted: &mut BTreeMap<EndpointIdentity, Value>) -> SliceFate {
    let before = list(slice, "/endpoints");
    let mut differs = false;
    let mut endpoints = Vec::with_capacity(before.len());
    for endpoint in before {
        if let Some(found) = wanted.remove(&EndpointIdentity::of(endpoint)) {
            differs |= !says_the_same(&found, endpoint);
            endpoints.push(found);
        }
    }
    differs |= endpoints.len() != before.len();
    if differs && endpoints.is_empty() {
        return SliceFate::Nothing;
    }
    if !differs && slice["metadata"]["labels"] == labels(service) {
        return SliceFate::Same;
    }
    let mut draft = Draft::changing(slice.clone());
    if differs {
        draft.endpoints = endpoints;
    }
    SliceFate::Other(draft)
}

fn take(endpoints: &mut BTreeMap<EndpointIdentity, Value>, draft: &mut Draft) {
    while draft.endpoints.len() < MOST
        && let Some((_, endpoint)) = endpoints.pop_first()
    {
        draft.endpoints.push(endpoint);
    }
}

/// The unchanged slice that is fullest once it holds so many more.
fn fullest_that_holds(unchanged: &[Arc<Value>], more: usize) -> Option<usize> {
    let size = |slice: &Arc<Value>| list(slice, "/endpoints").len();
    let fits = unchanged.iter().enumerate().filter(|(_, slice)| more < MOST && size(slice) + more <= MOST);
    fits.max_by_key(|(index, slice)| (size(slice), std::cmp::Reverse(*index))).map(|(index, _)| index)
}
