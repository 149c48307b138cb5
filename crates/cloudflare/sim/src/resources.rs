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

use crate::{
    page::Paging,
    table::{Collection, ROW},
};

/// What the rows of tunnels and the networks behind them have in common: deleted ones stay and are listed when asked for.
pub(crate) const NETWORKING: Collection = Collection {
    paging: Paging::Pages { default: 20, min: 1, max: 1000 },
    soft_delete: true,
    group: "networks",
    ..ROW
};
