//! An address and a port of a pod → a connection, for `kubectl port-forward`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;

/// How long a pod may take to answer.
const CONNECTS_WITHIN: Duration = Duration::from_secs(10);

/// Connects to a port. Pods have addresses of this machine only: another one in a status was not written by the runner, and is not
/// followed into somebody's network.
pub(super) async fn dial(address: &str, port: u16) -> Result<TcpStream, String> {
    let known = address.parse::<IpAddr>().ok().filter(IpAddr::is_loopback);
    let address = known.ok_or_else(|| format!("the pod's address {address:?} is none of this machine's loopback"))?;
    let socket = SocketAddr::new(address, port);
    let failed = |why: String| format!("failed to connect to {socket} of the pod: {why}");
    let late = |_| failed(format!("no answer within {} s", CONNECTS_WITHIN.as_secs()));
    let connected = tokio::time::timeout(CONNECTS_WITHIN, TcpStream::connect(socket)).await.map_err(late)?;
    let stream = connected.map_err(|error| failed(error.to_string()))?;
    // Small answers are not held back to be sent with others.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_addresses_of_the_loopback_are_dialled() {
        for other in ["", "192.0.2.1", "169.254.169.254", "localhost", "::2"] {
            let why = dial(other, 80).await.unwrap_err();
            assert!(why.contains("none of this machine's loopback"), "{other}: {why}");
        }
    }

    #[tokio::test]
    async fn a_port_that_nobody_listens_on_is_told_with_the_address() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();

        let why = dial("127.0.0.1", free.port()).await.unwrap_err();

        assert!(why.starts_with(&format!("failed to connect to {free} of the pod: Connection refused")), "{why}");
    }
}
