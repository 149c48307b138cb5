//! The jobs that a world's operator can run: what belongs to each in the cluster, and how each is started.

use std::sync::LazyLock;

use serde_json::Value;

use crate::cluster::undescribed;
use crate::{manifests, zerotrust};

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

/// The CRDs without their descriptions, which change nothing and cost time.
static CLOUDFLARE: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let table = portolan_cloudflare::kinds::table();
    let plain = table.iter().map(|row| serde_json::to_value(row.crd()).expect("CRDs are plain JSON"));
    plain.map(undescribed).collect()
});

static ZERO_TRUST: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let own = portolan_zerotrust::model::crds();
    let own = own.iter().map(|crd| serde_json::to_value(crd).expect("CRDs are plain JSON"));
    let gateway = GATEWAY.iter().map(|text| serde_saphyr::from_str(text).expect("the definition is YAML"));
    own.chain(gateway).map(undescribed).collect()
});

impl Jobs {
    /// The CRDs that the job needs.
    pub(crate) fn definitions(self) -> &'static [Value] {
        match self {
            Self::Cloudflare => &CLOUDFLARE,
            Self::ZeroTrust => &ZERO_TRUST,
        }
    }

    /// The kinds that these define.
    pub(crate) fn kinds(self) -> Vec<&'static str> {
        self.definitions().iter().filter_map(|crd| crd["spec"]["names"]["kind"].as_str()).collect()
    }

    /// Where the operator's own objects are.
    pub(crate) fn operator_namespace(self) -> &'static str {
        match self {
            Self::Cloudflare => manifests::OPERATOR_NAMESPACE,
            Self::ZeroTrust => zerotrust::OPERATOR_NAMESPACE,
        }
    }

    /// All namespaces that a world begins with.
    pub(crate) fn namespaces(self) -> Vec<&'static str> {
        match self {
            Self::Cloudflare => vec![manifests::OPERATOR_NAMESPACE, manifests::NAMESPACE],
            Self::ZeroTrust => vec![zerotrust::OPERATOR_NAMESPACE, manifests::NAMESPACE],
        }
    }
}
