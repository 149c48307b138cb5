//! The simulator on a TCP socket.

use std::{io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Incoming},
    service::service_fn,
};
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
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinSet<()>,
}

impl Serving {
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
    pub async fn serve(&self, address: impl ToSocketAddrs) -> io::Result<Serving> {
        let simulator = self.clone();
        listen(address, move |request| respond(simulator.clone(), request)).await
    }
}

/// Listens on an address and answers every request by a function; its errors close the connection.
pub(crate) async fn listen<R, F, B, E>(address: impl ToSocketAddrs, respond: R) -> io::Result<Serving>
where
    R: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Failed>> + Send + 'static,
    E: Into<Failed> + 'static,
{
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = watch::channel(false);
    let mut task = JoinSet::new();
    task.spawn(accept(respond, listener, stopped));
    Ok(Serving { address, stop, task })
}

/// Why a connection ends early.
type Failed = Box<dyn std::error::Error + Send + Sync>;

async fn accept<R, F, B, E>(respond: R, listener: TcpListener, mut stopped: watch::Receiver<bool>)
where
    R: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Failed>> + Send + 'static,
    E: Into<Failed> + 'static,
{
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.spawn(connection(respond.clone(), stream, graceful.watcher())),
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

async fn connection<R, F, B, E>(respond: R, stream: TcpStream, watcher: Watcher)
where
    R: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data = Bytes, Error: Into<Failed>> + Send + 'static,
    E: Into<Failed> + 'static,
{
    let _ = stream.set_nodelay(true);
    let builder = auto::Builder::new(TokioExecutor::new());
    let served = builder.serve_connection(TokioIo::new(stream), service_fn(respond)).into_owned();
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
