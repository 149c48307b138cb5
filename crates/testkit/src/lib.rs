//! A world in one process: API server, Cloudflare simulator and the operator between them, on one clock, replayed from
//! a seed. It knows no job: who makes one gives it the job, as a [`WorldJob`].
//!
//! [`World`] is what a test plays with, [`crash`] kills the operator at every step of a scenario, [`history`] lives through what
//! happens in any order, [`seeds`] chooses which histories. What must hold of jobs and kinds is in `portolan-testkit-suites`.

pub mod breach;
pub mod clock;
pub mod cloudflare;
pub mod cluster;
pub mod crash;
pub mod failpoints;
mod fixtures;
pub mod history;
pub mod hooks;
pub mod job;
mod logged;
mod operator;
mod pace;
mod prepared;
pub mod process;
mod real;
mod rights;
pub mod seeds;
mod transport;
pub mod world;

pub use job::WorldJob;
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
