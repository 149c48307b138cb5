//! The two servers to compare, started or taken from the environment.

use std::path::Path;

use portolan_apiserver::Workloads;

use crate::controlplane::{ControlPlane, Controllers, Durability};
use crate::embedded::{Embedded, EmbeddedError};
use crate::server::{PeerServer, ServerError};

/// The servers to compare and what keeps them running. Without the real one, the other is only asked to answer.
pub struct Peers {
    real: Option<PeerServer>,
    embedded: PeerServer,
    plane: Option<ControlPlane>,
    running: Option<Embedded>,
}

/// Why there is nothing to run on.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// The embedded server did not start.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
    /// A kubeconfig given by the environment cannot be used.
    #[error(transparent)]
    Kubeconfig(#[from] ServerError),
}

impl Peers {
    /// Both servers: `PORTOLAN_PARITY_REAL` and `PORTOLAN_PARITY_EMBEDDED` may name kubeconfig files of others.
    ///
    /// Says loudly on stdout when there is no real server.
    pub async fn start() -> Result<Self, PeersError> {
        Self::start_with(Workloads::Off).await
    }

    /// The same with the controllers of workloads on both, where they are started here.
    pub async fn start_with(workloads: Workloads) -> Result<Self, PeersError> {
        let (real, plane) = match std::env::var_os("PORTOLAN_PARITY_REAL") {
            Some(path) => (Some(PeerServer::from_kubeconfig(Path::new(&path))?), None),
            None => plane(workloads).await,
        };
        let (embedded, running) = if let Some(path) = std::env::var_os("PORTOLAN_PARITY_EMBEDDED") {
            (PeerServer::from_kubeconfig(Path::new(&path))?, None)
        } else {
            let running = Embedded::start_with(workloads).await?;
            (running.server().clone(), Some(running))
        };
        Ok(Self { real, embedded, plane, running })
    }

    /// The server that is right by definition.
    pub fn real(&self) -> Option<&PeerServer> {
        self.real.as_ref()
    }

    /// Whether a server goes on after the run and should be left as it was.
    pub(crate) fn borrowed(&self) -> bool {
        self.plane.is_none() && self.real.is_some() || self.running.is_none()
    }

    /// The server under test.
    pub fn embedded(&self) -> &PeerServer {
        &self.embedded
    }
}

async fn plane(workloads: Workloads) -> (Option<PeerServer>, Option<ControlPlane>) {
    let controllers = match workloads {
        Workloads::On => Controllers::Compared,
        Workloads::Off => Controllers::Few,
    };
    match ControlPlane::start_with(Durability::None, controllers).await {
        Ok(plane) => (Some(plane.server().clone()), Some(plane)),
        Err(reason) => {
            println!("PARITY NOT RUN: {reason}");
            (None, None)
        }
    }
}
