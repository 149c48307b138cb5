//! The client against the simulator, in process and over a socket.

mod documents;
mod simulator;
mod socket;
#[path = "../support/mod.rs"]
mod support;
