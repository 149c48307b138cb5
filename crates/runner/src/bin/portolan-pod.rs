//! The hidden commands of `portolan` that pods need, alone, for the tests of this crate.

use std::process::ExitCode;

use portolan_runner::echo::{self, ECHO_COMMAND};
use portolan_runner::machine::{init, processes::INIT_COMMAND};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, [order])) if command == INIT_COMMAND => init::become_program(order),
        Some((command, rest)) if command == ECHO_COMMAND => echo::serve(rest),
        _ => {
            eprintln!("portolan-pod: this is for the tests of the runner; use portolan");
            ExitCode::from(2)
        }
    }
}
