//! The `portolan` command: arguments in; objects, tables and measurements out.

mod bench;
mod cli;
mod cloudflare;
mod colour;
mod definitions;
mod doctor;
mod duration;
mod endpoints;
mod failure;
mod finalizers;
mod health_view;
mod jobs;
mod logs;
mod operator;
mod output;
mod planning;
mod progress;
mod prometheus_text;
mod server;
mod signals;
mod simulation;
mod status;
mod table;
mod traces;
mod up;
mod urls;
mod why;
mod zerotrust;

use std::process::ExitCode;

use portolan_apply::{applying, kinds, manifest};

/// Gives back what a burst of work needed (`.cargo/config.toml` says how soon); the system's allocator keeps most of it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = match cli::Cli::read() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    match cli.run() {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Help and version are no errors. Code 2 is for wrong command lines, except of `plan`, where it means changes.
fn misused(error: &clap::Error) -> ExitCode {
    // A reader that went away (`| head`) is no error either.
    let _ = error.print();
    let is_plan = std::env::args_os().nth(1).is_some_and(|command| command == "plan");
    match (error.use_stderr(), is_plan) {
        (false, _) => ExitCode::SUCCESS,
        (true, true) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(2),
    }
}
