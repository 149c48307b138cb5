//! The remote objects, one type each, whoever reads or writes them: what is kept of them, written and compared.

mod access_group;
mod account;
mod dns_record;
mod gateway_configuration;
mod identity_provider;
mod made_at;
mod mentioned;
mod network_route;
mod text;
mod tunnel;
mod virtual_network;
mod wish;
mod zone;

pub use access_group::AccessGroup;
pub use account::Account;
pub use dns_record::{AUTOMATIC_TTL, DnsRecord};
pub use gateway_configuration::GatewayConfiguration;
pub use identity_provider::IdentityProvider;
pub use made_at::MadeAt;
pub use mentioned::Mentioned;
pub use network_route::NetworkRoute;
pub use text::ApiText;
pub use tunnel::Tunnel;
pub use virtual_network::VirtualNetwork;
pub use wish::OptionalWish;
pub use zone::{Zone, ZonePlan};

use serde::{Deserialize, Deserializer};

/// Reads a field that the API may leave out or set to null.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}
