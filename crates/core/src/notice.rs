//! Something that the user should be told, whether or not anything failed; becomes an event.

/// Whether what is told is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something was done, or is good to know.
    Normal,
    /// Something needs attention.
    Warning,
}

impl Severity {
    /// The word that events carry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// A sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it is good news.
    pub severity: Severity,
    /// One word, as `SyncFailed`.
    pub reason: &'static str,
    /// The sentence, free of secrets.
    pub message: String,
}

impl Notice {
    /// Something that was done, or is good to know.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Normal, reason, message: message.into() }
    }

    /// Something that the user should look at.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, reason, message: message.into() }
    }
}
