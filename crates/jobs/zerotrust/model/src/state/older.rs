//! States as all writers left them: ids in one JSON text with names in either spelling, or flat beside the rest.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use portolan_core::ObjectKey;
use portolan_publication::{Footprint, Part};
use serde_json::Value;

use super::{Leftover, PublishMode, State, StatePhase};
use crate::annotations;
use crate::names;
use crate::reference::SecretRef;
use crate::task::comma_separated;

/// Everything that a state says, by names without case and underscores.
pub(super) struct OlderState {
    flat: BTreeMap<String, String>,
    ids: BTreeMap<String, Value>,
}

/// Whether a name is that of a token's secret half.
pub(super) fn names_secret(name: &str) -> bool {
    folded(name).contains("clientsecret")
}

/// Whether a text is a structure with a token's secret half in it. Other texts may use the words as they like.
pub(super) fn holds_secret(text: &str) -> bool {
    text.trim_start().starts_with('{') && structure(text).map_or_else(|| names_secret(text), |value| has_secret(&value))
}

fn has_secret(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| names_secret(name) || has_secret(value)),
        Value::Array(items) => items.iter().any(has_secret),
        // A text within a text, as what was applied last is kept.
        Value::String(text) => holds_secret(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Reads JSON, also where it was written as Python prints it.
fn structure(text: &str) -> Option<Value> {
    let python = || {
        let words = [("'", "\""), ("None", "null"), ("True", "true"), ("False", "false")];
        words.iter().fold(text.to_owned(), |text, (python, json)| text.replace(python, json))
    };
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&python())).ok()
}

/// A name without case, underscores and hyphens: `access_app_id` and `accessAppId` are one.
fn folded(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

impl OlderState {
    /// Takes a state apart; secrets are left behind.
    pub(super) fn of(map: &ConfigMap) -> Result<Self, String> {
        let data = map.data.as_ref().ok_or("it has no data")?;
        let ids: BTreeMap<String, Value> =
            match data.get("cloudflare_ids").map(|text| text.trim()).filter(|text| !text.is_empty()) {
                None => BTreeMap::new(),
                // What the parser would say is not repeated: it may quote what no message should show.
                Some(text) => structure(text)
                    .and_then(|value| serde_json::from_value(value).ok())
                    .ok_or("cloudflare_ids is no JSON object")?,
            };
        let open = |key: &String| !names_secret(key);
        Ok(Self {
            flat: data.iter().filter(|(key, _)| open(key)).map(|(key, value)| (folded(key), value.clone())).collect(),
            ids: ids.into_iter().filter(|(key, _)| open(key)).map(|(key, value)| (folded(&key), value)).collect(),
        })
    }

    /// The first of some names that says something, flat or among the ids.
    fn text(&self, names: &[&str]) -> Option<String> {
        let said = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        names.iter().find_map(|name| {
            let id = self.ids.get(*name).and_then(Value::as_str).and_then(said);
            id.or_else(|| self.flat.get(*name).and_then(|text| said(text)))
        })
    }

    /// As [`Self::text`], where what stands flat is the newer.
    fn flat(&self, name: &str) -> Option<String> {
        let flat = self.flat.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        flat.or_else(|| self.text(&[name]))
    }

    fn list(&self, name: &str) -> Vec<String> {
        match self.ids.get(name) {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => comma_separated(&self.text(&[name]).unwrap_or_default()),
        }
    }

    fn json(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.flat.get(name)?).ok()
    }

    pub(super) fn state(&self, map: &ConfigMap) -> Result<State, String> {
        let meta = &map.metadata;
        let (Some(namespace), Some(name)) = (self.flat("httproutenamespace"), self.flat("httproutename")) else {
            return Err("httproute_namespace or httproute_name is missing".to_owned());
        };
        let route = ObjectKey::namespaced(namespace, name);
        let uid = meta.annotations.as_ref().and_then(|all| all.get(&annotations::name("httproute-uid")).cloned());
        let footprint = self.footprint();
        let dns_only = footprint.dns_record_id.is_some() && !footprint.has_rule;
        let leftovers = self.json("leftovers").map(serde_json::from_value::<Vec<Leftover>>).transpose();
        let mut leftovers = leftovers.map_err(|error| format!("leftovers: {error}"))?.unwrap_or_default();
        let substitute = State::substitute(map);
        if let Some(leftover) = leftovers.first_mut().filter(|_| footprint.is_empty()) {
            leftover.credential = substitute.clone().or(leftover.credential.take());
        }
        Ok(State {
            name: meta.name.clone().unwrap_or_default(),
            route: route.clone(),
            uid: uid.or_else(|| self.text(&["httprouteuid"])),
            hash: self.flat("annotationhash").unwrap_or_default(),
            tenant: self.tenant(map),
            credential: substitute.or_else(|| self.flat("credentialsecret").and_then(|text| SecretRef::parse(&text))),
            mode: match self.flat("mode").as_deref() {
                Some("dns-only") => PublishMode::DnsOnly,
                None if dns_only => PublishMode::DnsOnly,
                Some(_) | None => PublishMode::Tunnel,
            },
            origin_service: self.flat("originservice"),
            phase: if self.flat("phase").as_deref() == Some("deleting") {
                StatePhase::Deleting
            } else {
                StatePhase::Active
            },
            leftovers,
            token_secret_name: self.text(&["servicetokensecretname"]).or_else(|| self.usual_secret(&route, &footprint)),
            templates: self.flat.get("templates").map(|text| names::keys(text)),
            exposed_at: self.flat("exposedat"),
            last_sync_time: self.text(&["lastsynctime", "lastreconcile"]),
            last_error: self.flat("lasterror"),
            footprint,
        })
    }

    /// The tenant; the first operators named it in a label alone.
    fn tenant(&self, map: &ConfigMap) -> Option<ObjectKey> {
        let label = || map.metadata.labels.as_ref()?.get(&annotations::name("tenant")).filter(|name| !name.is_empty());
        let name = self.text(&["tenantname", "tenant"]).or_else(|| label().cloned())?;
        Some(ObjectKey { namespace: self.flat("tenantnamespace"), name })
    }

    /// Where an older operator kept a token's credentials without saying so.
    fn usual_secret(&self, route: &ObjectKey, footprint: &Footprint) -> Option<String> {
        let older = !self.flat.contains_key("schemaversion") && footprint.service_token_id.is_some();
        older.then(|| names::token_secret(route))
    }

    /// Older operators did not record whether there is a rule: a name with a tunnel, with something that they called the
    /// rule's id, or with a CNAME has one. Which tunnel that is in the first of them did not record either.
    fn footprint(&self) -> Footprint {
        let route_id = self.text(&["hostnamerouteid", "tunnelrouteid"]);
        let tunnel_id = self.flat("tunnelid").or_else(|| route_id.clone().filter(|id| annotations::is_uuid(id)));
        let dns_record_id = self.text(&["dnsrecordid"]);
        let recorded = self.ids.get("hasrule").and_then(Value::as_bool);
        let cname_record_id = self.text(&["cnamerecordid"]);
        let tunnelled = tunnel_id.is_some() || route_id.is_some() || cname_record_id.is_some();
        let published = tunnelled && dns_record_id.is_none();
        Footprint {
            account_id: self.flat("accountid"),
            hostname: self.flat("hostname"),
            zone_id: self.flat("zoneid").or_else(|| self.text(&["resolvedzoneid"])),
            has_rule: recorded.unwrap_or(published),
            tunnel_id,
            cname_record_id,
            dns_record_ip: self.text(&["dnsrecordip"]).filter(|_| dns_record_id.is_some()),
            dns_record_id,
            access_app_id: self.text(&["accessappid", "appid"]),
            access_policy_ids: self.list("accesspolicyids"),
            reusable_policy_ids: self.list("reusablepolicyids"),
            service_token_id: self.text(&["servicetokenid"]),
            service_token_client_id: self.text(&["servicetokenclientid"]),
            service_token_rotation: self.text(&["servicetokenrotation"]),
            redirect_rule_id: self.text(&["redirectruleid"]),
            redirect_ruleset_id: self.text(&["redirectrulesetid"]),
            redirect_refusal: self.text(&["redirectrefusal"]),
            app_hostname: self.text(&["apphostname"]),
            former: self
                .ids
                .get("former")
                .cloned()
                .and_then(|all| serde_json::from_value(all).ok())
                .unwrap_or_default(),
            adopted: self.adopted().into_iter().collect(),
        }
    }

    fn adopted(&self) -> Vec<Part> {
        let owned = self.json("owned").unwrap_or_default();
        serde_json::from_value(owned.get("adopted").cloned().unwrap_or_default()).unwrap_or_default()
    }
}
