//! What a kind says of itself: one trait for every kind of the job. What is done for it is in `reconciler`, for all kinds alike.
//!
//! Cluster-scoped and namespaced kinds, natural keys of several parts, one object or several at Cloudflare for one
//! here, kinds that are only read (accounts, zones) and kinds that are only changed, never made or deleted
//! (settings of an account): all are values of this trait.

use portolan_cloudflare_api::{Entry, Item, TypedCollection};
use portolan_core::ownership::OwnRecord;
use portolan_core::{AccountId, Hostname, Problem, ZoneId, ZoneName};
use portolan_engine::Object;
use serde_json::{Map, Value};

use crate::blocks::{CloudflareDetails, SourceReference};
use crate::reference::{RemoteTargets, SpecReference, ZoneHint};
use crate::sheet::{IntentStatus, Sheet};
use crate::sources::AddressSource;
use crate::used::UsedCredentials;

/// What a kind may do to what stands at Cloudflare for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Management {
    /// Created, changed and deleted with the object.
    Owned,
    /// Changed, where there always is one: neither made nor deleted.
    Singleton,
    /// Only looked at.
    Observed,
}

/// Where the credential of an object comes from, in the order of the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialsFrom {
    /// A `CloudflareCredentials` by name.
    Named(String),
    /// A Secret beside the object (or in the operator's namespace, for objects of the cluster).
    Inline(InlineSecret),
    /// The `CloudflareCredentials` that says `isDefault: true`.
    Default,
    /// The object is itself a `CloudflareCredentials`.
    Itself,
}

/// The older form: a Secret named in the object, with the names of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineSecret {
    /// The Secret's name.
    pub name: String,
    /// Key of the API token.
    pub token_key: String,
    /// Key of the global API key.
    pub api_key_key: String,
    /// E-mail of the global API key, where the object says it.
    pub email: Option<String>,
}

/// What must be looked up before an object's desired state can be said.
#[derive(Clone, Debug)]
pub struct Needs {
    /// Who asks Cloudflare.
    pub credentials: CredentialsFrom,
    /// Account id that the object itself names.
    pub account_id: Option<String>,
    /// Account name that the object itself names, where it names no id.
    pub account_name: Option<String>,
    /// What the object refers to.
    pub refers: Vec<SpecReference>,
}

impl Needs {
    /// Nothing but a credential.
    pub fn only(credentials: CredentialsFrom) -> Self {
        Self { credentials, account_id: None, account_name: None, refers: Vec::new() }
    }

    /// The zone, for what lives in one.
    pub(crate) fn zone(&self) -> Option<&ZoneHint> {
        self.refers.iter().find_map(|one| match one {
            SpecReference::Zone(hint) => Some(hint),
            SpecReference::Source(_) | SpecReference::Remote(_) => None,
        })
    }

    /// The object whose addresses are published, for what publishes some.
    pub(crate) fn source(&self) -> Option<&SourceReference> {
        self.refers.iter().find_map(|one| match one {
            SpecReference::Source(source) => Some(source),
            SpecReference::Zone(_) | SpecReference::Remote(_) => None,
        })
    }
}

/// A zone as far as its contents depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedZone {
    /// Its id.
    pub id: ZoneId,
    /// Its name; not known while nothing was asked of Cloudflare.
    pub name: Option<ZoneName>,
    /// Id of its account, where it is known.
    pub account: Option<AccountId>,
    /// Longest comment a record may have: 100 on free plans, 500 on others.
    pub comment_limit: usize,
}

/// What was looked up for an object.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The credential that Cloudflare is asked with.
    pub credentials: Option<UsedCredentials>,
    /// The account, where one is needed.
    pub account: Option<AccountId>,
    /// The zone, where one is needed.
    pub zone: Option<ResolvedZone>,
    /// What else at Cloudflare is referred to.
    pub targets: RemoteTargets,
    /// The addresses of the source, where one is named.
    pub source: Option<AddressSource>,
}

/// What an object's status remembers of what it made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Account or zone that the ids belong to; empty where the status does not say.
    pub scope: Option<String>,
    /// The ids.
    pub ids: Vec<String>,
    /// The name at Cloudflare, for kinds whose name those show who refer to them.
    pub name: Option<String>,
    /// The credential that made them, where the status says it.
    pub credentials: Option<UsedCredentials>,
    /// What kinds without a mark remember beside.
    pub intent: IntentStatus,
}

impl Recorded {
    /// Whether nothing at Cloudflare is known to be the object's, or about to be.
    pub(crate) fn is_nothing(&self) -> bool {
        self.ids.is_empty() && self.intent.creating.is_none()
    }

    /// What is recorded, as matching asks for it.
    pub(crate) fn own(&self) -> OwnRecord<'_> {
        let IntentStatus { creating, adopted_id, unseen } = &self.intent;
        OwnRecord {
            ids: &self.ids,
            adopted: adopted_id.as_deref(),
            creating: creating.as_ref(),
            unseen: unseen.as_deref(),
        }
    }
}

/// What is known after a pass, for the status.
#[derive(Debug)]
pub struct StatusView<'a, B> {
    /// What was looked up, if that went well.
    pub resolved: Option<&'a Resolved>,
    /// What stands at Cloudflare for the object now, as far as known.
    pub present: &'a [Entry<B>],
    /// What went wrong, if something did.
    pub problem: Option<&'a Problem>,
    /// When Cloudflare was asked, RFC 3339.
    pub checked_at: Option<&'a str>,
}

impl<B> StatusView<'_, B> {
    /// The credential that was used now, else the one before.
    pub fn used_credentials(&self, before: Option<&UsedCredentials>) -> Option<UsedCredentials> {
        self.resolved.and_then(|resolved| resolved.credentials.as_ref()).or(before).cloned()
    }
}

/// A kind of the job.
pub trait Kind: Object + kube::CustomResourceExt {
    /// What is written and compared of the remote object.
    type Body: Item;

    /// What is the same for all its objects.
    const SHEET: Sheet;
    /// Where its remote objects are.
    const REMOTE: &'static TypedCollection<Self::Body>;

    /// From the sheet: the kind's name.
    const KIND: &'static str = Self::SHEET.kind;
    /// From the sheet: how users call the remote object.
    const NOUN: &'static str = Self::SHEET.noun;
    /// From the sheet: the finalizer.
    const FINALIZER: &'static str = Self::SHEET.finalizer;
    /// From the sheet: what may be done to remote objects.
    const MANAGEMENT: Management = Self::SHEET.management;
    /// From the sheet: reason of `Ready=True`.
    const READY_REASON: &'static str = Self::SHEET.ready_reason;

    /// Who asks Cloudflare, for kinds whose spec says so in the usual block.
    fn cloudflare(&self) -> Option<&CloudflareDetails> {
        None
    }

    /// The name of the remote object, where no other object of the account may want the same.
    fn remote_name(&self) -> Option<String> {
        None
    }

    /// What only the object itself can be wrong about.
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// What the object refers to: it is looked up before it is asked what the object wants, and when it changes, the object runs.
    fn refers(&self) -> Vec<SpecReference> {
        Vec::new()
    }

    /// What must be looked up first.
    fn needs(&self) -> Needs {
        let asked = self.cloudflare().map_or_else(|| Needs::only(CredentialsFrom::Default), CloudflareDetails::needs);
        Needs { refers: self.refers(), ..asked }
    }

    /// What should exist, without marks. Pure: all it needs from elsewhere is in `resolved`.
    /// For observed kinds: what to look for (its natural key is the search).
    fn desired(&self, resolved: &Resolved) -> Result<Vec<Self::Body>, Problem>;

    /// The name that is published, for kinds that publish one.
    fn published(&self, _resolved: &Resolved) -> Option<Hostname> {
        None
    }

    /// Longest text of the field that carries the mark, where it depends on what was looked up.
    fn mark_limit(_resolved: &Resolved) -> Option<usize> {
        Self::Body::MARK_LIMIT
    }

    /// Why Cloudflare will not delete a remote object, and what to do about it.
    fn undeletable(_there: &Self::Body) -> Option<Problem> {
        None
    }

    /// What objects claim that a remote object stands in the way of, as [`claim`](Self::claim) says it.
    fn claims_in_the_way(_there: &Self::Body, _scope: &str) -> Vec<String> {
        Vec::new()
    }

    /// What two objects may not both want, from the spec alone: the older one has it.
    fn claim(&self) -> Option<String> {
        let hint = self.cloudflare().map(CloudflareDetails::account_hint).unwrap_or_default();
        match Self::MANAGEMENT {
            Management::Singleton => Some(format!("the {}{hint}", Self::NOUN)),
            Management::Owned | Management::Observed => Some(format!("{} {}{hint}", Self::NOUN, self.remote_name()?)),
        }
    }

    /// Whether the object is the default of its kind, or says so: of what is only looked at, two that do are none.
    fn is_default(&self) -> bool {
        false
    }

    /// What the status remembers.
    fn recorded(&self) -> Recorded {
        Self::SHEET.recorded(&status_of(self))
    }

    /// Status fields that take back what [`recorded`](Self::recorded) gives: null or empty.
    fn without_ids(&self) -> Value {
        Self::SHEET.without_ids()
    }

    /// What the status shows of the remote object beyond its id.
    fn shown(&self, _view: &StatusView<'_, Self::Body>) -> Value {
        Value::Null
    }

    /// The kind's own status fields (conditions and `observedGeneration` come from the engine).
    fn status(&self, view: &StatusView<'_, Self::Body>) -> Value {
        Self::SHEET.status(status_of(self), view, self.shown(view))
    }

    /// Id by which an observed kind is asked for directly; `None` looks its natural key up in the listed collection.
    fn lookup_id(&self) -> Option<String> {
        None
    }

    /// What to say when what an observed kind looks for is not there.
    fn missing(&self) -> Problem {
        Problem::waiting(
            portolan_core::reasons::PENDING,
            format!("the {} does not exist at Cloudflare yet", Self::NOUN),
        )
    }

    /// Whether the object should delete itself, e.g. because what it was made from is gone.
    fn ends_itself(&self, _resolved: &Resolved) -> bool {
        false
    }

    /// Kinds of Kubernetes objects that records are made from: their changes make the records run.
    fn sources() -> Vec<kube::api::ApiResource> {
        Vec::new()
    }

    /// Reason and message of `Ready=True`.
    fn well(&self, _resolved: &Resolved) -> (&'static str, String) {
        (Self::READY_REASON, format!("the {} is as asked for", Self::NOUN))
    }

    /// Checks the remote object of an observed kind, e.g. that an account is the one that was meant.
    fn observed(&self, _found: &Entry<Self::Body>, _resolved: &Resolved) -> Result<(), Problem> {
        Ok(())
    }
}

/// An object's status as it stands.
fn status_of<K: Kind>(object: &K) -> Map<String, Value> {
    let mut object = serde_json::to_value(object).expect("objects are plain JSON");
    match object["status"].take() {
        Value::Object(status) => status,
        _ => Map::new(),
    }
}

/// What the file of a kind needs.
pub(crate) mod prelude {
    pub(crate) use kube::CustomResource;
    pub(crate) use portolan_cloudflare_api::{Entry, TypedCollection, collections};
    pub(crate) use portolan_core::{Problem, reasons, schema};
    pub(crate) use schemars::JsonSchema;
    pub(crate) use serde::{Deserialize, Serialize};
    pub(crate) use serde_json::{Value, json};

    pub(crate) use super::{Kind, Resolved, StatusView};
    pub(crate) use crate::reference::SpecReference;
    pub(crate) use crate::sheet::{AccountStatus, Sheet, finalizer, status};
    pub(crate) use crate::shown;
}
