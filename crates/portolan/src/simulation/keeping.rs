//! How the simulator begins.

use std::path::Path;

use super::Simulation;
use crate::failure::Outcome;

impl Simulation {
    /// Keeps nothing yet.
    pub(crate) fn keep(&self, _data_dir: &Path) -> Outcome {
        Ok(())
    }

    /// Begins with an example account.
    pub(crate) fn restore(&self, _data_dir: &Path) -> Outcome {
        self.simulator.seed_example();
        Ok(())
    }
}
