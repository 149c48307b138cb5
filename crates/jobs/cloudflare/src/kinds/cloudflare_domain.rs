//! `CloudflareDomain` ↔ `zones/{id}`: which zone a name belongs to. All such objects together are the registry of zones.
//!
//! Zones are looked at, not made. Groups of settings are accepted and kept, and the status says that they are not
//! applied yet.

pub mod settings;

use kube::CustomResource;
use portolan_cloudflare_api::objects::{Zone, ZonePlan};
use portolan_cloudflare_api::{Entry, TypedCollection, collections};
use portolan_core::{AccountId, Condition, Hostname, Problem, ZoneId, ZoneName, allow, reasons, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blocks::{CredentialsReference, given};
use crate::kind::{CredentialsFrom, Kind, Needs, Recorded, Resolved, ResolvedZone, StatusView};
use crate::reasons::VERIFIED;
use crate::reference::ZoneHint;
use crate::sheet::Sheet;
use crate::shown;
use settings::{CacheSettings, PerformanceSettings, SecuritySettings, SslSettings};

/// A domain whose zone is at Cloudflare; records find their zone by it.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "CloudflareDomain")]
#[kube(status = "CloudflareDomainStatus", shortname = "cfdomain", shortname = "cfdom", category = "cloudflare")]
#[kube(printcolumn = r#"{"name":"Domain","type":"string","jsonPath":".spec.domain"}"#)]
#[kube(printcolumn = r#"{"name":"Zone ID","type":"string","jsonPath":".status.zoneId"}"#)]
#[kube(printcolumn = r#"{"name":"Default","type":"boolean","jsonPath":".spec.isDefault"}"#)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct CloudflareDomainSpec {
    /// Name of the zone, as `example.com`.
    #[schemars(length(min = 1, max = 253), transform = schema::rules(DOMAIN))]
    pub domain: String,
    /// The credentials that see the zone; the default ones where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<CredentialsReference>,
    /// Id of the zone; it is looked up by its name where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub zone_id: Option<String>,
    /// Whether names that lie in no other domain belong to this one; at most one may say so.
    #[serde(default)]
    pub is_default: bool,
    /// Namespaces whose objects may use this domain; `*` is all, and absent limits nothing. Objects of the cluster always may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(regex(pattern = allow::NAMESPACE_PATTERN)))]
    pub allowed_namespaces: Option<Vec<String>>,
    /// Names that records may have: `example.com` is that name alone, `*.example.com` every name below it. Absent limits
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(length(max = 255), regex(pattern = allow::HOSTNAME_PATTERN)))]
    pub allowed_domains: Option<Vec<String>>,
    /// Encryption between visitors, Cloudflare and the origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssl: Option<Box<SslSettings>>,
    /// What Cloudflare keeps of the origin's answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Box<CacheSettings>>,
    /// Protection of the origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Box<SecuritySettings>>,
    /// What makes pages faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<Box<PerformanceSettings>>,
}

const DOMAIN: &[schema::CelRule] = &[(
    "self.matches('^([^\\\\s.@/:*]+[.])+[^\\\\s.@/:*]{2,}[.]?$')",
    "domain is the name of a zone, as example.com, without scheme, path, wildcard or blanks",
)];

/// What became of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct CloudflareDomainStatus {
    /// What is known of the domain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = schema::conditions)]
    pub conditions: Vec<Condition>,
    /// The generation that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Pending`, `Verifying`, `Ready` or `Error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What the state means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Id of the zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// Name of the zone, as Cloudflare has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_name: Option<String>,
    /// Status of the zone at Cloudflare, as `active` or `pending`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone_status: Option<String>,
    /// The zone's plan, as `free`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Id of the zone's account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// Name servers that the domain has to be delegated to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<String>,
    /// When the zone was last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_verified_time: Option<String>,
    /// What became of the groups of settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_sync_status: Option<ConfigSyncStatus>,
}

/// What became of each group of settings: `Synced`, `Syncing`, `Error` or `Unknown`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigSyncStatus {
    /// Of `ssl`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl: Option<String>,
    /// Of `cache`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// Of `security`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<String>,
    /// Of `performance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub performance: Option<String>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// When settings were last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_sync_time: Option<String>,
}

impl CloudflareDomain {
    pub(crate) fn zone_name(&self) -> Result<ZoneName, Problem> {
        ZoneName::parse(&self.spec.domain)
            .map_err(|error| Problem::invalid(reasons::INVALID_CONFIG, format!("domain: {error}")))
    }

    /// Id of the domain's zone, once it is known.
    pub fn zone_id(&self) -> Option<&str> {
        self.status.as_ref()?.zone_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Name of that zone, as Cloudflare has it.
    pub fn name_of_zone(&self) -> Option<ZoneName> {
        ZoneName::parse(self.status.as_ref()?.zone_name.as_deref()?).ok()
    }

    /// The zone's account, once it is known.
    pub fn account(&self) -> Option<AccountId> {
        AccountId::parse(self.status.as_ref()?.account_id.as_deref()?).ok()
    }

    fn state(&self, view: &StatusView<'_, Zone>) -> (&'static str, String) {
        match (view.problem, view.present.first()) {
            (None, Some(zone)) => ("Ready", standing(&zone.item)),
            (None, None) => ("Ready", format!("the zone {} is there", self.spec.domain)),
            (Some(problem), _) if problem.reason == reasons::PENDING => ("Pending", problem.message.clone()),
            (Some(problem), _) => ("Error", problem.message.clone()),
        }
    }

    /// Settings are not applied by this release, which is said for every group that is there.
    fn settings_status(&self) -> Option<ConfigSyncStatus> {
        let unknown = |there: bool| there.then(|| "Unknown".to_owned());
        let spec = &self.spec;
        let status = ConfigSyncStatus {
            ssl: unknown(spec.ssl.is_some()),
            cache: unknown(spec.cache.is_some()),
            security: unknown(spec.security.is_some()),
            performance: unknown(spec.performance.is_some()),
            ..ConfigSyncStatus::default()
        };
        (status != ConfigSyncStatus::default()).then_some(status)
    }
}

/// What a user should know of a zone.
fn standing(zone: &Zone) -> String {
    let name = &zone.name;
    match zone.status.as_deref() {
        None | Some("active") => format!("the zone {name} is there"),
        Some(status) => {
            let servers = zone.name_servers.join(" and ");
            format!("the zone {name} is {status} at Cloudflare: its records count once it is delegated to {servers}")
        }
    }
}

impl Kind for CloudflareDomain {
    type Body = Zone;

    const SHEET: Sheet = Sheet {
        shown: shown::DOMAIN,
        ready_reason: VERIFIED,
        ..Sheet::observed("CloudflareDomain", "zone", "cloudflare.com/domain-finalizer")
    };
    const REMOTE: &'static TypedCollection<Self::Body> = &collections::ZONES;

    fn check(&self) -> Result<(), Problem> {
        self.zone_name().map(drop)
    }

    fn needs(&self) -> Needs {
        let named = |reference: &CredentialsReference| CredentialsFrom::Named(reference.name.clone());
        Needs::only(self.spec.credentials_ref.as_ref().map_or(CredentialsFrom::Default, named))
    }

    fn desired(&self, _: &Resolved) -> Result<Vec<Zone>, Problem> {
        Ok(vec![Zone::named(&self.zone_name()?)])
    }

    fn claim(&self) -> Option<String> {
        let credentials = self.spec.credentials_ref.as_ref().map(|reference| format!(" of {}", reference.name));
        Some(format!("zone {}{}", self.zone_name().ok()?, credentials.unwrap_or_default()))
    }

    fn is_default(&self) -> bool {
        self.spec.is_default
    }

    fn recorded(&self) -> Recorded {
        Recorded { ids: self.zone_id().map(str::to_owned).into_iter().collect(), ..Recorded::default() }
    }

    fn status(&self, view: &StatusView<'_, Zone>) -> Value {
        let before = self.status.clone().unwrap_or_default();
        let (state, message) = self.state(view);
        let found = match view.present.first() {
            Some(Entry { id, item: zone }) => CloudflareDomainStatus {
                zone_id: Some(id.clone()),
                zone_name: Some(zone.name.to_string()),
                zone_status: zone.status.as_deref().map(str::to_owned),
                plan: zone.plan.name().map(str::to_owned),
                account_id: zone.account.as_deref().map(str::to_owned),
                name_servers: zone.name_servers.iter().map(ToString::to_string).collect(),
                ..CloudflareDomainStatus::default()
            },
            None => before.clone(),
        };
        let now = CloudflareDomainStatus {
            conditions: Vec::new(),
            observed_generation: None,
            state: Some(state.to_owned()),
            message: Some(message),
            last_verified_time: view.checked_at.map(str::to_owned).or(before.last_verified_time),
            config_sync_status: self.settings_status(),
            ..found
        };
        serde_json::to_value(now).expect("statuses are plain JSON")
    }

    fn lookup_id(&self) -> Option<String> {
        given(self.spec.zone_id.as_ref())
    }

    fn missing(&self) -> Problem {
        let message = format!(
            "the credentials see no zone {}; add the domain at Cloudflare, or use credentials of its account",
            self.spec.domain
        );
        Problem::waiting(reasons::PENDING, message)
    }

    fn well(&self, _: &Resolved) -> (&'static str, String) {
        (VERIFIED, format!("the zone {} is there", self.spec.domain))
    }

    fn observed(&self, found: &Entry<Zone>, resolved: &Resolved) -> Result<(), Problem> {
        let wanted = self.zone_name()?;
        if let (Some(account), Some(there)) = (&resolved.account, found.item.account.as_deref())
            && account.as_str() != there
        {
            let message = format!(
                "zone {wanted} is in account {there}, not in account {account}; use credentials of its account"
            );
            return Err(Problem::waiting(reasons::DEPENDENCY_ERROR, message));
        }
        if *found.item.name == *wanted.as_str() {
            return Ok(());
        }
        let message = format!("zone {} is {}, not {wanted}; correct domain or zoneId", found.id, found.item.name);
        Err(Problem::invalid(reasons::INVALID_CONFIG, message))
    }
}

/// The domain that a name belongs to: the longest one with a zone that it lies in, else the default one, if that has a
/// zone.
pub fn resolve_zone<'a>(
    domains: impl Iterator<Item = &'a CloudflareDomain>,
    name: &Hostname,
) -> Option<&'a CloudflareDomain> {
    portolan_core::waypoint!();
    let with_zone = domains.filter(|domain| domain.zone_id().is_some()).filter_map(|domain| {
        let zone = domain.zone_name().ok()?;
        Some((domain, zone))
    });
    let mut fallback = None;
    let mut best: Option<(&CloudflareDomain, ZoneName)> = None;
    for (domain, zone) in with_zone {
        if domain.spec.is_default {
            fallback = Some(domain);
        }
        let longer = best.as_ref().is_none_or(|(_, there)| zone.as_str().len() > there.as_str().len());
        if name.is_in(&zone) && longer {
            best = Some((domain, zone));
        }
    }
    best.map(|(domain, _)| domain).or(fallback)
}

/// The zone that an object means: by its domain, else by its name.
pub fn zone_of<'a>(
    domains: impl Iterator<Item = &'a CloudflareDomain> + Clone,
    hint: &ZoneHint,
) -> Result<ResolvedZone, Problem> {
    let name = hint.domain.as_deref().unwrap_or(&hint.name);
    let hostname = Hostname::parse(name)
        .map_err(|error| Problem::invalid(reasons::INVALID_CONFIG, format!("spec.cloudflare.domain: {error}")))?;
    let found = resolve_zone(domains.clone(), &hostname).ok_or_else(|| no_zone(domains, &hostname))?;
    let id = found.zone_id().unwrap_or_default();
    let id = ZoneId::parse(id).map_err(|error| Problem::waiting(reasons::DEPENDENCY_ERROR, error.to_string()))?;
    let plan =
        found.status.as_ref().and_then(|status| status.plan.as_deref()).map_or(ZonePlan::Unknown, ZonePlan::parse);
    let name = Some(found.zone_name()?);
    Ok(ResolvedZone { id, name, account: found.account(), comment_limit: plan.comment_limit() })
}

fn no_zone<'a>(mut domains: impl Iterator<Item = &'a CloudflareDomain>, name: &Hostname) -> Problem {
    let lies_in = |domain: &&CloudflareDomain| domain.zone_name().is_ok_and(|zone| name.is_in(&zone));
    let message = match domains.find(lies_in) {
        Some(domain) => format!(
            "CloudflareDomain {} has no zone id yet; its own conditions say why",
            domain.metadata.name.as_deref().unwrap_or_default()
        ),
        None => format!("no CloudflareDomain covers {name}; create one for its zone, or say spec.cloudflare.zoneId"),
    };
    Problem::waiting(reasons::DEPENDENCY_ERROR, message)
}

#[cfg(test)]
mod tests;
