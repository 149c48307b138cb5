//! `DNSRecord` ↔ `zones/{zone}/dns_records/{id}`, one or, with `addressSelection: All`, one for each address.
//!
//! The value is given as text, as parts, or taken from another object in the cluster. A source that vanishes takes the
//! object along, or leaves the record as it last was.

mod rules;
pub mod spec_data;

use std::net::IpAddr;

use kube::CustomResource;
use kube::core::ApiResource;
use portolan_cloudflare_api::objects::{AUTOMATIC_TTL, DnsRecord as Remote};
use portolan_cloudflare_api::{Entry, Item as _, TypedCollection, collections};
use portolan_core::{Condition, Hostname, Problem, ZoneName, reasons, schema};
use portolan_dns::{AddressSelection, Data, RecordType, WrittenName, select, value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blocks::{CloudflareDetails, NamedObject, SourceReference, given};
use crate::kind::{Kind, Recorded, Resolved, StatusView};
use crate::reference::{SpecReference, ZoneHint};
use crate::sheet::{Sheet, finalizer};
use crate::shown;
use crate::sources::AddressSource;
use crate::used::UsedCredentials;
use spec_data::{DnsRecordData, SpecParts};

/// What is done when the source of a record vanishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SourceDeletionPolicy {
    /// The `DNSRecord` deletes itself, and the record with it.
    #[default]
    Delete,
    /// The record stays as it is.
    Orphan,
}

/// A record in a zone at Cloudflare.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "DNSRecord", root = "DnsRecord")]
#[kube(namespaced, status = "DnsRecordStatus", shortname = "dnsrec", category = "cloudflare")]
#[kube(printcolumn = r#"{"name":"Type","type":"string","jsonPath":".spec.type"}"#)]
#[kube(printcolumn = r#"{"name":"Name","type":"string","jsonPath":".spec.name"}"#)]
#[kube(printcolumn = r#"{"name":"Content","type":"string","jsonPath":".spec.content"}"#)]
#[kube(printcolumn = r#"{"name":"Resolved","type":"string","jsonPath":".status.resolvedContent","priority":1}"#)]
#[kube(printcolumn = r#"{"name":"Proxied","type":"boolean","jsonPath":".spec.proxied"}"#)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain, transform = schema::rules(rules::RULES))]
pub struct DnsRecordSpec {
    /// Full name of the record, as `www.example.com`. Under a `zoneId` also `@` for the zone itself, and a single label for
    /// a name right below it; other names must lie in the zone.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Type of the record; may be left out with `sourceRef`, whose address then decides.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RecordType>,
    /// Value of the record; excludes `sourceRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16_384))]
    pub content: Option<String>,
    /// The object whose address is published; excludes `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<SourceReference>,
    /// Which of several addresses of the source are published.
    #[serde(default)]
    pub address_selection: AddressSelection,
    /// What happens when the source vanishes.
    #[serde(default)]
    pub source_deletion_policy: SourceDeletionPolicy,
    /// Seconds that the record may be kept; 1 lets Cloudflare choose.
    #[serde(default = "automatic")]
    #[schemars(range(min = 1))]
    pub ttl: u32,
    /// Whether Cloudflare stands in front of the name; A, AAAA and CNAME only.
    #[serde(default)]
    pub proxied: bool,
    /// Which of several is tried first, lower first: MX, SRV and URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    /// Free text that Cloudflare keeps with the record, behind the mark that says whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub comment: Option<String>,
    /// Tags, as `team:shop`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(max = 255)))]
    pub tags: Vec<String>,
    /// Parts of the value, for types that have them: SRV, CAA, TLSA and others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<DnsRecordData>>,
    /// Who asks Cloudflare, and about which zone.
    pub cloudflare: CloudflareDetails,
}

fn automatic() -> u32 {
    AUTOMATIC_TTL
}

/// What became of a `DNSRecord`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct DnsRecordStatus {
    /// What is known of the record's health.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Id of the record, or of the first of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
    /// Id of the zone that the ids belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// The record's name, as Cloudflare has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fqdn: Option<String>,
    /// `Active`, `Error` or `Orphaned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Type that the source's address asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_type: Option<String>,
    /// Value that was taken from the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_content: Option<String>,
    /// All values that were taken from the source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resolved_addresses: Vec<String>,
    /// Version of the source that they were taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_resource_version: Option<String>,
    /// Ids of all records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub managed_record_ids: Vec<String>,
    /// The credential that wrote it, and that will delete it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_credentials: Option<UsedCredentials>,
}

fn invalid(message: impl Into<String>) -> Problem {
    Problem::invalid(reasons::INVALID_CONFIG, message)
}

impl DnsRecord {
    fn former(&self) -> DnsRecordStatus {
        self.status.clone().unwrap_or_default()
    }

    fn content(&self) -> Option<String> {
        given(self.spec.content.as_ref())
    }

    /// The name as it was written.
    fn written(&self) -> Result<WrittenName, Problem> {
        let details = &self.spec.cloudflare;
        let zone_is_named = given(details.zone_id.as_ref()).is_some();
        WrittenName::read(&self.spec.name, zone_is_named, given(details.domain.as_ref()).as_deref())
    }

    /// The full name, in the zone that was looked up.
    fn hostname(&self, resolved: &Resolved) -> Result<Hostname, Problem> {
        let written = self.written()?;
        match resolved.zone.as_ref().and_then(|zone| zone.name.as_ref()) {
            Some(zone) => written.within(zone),
            None => written.full().cloned().ok_or_else(|| {
                Problem::waiting(reasons::DEPENDENCY_ERROR, "the name of the record's zone is not known yet")
            }),
        }
    }

    /// The wanted records as type and value, before checks.
    fn values(&self, resolved: &Resolved) -> Result<Vec<(RecordType, Option<String>)>, Problem> {
        match (&self.spec.source_ref, self.content()) {
            (Some(_), Some(_)) => Err(invalid("content and sourceRef exclude each other; remove one of them")),
            (Some(reference), None) => self.source_values(reference, resolved),
            (None, content) => {
                let kind =
                    self.spec.kind.ok_or_else(|| invalid("type is missing; it can only be left out with sourceRef"))?;
                if content.is_none() && (self.spec.data.is_none() || !kind.has_data()) {
                    return Err(invalid(format!("content is missing; a record of type {kind} needs a value")));
                }
                Ok(vec![(kind, content)])
            }
        }
    }

    fn source_values(
        &self,
        reference: &SourceReference,
        resolved: &Resolved,
    ) -> Result<Vec<(RecordType, Option<String>)>, Problem> {
        let named = |problem: Problem| match reference.named(self.metadata.namespace.as_deref()) {
            Some(source) => Problem { message: format!("{source}: {}", problem.message), ..problem },
            None => problem,
        };
        match &resolved.source {
            Some(AddressSource::Found { addresses, .. }) => {
                let chosen = select(addresses, self.spec.address_selection, self.spec.kind).map_err(named)?;
                Ok(chosen.into_iter().map(|(kind, value)| (kind, Some(value))).collect())
            }
            Some(AddressSource::Gone) if self.was_resolved() => Ok(self.last_values()),
            Some(AddressSource::Gone) | None => Err(named(Problem::waiting(reasons::PENDING, "it does not exist yet"))),
        }
    }

    /// Whether the source was there once. One that never was is waited for.
    fn was_resolved(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.resolved_content.is_some())
    }

    /// What was last taken from the source.
    fn last_values(&self) -> Vec<(RecordType, Option<String>)> {
        let status = self.former();
        let asked = self.spec.kind.or_else(|| status.resolved_type.as_deref().map(RecordType::parse));
        let all = if status.resolved_addresses.is_empty() {
            status.resolved_content.into_iter().collect()
        } else {
            status.resolved_addresses
        };
        let kind = |value: &str| match (value.parse(), asked) {
            (Ok(IpAddr::V4(_)), None | Some(RecordType::A | RecordType::Aaaa)) => RecordType::A,
            (Ok(IpAddr::V6(_)), None | Some(RecordType::A | RecordType::Aaaa)) => RecordType::Aaaa,
            (_, asked) => asked.unwrap_or(RecordType::Cname),
        };
        all.into_iter().map(|value| (kind(&value), Some(value))).collect()
    }

    fn body(&self, name: &Hostname, kind: RecordType, content: Option<String>) -> Result<Remote, Problem> {
        let spec = &self.spec;
        if spec.proxied && !kind.is_proxiable() {
            return Err(invalid(format!(
                "proxied is for A, AAAA and CNAME; remove it from this record of type {kind}"
            )));
        }
        let mut body = Remote {
            kind,
            name: name.as_str().into(),
            content: None,
            data: None,
            ttl: checked_ttl(spec.ttl)?,
            proxied: spec.proxied,
            priority: spec.priority.or_else(|| spec.data.as_ref().and_then(|data| data.priority)),
            comment: spec.comment.clone().unwrap_or_default().into(),
            tags: spec.tags.iter().map(|tag| tag.as_str().into()).collect(),
        };
        if kind.has_data() {
            body.data = Some(Box::new(self.data(name, kind, content.as_deref())?));
        } else {
            let content = content.unwrap_or_default();
            let refuse = |want| invalid(format!("content {content:?} of a record of type {kind} must be {want}"));
            body.content = Some(value::checked(kind, &content).map_err(refuse)?.into());
        }
        if kind.has_priority() && body.priority.is_none() {
            return Err(invalid(format!("priority is missing; a record of type {kind} needs one, as 10")));
        }
        body.normalise();
        Ok(body)
    }

    fn data(&self, name: &Hostname, kind: RecordType, content: Option<&str>) -> Result<Data, Problem> {
        let priority = self.spec.priority;
        match (&self.spec.data, content) {
            (Some(data), _) => {
                check_service(name, kind, data)?;
                if kind == RecordType::Srv && data.priority.or(priority).is_none() {
                    return Err(invalid("priority is missing; a record of type SRV needs one, as 10"));
                }
                Data::read(kind, &SpecParts { kind, data, priority }).ok_or_else(|| invalid(rules::wanted_parts(kind)))
            }
            (None, Some(text)) => Data::read_text(kind, text, priority).ok_or_else(|| {
                invalid(format!("content {text:?} is not understood as {kind}; {}", rules::wanted_parts(kind)))
            }),
            (None, None) => Err(invalid(rules::wanted_parts(kind))),
        }
    }

    /// The full name: as Cloudflare has it, else as it is asked for.
    fn fqdn(&self, view: &StatusView<'_, Remote>) -> Option<String> {
        let there = view.present.first().map(|entry| entry.item.name.to_string());
        there.or_else(|| match view.resolved {
            Some(resolved) => self.hostname(resolved).ok().map(String::from),
            None if self.former().record_id.is_some() => None,
            None => self.written().ok()?.full().map(ToString::to_string),
        })
    }

    fn source_version(
        &self,
        view: &StatusView<'_, Remote>,
        before: &DnsRecordStatus,
        unchanged: bool,
    ) -> Option<String> {
        match view.resolved.and_then(|resolved| resolved.source.as_ref()) {
            Some(AddressSource::Found { version, .. }) if !unchanged || before.source_resource_version.is_none() => {
                Some(version.clone())
            }
            _ => before.source_resource_version.clone(),
        }
    }

    fn state(&self, view: &StatusView<'_, Remote>) -> &'static str {
        match (view.problem, view.resolved) {
            (Some(_), _) => "Error",
            (None, Some(resolved)) if self.is_orphaned(resolved) => "Orphaned",
            (None, _) => "Active",
        }
    }

    /// Whether the record outlived its source, and stays.
    pub fn is_orphaned(&self, resolved: &Resolved) -> bool {
        self.lost_source(resolved) && self.spec.source_deletion_policy == SourceDeletionPolicy::Orphan
    }

    fn lost_source(&self, resolved: &Resolved) -> bool {
        self.spec.source_ref.is_some() && resolved.source == Some(AddressSource::Gone) && self.was_resolved()
    }
}

fn checked_ttl(ttl: u32) -> Result<u32, Problem> {
    match ttl {
        AUTOMATIC_TTL | 30..=86_400 => Ok(ttl),
        _ => Err(invalid(format!("ttl {ttl} is not possible; write 1 for automatic, or 60 to 86400 seconds"))),
    }
}

/// Where `data` names a service, the record's name has to begin with it: the API takes no other place for it.
fn check_service(name: &Hostname, kind: RecordType, data: &DnsRecordData) -> Result<(), Problem> {
    let (Some(service), Some(proto), RecordType::Srv) = (&data.service, &data.proto, kind) else { return Ok(()) };
    let label = |text: &str| format!("_{}", text.trim_start_matches('_').to_ascii_lowercase());
    let wanted = [label(service), label(proto)];
    if name.labels().take(2).eq(wanted.iter().map(String::as_str)) {
        return Ok(());
    }
    let [service, proto] = wanted;
    Err(invalid(format!("name of an SRV record begins with service and protocol; write {service}.{proto}.{name}")))
}

impl Kind for DnsRecord {
    type Body = Remote;

    const SHEET: Sheet = Sheet {
        shown: shown::RECORD,
        older_finalizers: &["cloudflare.com/finalizer"],
        error_reason: reasons::RECONCILE_ERROR,
        ..Sheet::owned("DNSRecord", "DNS record", finalizer!("dnsrecord"))
    };
    const REMOTE: &'static TypedCollection<Self::Body> = &collections::DNS_RECORDS;

    fn check(&self) -> Result<(), Problem> {
        self.written().map(|_| ())
    }

    fn cloudflare(&self) -> Option<&CloudflareDetails> {
        Some(&self.spec.cloudflare)
    }

    /// A name that is none is for [`check`](Self::check) to say: who the record belongs to is known all the same.
    fn refers(&self) -> Vec<SpecReference> {
        portolan_core::waypoint!();
        let details = &self.spec.cloudflare;
        let (id, domain) = (given(details.zone_id.as_ref()), given(details.domain.as_ref()));
        let name = self.written().map_or_else(|_| self.spec.name.clone(), |name| name.text().to_owned());
        let zone = SpecReference::Zone(ZoneHint { id, domain, name });
        [Some(zone), self.spec.source_ref.clone().map(SpecReference::Source)].into_iter().flatten().collect()
    }

    fn desired(&self, resolved: &Resolved) -> Result<Vec<Remote>, Problem> {
        let name = self.hostname(resolved)?;
        let values = self.values(resolved)?;
        values.into_iter().map(|(kind, content)| self.body(&name, kind, content)).collect()
    }

    fn published(&self, resolved: &Resolved) -> Option<Hostname> {
        self.hostname(resolved).ok()
    }

    fn mark_limit(resolved: &Resolved) -> Option<usize> {
        resolved.zone.as_ref().map_or(Remote::MARK_LIMIT, |zone| Some(zone.comment_limit))
    }

    fn claims_in_the_way(there: &Remote, scope: &str) -> Vec<String> {
        if !there.kind.is_proxiable() {
            return Vec::new();
        }
        let name = &there.name;
        let of = |kind: &str| [format!("{kind} {name}"), format!("{kind} {name} in zone {scope}")];
        [there.kind.as_str(), "address"].into_iter().flat_map(of).collect()
    }

    fn claim(&self) -> Option<String> {
        let written = self.written().ok()?;
        let name = written.text();
        let zone = given(self.spec.cloudflare.zone_id.as_ref()).map(|id| format!(" in zone {id}")).unwrap_or_default();
        let kind = self.spec.kind.map_or("address", RecordType::as_str);
        let one_each = self.spec.kind.is_none_or(RecordType::is_proxiable) || self.spec.source_ref.is_some();
        if one_each {
            return Some(format!("{kind} {name}{zone}"));
        }
        // Of the name only what is written is known; the value does not depend on the rest of it.
        let full = written.full().cloned().or_else(|| written.within(&ZoneName::parse("zone.invalid").ok()?).ok())?;
        let body = self.body(&full, self.spec.kind?, self.content()).ok()?;
        Some(format!("{kind} {name} {}{zone}", body.value()))
    }

    fn recorded(&self) -> Recorded {
        let status = self.former();
        let mut ids = status.managed_record_ids;
        if let Some(first) = given(status.record_id.as_ref()).filter(|first| !ids.contains(first)) {
            ids.insert(0, first);
        }
        Recorded {
            scope: given(status.zone_id.as_ref()),
            ids,
            credentials: status.used_credentials,
            ..Recorded::default()
        }
    }

    fn without_ids(&self) -> Value {
        serde_json::json!({ "recordId": null, "managedRecordIds": [] })
    }

    fn status(&self, view: &StatusView<'_, Remote>) -> Value {
        let before = self.former();
        let kept = view.problem.is_some() && view.present.is_empty();
        let zone = view.resolved.and_then(|resolved| resolved.zone.as_ref()).map(|zone| zone.id.to_string());
        let mut now = if kept {
            DnsRecordStatus { zone_id: before.zone_id.clone().or(zone), ..before.clone() }
        } else {
            let ids: Vec<String> = view.present.iter().map(|entry| entry.id.clone()).collect();
            DnsRecordStatus {
                record_id: ids.first().cloned(),
                managed_record_ids: ids,
                zone_id: zone.or_else(|| before.zone_id.clone()),
                ..self.resolved_status(view, &before)
            }
        };
        now.fqdn = self.fqdn(view).or(before.fqdn);
        now.used_credentials = view.used_credentials(before.used_credentials.as_ref());
        now.state = Some(self.state(view).to_owned());
        (now.conditions, now.observed_generation) = (Vec::new(), None);
        serde_json::to_value(now).expect("statuses are plain JSON")
    }

    fn ends_itself(&self, resolved: &Resolved) -> bool {
        self.lost_source(resolved) && self.spec.source_deletion_policy == SourceDeletionPolicy::Delete
    }

    fn sources() -> Vec<ApiResource> {
        let named = |kind| NamedObject { kind, namespace: None, name: "" }.resource();
        ["Service", "Ingress", "HTTPRoute", "Gateway", "Node"].map(named).to_vec()
    }

    fn well(&self, resolved: &Resolved) -> (&'static str, String) {
        if self.is_orphaned(resolved) {
            return (reasons::SOURCE_DELETED, "the source is gone; the record stays as it last was".to_owned());
        }
        let name = self.hostname(resolved).map_or_else(|_| self.spec.name.clone(), String::from);
        (Self::READY_REASON, format!("{name} is published as asked for"))
    }
}

impl DnsRecord {
    /// What a source was resolved to. A new version of a source with the same addresses is not worth a write.
    fn resolved_status(&self, view: &StatusView<'_, Remote>, before: &DnsRecordStatus) -> DnsRecordStatus {
        if self.spec.source_ref.is_none() {
            return DnsRecordStatus::default();
        }
        let lost = view.resolved.is_some_and(|resolved| self.lost_source(resolved));
        if lost || view.present.is_empty() {
            return before.clone();
        }
        let mut values: Vec<String> = view.present.iter().map(|entry: &Entry<Remote>| entry.item.value()).collect();
        let mut former = before.resolved_addresses.clone();
        let unchanged = {
            let (mut new, mut old) = (values.clone(), former.clone());
            new.sort();
            old.sort();
            new == old
        };
        if unchanged {
            values = std::mem::take(&mut former);
        }
        DnsRecordStatus {
            resolved_type: view.present.first().map(|entry| entry.item.kind.to_string()),
            resolved_content: values.first().cloned(),
            source_resource_version: self.source_version(view, before, unchanged),
            resolved_addresses: values,
            ..DnsRecordStatus::default()
        }
    }
}

#[cfg(test)]
mod tests;
