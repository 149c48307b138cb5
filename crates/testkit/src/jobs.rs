//! The jobs that a world's operator can run: what belongs to each in the cluster, by its definition.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use portolan_engine::{JobDefinition, Provisions};
use serde_json::Value;

use crate::cluster::undescribed;
use crate::manifests;

/// What a world's operator does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Jobs {
    /// The kinds of `networking.cloudflare-operator.io`.
    #[default]
    Cloudflare,
    /// Annotated routes, tenants and templates.
    ZeroTrust,
}

/// The Gateway API's own kinds, as `portolan up` installs them.
const GATEWAY: [&str; 2] =
    [include_str!("../../portolan/data/httproutes.yaml"), include_str!("../../portolan/data/referencegrants.yaml")];

/// The CRDs without their descriptions, which change nothing and cost time; with those of others that the job needs.
static DEFINITIONS: LazyLock<BTreeMap<Jobs, Vec<Value>>> =
    LazyLock::new(|| Jobs::ALL.into_iter().map(|jobs| (jobs, definitions(jobs.definition()))).collect());

fn definitions(job: &JobDefinition) -> Vec<Value> {
    let gateway = GATEWAY.iter().map(|text| serde_saphyr::from_str(text).expect("the definition is YAML"));
    let reads_routes = (job.needs)(&Provisions::default()).iter().any(|needed| needed.kind == "HTTPRoute");
    let gateway = gateway.filter(|_| reads_routes);
    (job.sheet.definitions)().into_iter().chain(gateway).map(undescribed).collect()
}

impl Jobs {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Cloudflare, Self::ZeroTrust];

    /// The job itself.
    pub(crate) fn definition(self) -> &'static JobDefinition {
        match self {
            Self::Cloudflare => &portolan_cloudflare::JOB,
            Self::ZeroTrust => &portolan_zerotrust::JOB,
        }
    }

    /// The CRDs that the job needs.
    pub(crate) fn definitions(self) -> &'static [Value] {
        &DEFINITIONS[&self]
    }

    /// The kinds that these define.
    pub(crate) fn kinds(self) -> Vec<&'static str> {
        self.definitions().iter().filter_map(|crd| crd["spec"]["names"]["kind"].as_str()).collect()
    }

    /// Where the operator's own objects are.
    pub(crate) fn operator_namespace(self) -> String {
        let own = (self.definition().namespace)(&Provisions::default());
        own.map_or_else(|| manifests::OPERATOR_NAMESPACE.to_owned(), |own| own.name)
    }

    /// All namespaces that a world begins with.
    pub(crate) fn namespaces(self) -> [String; 2] {
        [self.operator_namespace(), manifests::NAMESPACE.to_owned()]
    }
}
