//! Clusters and instances of BIND 9 on the embedded API server: what is made of them, in which order, and what a settled world costs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

#[path = "bind9/clusters.rs"]
mod clusters;
#[path = "bind9/instances.rs"]
mod instances;
#[path = "bind9/world.rs"]
mod world;
