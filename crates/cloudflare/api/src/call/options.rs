//! How a request is sent.

use crate::budget::governor::Lane;
use crate::call::retry::RetryPolicy;

/// In which lane, and how patiently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallOptions {
    pub(crate) lane: Lane,
    pub(crate) retry: RetryPolicy,
}

impl CallOptions {
    /// The most urgent lane and the most patient policy of several callers that share a request.
    pub(crate) fn shared(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter()
            .reduce(|one, other| Self { lane: one.lane.min(other.lane), retry: one.retry.more_patient(other.retry) })
    }

    /// The same in another lane.
    pub(crate) fn in_lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    /// The same, every failure given back at once.
    pub(crate) fn once(self) -> Self {
        Self { retry: RetryPolicy::NONE, ..self }
    }
}
