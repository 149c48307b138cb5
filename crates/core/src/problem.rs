//! Why a reconcile could not do its work, in the four classes that the engine treats differently.

use std::{fmt, time::Duration};

use crate::{InvalidName, reasons};

/// What has to happen before another try makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The user has to change the object: no retry until it, or what it refers to, changes.
    Invalid,
    /// Something it needs is not there yet: tried again soon, and when that something appears.
    Waiting,
    /// It may work next time: tried again with growing pauses.
    Transient,
    /// A credential or permission is refused: tried again slowly, and when the credential changes.
    Denied,
}

impl Class {
    /// The class as a metric label and log field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Waiting => "waiting",
            Self::Transient => "transient",
            Self::Denied => "denied",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reconcile that ended early: the class decides when it is tried again, the reason goes into the condition, the
/// event and the metric, the message tells the user what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// When another try makes sense.
    pub class: Class,
    /// One of [`mod@crate::reasons`].
    pub reason: &'static str,
    /// A sentence for the user, free of secrets.
    pub message: String,
    /// The pause that the other side asked for.
    pub retry_after: Option<Duration>,
}

impl Problem {
    /// The object has to be changed by the user.
    pub fn invalid(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(Class::Invalid, reason, message)
    }

    /// Something that it needs is not there yet.
    pub fn waiting(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(Class::Waiting, reason, message)
    }

    /// It may work next time.
    pub fn transient(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(Class::Transient, reason, message)
    }

    /// A credential or permission is refused.
    pub fn denied(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(Class::Denied, reason, message)
    }

    /// The same problem, not to be tried again before `pause` is over.
    pub fn with_retry_after(self, pause: Duration) -> Self {
        Self { retry_after: Some(pause), ..self }
    }

    fn of(class: Class, reason: &'static str, message: impl Into<String>) -> Self {
        Self { class, reason, message: message.into(), retry_after: None }
    }
}

impl From<InvalidName> for Problem {
    fn from(name: InvalidName) -> Self {
        Self::invalid(reasons::INVALID_CONFIG, name.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Network;

    #[test]
    fn a_problem_reads_as_its_message() {
        let problem = Problem::waiting(reasons::DEPENDENCY_ERROR, "Tunnel shop/web has no id yet");

        assert_eq!(problem.to_string(), "Tunnel shop/web has no id yet");
        assert_eq!(problem.class.to_string(), "waiting");
    }

    #[test]
    fn a_name_that_does_not_parse_is_for_the_user_to_change() {
        let problem = Problem::from(Network::parse("10.0.0.1/8").unwrap_err());

        assert_eq!((problem.class, problem.reason), (Class::Invalid, "InvalidConfig"));
        assert!(problem.message.contains("write 10.0.0.0/8"));
    }

    #[test]
    fn the_pause_asked_for_is_kept_with_the_problem() {
        let problem = Problem::transient(reasons::RATE_LIMITED, "wait").with_retry_after(Duration::from_secs(60));

        assert_eq!(problem.retry_after, Some(Duration::from_secs(60)));
        assert_eq!((problem.class, problem.reason), (Class::Transient, "RateLimited"));
    }
}
