//! The built binary, killed with `kill -9` at any moment. Apart, since it wants to be killed in the midst of its work.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod durability;
mod pod_kills;
mod publish_kills;
#[path = "../pods/stage.rs"]
mod stage;
#[path = "../support/mod.rs"]
mod support;
