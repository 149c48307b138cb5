//! `CloudflareTask`: one piece of work for the Cloudflare side, and what became of it.
//!
//! Tasks are the durable queue between the side that knows routes and the side that may write to Cloudflare. No secret
//! ever enters one.

mod convert;
mod ids;
mod older;
mod operations;
mod status;

use std::collections::BTreeSet;

use kube::{CustomResource, ResourceExt};
use portolan_core::{ObjectKey, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reference::{RouteRef, SecretRef, TenantRef};

pub(crate) use ids::comma_separated;
pub use ids::{DeleteIds, ExistingIds, Ids, TaskResult};
pub use operations::{
    CnameOperation, DnsRecordOperation, Operations, RedirectOperation, TokenOperation, TunnelOperation,
};
pub use status::{CloudflareTaskStatus, Phase, RATE_LIMIT_EXCEEDED, TaskNotice};

/// The annotation of tasks that names the templates they were made from.
pub const TEMPLATES: &str = "templates";
/// What a queued task says of itself.
pub const QUEUED: &str = "Queued by kube_worker";

/// One piece of work for the Cloudflare side.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "cfzt.cloudflare.com", version = "v1alpha1", kind = "CloudflareTask", namespaced)]
#[kube(plural = "cloudflaretasks", singular = "cloudflaretask", shortname = "cfztask", shortname = "cftask")]
#[kube(status = "CloudflareTaskStatus", category = "cloudflare")]
#[kube(doc = "One piece of work for the Cloudflare side, and what became of it.")]
#[kube(printcolumn = r#"{"name":"HTTPRoute","type":"string","jsonPath":".spec.httprouteRef.name"}"#)]
#[kube(printcolumn = r#"{"name":"Hostname","type":"string","jsonPath":".spec.hostname"}"#)]
#[kube(printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#)]
#[kube(printcolumn = r#"{"name":"Worker","type":"string","jsonPath":".status.workerPod","priority":1}"#)]
#[kube(printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = schema::plain)]
pub struct CloudflareTaskSpec {
    /// Whether the name is made to stand as asked, or taken down; `reconcile` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<TaskAction>,
    /// The route that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub httproute_ref: Option<RouteRef>,
    /// The tenant that it is published with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_ref: Option<TenantRef>,
    /// The Secret with the API token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_secret_ref: Option<SecretRef>,
    /// The name that is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub hostname: Option<String>,
    /// The Cloudflare account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub account_id: Option<String>,
    /// The tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub tunnel_id: Option<String>,
    /// The zone; empty where none was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub zone_id: Option<String>,
    /// What shall stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Operations>,
    /// What is known to stand for the route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing_ids: Option<ExistingIds>,
    /// What is taken down, where the action is `delete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_ids: Option<DeleteIds>,
    /// Whether what exists under the name already may be taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt: Option<bool>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskAction {
    /// The name is made to stand as asked.
    #[default]
    Reconcile,
    /// The name is taken down.
    Delete,
}

impl CloudflareTaskSpec {
    /// What is to be done.
    pub fn action(&self) -> TaskAction {
        self.action.unwrap_or_default()
    }
}

impl CloudflareTask {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.namespace().unwrap_or_default(), self.name_any())
    }

    /// The route that it is about.
    pub fn route(&self) -> Option<ObjectKey> {
        self.spec.httproute_ref.as_ref().map(RouteRef::key).or_else(|| self.labelled_route())
    }

    /// Where it stands; one that nobody has looked at is pending.
    pub fn phase(&self) -> Phase {
        self.status.as_ref().and_then(|status| status.phase).unwrap_or_default()
    }

    /// The hash of the inputs that its present spec was made from.
    pub fn hash(&self) -> Option<&str> {
        self.annotations().get(&crate::annotations::name("annotation-hash")).map(String::as_str)
    }

    /// The templates that its present spec was made from; none where an earlier version did not note them.
    pub fn templates(&self) -> Option<BTreeSet<ObjectKey>> {
        self.annotations().get(&crate::annotations::name(TEMPLATES)).map(|text| crate::names::keys(text))
    }

    /// Whether Cloudflare refused as invalid just what it asks for: it rests until it asks for something else.
    pub fn is_refused(&self) -> bool {
        let refused = self.status.as_ref().and_then(|status| status.refused_hash.as_deref());
        refused.is_some() && refused == self.hash()
    }

    /// Whether its status is about its present spec.
    pub fn is_current(&self) -> bool {
        let observed = self.status.as_ref().and_then(|status| status.observed_generation);
        observed == self.metadata.generation && observed.is_some()
    }
}
