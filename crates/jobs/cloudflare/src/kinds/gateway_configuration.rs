//! `GatewayConfiguration` ↔ `accounts/{account}/gateway/configuration`: an account has one, which is changed and never made or
//! deleted.
//!
//! Only what the object mentions is written and compared: everything else is somebody else's. Two objects of one account want
//! the same: the older one has it.

use portolan_cloudflare_api::objects::{GatewayConfiguration as Remote, Mentioned};

use crate::blocks::{CloudflareDetails, GatewaySettings};
use crate::kind::prelude::*;
use crate::sheet::StateWords;

/// What holds for all of an account's Gateway.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "networking.cloudflare-operator.io", version = "v1alpha2", kind = "GatewayConfiguration")]
#[kube(status = "GatewayConfigurationStatus", shortname = "gwconfig", category = "cloudflare")]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::plain)]
pub struct GatewayConfigurationSpec {
    /// The settings. What is not said stays as it is at Cloudflare.
    pub settings: GatewaySettings,
    /// Who asks Cloudflare, and about which account.
    pub cloudflare: CloudflareDetails,
}

status! {
    /// What became of a `GatewayConfiguration`.
    GatewayConfigurationStatus: AccountStatus {}
}

impl Kind for GatewayConfiguration {
    type Body = Remote;

    const SHEET: Sheet = Sheet {
        states: StateWords::UPPER,
        ..Sheet::singleton("GatewayConfiguration", "Gateway configuration", finalizer!("gatewayconfiguration"))
    };
    const REMOTE: &'static TypedCollection<Self::Body> = &collections::GATEWAY_CONFIGURATION;

    fn cloudflare(&self) -> Option<&CloudflareDetails> {
        Some(&self.spec.cloudflare)
    }

    fn desired(&self, _: &Resolved) -> Result<Vec<Remote>, Problem> {
        Ok(vec![Remote { settings: Mentioned::Wish(self.spec.settings.wire()) }])
    }
}
