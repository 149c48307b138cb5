//! What the Deployment's controller last found out about a configuration, for the one that reports it.

use std::sync::{Mutex, PoisonError};

use portolan_core::Problem;
use portolan_zerotrust_model::CloudflareZeroTrustOperatorConfig as Config;

/// A configuration at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) uid: String,
    pub(crate) generation: i64,
}

impl Version {
    pub(crate) fn of(config: &Config) -> Self {
        let meta = &config.metadata;
        Self { uid: meta.uid.clone().unwrap_or_default(), generation: meta.generation.unwrap_or_default() }
    }
}

/// How a configuration was taken: it stands, or could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigVerdict {
    pub(crate) version: Version,
    pub(crate) result: Result<(), Problem>,
}

/// The last verdict.
#[derive(Default)]
pub(crate) struct ConfigStates {
    last: Mutex<Option<ConfigVerdict>>,
}

impl ConfigStates {
    /// The verdict about a configuration at this time.
    pub(crate) fn about(&self, version: &Version) -> Option<Result<(), Problem>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|last| last.version == *version).map(|last| last.result.clone())
    }

    /// Takes a verdict down; answers whether it is news.
    pub(crate) fn note(&self, verdict: Option<ConfigVerdict>) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *last != verdict;
        *last = verdict;
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_about_one_version_alone() {
        let (board, version) = (ConfigStates::default(), Version { uid: "u".to_owned(), generation: 1 });
        let verdict = ConfigVerdict { version: version.clone(), result: Ok(()) };

        assert!(board.note(Some(verdict.clone())));
        assert!(!board.note(Some(verdict)), "the same again is no news");

        assert_eq!(board.about(&version), Some(Ok(())));
        assert_eq!(board.about(&Version { generation: 2, ..version }), None);
    }
}
