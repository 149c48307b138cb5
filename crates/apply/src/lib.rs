//! Manifests → objects on a Kubernetes API server, by server-side apply or as whoever applied an object before would do it.
//!
//! ```text
//! files ─► manifest ─► applying: kinds (discovery), way (who applied it, and how), owners, three_way ─► server
//! ```
//!
//! [`applying::Applier`] applies; [`kinds::Kinds`] knows what the server serves and its paths; [`server::Server`] sends plain
//! requests. A [`failure::Failure`] says what went wrong, and what to do next.

pub mod applying;
pub mod failure;
pub mod kinds;
pub mod manifest;
pub mod server;
