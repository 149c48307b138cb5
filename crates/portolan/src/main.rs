//! The `portolan` command: arguments in; objects, tables and measurements out.

mod applying;
mod bench;
mod cli;
mod cloudflare;
mod definitions;
mod duration;
mod endpoints;
mod failure;
mod kinds;
mod logs;
mod manifest;
mod operator;
mod output;
mod paint;
mod planning;
mod progress;
mod samples;
mod seen;
mod server;
mod signals;
mod simulation;
mod status;
mod table;
mod up;
mod urls;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.run() {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
