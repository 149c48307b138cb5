//! One call of the API: a request as a value in, what was answered out.

pub mod envelope;
pub mod error;
pub(crate) mod headers;
pub(crate) mod listing;
pub(crate) mod options;
pub(crate) mod redact;
pub(crate) mod request;
pub(crate) mod retry;
pub(crate) mod sender;
pub(crate) mod transport;
