//! Datagrams and connections → answers, as many at once and for as long as is allowed.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream, UdpSocket},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::timeout,
};

use super::{
    pages::Pages,
    reply::{Arrival, Fetch, SeedReply, reply},
    table::SeedTable,
};
use crate::client::seconds_now;

/// How much is done for those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponderLimits {
    /// Connections at once; a further one is closed at once.
    pub connections: usize,
    /// For the next request of a connection, and for each message of an answer.
    pub step: Duration,
    /// For a whole transfer.
    pub transfer: Duration,
    /// Requests of one connection.
    pub requests: u32,
}

impl Default for ResponderLimits {
    fn default() -> Self {
        Self { connections: 128, step: Duration::from_secs(10), transfer: Duration::from_secs(300), requests: 1_000 }
    }
}

/// Bytes of the longest request that is read: a question, a SOA record and a signature are far below.
const LONGEST_REQUEST: usize = 4_096;

/// Answers for zones that are being seeded.
#[derive(Debug)]
pub struct SeedResponder {
    listener: TcpListener,
    datagrams: UdpSocket,
    zones: SeedTable,
    limits: ResponderLimits,
}

impl SeedResponder {
    /// Listens at an address, for datagrams and connections. Port 0 takes one that is free for both.
    pub async fn bind(address: SocketAddr, zones: SeedTable, limits: ResponderLimits) -> io::Result<Self> {
        let mut tries = 0;
        loop {
            let listener = TcpListener::bind(address).await?;
            match UdpSocket::bind(listener.local_addr()?).await {
                Ok(datagrams) => return Ok(Self { listener, datagrams, zones, limits }),
                // A port that is free for connections may be taken for datagrams.
                Err(error) if address.port() != 0 || tries == 8 => return Err(error),
                Err(_) => tries += 1,
            }
        }
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the future is dropped; then connections end too.
    pub async fn serve(self) {
        let Self { listener, datagrams, zones, limits } = self;
        tokio::join!(serve_datagrams(datagrams, zones.clone()), serve_connections(listener, zones, limits));
    }
}

async fn serve_datagrams(socket: UdpSocket, zones: SeedTable) {
    let mut buffer = [0; LONGEST_REQUEST];
    loop {
        // Errors are those of earlier answers that nobody took (ICMP): they say nothing of the next request.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        if let SeedReply::Message(answer) = reply(&buffer[..length], Arrival::Datagram, &zones, seconds_now()) {
            // A server that gets no answer asks again.
            let _lost = socket.send_to(&answer, from).await;
        }
    }
}

async fn serve_connections(listener: TcpListener, zones: SeedTable, limits: ResponderLimits) {
    let places = Arc::new(Semaphore::new(limits.connections.max(1)));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                        connections.spawn(converse(stream, from, zones.clone(), limits, place));
                    } else {
                        tracing::debug!(%from, "zone seeding: all {} connections are taken; one more is closed", limits.connections);
                    }
                }
                // Out of descriptors, perhaps: others give theirs back soon.
                Err(error) => {
                    tracing::warn!(%error, "zone seeding: cannot take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn converse(
    mut stream: TcpStream,
    from: SocketAddr,
    zones: SeedTable,
    limits: ResponderLimits,
    _place: OwnedSemaphorePermit,
) {
    for _ in 0..limits.requests {
        match timeout(limits.step, read_request(&mut stream)).await {
            Ok(Ok(Some(request))) => {
                let answered = match reply(&request, Arrival::Connection, &zones, seconds_now()) {
                    SeedReply::Silence => return,
                    SeedReply::Message(message) => send(&mut stream, &message, limits).await,
                    SeedReply::Transfer(fetch) => transfer(&mut stream, from, *fetch, limits).await,
                };
                if answered.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

/// The next request; none where it is longer than any can be.
async fn read_request(stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    use tokio::io::AsyncReadExt;
    let length = usize::from(stream.read_u16().await?);
    if length > LONGEST_REQUEST {
        return Ok(None);
    }
    let mut request = vec![0; length];
    stream.read_exact(&mut request).await?;
    Ok(Some(request))
}

async fn send(stream: &mut TcpStream, message: &[u8], limits: ResponderLimits) -> io::Result<()> {
    use tokio::io::AsyncWriteExt;
    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
    let framed = [&length.to_be_bytes()[..], message].concat();
    timeout(limits.step, stream.write_all(&framed)).await?
}

async fn transfer(stream: &mut TcpStream, from: SocketAddr, fetch: Fetch, limits: ResponderLimits) -> io::Result<()> {
    let zone = fetch.question.name.clone();
    let seed = fetch.seed.clone();
    let sent =
        timeout(limits.transfer, send_pages(stream, fetch, limits)).await.unwrap_or_else(|late| Err(late.into()));
    match &sent {
        Ok(()) => seed.note_fetched(),
        Err(error) => tracing::info!(%zone, %from, %error, "zone seeding: a transfer ended early"),
    }
    sent
}

async fn send_pages(stream: &mut TcpStream, fetch: Fetch, limits: ResponderLimits) -> io::Result<()> {
    let mut pages = Pages::new(&fetch);
    let mut conversation = fetch.conversation;
    while let Some(page) =
        pages.next().map_err(|_| io::Error::other("a record of the zone is longer than a message"))?
    {
        send(stream, &conversation.sign(page, seconds_now()), limits).await?;
    }
    Ok(())
}
