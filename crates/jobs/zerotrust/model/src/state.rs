//! What is recorded for a route ↔ its `ConfigMap` in the operator's namespace.
//!
//! A state says what stands at Cloudflare, whose it is, and with which credential it can be taken down even when route,
//! tenant and templates are gone. It never holds a secret. States of both older operators are read, too.

mod older;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use portolan_core::ObjectKey;
use portolan_publication::{Footprint, Part};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::annotations;
use crate::former;
use crate::names;
use crate::reference::{RouteRef, SecretRef, TenantRef};
use crate::task::{Ids, TaskResult};

/// Label that states of the one older operator, and ours, have.
pub const COMPONENT_LABEL: (&str, &str) = ("app.kubernetes.io/component", "state-tracker");
/// Label that states of the other older operator, and ours, have.
pub const MANAGED_BY_LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "cfzt-operator");
pub(crate) const NAME_LABEL: (&str, &str) = ("app.kubernetes.io/name", "cloudflare-zero-trust-operator");
/// The annotation on a state that names another Secret, with which what it records can be taken down.
pub const SUBSTITUTE_ANNOTATION: &str = "portolan.dev/credential";
/// The form that is written.
const SCHEMA_VERSION: &str = "1";

/// Label selectors that together find the states of all writers, each once.
pub fn selectors() -> [String; 2] {
    let ((component, tracker), (managed_by, operator)) = (COMPONENT_LABEL, MANAGED_BY_LABEL);
    [format!("{component}={tracker}"), format!("{managed_by}={operator},{component}!={tracker}")]
}

/// The label selector of what is no state, by its labels, nor a name that its route let go.
pub fn selector_of_others() -> String {
    let ((component, tracker), (managed_by, operator)) = (COMPONENT_LABEL, MANAGED_BY_LABEL);
    let (_, former) = former::COMPONENT_LABEL;
    format!("{component} notin ({tracker},{former}),{managed_by}!={operator}")
}

/// What is recorded for a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Name of the `ConfigMap`.
    pub name: String,
    /// The route.
    pub route: ObjectKey,
    /// Which route of that name.
    pub uid: Option<String>,
    /// The hash of the inputs that were carried out last.
    pub hash: String,
    /// What stands at Cloudflare.
    pub footprint: Footprint,
    /// The tenant; without a namespace where an older operator recorded none.
    pub tenant: Option<ObjectKey>,
    /// The Secret with the API token; none where an older operator recorded none.
    pub credential: Option<SecretRef>,
    /// How the name is published.
    pub mode: PublishMode,
    /// Where requests go.
    pub origin_service: Option<String>,
    /// Whether it is being taken down.
    pub phase: StatePhase,
    /// What stands elsewhere and has to go.
    pub leftovers: Vec<Leftover>,
    /// The Secret with the token's credentials, in the route's namespace.
    pub token_secret_name: Option<String>,
    /// The templates that took part, by name or without being named; none where an earlier version did not record them.
    pub templates: Option<BTreeSet<ObjectKey>>,
    /// Since when the name is public that had an Access application, in UTC.
    pub exposed_at: Option<String>,
    /// When the route was last brought in line, in UTC.
    pub last_sync_time: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
}

/// Who wrote a state, by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StateForm {
    /// We did.
    Ours,
    /// An older operator, with all ids in one JSON text.
    Ids,
    /// An older operator, with every id under a key of its own.
    Flat,
}

/// How a name is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishMode {
    /// Through a tunnel.
    #[default]
    Tunnel,
    /// As a record of its own.
    DnsOnly,
}

impl PublishMode {
    /// As it is recorded.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tunnel => "tunnel",
            Self::DnsOnly => "dns-only",
        }
    }
}

/// Whether a state is being taken down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatePhase {
    /// What it records is to stand.
    #[default]
    Active,
    /// What it records is to go.
    Deleting,
}

impl StatePhase {
    /// As it is recorded.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deleting => "deleting",
        }
    }
}

/// What stands in another account since the route changed its tenant, and with which credential it can be taken down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// What stands there.
    pub footprint: Footprint,
    /// The Secret with the API token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretRef>,
    /// The tenant that it was published with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantRef>,
}

/// A `ConfigMap` that should be a state and cannot be read as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("state {name} cannot be read: {why}")]
pub struct StateError {
    name: String,
    why: String,
}

impl State {
    /// The state of a route for which nothing is recorded yet.
    pub fn new(name: impl Into<String>, route: ObjectKey) -> Self {
        Self {
            name: name.into(),
            route,
            uid: None,
            hash: String::new(),
            footprint: Footprint::default(),
            tenant: None,
            credential: None,
            mode: PublishMode::Tunnel,
            origin_service: None,
            phase: StatePhase::Active,
            leftovers: Vec::new(),
            token_secret_name: None,
            templates: None,
            exposed_at: None,
            last_sync_time: None,
            last_error: None,
        }
    }

    /// Reads a state in our form or an older one. Secrets that older operators left in it do not come along.
    pub fn read(map: &ConfigMap) -> Result<Self, StateError> {
        older::OlderState::of(map).and_then(|record| record.state(map)).map_err(|why| {
            let name = map.metadata.name.clone().unwrap_or_default();
            StateError { name, why }
        })
    }

    /// Whether a state holds a secret that an older operator left there, and has to be written anew without it.
    pub fn needs_scrubbing(map: &ConfigMap) -> bool {
        // What was applied last is kept in an annotation, too.
        let notes = map.metadata.annotations.iter().flatten();
        map.data
            .iter()
            .flatten()
            .chain(notes)
            .any(|(key, value)| older::names_secret(key) || older::holds_secret(value))
    }

    /// Which form a state is written in.
    pub fn form(map: &ConfigMap) -> StateForm {
        let has = |key: &str| map.data.as_ref().is_some_and(|data| data.contains_key(key));
        match (has("schema_version"), has("cloudflare_ids")) {
            (true, _) => StateForm::Ours,
            (false, true) => StateForm::Ids,
            (false, false) => StateForm::Flat,
        }
    }

    /// The route that a state is about, without reading the rest of it.
    pub fn route_of(map: &ConfigMap) -> Option<ObjectKey> {
        let data = map.data.as_ref()?;
        Some(ObjectKey::namespaced(data.get("httproute_namespace")?, data.get("httproute_name")?))
    }

    /// Whether a `ConfigMap` is a state, by its labels.
    pub fn is_one(map: &ConfigMap) -> bool {
        let labels = map.metadata.labels.as_ref();
        [COMPONENT_LABEL, MANAGED_BY_LABEL]
            .iter()
            .any(|(key, value)| labels.and_then(|labels| labels.get(*key)).is_some_and(|found| found == value))
            && Self::route_of(map).is_some()
    }

    /// The credential that an administrator names in the place of one that is lost, as `namespace/name`. States lie in the
    /// operator's namespace, where nobody else writes.
    pub fn substitute(map: &ConfigMap) -> Option<SecretRef> {
        SecretRef::parse(map.metadata.annotations.as_ref()?.get(SUBSTITUTE_ANNOTATION)?.trim())
    }

    /// Whether a user says that a state is to be forgotten, whatever stands.
    pub fn is_forced_to_forget(map: &ConfigMap) -> bool {
        let annotations = map.metadata.annotations.as_ref();
        let value = annotations.and_then(|annotations| annotations.get(&annotations::name("force-forget")));
        value.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    /// Writes the state.
    pub fn write(&self, operator_namespace: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(operator_namespace.to_owned()),
                labels: Some(self.labels()),
                annotations: self.uid.clone().map(|uid| [(annotations::name("httproute-uid"), uid)].into()),
                ..ObjectMeta::default()
            },
            data: Some(self.data()),
            ..ConfigMap::default()
        }
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let fixed = [NAME_LABEL, COMPONENT_LABEL, MANAGED_BY_LABEL];
        let mut labels: BTreeMap<String, String> =
            fixed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let namespace = self.route.namespace.as_deref().unwrap_or_default();
        labels.insert(annotations::name("httproute-namespace"), names::label(namespace));
        labels.insert(annotations::name("httproute-name"), names::label(&self.route.name));
        if let Some(tenant) = &self.tenant {
            labels.insert(annotations::name("tenant"), names::label(&tenant.name));
        }
        labels
    }

    fn data(&self) -> BTreeMap<String, String> {
        let print = &self.footprint;
        let tenant = self.tenant.as_ref();
        let leftovers = (!self.leftovers.is_empty()).then(|| json!(self.leftovers).to_string());
        let all = [
            ("schema_version", Some(SCHEMA_VERSION.to_owned())),
            ("annotation_hash", Some(self.hash.clone())),
            ("cloudflare_ids", Some(self.ids().to_string())),
            ("owned", Some(owned(print).to_string())),
            ("last_sync_time", self.last_sync_time.clone()),
            ("httproute_namespace", self.route.namespace.clone()),
            ("httproute_name", Some(self.route.name.clone())),
            ("hostname", print.hostname.clone()),
            ("tunnel_id", print.tunnel_id.clone()),
            ("zone_id", print.zone_id.clone()),
            ("account_id", print.account_id.clone()),
            ("tenant_name", tenant.map(|tenant| tenant.name.clone())),
            ("tenant_namespace", tenant.and_then(|tenant| tenant.namespace.clone())),
            ("credential_secret", self.credential.as_ref().map(ToString::to_string)),
            ("mode", Some(self.mode.as_str().to_owned())),
            ("origin_service", self.origin_service.clone()),
            ("phase", Some(self.phase.as_str().to_owned())),
            ("last_error", self.last_error.clone()),
            ("leftovers", leftovers),
            ("templates", self.templates.as_ref().map(names::joined)),
            ("exposed_at", self.exposed_at.clone()),
            // The public half of a credential: not a secret, but not an id either.
            ("service_token_client_id", print.service_token_client_id.clone()),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }

    /// The keys of a task's result, without credentials and without what has a key of its own.
    fn ids(&self) -> Value {
        let result = TaskResult::from(&self.footprint);
        let result = TaskResult {
            ids: Ids { service_token_client_id: None, adopted: BTreeSet::new(), ..result.ids },
            service_token_secret_name: self.token_secret_name.clone(),
            ..result
        };
        serde_json::to_value(result).expect("results are plain JSON")
    }

    /// The annotations that the route shows while this stands, without the prefix.
    pub fn outputs(&self) -> BTreeMap<&'static str, String> {
        let print = &self.footprint;
        let policies = (!print.access_policy_ids.is_empty()).then(|| print.access_policy_ids.join(","));
        let all = [
            ("hostnameRouteId", print.tunnel_id.clone().filter(|_| print.has_rule)),
            ("cnameRecordId", print.cname_record_id.clone()),
            ("accessAppId", print.access_app_id.clone()),
            ("accessPolicyIds", policies),
            ("serviceTokenId", print.service_token_id.clone()),
            ("serviceTokenSecretName", self.token_secret_name.clone().filter(|_| print.service_token_id.is_some())),
            ("dnsRecordId", print.dns_record_id.clone()),
            ("dnsRecordIp", print.dns_record_ip.clone()),
            ("lastReconcile", self.last_sync_time.clone()),
        ];
        all.into_iter().filter_map(|(suffix, value)| Some((suffix, value?))).collect()
    }

    /// Puts what stands now in the place of what stood before, and notes where a name lost its protection by that.
    pub fn stands(&mut self, footprint: Footprint, now: &str) {
        let before = std::mem::replace(&mut self.footprint, footprint);
        let after = &self.footprint;
        let same = before.hostname.is_none() || before.hostname == after.hostname;
        let lost = same && before.access_app_id.is_some() && after.access_app_id.is_none();
        if !after.is_published() || after.access_app_id.is_some() || !same || self.is_inside() {
            self.exposed_at = None;
        } else if lost {
            self.exposed_at = Some(now.to_owned());
        }
    }

    /// Names that are protected by what is recorded.
    pub fn guarded(&self) -> BTreeSet<&str> {
        let all = self.leftovers.iter().map(|leftover| &leftover.footprint).chain([&self.footprint]);
        let guarded = all.filter(|print| print.access_app_id.is_some());
        guarded.filter_map(|print| print.hostname.as_deref()).collect()
    }

    /// Whether a name still is the route's: protected, or published as its users say.
    pub fn keeps(&self, hostname: &str) -> bool {
        let own = self.footprint.hostname.as_deref() == Some(hostname) && self.footprint.is_published();
        own || self.guarded().contains(hostname)
    }

    /// Notes the templates of what was carried out in part: those that took part before still may.
    pub fn joined_by(&mut self, templates: Option<BTreeSet<ObjectKey>>) {
        match (&mut self.templates, templates) {
            (Some(known), Some(more)) => known.extend(more),
            (known, more) if self.footprint.is_empty() => *known = more,
            _ => {}
        }
    }

    /// Whether the name leads to an address that only the inside can reach.
    fn is_inside(&self) -> bool {
        let ip = self.footprint.dns_record_ip.as_deref().filter(|_| self.footprint.dns_record_id.is_some());
        ip.and_then(|ip| ip.parse().ok()).is_some_and(crate::target::is_private)
    }

    /// Refers to the route as tasks do.
    pub fn route_ref(&self) -> RouteRef {
        let namespace = self.route.namespace.clone().unwrap_or_default();
        RouteRef { name: self.route.name.clone(), namespace, uid: self.uid.clone() }
    }
}

/// Which parts were made by us, and which existed before.
fn owned(footprint: &Footprint) -> Value {
    let parts = [
        (Part::Rule, footprint.has_rule),
        (Part::Record, footprint.cname_record_id.is_some() || footprint.dns_record_id.is_some()),
        (Part::App, footprint.access_app_id.is_some()),
        (Part::Token, footprint.service_token_id.is_some()),
        (Part::Redirect, footprint.redirect_rule_id.is_some()),
    ];
    let created: Vec<Part> = parts
        .into_iter()
        .filter(|(part, there)| *there && !footprint.is_adopted(*part))
        .map(|(part, _)| part)
        .collect();
    json!({ "created": created, "adopted": footprint.adopted })
}

#[cfg(test)]
mod tests;
