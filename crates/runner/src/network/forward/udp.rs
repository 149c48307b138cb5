//! A UDP port of a Service → its flows: what one client sends goes to one backend, and what that answers goes back.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use tokio::net::UdpSocket;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::{ForwardContext, PortBackends, TRY_AGAIN};
use crate::network::balancer::Balancer;
use crate::network::service::Transport;

/// How long a flow is kept in which nothing passes (`net.netfilter.nf_conntrack_udp_timeout`).
const IDLE: Duration = Duration::from_secs(30);
/// Flows of one port; then those end in which nothing passed for the longest time.
const MOST_FLOWS: usize = 4096;
/// How often flows that are over are put away.
const SWEEP: Duration = Duration::from_secs(5);
const LONGEST_DATAGRAM: usize = 65_536;
/// What waits in the kernel while this process is busy, as far as it may.
const QUEUED_BYTES: usize = 2 * 1024 * 1024;

/// When something last passed, in milliseconds since the port was opened.
#[derive(Clone, Debug)]
struct LastSeen {
    beginning: Instant,
    milliseconds: Arc<AtomicU64>,
}

impl LastSeen {
    fn since(beginning: Instant) -> Self {
        let seen = Self { beginning, milliseconds: Arc::default() };
        seen.now();
        seen
    }

    fn now(&self) {
        let passed = u64::try_from(self.beginning.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.milliseconds.store(passed, Ordering::Relaxed);
    }

    fn get(&self) -> Instant {
        self.beginning + Duration::from_millis(self.milliseconds.load(Ordering::Relaxed))
    }
}

/// What one client and one backend send each other.
struct Flow {
    backend: SocketAddrV4,
    socket: Arc<UdpSocket>,
    seen: LastSeen,
    task: AbortHandle,
    _place: OwnedSemaphorePermit,
}

/// A port, its flows, and who serves it.
struct UdpPort {
    beginning: Instant,
    listener: Arc<UdpSocket>,
    balancer: Balancer,
    flows: HashMap<SocketAddr, Flow>,
    tasks: JoinSet<()>,
    context: Arc<ForwardContext>,
}

/// Passes datagrams on until it is aborted. The port stays open where nobody serves: answers may still be on their way.
pub(super) async fn forward(
    listen: SocketAddrV4,
    mut told: watch::Receiver<PortBackends>,
    context: Arc<ForwardContext>,
) {
    let listener = listening(listen, &context).await;
    let mut port = UdpPort {
        beginning: Instant::now(),
        listener: Arc::new(listener),
        balancer: Balancer::default(),
        flows: HashMap::new(),
        tasks: JoinSet::new(),
        context,
    };
    port.balance(&mut told);
    let mut buffer = vec![0; LONGEST_DATAGRAM];
    let mut sweep = tokio::time::interval(SWEEP);
    loop {
        tokio::select! {
            biased;
            changed = told.changed() => match changed {
                Ok(()) => port.balance(&mut told),
                Err(_) => return,
            },
            received = port.listener.recv_from(&mut buffer) => match received {
                Ok((length, client)) => port.pass(client, &buffer[..length]).await,
                // Somebody who was answered is gone.
                Err(error) => tracing::debug!(%listen, %error, "Could not read a datagram"),
            },
            Some(_) = port.tasks.join_next() => {}
            _ = sweep.tick(), if !port.flows.is_empty() => port.sweep(),
        }
    }
}

/// Listens, as soon as that can be done.
async fn listening(listen: SocketAddrV4, context: &ForwardContext) -> UdpSocket {
    loop {
        match UdpSocket::bind(listen).await {
            Ok(socket) => {
                context.is_well((Transport::Udp, listen));
                // More than usual can be queued by who has the privilege; the others have what the machine allows.
                let _ = sockopt::set_socket_recv_buffer_size_force(&socket, QUEUED_BYTES)
                    .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, QUEUED_BYTES));
                return socket;
            }
            Err(error) => context.trouble((Transport::Udp, listen), &error),
        }
        tokio::time::sleep(TRY_AGAIN).await;
    }
}

impl UdpPort {
    fn balance(&mut self, told: &mut watch::Receiver<PortBackends>) {
        let now = told.borrow_and_update().clone();
        self.balancer.serve(now.backends, now.affinity);
    }

    /// Sends a datagram to the client's backend, or to another where that is not there.
    async fn pass(&mut self, client: SocketAddr, datagram: &[u8]) {
        if let Some(flow) = self.flows.get(&client).filter(|flow| self.is_good(flow))
            && flow.socket.send(datagram).await.is_ok()
        {
            flow.seen.now();
            return;
        }
        let SocketAddr::V4(address) = client else { return };
        for candidate in self.balancer.candidates(*address.ip(), Instant::now()) {
            match self.begin(client, candidate).await {
                Ok(flow) if flow.socket.send(datagram).await.is_ok() => {
                    // Answers that are still to come from the one before pass on their way.
                    self.flows.insert(client, flow);
                    return;
                }
                Ok(flow) => flow.task.abort(),
                Err(error) => tracing::debug!(backend = %candidate, %error, "Could not begin a flow"),
            }
        }
    }

    fn is_good(&self, flow: &Flow) -> bool {
        self.balancer.has(flow.backend) && !flow.task.is_finished()
    }

    async fn begin(&mut self, client: SocketAddr, backend: SocketAddrV4) -> io::Result<Flow> {
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= MOST_FLOWS {
            self.end_idlest();
        }
        let place = self.context.places.clone().try_acquire_owned();
        let place = place.or_else(|_| {
            self.end_idlest();
            self.context.places.clone().try_acquire_owned()
        });
        let place = place.map_err(io::Error::other)?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        socket.connect(backend).await?;
        let (socket, seen) = (Arc::new(socket), LastSeen::since(self.beginning));
        let back = ReturnPath { client, listener: self.listener.clone(), socket: socket.clone(), seen: seen.clone() };
        let task = self.tasks.spawn(back.pass());
        Ok(Flow { backend, socket, seen, task, _place: place })
    }

    /// Ends the quarter of the flows in which nothing passed for the longest time.
    fn end_idlest(&mut self) {
        let mut seen: Vec<Instant> = self.flows.values().map(|flow| flow.seen.get()).collect();
        if seen.is_empty() {
            return;
        }
        let (_, oldest, _) = seen.select_nth_unstable(self.flows.len() / 4);
        let oldest = *oldest;
        self.flows.retain(|_, flow| {
            let stays = flow.seen.get() > oldest;
            if !stays {
                flow.task.abort();
            }
            stays
        });
    }

    fn sweep(&mut self) {
        self.flows.retain(|_, flow| !flow.task.is_finished());
    }
}

/// The way of answers.
struct ReturnPath {
    client: SocketAddr,
    listener: Arc<UdpSocket>,
    socket: Arc<UdpSocket>,
    seen: LastSeen,
}

impl ReturnPath {
    /// Passes answers back until nothing passed for a while, or the backend's port is closed.
    async fn pass(self) {
        loop {
            let until = self.seen.get() + IDLE;
            match tokio::time::timeout_at(until.into(), self.socket.readable()).await {
                Ok(Ok(())) => match self.pass_one().await {
                    Ok(()) => self.seen.now(),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                },
                Err(_) if self.seen.get() + IDLE > until => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    async fn pass_one(&self) -> io::Result<()> {
        // Held only while something is there to be read: flows are many, and mostly wait.
        let mut datagram = Vec::with_capacity(LONGEST_DATAGRAM);
        self.socket.try_recv_buf(&mut datagram)?;
        // The client may be gone; then that was the last that it was owed.
        let _ = self.listener.send_to(&datagram, self.client).await;
        Ok(())
    }
}
