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
mod pods_page;
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
mod workloads;
mod zerotrust;

use std::process::ExitCode;

use portolan_apply::{applying, kinds, manifest};
use portolan_runner::echo::{self, ECHO_COMMAND};
use portolan_runner::machine::init;
use portolan_runner::machine::processes::INIT_COMMAND;

/// Gives back what a burst of work needed (`.cargo/config.toml` says how soon); the system's allocator keeps most of it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // A process that is to become a pod's program does so before it has any thread but this one.
    if let Some(code) = pods_command() {
        return code;
    }
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

/// The hidden commands by which the runner's processes become what pods want.
fn pods_command() -> Option<ExitCode> {
    let arguments: Option<Vec<String>> =
        std::env::args_os().skip(1).map(|argument| argument.into_string().ok()).collect();
    match arguments?.split_first() {
        Some((command, [order])) if command == INIT_COMMAND => Some(init::become_program(order)),
        Some((command, rest)) if command == ECHO_COMMAND => Some(echo::serve(rest)),
        _ => None,
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
