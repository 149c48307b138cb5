//! The engine against the embedded API server, with a toy kind and a toy remote side, on a paused clock.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

#[path = "engine/caches.rs"]
mod caches;
#[path = "engine/deletion.rs"]
mod deletion;
#[path = "engine/gadget.rs"]
mod gadget;
#[path = "engine/guarding.rs"]
mod guarding;
#[path = "engine/health.rs"]
mod health;
#[path = "engine/leading.rs"]
mod leading;
#[path = "engine/ledgers.rs"]
mod ledgers;
#[path = "engine/memory.rs"]
mod memory;
#[path = "engine/modes.rs"]
mod modes;
#[path = "engine/passes.rs"]
mod passes;
#[path = "engine/purity.rs"]
mod purity;
#[path = "engine/retries.rs"]
mod retries;
#[path = "engine/secrets.rs"]
mod secrets;
#[path = "engine/stopping.rs"]
mod stopping;
#[path = "engine/watching.rs"]
mod watching;
#[path = "engine/world.rs"]
mod world;
