//! `portolan up` runs pods: workloads end to end on real processes, as users of `portolan` and of `kubectl` see them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod claims;
mod modes;
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod views;
mod workloads;
