//! The built binary beside programs of others: a real control plane, a real helm.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod doctor_real;
mod helm;
mod helm_embedded;
mod migration;
mod run_real;
#[path = "../support/mod.rs"]
mod support;
mod three_roles;
