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

/// What a publication is made from, as far as it is known before anybody is asked where the name belongs.
#[derive(Clone, Debug)]
pub(crate) struct HashedInputs(Map<String, Value>);

impl HashedInputs {
    /// A route with its tenant and templates, and where requests go; nowhere for a name without a tunnel.
    ///
    /// `implied`: whether Access was asked for by saying who may pass. Names that an earlier version left open for it are
    /// carried out anew.
    pub(crate) fn of(route: &RouteInput, selected: &Selected, origin: Option<&str>, implied: bool) -> Self {
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
            "origin": origin,
            "impliedAccess": implied.then_some(true),
        });
        Self(said(inputs.as_object().cloned().unwrap_or_default()))
    }

    /// The hash of all that, in a zone and with the address of a name without a tunnel.
    pub(crate) fn hash(&self, zone: Option<&str>, target: Option<Ipv4Addr>) -> String {
        let mut inputs = self.0.clone();
        inputs.extend(zone.map(|zone| ("zone".to_owned(), json!(zone))));
        inputs.extend(target.map(|target| ("target".to_owned(), json!(target))));
        digest(&Value::Object(inputs).to_string())
    }
}

/// The same value without anything that is null. Keys are sorted already.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => said(fields).into(),
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        other => other,
    }
}

fn said(fields: Map<String, Value>) -> Map<String, Value> {
    let said = fields.into_iter().filter(|(_, value)| !value.is_null());
    said.map(|(name, value)| (name, canonical(value))).collect()
}

#[cfg(test)]
mod tests;
