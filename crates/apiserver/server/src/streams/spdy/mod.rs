//! SPDY 3.1 as streams into pods speak it: bytes ↔ frames, frames ↔ streams.
//!
//! Nobody else speaks it any more, and no library for it is kept. What clients of Kubernetes use of it is little: streams
//! that the client opens, data, pings and the end. Flow control is left out on both sides (<https://github.com/moby/spdystream>
//! neither keeps windows nor looks at them).

mod connection;
mod dictionary;
mod frames;
mod header_block;

pub(crate) use connection::{SpdySender, SpdyStream, serve};

/// Why what a client sends is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpdyError {
    /// A frame.
    #[error("a frame is longer than it may be")]
    TooLong,
    /// A frame.
    #[error("a frame is not what SPDY 3 knows")]
    Frame,
    /// A header block.
    #[error("the headers of a stream cannot be read")]
    Headers,
}
