//! How an object is, in the four words that all tools use.

use serde::Serialize;

/// What an object says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ObjectHealth {
    /// `Ready` is true for the spec as it stands.
    Ready,
    /// Nothing was said yet about the spec as it stands.
    Pending,
    /// It is on its way out.
    Deleting,
    /// `Ready` is false.
    NotReady,
}

impl ObjectHealth {
    /// The words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Pending => "Pending",
            Self::Deleting => "Deleting",
            Self::NotReady => "Not ready",
        }
    }
}
