//! The jobs that this binary can do: their names, their groups, their definitions.

use clap::ValueEnum;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::kinds::Kinds;

/// A set of controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum JobName {
    /// The kinds of networking.cloudflare-operator.io
    Cloudflare,
    /// Annotated `HTTPRoutes`, and the kinds of cfzt.cloudflare.com
    Zerotrust,
}

impl JobName {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Cloudflare, Self::Zerotrust];

    /// Its name on the command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Cloudflare => "cloudflare",
            Self::Zerotrust => "zerotrust",
        }
    }

    /// The group of its kinds.
    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::Cloudflare => crate::seen::GROUP,
            Self::Zerotrust => crate::zerotrust::GROUP,
        }
    }

    /// The definitions of its kinds.
    pub(crate) fn definitions(self) -> Vec<CustomResourceDefinition> {
        match self {
            Self::Cloudflare => portolan_cloudflare::kinds::crds(),
            Self::Zerotrust => portolan_zerotrust::model::crds(),
        }
    }

    /// Whether a server knows any of its kinds.
    pub(crate) fn is_installed(self, kinds: &Kinds) -> bool {
        !kinds.in_group(self.group()).is_empty()
    }
}
