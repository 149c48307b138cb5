//! A worker between an embedded API server and a Cloudflare simulator, on a paused clock.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

#[path = "worker/world.rs"]
mod world;

#[path = "worker/crashes.rs"]
mod crashes;
#[path = "worker/deleting.rs"]
mod deleting;
#[path = "worker/failing.rs"]
mod failing;
#[path = "worker/publishing.rs"]
mod publishing;
#[path = "worker/sharing.rs"]
mod sharing;
#[path = "worker/stopping.rs"]
mod stopping;
#[path = "worker/tokens.rs"]
mod tokens;
