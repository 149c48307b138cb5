//! Reads what is judged: the cluster, and Cloudflare by each token. The only part that asks anybody.

pub(crate) mod cloudflare;
pub(crate) mod cluster;
pub(crate) mod tenants;
mod wire;
