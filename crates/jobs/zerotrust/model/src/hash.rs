//! What a publication is made from → one hash, by which is known whether anything was asked for anew.
//!
//! Only inputs go in. What was written back, other people's annotations, times and counters of changes stay out, or every
//! result would ask for the next one.

use std::net::Ipv4Addr;

use serde_json::{Map, Value, json};

use crate::names::digest;
use crate::route::RouteInput;
use crate::select::Selected;

/// Changes when the same inputs have to be carried out differently.
const SCHEMA: u32 = 1;

/// What is known besides the route, its tenant and its templates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HashedInputs<'a> {
    /// Where requests go; none for a name without a tunnel.
    pub(crate) origin: Option<&'a str>,
    /// The zone.
    pub(crate) zone: Option<&'a str>,
    /// The address of a name without a tunnel.
    pub(crate) target: Option<Ipv4Addr>,
    /// Whether Access was asked for by saying who may pass. Names that an earlier version left open for it are carried
    /// out anew.
    pub(crate) implied: bool,
}

/// The hash of everything that a publication is made from.
pub(crate) fn hash(route: &RouteInput, selected: &Selected, resolved: HashedInputs<'_>) -> String {
    portolan_core::waypoint!();
    let tenant = &selected.tenant;
    let inputs = json!({
        "schema": SCHEMA,
        "uid": route.uid,
        "annotations": route.inputs,
        "template": selected.template.as_ref().map(|template| json!({ "name": template.key().to_string(), "spec": template.spec })),
        "base": selected.base.as_ref().map(|base| &base.spec),
        "tenant": {
            "name": tenant.key().to_string(),
            "accountId": tenant.spec.account_id,
            "tunnelId": tenant.spec.tunnel_id,
            "zoneId": tenant.spec.zone_id,
            "credential": tenant.credential().to_string(),
            "defaults": tenant.spec.defaults,
        },
        "origin": resolved.origin,
        "zone": resolved.zone,
        "target": resolved.target,
        "impliedAccess": resolved.implied.then_some(true),
    });
    digest(&canonical(inputs).to_string())
}

/// The same value without anything that is null. Keys are sorted already.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let said = fields.into_iter().filter(|(_, value)| !value.is_null());
            said.map(|(name, value)| (name, canonical(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests;
