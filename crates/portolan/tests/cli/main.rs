//! The built binary with its embedded API server, as a user calls it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod commands;
mod data_dir;
mod doctor;
mod image;
mod install;
mod logs;
mod metrics;
mod plan;
mod run;
mod sim;
#[path = "../support/mod.rs"]
mod support;
mod up;
mod zero_trust;
