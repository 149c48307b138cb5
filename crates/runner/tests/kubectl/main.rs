//! The kubectl of the parity suite against an embedded API server whose pods run: logs, exec, attach and port-forward.
//!
//! Where kubectl cannot be built (no Go toolchain) nothing is played, and the summary says so.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod exec;
mod forward;
mod logs;
mod support;
