//! The kinds of the job: one line each.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::operator_config::CloudflareZeroTrustOperatorConfig;
use crate::task::CloudflareTask;
use crate::template::CloudflareZeroTrustTemplate;
use crate::tenant::CloudflareZeroTrustTenant;

/// The API group of all kinds.
pub const GROUP: &str = "cfzt.cloudflare.com";

/// What the table says of a kind.
#[derive(Clone, Copy, Debug)]
pub struct KindRow {
    /// Its name, as in manifests.
    pub kind: &'static str,
    /// Its name in URLs.
    pub plural: &'static str,
    /// What it is for.
    pub doc: &'static str,
    definition: fn() -> CustomResourceDefinition,
}

impl KindRow {
    /// Its definition, to be given to an API server.
    pub fn crd(&self) -> CustomResourceDefinition {
        (self.definition)()
    }
}

/// All kinds, what others refer to first.
pub fn table() -> Vec<KindRow> {
    vec![
        KindRow {
            kind: "CloudflareZeroTrustTenant",
            plural: "cloudflarezerotrusttenants",
            doc: "Which account, tunnel and token routes are published with.",
            definition: CloudflareZeroTrustTenant::crd,
        },
        KindRow {
            kind: "CloudflareZeroTrustTemplate",
            plural: "cloudflarezerotrusttemplates",
            doc: "Settings that several routes share.",
            definition: CloudflareZeroTrustTemplate::crd,
        },
        KindRow {
            kind: "CloudflareZeroTrustOperatorConfig",
            plural: "cloudflarezerotrustoperatorconfigs",
            doc: "How the operator itself runs.",
            definition: CloudflareZeroTrustOperatorConfig::crd,
        },
        KindRow {
            kind: "CloudflareTask",
            plural: "cloudflaretasks",
            doc: "One piece of work for the Cloudflare side, and what became of it.",
            definition: CloudflareTask::crd,
        },
    ]
}

/// The definitions of all kinds, in the order of the table.
pub fn crds() -> Vec<CustomResourceDefinition> {
    table().iter().map(KindRow::crd).collect()
}

#[cfg(test)]
mod tests;
