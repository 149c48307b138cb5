//! Clusters, instances and zones of BIND 9 on the embedded API server: what is made of them, in which order, and what a settled world costs.
//! Zones are served by real `named` processes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

#[path = "bind9/clusters.rs"]
mod clusters;
#[path = "bind9/instances.rs"]
mod instances;
#[path = "bind9/servers.rs"]
mod servers;
#[path = "bind9/world.rs"]
mod world;
#[path = "bind9/zones.rs"]
mod zones;
