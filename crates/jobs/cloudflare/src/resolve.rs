//! Looks up what an object's desired state depends on: account, zone, tunnel, virtual network, source.
//!
//! Everything that Kubernetes holds comes from caches; Cloudflare is asked only for what names it alone knows.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use portolan_cloudflare_api::{
    ApiError, Client, Entry, ErrorClass, Identity, Lane, Scope as RemoteScope, collections, objects,
};
use portolan_core::{AccountId, Class, Hostname, ObjectKey, Problem, ZoneId, ZoneName, reasons};
use serde_json::Value;

use crate::allow;
use crate::blocks::NamedObject;
use crate::credentials::{self, CredentialAccess};
use crate::job::JobContext;
use crate::kind::{CredentialsFrom, Kind, Needs, Recorded, Resolved, ResolvedZone};
use crate::kinds::{CloudflareCredentials, CloudflareDomain, resolve_zone};
use crate::reasons::NOT_ALLOWED;
use crate::reference::ZoneHint;
use crate::sources::AddressSource;
use crate::used::UsedCredentials;

/// Longest comment of a record where the zone's plan is not known: that of free plans.
const FREE_COMMENT: usize = 100;

/// The object that something is looked up for.
#[derive(Clone, Debug)]
pub(crate) struct AskingObject {
    /// Its name and namespace.
    pub(crate) key: ObjectKey,
    /// The object itself, where it is a credential.
    credentials: Option<Arc<CloudflareCredentials>>,
}

impl AskingObject {
    pub(crate) fn of<K: Kind>(object: &K) -> Self {
        let credentials = (object as &dyn Any).downcast_ref::<CloudflareCredentials>().cloned().map(Arc::new);
        Self { key: crate::reconciler::key_of(object), credentials }
    }
}

/// By what right an object's remote part is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// With the credential that made it.
    Recorded,
    /// With the spec's, since the one that made it is gone.
    Substitute,
    /// With the spec's, since nothing was recorded.
    Assumed,
}

/// The client that an object's remote part is removed with.
pub(crate) struct RemovalAccess {
    pub(crate) access: CredentialAccess,
    pub(crate) right: Right,
}

/// Zones whose names were read, for each credential that read them. A zone's name never changes.
#[derive(Default)]
pub(crate) struct Zones {
    read: Mutex<HashMap<(Identity, ZoneId), ResolvedZone>>,
}

impl Zones {
    fn get(&self, client: &Client, id: &ZoneId) -> Option<ResolvedZone> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).get(&(client.identity().clone(), id.clone())).cloned()
    }

    fn put(&self, client: &Client, zone: &ResolvedZone) {
        let key = (client.identity().clone(), zone.id.clone());
        self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(key, zone.clone());
    }
}

/// The account or zone that a remote object belongs to.
#[derive(Clone, Debug)]
pub(crate) struct ScopeRef {
    /// Its id; empty at the API's root.
    pub(crate) id: String,
    /// Its name for users.
    pub(crate) label: String,
}

impl ScopeRef {
    /// Where an object's remote part belongs.
    pub(crate) fn of<K: Kind>(resolved: &Resolved) -> Result<Self, Problem> {
        match K::REMOTE.scope {
            RemoteScope::Root => Ok(Self { id: String::new(), label: "the account".to_owned() }),
            RemoteScope::Zone => {
                let zone = resolved
                    .zone
                    .as_ref()
                    .ok_or_else(|| Problem::invalid(reasons::INVALID_CONFIG, "no zone is named"))?;
                let label = zone.name.as_ref().map_or_else(|| zone.id.to_string(), ToString::to_string);
                Ok(Self { id: zone.id.to_string(), label })
            }
            RemoteScope::Account => match &resolved.account {
                Some(account) => Ok(Self { id: account.to_string(), label: format!("account {account}") }),
                None => Err(Problem::invalid(
                    reasons::INVALID_CONFIG,
                    "the account is not known: say spec.cloudflare.accountId (or accountName), or use a CloudflareCredentials",
                )),
            },
        }
    }

    /// The place that a status recorded.
    pub(crate) fn recorded<K: Kind>(id: &str) -> Self {
        let noun = match K::REMOTE.scope {
            RemoteScope::Zone => "zone",
            RemoteScope::Account | RemoteScope::Root => "account",
        };
        Self { id: id.to_owned(), label: format!("{noun} {id}") }
    }
}

impl JobContext {
    /// The client that an object asks Cloudflare with, if it may.
    pub(crate) async fn access(&self, needs: &Needs, subject: &AskingObject) -> Result<CredentialAccess, Problem> {
        portolan_core::waypoint!();
        let access = self.open(needs, subject).await?;
        if let Some(credentials) = self.used(&access.used) {
            allow::credentials_serve(&credentials, subject.key.namespace.as_deref())?;
        }
        Ok(access)
    }

    /// The `CloudflareCredentials` that were used, where they are some.
    fn used(&self, used: &UsedCredentials) -> Option<Arc<CloudflareCredentials>> {
        self.credentials.get(&ObjectKey { namespace: None, name: used.name.clone()? })
    }

    /// Whether the credentials and the domain let an object publish what it asks for.
    pub(crate) fn allows(
        &self,
        used: &UsedCredentials,
        subject: &AskingObject,
        resolved: &Resolved,
        published: Option<&Hostname>,
    ) -> Result<(), Problem> {
        let (Some(name), Some(zone)) = (published, &resolved.zone) else { return Ok(()) };
        if let Some(credentials) = self.used(used) {
            allow::credentials_publish(&credentials, name)?;
        }
        let mut domains = self.domains_of_zone(zone.id.as_str()).into_iter();
        domains.try_for_each(|domain| allow::domain_takes(&domain, subject.key.namespace.as_deref(), name))
    }

    /// The client of the credentials that an object names, whether it may use them or not.
    async fn open(&self, needs: &Needs, subject: &AskingObject) -> Result<CredentialAccess, Problem> {
        match &needs.credentials {
            CredentialsFrom::Inline(inline) => {
                let namespace = subject.key.namespace.as_deref().unwrap_or(&self.operator_namespace);
                credentials::open_inline(inline, namespace, &self.secrets, &self.clients).await
            }
            from => {
                let from = self.named_by_domain(needs).map_or_else(|| from.clone(), CredentialsFrom::Named);
                let Some(chosen) =
                    credentials::choose(&from, &self.credentials_meant(&from))?.or_else(|| subject.credentials.clone())
                else {
                    return Err(Problem::invalid(reasons::INVALID_CONFIG, "no credentials are named"));
                };
                credentials::open(&chosen, &self.secrets, &self.clients, &self.operator_namespace).await
            }
        }
    }

    /// An object that names no credentials uses those of the domain that its zone is, or that its name lies in.
    fn named_by_domain(&self, needs: &Needs) -> Option<String> {
        let zone = needs.zone().filter(|_| needs.credentials == CredentialsFrom::Default)?;
        let name = zone.domain.as_deref().unwrap_or(&zone.name);
        let credentials =
            |found: &CloudflareDomain| found.spec.credentials_ref.as_ref().map(|reference| reference.name.clone());
        if let Some(found) = zone.id.as_deref().and_then(|id| self.domains_of_zone(id).into_iter().next()) {
            return credentials(&found);
        }
        let name = Hostname::parse(name).ok()?;
        credentials(resolve_zone(self.domains_around(&name).iter().map(AsRef::as_ref), &name)?)
    }

    /// The client that an object's remote part goes with: the credential that made it, whatever the spec says now.
    /// The spec's takes its place only where that one is gone, and may then remove nothing but what carries our mark.
    pub(crate) async fn removal_access(
        &self,
        needs: &Needs,
        subject: &AskingObject,
        recorded: &Recorded,
    ) -> Result<RemovalAccess, Problem> {
        let Some(from) = recorded.credentials.as_ref().and_then(UsedCredentials::from) else {
            return Ok(RemovalAccess { access: self.open(needs, subject).await?, right: Right::Assumed });
        };
        match self.open(&Needs::only(from), subject).await {
            Ok(access) => Ok(RemovalAccess { access, right: Right::Recorded }),
            Err(gone) if gone.class == Class::Waiting => match self.access(needs, subject).await {
                Ok(access) => Ok(RemovalAccess { access, right: Right::Substitute }),
                Err(_) => Err(gone),
            },
            Err(problem) => Err(problem),
        }
    }

    /// Whether Cloudflare is known to refuse the credential, so that asking is of no use.
    pub(crate) fn is_refused(&self, needs: &Needs) -> bool {
        let meant = self.credentials_meant(&needs.credentials);
        let chosen = credentials::choose(&needs.credentials, &meant).ok().flatten();
        chosen.is_some_and(|one| one.status.as_ref().is_some_and(|status| status.validated == Some(false)))
    }

    /// Looks up everything that an object needs.
    pub(crate) async fn resolve(
        &self,
        needs: &Needs,
        subject: &AskingObject,
        access: &CredentialAccess,
    ) -> Result<Resolved, Problem> {
        let account = self.account(needs, access).await?;
        let zone = match needs.zone() {
            Some(hint) => Some(self.zone(hint, access).await?),
            None => None,
        };
        let targets = self.targets(needs, access, account.as_ref()).await?;
        let source = match needs.source() {
            Some(reference) => Some(self.source(reference, subject).await?),
            None => None,
        };
        let in_account = account.as_ref().or_else(|| zone.as_ref()?.account.as_ref()).map(ToString::to_string);
        let credentials = Some(UsedCredentials { account_id: in_account, ..access.used.clone() });
        Ok(Resolved { credentials, account, zone, targets, source })
    }

    /// Where an object belongs, as far as that is known without asking Cloudflare.
    pub(crate) fn place_without_asking<K: Kind>(
        &self,
        needs: &Needs,
        access: &CredentialAccess,
    ) -> Result<ScopeRef, Problem> {
        let account = match &needs.account_id {
            Some(id) => Some(parse_account(id)?),
            None => access.account.clone(),
        };
        let zone = match needs.zone() {
            Some(ZoneHint { id: Some(id), .. }) => Some(unnamed_zone(id)?),
            Some(hint) => Some(self.zone_by_name(hint)?),
            None => None,
        };
        ScopeRef::of::<K>(&Resolved { account, zone, ..Resolved::default() })
    }

    async fn account(&self, needs: &Needs, access: &CredentialAccess) -> Result<Option<AccountId>, Problem> {
        match (&needs.account_id, &access.account, &needs.account_name) {
            (Some(id), _, _) => parse_account(id).map(Some),
            (None, Some(account), _) => Ok(Some(account.clone())),
            (None, None, Some(name)) => self.account_by_name(name, access).await.map(Some),
            (None, None, None) => Ok(None),
        }
    }

    async fn account_by_name(&self, name: &str, access: &CredentialAccess) -> Result<AccountId, Problem> {
        let doing = format!("looking for the account named {name}");
        let accounts = access
            .client
            .list_all(Lane::Change, &collections::ACCOUNTS, "")
            .await
            .map_err(|error| error.problem(&doing))?;
        let ids: Vec<&str> = accounts
            .iter()
            .filter(|account| account["name"] == name)
            .filter_map(|account| account["id"].as_str())
            .collect();
        match ids.as_slice() {
            [id] => parse_account(id),
            [] => Err(Problem::waiting(
                reasons::DEPENDENCY_ERROR,
                format!(
                    "the credential sees no account named {name}; correct spec.cloudflare.accountName, or say accountId"
                ),
            )),
            several => Err(Problem::invalid(
                reasons::INVALID_CONFIG,
                format!("{} accounts are named {name}; say spec.cloudflare.accountId", several.len()),
            )),
        }
    }

    async fn zone(&self, hint: &ZoneHint, access: &CredentialAccess) -> Result<ResolvedZone, Problem> {
        match &hint.id {
            Some(id) => self.zone_by_id(unnamed_zone(id)?, access).await,
            None => self.zone_by_name(hint),
        }
    }

    /// A zone that is named by its id: what it is called, a domain knows, or Cloudflare, which is asked once.
    async fn zone_by_id(&self, zone: ResolvedZone, access: &CredentialAccess) -> Result<ResolvedZone, Problem> {
        let known = self.domains_of_zone(zone.id.as_str()).into_iter().next();
        if let Some(domain) = known
            && let Some(name) = domain.name_of_zone()
        {
            return Ok(ResolvedZone { name: Some(name), account: domain.account(), ..zone });
        }
        if let Some(known) = self.zones.get(&access.client, &zone.id) {
            return Ok(known);
        }
        let doing = format!("reading the name of zone {}", zone.id);
        let read = access.client.send(Lane::Change, &collections::ZONES.get("", zone.id.as_str())).await;
        let read = read.map_err(|error| unnamed(&error, &doing))?;
        let found = Entry::<objects::Zone>::read(read).and_then(|found| {
            let account = found.item.account.as_deref().and_then(|account| AccountId::parse(account).ok());
            Some((ZoneName::parse(&found.item.name).ok()?, account))
        });
        let (name, account) = found
            .ok_or_else(|| Problem::transient(reasons::API_ERROR, format!("{doing}: the answer is not understood")))?;
        let zone = ResolvedZone { name: Some(name), account, ..zone };
        self.zones.put(&access.client, &zone);
        Ok(zone)
    }

    fn zone_by_name(&self, hint: &ZoneHint) -> Result<ResolvedZone, Problem> {
        let name = Hostname::parse(hint.domain.as_deref().unwrap_or(&hint.name));
        let domains = name.map(|name| self.domains_around(&name)).unwrap_or_default();
        crate::kinds::zone_of(domains.iter().map(AsRef::as_ref), hint)
    }

    async fn source(
        &self,
        reference: &crate::blocks::SourceReference,
        subject: &AskingObject,
    ) -> Result<AddressSource, Problem> {
        let namespace = subject.key.namespace.as_deref();
        let named = reference.named(namespace).ok_or_else(|| {
            Problem::invalid(reasons::INVALID_CONFIG, "spec.sourceRef names nothing: name exactly one source")
        })?;
        self.check_grant(&named, namespace).await?;
        let mut read = Vec::new();
        let Some(first) = self.read(&named.resource(), named.namespace, named.name).await? else {
            return Ok(AddressSource::Gone);
        };
        for parent in crate::sources::parents(reference, &first, namespace) {
            read.extend(self.read(&parent.resource, parent.namespace.as_deref(), &parent.name).await?);
        }
        crate::sources::addresses(reference, &first, &read)
    }

    /// A source of another namespace is published only where a `ReferenceGrant` beside it says so.
    async fn check_grant(&self, named: &NamedObject<'_>, from: Option<&str>) -> Result<(), Problem> {
        let (Some(there), Some(from)) = (named.namespace, from) else { return Ok(()) };
        if there == from {
            return Ok(());
        }
        let kind = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1beta1", "ReferenceGrant");
        let resource = ApiResource::from_gvk_with_plural(&kind, "referencegrants");
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), there, &resource);
        let grants: Vec<Value> = match api.list(&kube::api::ListParams::default()).await {
            Ok(listed) => listed.items.into_iter().map(|grant| grant.data).collect(),
            // Without the definition there is no grant.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => {
                let message = format!("reading the ReferenceGrants of the source's namespace: {error}");
                return Err(Problem::transient(reasons::DEPENDENCY_ERROR, message));
            }
        };
        if crate::sources::granted(&grants, from, named) {
            return Ok(());
        }
        let message = format!(
            "{named} is in another namespace; create a ReferenceGrant there that lets DNSRecords of namespace {from} \
             refer to it, or name a source beside the record. Nothing was changed"
        );
        Err(Problem::denied(NOT_ALLOWED, message))
    }

    /// Reads any object; `None` where it, or its whole kind, does not exist.
    async fn read(
        &self,
        resource: &kube::core::ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, Problem> {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        let found = api.get_opt(name).await.map_err(|error| {
            Problem::transient(reasons::DEPENDENCY_ERROR, format!("reading {} {name}: {error}", resource.kind))
        })?;
        Ok(found.map(|mut object| {
            object.managed_fields_mut().clear();
            serde_json::to_value(object).expect("objects are plain JSON")
        }))
    }
}

/// A zone of which only the id is known.
fn unnamed_zone(id: &str) -> Result<ResolvedZone, Problem> {
    let id = ZoneId::parse(id)
        .map_err(|error| Problem::invalid(reasons::INVALID_CONFIG, format!("spec.cloudflare.zoneId: {error}")))?;
    Ok(ResolvedZone { id, name: None, account: None, comment_limit: FREE_COMMENT })
}

/// Why a zone's name could not be read, and what else tells it.
fn unnamed(error: &ApiError, doing: &str) -> Problem {
    let problem = error.problem(doing);
    match error.class {
        ErrorClass::Auth | ErrorClass::NotFound => {
            let way = "correct zoneId, let the token read the zone, or create a CloudflareDomain for it";
            Problem { message: format!("{}; {way}", problem.message), ..problem }
        }
        _ => problem,
    }
}

fn parse_account(id: &str) -> Result<AccountId, Problem> {
    AccountId::parse(id).map_err(|error| Problem::invalid(reasons::INVALID_CONFIG, format!("accountId: {error}")))
}
