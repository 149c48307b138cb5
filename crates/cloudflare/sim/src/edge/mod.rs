//! The edge: HTTP requests for published names in, what Cloudflare would answer out.
//!
//! Host → proxied record → redirect rule → Access application and its policies → first matching rule of the tunnel's
//! configuration → origin. [`EdgeDecision`] is that way as a value, found without I/O; [`Edge`] walks it and speaks to
//! origins.
//!
//! What stands for things that are not here:
//! - the header `Cf-Access-Test-Email` for a visitor who has logged in (`Cf-Access-Test-Ip` and
//!   `Cf-Access-Test-Country` for where they are);
//! - the header `X-Forwarded-Proto` for the scheme: the edge itself speaks plain HTTP and takes requests as HTTPS without it;
//! - a table of addresses for origins that only a cluster's DNS knows ([`Edge::origin`]).
//!
//! Redirect rules come before Access, as in the order of the real edge's phases.

mod access;
mod decision;
mod domain;
mod expression;
mod failure;
mod ingress;
mod origin;
mod page;
mod redirect;
mod request;
mod resolve;
mod selector;
mod serve;
#[cfg(test)]
mod tests;
mod view;

pub use decision::{EdgeAccess, EdgeApp, EdgeDecision, EdgeOutcome, EdgePolicy, EdgeRecord, EdgeRule};
pub use origin::{OriginAddress, OriginPlace};
pub use request::{COUNTRY_HEADER, EMAIL_HEADER, EdgeRequest, IP_HEADER};
pub use serve::{DECISION_PATH, Edge, EdgeAnswer};
