//! `kubectl exec` → a program beside a container's, with its input, its output and its end.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use portolan_apiserver::{ExecOrder, ExecSession, StreamRefusal, TerminalSize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::oneshot;

use super::commands::{SideCommands, remove};
use crate::machine::init::LaunchInput;
use crate::machine::processes::{AttachedProcess, ProcessEnd, ProcessHandle};
use crate::machine::terminal::Terminal;

/// Bytes that are read at once.
const PART: usize = 32 * 1024;

/// A client's end of a program.
struct ProgramEnds {
    input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    output: BoxStream<'static, Bytes>,
    errors: BoxStream<'static, Bytes>,
    resize: Option<Box<dyn Fn(TerminalSize) + Send + Sync>>,
}

impl SideCommands {
    /// Starts a program for a client.
    pub(super) async fn session(self, order: &ExecOrder) -> Result<ExecSession, String> {
        let terminal = order.has_terminal.then(Terminal::open).transpose();
        let terminal = terminal.map_err(|error| format!("no terminal is left: {error}"))?;
        let mut launch = self.launch(&order.command)?;
        launch.order.input = match &terminal {
            Some(terminal) => LaunchInput::Terminal(terminal.path().to_owned()),
            None if order.has_input => LaunchInput::Starter,
            None => LaunchInput::Nothing,
        };
        let report = launch.order.report.clone();
        let AttachedProcess { process, input, output, errors } =
            self.context.launcher.launch_attached(launch).await.map_err(|error| error.to_string())?;
        let handle = process.handle();
        if !self.others.add(&self.run, handle.clone()) {
            kill(handle.clone());
        }
        let (told, end) = oneshot::channel();
        let (others, noted) = (self.others.clone(), handle.clone());
        // However the session goes: the program's end is seen, and nothing of it is left.
        tokio::spawn(async move {
            let end = process.ended().await;
            others.remove(&noted);
            remove(&report);
            let _ = told.send(end);
        });
        let leaving = EndsWithSession(Some(handle));
        let ends = match terminal {
            Some(terminal) => ProgramEnds::of_terminal(terminal, order.has_input).map_err(|error| error.to_string())?,
            None => ProgramEnds {
                input: input
                    .filter(|_| order.has_input)
                    .map(|input| Box::new(input) as Box<dyn AsyncWrite + Send + Unpin>),
                output: output.map_or_else(|| stream::empty().boxed(), parts),
                errors: errors.map_or_else(|| stream::empty().boxed(), parts),
                resize: None,
            },
        };
        let ProgramEnds { input, output, errors, resize } = ends;
        Ok(ExecSession { input, output, errors, resize, end: Box::pin(exit_code(end, leaving)) })
    }
}

impl ProgramEnds {
    /// A terminal takes input and gives output; what is written as errors is output, too.
    fn of_terminal(terminal: Terminal, has_input: bool) -> io::Result<Self> {
        let (reader, writer) = (terminal.file()?, terminal.file()?);
        let writer =
            has_input.then(|| Box::new(tokio::fs::File::from_std(writer)) as Box<dyn AsyncWrite + Send + Unpin>);
        let terminal = Arc::new(terminal);
        let resize = move |size: TerminalSize| {
            // A program that has ended has no size.
            let _ = terminal.resize(size.width, size.height);
        };
        Ok(Self {
            input: writer,
            output: parts(tokio::fs::File::from_std(reader)),
            errors: stream::empty().boxed(),
            resize: Some(Box::new(resize)),
        })
    }
}

/// Ends a program whose session is dropped.
struct EndsWithSession(Option<ProcessHandle>);

impl Drop for EndsWithSession {
    fn drop(&mut self) {
        if let Some(process) = self.0.take() {
            kill(process);
        }
    }
}

/// What could not be ended is found by the next runner.
fn kill(process: ProcessHandle) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn_blocking(move || process.kill());
    }
}

async fn exit_code(
    end: oneshot::Receiver<io::Result<ProcessEnd>>,
    mut leaving: EndsWithSession,
) -> Result<i32, StreamRefusal> {
    let end = end.await.map_err(io::Error::other).and_then(|end| end);
    leaving.0 = None;
    match end {
        Ok(ProcessEnd { not_started: Some(why), .. }) => Err(StreamRefusal(why)),
        Ok(ProcessEnd { exit_code, .. }) => Ok(exit_code),
        Err(error) => Err(StreamRefusal(error.to_string())),
    }
}

/// What is read, part by part; an error is an end, as a terminal's is.
fn parts<R: AsyncRead + Send + Unpin + 'static>(reader: R) -> BoxStream<'static, Bytes> {
    let next = |mut reader: R| async move {
        let mut part = BytesMut::with_capacity(PART);
        let count = reader.read_buf(&mut part).await.unwrap_or(0);
        (count > 0).then(|| (part.freeze(), reader))
    };
    stream::unfold(reader, next).boxed()
}
