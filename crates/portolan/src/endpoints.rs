//! Addresses of metrics and health → sockets that answer.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::Router;
use portolan_engine::{CancellationToken, health_routes, metrics_routes};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::failure::{Failure, Outcome};
use crate::operator::Operator;

/// `:8080`, `127.0.0.1:8080`, or `0` for nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListenAddress(Option<SocketAddr>);

impl ListenAddress {
    /// Any free port that only this machine reaches.
    pub(crate) fn loopback() -> Self {
        Self(Some(SocketAddr::from(([127, 0, 0, 1], 0))))
    }

    /// Nowhere.
    pub(crate) fn none() -> Self {
        Self(None)
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unreadable = || format!("{text:?} is no address: write :8080, 127.0.0.1:8080, or 0 for none");
        if matches!(text, "0" | "") {
            return Ok(Self(None));
        }
        let address = match text.strip_prefix(':') {
            // All addresses, of both families where the machine has both.
            Some(port) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port.parse().map_err(|_| unreadable())?),
            None => text.parse().map_err(|_| unreadable())?,
        };
        Ok(Self(Some(address)))
    }
}

/// Sockets that wait for the controllers.
pub(crate) struct Endpoints {
    metrics: Option<TcpListener>,
    health: Option<TcpListener>,
}

impl Endpoints {
    /// Takes the addresses, so that one that is taken stops the start and not the work.
    pub(crate) async fn bind(metrics: &ListenAddress, health: &ListenAddress) -> Outcome<Self> {
        Ok(Self { metrics: bind(metrics, "--metrics").await?, health: bind(health, "--health").await? })
    }

    /// Where metrics are served.
    pub(crate) fn metrics_url(&self) -> Option<String> {
        self.url_beside_metrics("/metrics")
    }

    /// Where another page beside the metrics is.
    pub(crate) fn url_beside_metrics(&self, path: &str) -> Option<String> {
        let address = self.metrics.as_ref()?.local_addr().ok()?;
        Some(format!("http://{address}{path}"))
    }

    /// Answers until the result is dropped.
    pub(crate) fn serve(self, operator: &Operator) -> JoinSet<()> {
        self.serve_with(operator, Router::new())
    }

    /// As [`serve`](Self::serve), with further pages beside the metrics.
    pub(crate) fn serve_with(self, operator: &Operator, beside_metrics: Router) -> JoinSet<()> {
        let mut serving = JoinSet::new();
        let routes = [
            (self.metrics, metrics_routes(operator.metrics().clone()).merge(beside_metrics)),
            (self.health, health_routes(operator.probes())),
        ];
        for (listener, routes) in routes {
            if let Some(listener) = listener {
                serving.spawn(answer(listener, routes));
            }
        }
        serving
    }
}

async fn answer(listener: TcpListener, routes: Router) {
    if let Err(error) = portolan_engine::serve(listener, routes, CancellationToken::new()).await {
        tracing::warn!(%error, "Metrics or health are no longer served");
    }
}

async fn bind(address: &ListenAddress, flag: &str) -> Outcome<Option<TcpListener>> {
    let Some(address) = address.0 else { return Ok(None) };
    let bound = match TcpListener::bind(address).await {
        // A machine without IPv6.
        Err(_) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            TcpListener::bind(("0.0.0.0", address.port())).await
        }
        bound => bound,
    };
    bound.map(Some).map_err(|error| {
        Failure::new(format!("listening on {address}: {error}"))
            .next(format!("choose another address with {flag}, or 0 for none"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_means_all_addresses_and_zero_means_none() {
        assert_eq!("0".parse(), Ok(ListenAddress(None)));
        assert_eq!(":8080".parse(), Ok(ListenAddress(Some("[::]:8080".parse().unwrap()))));
        assert_eq!("127.0.0.1:1".parse(), Ok(ListenAddress(Some("127.0.0.1:1".parse().unwrap()))));
        assert!(":x".parse::<ListenAddress>().unwrap_err().contains("127.0.0.1:8080"));
    }
}
