//! The network of pods on real sockets: forwarding, names, addresses, and pods that are replaced while they are asked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod addresses;
mod names;
mod replaced;
mod support;
mod tcp;
mod udp;
