//! Processes of this machine as containers: started, told, killed, found again after their runner was.
//!
//! What runs here are the system's own small tools. Nothing waits for a time: each test waits for what it is about.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod ends;
mod leftovers;
mod support;
mod users;
