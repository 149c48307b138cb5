//! A TCP port of a Service → its connections, each passed on to a backend until both sides are done.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::{ForwardContext, PortBackends, TRY_AGAIN};
use crate::network::balancer::Balancer;
use crate::network::service::Transport;

/// How long a backend may take to accept; on one machine that is done at once or not at all.
const ACCEPTS_WITHIN: Duration = Duration::from_secs(2);
/// How long is waited where no more connections can be accepted for want of descriptors.
const BREATH: Duration = Duration::from_millis(50);

/// A client that was accepted, and its place among all.
struct AcceptedClient {
    stream: TcpStream,
    address: Ipv4Addr,
    place: OwnedSemaphorePermit,
}

/// Passes connections on until it is aborted. Where nobody serves nothing listens, so that clients are refused.
pub(super) async fn forward(
    listen: SocketAddrV4,
    mut told: watch::Receiver<PortBackends>,
    context: Arc<ForwardContext>,
) {
    let mut balancer = Balancer::default();
    let mut connections = JoinSet::new();
    let mut listener = None;
    balance(&mut balancer, &mut told);
    loop {
        if balancer.is_empty() {
            listener = None;
        } else if listener.is_none() {
            listener = listening(listen, &context).await;
        }
        let is_due = listener.is_none() && !balancer.is_empty();
        tokio::select! {
            biased;
            changed = told.changed() => match changed {
                Ok(()) => balance(&mut balancer, &mut told),
                Err(_) => return,
            },
            Some(_) = connections.join_next() => {}
            client = next_client(listener.as_ref(), &context.places) => match client {
                Ok(client) => {
                    let candidates = balancer.candidates(client.address, Instant::now());
                    connections.spawn(pass(client, candidates));
                }
                Err(error) => {
                    tracing::debug!(%listen, %error, "Could not accept a connection");
                    tokio::time::sleep(BREATH).await;
                }
            },
            () = tokio::time::sleep(TRY_AGAIN), if is_due => {}
        }
    }
}

fn balance(balancer: &mut Balancer, told: &mut watch::Receiver<PortBackends>) {
    let now = told.borrow_and_update().clone();
    balancer.serve(now.backends, now.affinity);
}

async fn listening(listen: SocketAddrV4, context: &ForwardContext) -> Option<TcpListener> {
    match TcpListener::bind(listen).await {
        Ok(listener) => {
            context.is_well((Transport::Tcp, listen));
            Some(listener)
        }
        Err(error) => {
            context.trouble((Transport::Tcp, listen), &error);
            None
        }
    }
}

/// The next client, once there is a place for it.
async fn next_client(listener: Option<&TcpListener>, places: &Arc<Semaphore>) -> io::Result<AcceptedClient> {
    let Some(listener) = listener else { return std::future::pending().await };
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    let address = match address {
        SocketAddr::V4(address) => *address.ip(),
        SocketAddr::V6(_) => Ipv4Addr::LOCALHOST,
    };
    Ok(AcceptedClient { stream, address, place })
}

/// Passes a connection on to the first that accepts it.
async fn pass(client: AcceptedClient, candidates: Vec<SocketAddrV4>) {
    let AcceptedClient { mut stream, place, .. } = client;
    let Some(mut backend) = connected(&candidates).await else {
        // Nothing was sent to anyone: the client is told at once that nobody is there.
        let _ = stream.set_zero_linger();
        return;
    };
    // Small answers are not to wait for more; a socket that cannot be set so serves as well.
    let _ = (stream.set_nodelay(true), backend.set_nodelay(true));
    // Each side may end its half; whoever reads slowly slows the other one down.
    if tokio::io::copy_bidirectional(&mut stream, &mut backend).await.is_err() {
        let _ = (stream.set_zero_linger(), backend.set_zero_linger());
    }
    drop(place);
}

async fn connected(candidates: &[SocketAddrV4]) -> Option<TcpStream> {
    for candidate in candidates {
        match tokio::time::timeout(ACCEPTS_WITHIN, TcpStream::connect(candidate)).await {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => tracing::debug!(backend = %candidate, %error, "A backend refused a connection"),
            Err(_) => tracing::debug!(backend = %candidate, "A backend did not accept in time"),
        }
    }
    None
}
