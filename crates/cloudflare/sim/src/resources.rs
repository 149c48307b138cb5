//! What accounts and zones have, where a row of the table does not say it all.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod certificate_pack;
pub(crate) mod gateway_configuration;
pub(crate) mod ingress;
pub(crate) mod network_route;
pub(crate) mod tunnel;
pub(crate) mod virtual_network;
pub(crate) mod zone;
