//! Connections into pods, as a runner of pods gives them: programs beside containers, and ports.
//!
//! Which client may ask, by which protocol and for which container is decided here, so that all runners answer alike.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};

/// A runner of pods that lets others in.
pub trait PodStreams: Send + Sync {
    /// Runs a program beside a container's: as its user, in its folder, with its variables.
    ///
    /// # Errors
    /// A sentence for the user: there is no such program, or the container does not run.
    fn exec(&self, order: ExecOrder) -> BoxFuture<'static, Result<ExecSession, StreamRefusal>>;

    /// Connects to a port of a pod.
    ///
    /// # Errors
    /// A sentence for the user: nobody listens there.
    fn dial(&self, port: PodPort) -> BoxFuture<'static, Result<Box<dyn PodSocket>, StreamRefusal>>;
}

/// Which program is to run, and beside what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOrder {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// One of its containers.
    pub container: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether the client has input for it.
    pub has_input: bool,
    /// Whether it is to have a terminal, by which errors are output as well.
    pub has_terminal: bool,
}

/// A program that runs. Dropped before its end, the program is ended.
pub struct ExecSession {
    /// Takes its input, where it has some; dropped at the end of the input.
    pub input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// What it writes.
    pub output: BoxStream<'static, Bytes>,
    /// What it writes as errors.
    pub errors: BoxStream<'static, Bytes>,
    /// Takes the size of the client's terminal.
    pub resize: Option<Box<dyn Fn(TerminalSize) + Send + Sync>>,
    /// Its exit code, once it has ended with everything that it started; or why it never began.
    pub end: BoxFuture<'static, Result<i32, StreamRefusal>>,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// A port of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodPort {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The address that the pod has.
    pub address: String,
    /// The port's number.
    pub port: u16,
}

/// A connection to a port.
pub trait PodSocket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> PodSocket for S {}

/// Why a runner lets nobody in: a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StreamRefusal(pub String);
