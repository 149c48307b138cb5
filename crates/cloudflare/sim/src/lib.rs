//! Requests to the Cloudflare API in, answers out: a simulator that is strict, not obliging.
//!
//! One JSON store behind a table of collections (`table.rs`). A row says what a collection's objects
//! look like, how they are listed and which errors it gives; what a row cannot say is a small function beside it.
//! Bodies with unknown, read-only, missing or badly typed fields are refused.
//!
//! [`Simulator::answer`] needs no socket; [`Simulator::serve`] puts it on one. Everything timed uses `tokio::time`,
//! everything random comes from [`Options::seed`]: the same requests get the same answers.

mod access;
mod crud;
mod dns;
mod edge;
mod exchange;
mod field;
mod options;
mod resources;
mod rulesets;
mod simulator;
mod special;
mod store;
mod table;

// Modules are known by their own names in the whole crate, whichever folder they lie in.
use exchange::{admin, answer, auth, call, fault, filter, limit, mask, page, record, reply, routes, serve};
use resources::{
    account, audit, certificate_pack, gateway_configuration, ingress, network_route, tunnel, virtual_network, zone,
};
use store::{ids, lag, state};

pub use access::Quotas;
pub use edge::{
    COUNTRY_HEADER, DECISION_PATH, EMAIL_HEADER, Edge, EdgeAccess, EdgeAnswer, EdgeApp, EdgeDecision, EdgeOutcome,
    EdgePolicy, EdgeRecord, EdgeRequest, EdgeRule, IP_HEADER, OriginAddress, OriginPlace,
};
pub use exchange::answer::Dropped;
pub use exchange::auth::{Grant, RightLevel, credential_id};
pub use exchange::fault::{Count, Effect, Fault, When};
pub use exchange::record::RecordedRequest;
pub use exchange::serve::Serving;
pub use options::{Clock, Options};
pub use simulator::Simulator;
