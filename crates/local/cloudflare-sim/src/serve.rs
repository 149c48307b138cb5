//! The simulator on a TCP socket.

use std::{io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream, ToSocketAddrs},
    sync::watch,
    task::JoinSet,
};

use crate::{Dropped, Simulator, admin};

/// A simulator that listens. Dropping it closes all connections at once.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinSet<()>,
}

impl Running {
    /// The base URL of the API.
    pub fn base_url(&self) -> String {
        format!("http://{}/client/v4", self.address)
    }

    /// Stops listening, lets requests that are under way finish for at most two seconds, and closes.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        self.task.join_next().await;
    }
}

impl Simulator {
    /// Listens on an address; port 0 chooses a free one.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> io::Result<Running> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(accept(self.clone(), listener, stopped));
        Ok(Running { address, stop, task })
    }
}

async fn accept(simulator: Simulator, listener: TcpListener, mut stopped: watch::Receiver<bool>) {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.spawn(connection(simulator.clone(), stream, graceful.watcher())),
                Err(error) => {
                    tracing::warn!(%error, "Cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
            _ = stopped.changed() => break,
        };
    }
    drop(listener);
    let _ = tokio::time::timeout(Duration::from_secs(2), graceful.shutdown()).await;
}

type Watcher = hyper_util::server::graceful::Watcher;

async fn connection(simulator: Simulator, stream: TcpStream, watcher: Watcher) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| respond(simulator.clone(), request));
    let builder = auto::Builder::new(TokioExecutor::new());
    let served = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(served).await {
        tracing::debug!(error = %error, "A connection ended early");
    }
}

/// An error closes the connection without an answer.
async fn respond(simulator: Simulator, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Dropped> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Dropped::Reset)?.to_bytes();
    let request = Request::from_parts(parts, body);
    let response = match admin::answer(&simulator, &request) {
        Some(response) => response,
        None => simulator.answer(request).await?,
    };
    Ok(response.map(Full::new))
}
