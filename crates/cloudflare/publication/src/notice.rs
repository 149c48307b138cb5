//! Something that the user should be told, though nothing failed.

/// A sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it is a warning.
    pub warning: bool,
    /// One of [`crate::reasons`] or of the core's.
    pub reason: &'static str,
    /// The sentence, free of secrets.
    pub message: String,
}

impl Notice {
    /// Something that the user should look at.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { warning: true, reason, message: message.into() }
    }

    /// Something that is good to know.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { warning: false, reason, message: message.into() }
    }
}
