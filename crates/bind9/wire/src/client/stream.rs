//! A TCP connection to a server, with a deadline on each step: connecting, writing, reading what has its length before it.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::error::TransportFault;

/// Ends a step that takes too long.
pub(super) async fn within<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, TransportFault>>,
) -> Result<T, TransportFault> {
    timeout(limit, step).await.unwrap_or(Err(TransportFault::TimedOut(limit)))
}

/// A connection, without waiting for more to send before something small is sent.
pub(super) async fn connect(server: SocketAddr, limit: Duration) -> Result<TcpStream, TransportFault> {
    let connecting = async {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    within(limit, async { connecting.await.map_err(|error: io::Error| TransportFault::Unreachable(error.kind())) })
        .await
}

/// Whether the other side has hung up, or sent something that nobody asked for, since the connection was last used.
pub(super) fn is_fresh(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

pub(super) async fn write_all(stream: &mut (impl AsyncWriteExt + Unpin), bytes: &[u8]) -> Result<(), TransportFault> {
    stream.write_all(bytes).await.map_err(|error| TransportFault::of(&error))
}

/// A message of the DNS with its length before it (RFC 1035 §4.2.2).
pub(super) async fn write_message(
    stream: &mut (impl AsyncWriteExt + Unpin),
    message: &[u8],
) -> Result<(), TransportFault> {
    let length =
        u16::try_from(message.len()).map_err(|_| TransportFault::NotSent("a message has at most 65,535 bytes"))?;
    write_all(stream, &[&length.to_be_bytes()[..], message].concat()).await
}

/// The next message of the DNS.
pub(super) async fn read_message(stream: &mut (impl AsyncReadExt + Unpin)) -> Result<Vec<u8>, TransportFault> {
    let length = stream.read_u16().await.map_err(|error| TransportFault::of(&error))?;
    read_exactly(stream, usize::from(length)).await
}

/// The next frame of the control channel, if it is not too long.
pub(super) async fn read_frame(
    stream: &mut (impl AsyncReadExt + Unpin),
    longest: u32,
) -> Result<Vec<u8>, TransportFault> {
    let length = stream.read_u32().await.map_err(|error| TransportFault::of(&error))?;
    if length > longest {
        return Err(TransportFault::TooMuch("its answer is longer than any answer to a command is"));
    }
    read_exactly(stream, length as usize).await
}

/// What is said to follow is kept as it comes: a length alone takes no memory.
async fn read_exactly(stream: &mut (impl AsyncReadExt + Unpin), length: usize) -> Result<Vec<u8>, TransportFault> {
    let mut bytes = Vec::with_capacity(length.min(65_536));
    let read = stream.take(length as u64).read_to_end(&mut bytes).await.map_err(|error| TransportFault::of(&error))?;
    if read == length { Ok(bytes) } else { Err(TransportFault::Closed) }
}
