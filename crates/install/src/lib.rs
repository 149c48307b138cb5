//! The objects of an installation: values and jobs in, manifests out. No cluster, no files, no clock.
//!
//! ```text
//! defaults + files + key=value ─► Values ─► objects ─► printed or applied by `portolan install`
//!                      the jobs' sheets ─┘
//!                                   │
//!                                   └─► the generated parts of the Helm chart, which renders the same objects
//! ```

pub mod chart;
mod checks;
mod merge;
mod objects;
mod schema;
#[cfg(test)]
mod testing;
pub mod values;

pub use objects::{Release, objects};
pub use values::Values;

/// Values that cannot be installed: where, and what is allowed there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct Invalid {
    /// The place, as `tenant.accountId`.
    pub path: String,
    /// What is wrong with it, and what is allowed.
    pub message: String,
}

impl Invalid {
    pub(crate) fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}
