//! An address and a number of requests → how long each took: for measuring what forwarding costs.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use super::service::Transport;

/// What is asked: the echo server, and any server of HTTP, answers it by TCP; by UDP the echo server does.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: echo\r\nConnection: close\r\n\r\n";
const LONGEST: usize = 65_536;

/// How long so many requests took, one after the other: each with a connection or a socket of its own, until its whole answer
/// was there.
pub async fn round_trips(transport: Transport, address: SocketAddr, count: usize) -> io::Result<Vec<Duration>> {
    let mut taken = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        match transport {
            Transport::Tcp => by_tcp(address).await?,
            Transport::Udp => by_udp(address).await?,
        }
        taken.push(began.elapsed());
    }
    Ok(taken)
}

/// The one in the middle; nothing where there is none.
pub fn median(mut taken: Vec<Duration>) -> Duration {
    taken.sort();
    taken.get(taken.len() / 2).copied().unwrap_or_default()
}

async fn by_tcp(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(REQUEST).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    if answer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

async fn by_udp(address: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    socket.connect(address).await?;
    socket.send(REQUEST).await?;
    let mut answer = vec![0; LONGEST];
    socket.recv(&mut answer).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!(median([9, 1, 5].map(Duration::from_millis).to_vec()), Duration::from_millis(5));
        assert_eq!(median(Vec::new()), Duration::ZERO);
    }
}
