//! A real API server for worlds: kube-apiserver with etcd, one for many worlds, each of which cleans up first.

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
pub use portolan_parity::Controllers;
use portolan_parity::{ControlPlane, Durability, NotAvailable};

use crate::gate::Gate;

/// A running control plane.
pub struct RealServer {
    config: Config,
    _plane: ControlPlane,
}

impl RealServer {
    /// Starts it; says why where that cannot be.
    pub async fn start() -> Result<Self, NotAvailable> {
        Self::start_with(Controllers::Few).await
    }

    /// Starts it with these of Kubernetes' own controllers.
    pub async fn start_with(controllers: Controllers) -> Result<Self, NotAvailable> {
        // A second server of the same process finds the provider installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let plane = ControlPlane::start_with(Durability::None, controllers).await?;
        let kubeconfig = Kubeconfig::from_yaml(&plane.server().kubeconfig()).expect("our own kubeconfig is valid");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Ok(Self { config: config.expect("our own kubeconfig is complete"), _plane: plane })
    }

    /// A client, through the gate if one is given.
    pub(crate) fn client(&self, gate: Option<&Gate>) -> Client {
        let builder = ClientBuilder::try_from(self.config.clone()).expect("the configuration is complete");
        match gate {
            Some(gate) => builder.with_layer(gate).build(),
            None => builder.build(),
        }
    }
}
