//! The route side between an embedded API server and a simulated Cloudflare; the test plays the worker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

#[path = "routes/budget.rs"]
mod budget;
#[path = "routes/collecting.rs"]
mod collecting;
#[path = "routes/orphans.rs"]
mod orphans;
#[path = "routes/plans.rs"]
mod plans;
#[path = "routes/queueing.rs"]
mod queueing;
#[path = "routes/statuses.rs"]
mod statuses;
#[path = "routes/world.rs"]
mod world;
