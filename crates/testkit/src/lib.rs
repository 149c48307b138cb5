//! A world in one process: API server, Cloudflare simulator and the operator between them, on one clock, replayed from
//! a seed; and the suites that every kind goes through.
//!
//! [`World`] is what a test plays with. [`lifecycle`] holds what is true of every kind, [`crash`] kills the operator at
//! every step of a scenario, [`invariants`] checks what must hold whatever happened.

mod clock;
pub mod cloudflare;
pub mod cluster;
pub mod crash;
mod furnish;
pub mod gate;
pub mod histories;
pub mod hooks;
pub mod invariants;
pub mod job;
pub mod jobs;
pub mod lifecycle;
mod logged;
pub mod manifests;
mod operator;
mod pace;
mod prepared;
pub mod process;
mod real;
mod rights;
pub mod sample;
pub mod seeds;
mod transport;
mod world;
pub mod zerotrust;

pub use job::WorldJob;
pub use jobs::cloudflare_world;
pub use logged::logged;
pub use pace::WorldPace;
pub use process::OperatorProcess;
pub use real::{Controllers, RealServer};
pub use world::{Backend, Builder, World};

/// Runs a future to its end in one thread under a paused clock.
pub fn paused<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime of one thread").block_on(future)
}

/// Says a figure that is shown though tests that pass are silent.
pub fn tell(text: &str) {
    use std::io::Write as _;
    // Written to the handle itself: what `println!` says is kept back. At once, or the line of another test gets into it.
    // Nobody minds if it cannot be said.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
