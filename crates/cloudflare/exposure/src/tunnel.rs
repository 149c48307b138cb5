//! A tunnel as the API lists it → whether its configuration can be written.

use std::time::Duration;

use portolan_cloudflare_api::objects::Tunnel;
use portolan_cloudflare_api::{Item as _, Reader, SharedLook};
use portolan_core::Problem;
use portolan_publication::reasons;

/// So long a tunnel that cannot be used is taken as still unusable.
pub const UNUSABLE_KEPT: Duration = Duration::from_secs(30);

/// What was found of a tunnel that cannot be used; none where nothing can be said of it.
pub type Unusable = SharedLook<Option<TunnelState>>;

/// What all who use a credential know of a tunnel that cannot be used.
pub fn unusable(reader: &Reader, account_id: &str, tunnel_id: &str) -> Unusable {
    reader.looked("unusable_tunnel", &format!("{account_id}/{tunnel_id}"))
}

/// What is known of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelState {
    /// Its configuration can be written, as far as known.
    Usable,
    /// A file beside `cloudflared` holds its configuration.
    LocallyManaged,
    /// There is none.
    Missing,
}

impl TunnelState {
    /// What a listed tunnel is.
    pub fn of(tunnel: &Tunnel) -> Self {
        match tunnel.config_src.as_deref() {
            _ if tunnel.deleted() => Self::Missing,
            Some("local") => Self::LocallyManaged,
            _ => Self::Usable,
        }
    }

    /// Whether a rule can be written to it.
    pub fn check(self, tunnel_id: &str) -> Result<(), Problem> {
        match self {
            Self::Usable => Ok(()),
            Self::LocallyManaged => Err(Problem::waiting(
                reasons::TUNNEL_LOCALLY_MANAGED,
                format!(
                    "tunnel {tunnel_id} takes its configuration from a file; migrate it to remote management, or use another tunnel"
                ),
            )),
            Self::Missing => Err(Problem::waiting(
                reasons::TUNNEL_NOT_FOUND,
                format!("tunnel {tunnel_id} does not exist in the account; create it, or correct tunnelId"),
            )),
        }
    }
}
