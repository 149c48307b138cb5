//! What containers wrote → `kubectl logs`, by the API server's trait for it.

use std::io;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use portolan_apiserver::{LogError, LogLine, LogRun, LogSource, PodLog, PodLogs};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::output::{PodOutputs, RunOutput, WhichRun};
use crate::machine::logs::OutputLine;

impl PodLogs for PodOutputs {
    fn open(&self, source: LogSource) -> BoxFuture<'static, Result<PodLog, LogError>> {
        let outputs = self.clone();
        Box::pin(async move {
            let (pod, container) = (source.pod.clone(), source.container.clone());
            let read = tokio::task::spawn_blocking(move || read(&outputs, &source)).await;
            let output = read.map_err(io::Error::other).and_then(|output| output);
            let output = output
                .map_err(|error| LogError::Unreadable(format!("reading the log of {pod}/{container}: {error}")))?;
            let (written, coming) = output.ok_or_else(|| {
                LogError::NotThere(format!(
                    "container {container:?} in pod {pod:?} has not been started, so it has no log"
                ))
            })?;
            let written = written.into_iter().map(log_line).collect();
            Ok(PodLog { written, coming: coming.map_or_else(|| stream::empty().boxed(), follow) })
        })
    }
}

fn read(outputs: &PodOutputs, source: &LogSource) -> io::Result<Option<RunOutput>> {
    let which = match source.run {
        LogRun::Current => WhichRun::Current,
        LogRun::Previous => WhichRun::Previous,
    };
    outputs.lines(&source.uid, &source.container, which, source.tail_lines)
}

fn log_line(line: OutputLine) -> LogLine {
    LogLine { time: line.time, text: line.text }
}

/// The lines that come, to the end of the container. Who cannot follow so fast misses some.
fn follow(coming: Receiver<OutputLine>) -> BoxStream<'static, LogLine> {
    let next = |mut coming: Receiver<OutputLine>| async move {
        loop {
            match coming.recv().await {
                Ok(line) => return Some((log_line(line), coming)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    };
    stream::unfold(coming, next).boxed()
}
