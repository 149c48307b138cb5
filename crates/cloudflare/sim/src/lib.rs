//! Requests to the Cloudflare API in, answers out: a simulator that is strict, not obliging.
//!
//! One JSON store behind a table of collections (`table.rs`). A row says what a collection's objects
//! look like, how they are listed and which errors it gives; what a row cannot say is a small function beside it.
//! Bodies with unknown, read-only, missing or badly typed fields are refused.
//!
//! [`Simulator::answer`] needs no socket; [`Simulator::serve`] puts it on one. Everything timed uses `tokio::time`,
//! everything random comes from [`Options::seed`]: the same requests get the same answers.

mod access;
mod account;
mod admin;
mod answer;
mod audit;
mod auth;
mod call;
mod certificate_pack;
mod crud;
mod dns;
mod edge;
mod fault;
mod field;
mod filter;
mod ids;
mod ingress;
mod lag;
mod limit;
mod mask;
mod network_route;
mod options;
mod page;
mod record;
mod reply;
mod routes;
mod rulesets;
mod seed;
mod serve;
mod simulator;
mod snapshot;
mod special;
mod state;
mod store;
mod table;
mod tunnel;
mod virtual_network;
mod zone;

pub use access::Quotas;
pub use answer::Dropped;
pub use auth::{Grant, RightLevel, credential_id};
pub use edge::{
    COUNTRY_HEADER, DECISION_PATH, EMAIL_HEADER, Edge, EdgeAccess, EdgeAnswer, EdgeApp, EdgeDecision, EdgeOutcome,
    EdgePolicy, EdgeRecord, EdgeRequest, EdgeRule, IP_HEADER, OriginAddress, OriginPlace,
};
pub use fault::{Count, Effect, Fault, When};
pub use options::{Clock, Options};
pub use record::RecordedRequest;
pub use serve::Serving;
pub use simulator::Simulator;
