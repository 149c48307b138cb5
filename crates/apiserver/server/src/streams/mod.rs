//! Connections into pods: a request that is upgraded → streams of bytes between its client and a runner.
//!
//! ```text
//! headers ─► handshake: which protocol ─► link: messages or bytes ─┬─► channels ──────────┬─► exec, attach ◄─ ExecSession
//!                                                                  └─► spdy: its streams ─┴─► forward ◄───── PodSocket
//! ```

mod channels;
mod exec;
mod forward;
mod handshake;
mod link;
mod outlet;
mod spdy;

pub(crate) use channels::{ForwardChannels, exec_channels};
pub(crate) use exec::{ExecPlan, exec_streams, run_exec};
pub(crate) use forward::{PortForward, forward_channels, forward_streams};
pub(crate) use handshake::{StreamProtocol, StreamPurpose, handshake};
pub(crate) use link::Link;
