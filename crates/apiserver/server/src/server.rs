//! The service on a TLS socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::credentials::{self, CredentialsError, ServerIdentity};
use crate::service::ApiService;
use crate::store::JournalError;

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The data file.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Certificates, token or directory.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The address cannot be listened on.
    #[error("listening on {address}: is another server running there? Choose another one with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// A server that listens. Dropping it stops it at once; [`shutdown`](Self::shutdown) lets requests end first.
pub struct RunningServer {
    address: SocketAddr,
    credentials: ServerIdentity,
    stop: Arc<watch::Sender<bool>>,
    accepting: JoinHandle<()>,
    kubeconfig_path: Option<PathBuf>,
    /// Keeps the controllers running.
    server: crate::ApiServer,
}

impl RunningServer {
    pub(crate) async fn start(
        server: crate::ApiServer,
        service: ApiService,
        credentials: ServerIdentity,
        address: SocketAddr,
        data_dir: Option<PathBuf>,
    ) -> Result<Self, StartError> {
        let listen = |source| StartError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let acceptor = TlsAcceptor::from(Arc::new(credentials.tls_config()?));
        let kubeconfig_path = data_dir.map(|directory| directory.join("kubeconfig"));
        if let Some(path) = &kubeconfig_path {
            credentials::write_private(path, &credentials.kubeconfig(address))?;
        }
        let stop = server.stop_sender();
        let accepting = tokio::spawn(accept(listener, acceptor, service, stop.subscribe()));
        Ok(Self { address, credentials, stop, accepting, kubeconfig_path, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://ADDRESS`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate that clients must trust.
    pub fn ca_pem(&self) -> &str {
        &self.credentials.ca_pem
    }

    /// The bearer token that clients must send.
    pub fn token(&self) -> &str {
        &self.credentials.token
    }

    /// A kubeconfig for `kubectl`.
    pub fn kubeconfig(&self) -> String {
        self.credentials.kubeconfig(self.address)
    }

    /// Where the kubeconfig was written.
    pub fn kubeconfig_path(&self) -> Option<&std::path::Path> {
        self.kubeconfig_path.as_deref()
    }

    /// Ends watches, lets requests end, and stops.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        // Requests that are still running after this are cut off.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut self.accepting).await;
        self.accepting.abort();
        self.server.store().close().await;
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    service: ApiService,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let watching = stopping.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (acceptor, service, stopping) = (acceptor.clone(), service.clone(), watching.clone());
                    connections.spawn(serve(stream, acceptor, service, stopping));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: go on when some are free again.
                    tracing::warn!(%error, "Could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            _ = connections.join_next(), if !connections.is_empty() => {}
            () = stopped(&mut stopping) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, service: ApiService, mut stopping: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await else {
        return;
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        result = connection.as_mut() => {
            if let Err(error) = result {
                tracing::debug!(error, "A connection ended early");
            }
            return;
        }
        () = stopped(&mut stopping) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Waits until the server stops, or is gone.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}
