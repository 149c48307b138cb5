//! A program's session with a runner, and a client's streams → input, output, sizes and the end, carried between the two.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::link::Link;
use super::outlet::StreamOutlet;
use super::spdy::{self, SpdyStream};
use crate::pod_streams::{ExecSession, StreamRefusal, TerminalSize};
use crate::status::ApiError;

/// Parts that wait in either direction.
pub(super) const MOST_WAITING: usize = 8;
/// How long a client may take to open all its streams: `StreamCreationTimeout` of Kubernetes.
const OPENS_WITHIN: Duration = Duration::from_secs(30);

/// Which streams a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the flags of a request")]
pub(crate) struct ExecPlan {
    pub(crate) has_input: bool,
    pub(crate) has_output: bool,
    pub(crate) has_errors: bool,
    pub(crate) has_terminal: bool,
}

/// A client's streams, whichever protocol carries them.
pub(crate) struct ExecLink {
    pub(super) input: mpsc::Receiver<Bytes>,
    pub(super) sizes: mpsc::Receiver<TerminalSize>,
    pub(super) output: Option<StreamOutlet>,
    pub(super) errors: Option<StreamOutlet>,
    pub(super) status: StreamOutlet,
    /// Comes when the client is gone.
    pub(super) gone: BoxFuture<'static, ()>,
}

/// Runs a session to its end, or until the client is gone; a runner that refuses says why on the stream of errors.
pub(crate) async fn run_exec(session: Result<ExecSession, StreamRefusal>, link: ExecLink) {
    let ExecLink { input, sizes, output, errors, status, gone } = link;
    let end = match session {
        Err(refusal) => Some(Err(refusal)),
        Ok(session) => {
            let finish = async {
                let copied = async {
                    tokio::join!(copy(session.output, output.as_ref()), copy(session.errors, errors.as_ref()))
                };
                tokio::join!(session.end, copied).0
            };
            let resized = async { resize(sizes, session.resize).await };
            let fed = feed(input, session.input);
            tokio::select! {
                end = finish => Some(end),
                () = async { tokio::join!(fed, resized, std::future::pending::<()>()); } => None,
                () = gone => None,
            }
        }
    };
    // A client that is gone is told nothing; its program ends with the session.
    let Some(end) = end else { return };
    status.send(Bytes::from(end_status(end).to_string())).await;
    for outlet in output.iter().chain(&errors).chain([&status]) {
        outlet.finish().await;
    }
}

/// How a program's end is told: `pkg/kubelet/.../remotecommand/exec.go` for codes, an internal error for what never began.
fn end_status(end: Result<i32, StreamRefusal>) -> Value {
    match end {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(refusal) => ApiError::internal(refusal).status(),
    }
}

async fn copy(mut from: BoxStream<'static, Bytes>, to: Option<&StreamOutlet>) {
    while let Some(bytes) = from.next().await {
        if let Some(outlet) = to
            && !outlet.send(bytes).await
        {
            return;
        }
    }
}

async fn feed(mut input: mpsc::Receiver<Bytes>, mut to: Option<Box<dyn AsyncWrite + Send + Unpin>>) {
    while let Some(bytes) = input.recv().await {
        if let Some(writer) = &mut to
            && (writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err())
        {
            // The program wants no more; what comes is dropped.
            to = None;
        }
    }
}

async fn resize(mut sizes: mpsc::Receiver<TerminalSize>, to: Option<Box<dyn Fn(TerminalSize) + Send + Sync>>) {
    while let Some(size) = sizes.recv().await {
        if let Some(resize) = &to {
            resize(size);
        }
    }
}

/// The streams of a program on a connection of SPDY, as clients before 1.30 open them. None where the client does not.
pub(crate) async fn exec_streams(link: Link, plan: ExecPlan) -> Option<ExecLink> {
    let (sender, opened) = mpsc::channel(MOST_WAITING);
    let serving = tokio::spawn(spdy::serve(link, sender));
    let streams = tokio::time::timeout(OPENS_WITHIN, NamedStreams::all_of(plan, opened)).await.ok()??;
    let (sizes, resized) = mpsc::channel(MOST_WAITING);
    if let Some(mut resizes) = streams.resize {
        tokio::spawn(async move {
            while let Some(bytes) = resizes.incoming.recv().await {
                let _ = serde_json::from_slice(&bytes).map(|size| sizes.try_send(size));
            }
        });
    }
    let outlet = |stream: SpdyStream| StreamOutlet::Stream(stream.outgoing);
    let input = streams.input.map_or_else(|| mpsc::channel(1).1, |stream| stream.incoming);
    let gone = async move {
        // However it ended, the client is gone.
        let _ = serving.await;
        drop(streams.rest);
    };
    Some(ExecLink {
        input,
        sizes: resized,
        output: streams.output.map(outlet),
        errors: streams.errors.map(outlet),
        status: outlet(streams.status?),
        gone: gone.boxed(),
    })
}

/// The streams of a program by their names.
#[derive(Default)]
struct NamedStreams {
    input: Option<SpdyStream>,
    output: Option<SpdyStream>,
    errors: Option<SpdyStream>,
    status: Option<SpdyStream>,
    resize: Option<SpdyStream>,
    /// Where further streams would come.
    rest: Option<mpsc::Receiver<SpdyStream>>,
}

impl NamedStreams {
    /// All that are asked for. None where the client opens another, or is gone.
    async fn all_of(plan: ExecPlan, mut opened: mpsc::Receiver<SpdyStream>) -> Option<Self> {
        let mut streams = Self::default();
        while !streams.has_all(plan) {
            let stream = opened.recv().await?;
            let place = match stream.header("streamtype") {
                "stdin" => &mut streams.input,
                "stdout" => &mut streams.output,
                "stderr" => &mut streams.errors,
                "error" => &mut streams.status,
                "resize" => &mut streams.resize,
                _ => return None,
            };
            *place = Some(stream);
        }
        streams.rest = Some(opened);
        Some(streams)
    }

    fn has_all(&self, plan: ExecPlan) -> bool {
        let wanted = [
            (plan.has_input, &self.input),
            (plan.has_output, &self.output),
            (plan.has_errors, &self.errors),
            (plan.has_terminal, &self.resize),
            (true, &self.status),
        ];
        wanted.iter().all(|(is_wanted, stream)| !is_wanted || stream.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_as_a_kubelet_tells_it() {
        assert_eq!(end_status(Ok(0))["status"], "Success");
        let failed = end_status(Ok(7));
        assert_eq!(failed["reason"], "NonZeroExitCode");
        assert_eq!(failed["details"]["causes"], json!([{"reason": "ExitCode", "message": "7"}]));
        let refused = end_status(Err(StreamRefusal("no such program".to_owned())));
        assert_eq!((&refused["reason"], &refused["code"]), (&json!("InternalError"), &json!(500)));
        assert_eq!(refused["message"], "Internal error occurred: no such program");
    }
}
