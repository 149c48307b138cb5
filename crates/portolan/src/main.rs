//! The `portolan` command: arguments in; objects, tables and measurements out.

mod bench;
mod cli;
mod failure;
mod kinds;
mod logs;
mod manifest;
mod output;
mod server;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
