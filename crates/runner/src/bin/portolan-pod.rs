//! `portolan pod-init ORDER` alone, for the tests of this crate: the `portolan` command has the same.

use std::process::ExitCode;

use portolan_runner::machine::{init, processes::INIT_COMMAND};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some(INIT_COMMAND), Some(order)) => init::become_program(&order),
        _ => {
            eprintln!("portolan-pod: this is for the tests of the runner; use portolan");
            ExitCode::from(2)
        }
    }
}
