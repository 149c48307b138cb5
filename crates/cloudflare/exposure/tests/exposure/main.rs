//! Names that become reachable, at the simulator: case by case, and in random histories.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod histories;
mod names;
mod sharing;
mod support;
