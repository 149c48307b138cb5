//! The embedded API server, on a port and in memory.

use std::net::{Ipv4Addr, SocketAddr};

use portolan_apiserver::{Accounts, ApiServer, Config, RunningServer, Workloads};

use crate::server::PeerServer;

/// Why the embedded server is not there.
#[derive(Debug, thiserror::Error)]
#[error("starting the embedded API server: {0}")]
pub struct EmbeddedError(String);

/// A running embedded server; it ends with the process or when it is dropped.
pub struct Embedded {
    server: PeerServer,
    _running: RunningServer,
}

impl Embedded {
    /// Starts it on a free port of the loopback, with nothing on disk.
    pub async fn start() -> Result<Self, EmbeddedError> {
        Self::start_with(Workloads::Off).await
    }

    /// The same, with or without the controllers of workloads.
    pub async fn start_with(workloads: Workloads) -> Result<Self, EmbeddedError> {
        // As the real server beside it is set up: where controllers are compared, pods do not wait for accounts.
        let accounts = if workloads == Workloads::On { Accounts::Ignored } else { Accounts::Required };
        let config = Config { data_dir: None, workloads, accounts, ..Config::default() };
        let api = ApiServer::open(config).await.map_err(|error| EmbeddedError(error.to_string()))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let running = api.serve(address).await.map_err(|error| EmbeddedError(error.to_string()))?;
        let (url, ca, token) = (running.url(), running.ca_pem().to_owned(), running.token().to_owned());
        Ok(Self { server: PeerServer { url, ca, token }, _running: running })
    }

    /// Where it is reached.
    pub fn server(&self) -> &PeerServer {
        &self.server
    }
}
