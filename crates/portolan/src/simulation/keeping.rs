//! The simulator's state in the data directory, so that a restart changes nothing.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::Simulation;
use crate::failure::{Failure, Outcome};

/// The file's name.
const FILE: &str = "simulator.json";

impl Simulation {
    /// Writes everything that is simulated. The file appears whole or not at all, and only its owner can read it.
    pub(crate) fn keep(&self, data_dir: &Path) -> Outcome {
        let path = data_dir.join(FILE);
        let fresh = data_dir.join(format!("{FILE}.new"));
        let text = self.simulator.snapshot().to_string();
        write_private(&fresh, &text).and_then(|()| std::fs::rename(&fresh, &path)).map_err(|error| {
            Failure::new(format!("the simulator's state cannot be kept in {}: {error}", path.display()))
                .next("check that you may write to the data directory and that its disk is not full")
        })
    }

    /// Whether a data directory holds the state of a simulator.
    pub(crate) fn is_kept_in(data_dir: &Path) -> bool {
        data_dir.join(FILE).exists()
    }

    /// Reads what an earlier start kept; begins with a seed, or else an example account, where there is nothing.
    pub(crate) fn restore(&self, data_dir: &Path, seed: Option<Value>) -> Outcome {
        let path = data_dir.join(FILE);
        let refused = |error: String| {
            Failure::new(format!("the simulator's state in {} cannot be used: {error}", path.display()))
                .next("move the file away to begin with an empty simulator, or choose another --data-dir")
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.begin(seed);
            }
            Err(error) => return Err(refused(error.to_string())),
        };
        let saved: Value = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        self.simulator.restore(saved).map_err(refused)
    }

    /// Fills an empty simulator.
    pub(crate) fn begin(&self, seed: Option<Value>) -> Outcome {
        let Some(seed) = seed else {
            self.simulator.seed_example();
            return Ok(());
        };
        self.simulator.seed(seed).map_err(|error| {
            Failure::new(format!("the seed was refused: {error}")).next("correct the file given with --seed")
        })
    }
}

/// Reads a file with a seed, JSON or YAML.
pub(crate) fn read_seed(path: &Path) -> Outcome<Value> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(format!("{shown} cannot be read: {error}")).next("check the path given with --seed")
    })?;
    serde_saphyr::from_str(&text).map_err(|error| {
        Failure::new(format!("{shown} is neither JSON nor YAML: {error}")).next("correct the file given with --seed")
    })
}

/// Writes a file that only its owner reads.
pub(crate) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
