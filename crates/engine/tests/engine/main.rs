//! The engine against the embedded API server, with a toy kind and a toy remote side, on a paused clock.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod caches;
mod deletion;
mod gadget;
mod leading;
mod memory;
mod modes;
mod passes;
mod retries;
mod stopping;
mod watching;
mod world;
