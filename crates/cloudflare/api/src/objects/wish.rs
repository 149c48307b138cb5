//! Members that are wanted only where somebody says something.

use serde::{Deserialize, Serialize};

/// A yes or no that matters only where both sides say something: no wish is content with either.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OptionalWish(pub Option<bool>);

impl OptionalWish {
    /// What is said where the API does not show a member that it shows when it is set.
    pub(super) fn no() -> Self {
        Self(Some(false))
    }

    /// Whether nothing is said.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl PartialEq for OptionalWish {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_none() || other.0.is_none() || self.0 == other.0
    }
}

impl Eq for OptionalWish {}
