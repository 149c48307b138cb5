//! The way of a request: taken apart, let through or refused, answered, recorded.

pub(crate) mod admin;
pub(crate) mod answer;
pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod fault;
pub(crate) mod filter;
pub(crate) mod limit;
pub(crate) mod mask;
pub(crate) mod page;
pub(crate) mod record;
pub(crate) mod reply;
pub(crate) mod routes;
pub(crate) mod serve;
