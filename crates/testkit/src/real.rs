//! A real API server for worlds: kube-apiserver with etcd, one for many worlds, each of which cleans up first.

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
pub use portolan_parity::Controllers;
use portolan_parity::{ControlPlane, Durability, NotAvailable};

use crate::failpoints::Failpoints;
use crate::rights::{Refusals, RoleIdentity};

/// A running control plane.
pub struct RealServer {
    config: Config,
    _plane: ControlPlane,
}

impl RealServer {
    /// Starts it with these of Kubernetes' own controllers; says why where that cannot be.
    pub async fn start_with(controllers: Controllers) -> Result<Self, NotAvailable> {
        // A second server of the same process finds the provider installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plane = ControlPlane::start_with(Durability::None, controllers).await?;
        let kubeconfig = Kubeconfig::from_yaml(&plane.server().kubeconfig()).expect("our own kubeconfig is valid");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Ok(Self { config: config.expect("our own kubeconfig is complete"), _plane: plane })
    }

    /// A client that may do everything.
    pub(crate) fn client(&self) -> Client {
        ClientBuilder::try_from(self.config.clone()).expect("the configuration is complete").build()
    }

    /// A client that acts as somebody, through the failpoints.
    pub(crate) fn client_as(&self, identity: &RoleIdentity, failpoints: &Failpoints, refusals: &Refusals) -> Client {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(identity.user.clone());
        config.auth_info.impersonate_groups = Some(identity.groups.clone());
        let builder = ClientBuilder::try_from(config).expect("the configuration is complete");
        builder.with_layer(refusals).with_layer(failpoints).build()
    }
}
