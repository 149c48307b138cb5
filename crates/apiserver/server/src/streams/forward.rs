//! A client's streams → connections to ports of a pod, each with a stream of data and one for what went wrong.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::channels::ForwardChannels;
use super::link::{Link, part};
use super::outlet::StreamOutlet;
use super::spdy::{self, SpdyStream};
use crate::pod_streams::{PodPort, PodStreams};

/// Streams that wait for the other one of their pair.
const MOST_ALONE: usize = 64;

/// Forwards to the ports of a pod.
#[derive(Clone)]
pub(crate) struct PortForward {
    pub(crate) runner: Arc<dyn PodStreams>,
    /// The pod; its port is that of a stream.
    pub(crate) pod: PodPort,
}

impl PortForward {
    /// One connection, to its end. What went wrong is said on the stream of errors.
    async fn carry(self, port: u16, incoming: mpsc::Receiver<Bytes>, data: StreamOutlet, error: StreamOutlet) {
        let (name, uid) = (self.pod.pod.clone(), self.pod.uid.clone());
        let dialled = self.runner.dial(PodPort { port, ..self.pod }).await;
        let carried = match dialled {
            Err(refusal) => Err(refusal.to_string()),
            Ok(socket) => exchange(socket, incoming, &data).await.map_err(|error| error.to_string()),
        };
        if let Err(why) = carried {
            let message = format!("error forwarding port {port} to pod {name}, uid {uid}: {why}");
            error.send(Bytes::from(message)).await;
        }
        data.finish().await;
        error.finish().await;
    }

    async fn carry_stream(self, pair: StreamPair) {
        let StreamPair { port, data, error } = pair;
        let (outlet, told) = (StreamOutlet::Stream(data.outgoing), StreamOutlet::Stream(error.outgoing));
        tokio::select! {
            () = self.carry(port, data.incoming, outlet, told) => {}
            // The client wants no more of it.
            _ = data.reset => {}
        }
    }
}

/// Carries bytes both ways until the pod has said everything, or the client is gone.
async fn exchange(
    socket: Box<dyn crate::pod_streams::PodSocket>,
    mut incoming: mpsc::Receiver<Bytes>,
    data: &StreamOutlet,
) -> std::io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(socket);
    let asking = async {
        while let Some(bytes) = incoming.recv().await {
            if writer.write_all(&bytes).await.is_err() {
                // The pod listens no more; it may still speak.
                break;
            }
        }
        let _ = writer.shutdown().await;
        std::future::pending::<()>().await;
    };
    let answering = async {
        while let Some(bytes) = part(&mut reader).await? {
            if !data.send(bytes).await {
                break;
            }
        }
        Ok(())
    };
    tokio::select! {
        () = asking => Ok(()),
        answered = answering => answered,
    }
}

/// The two streams of one connection.
struct StreamPair {
    port: u16,
    data: SpdyStream,
    error: SpdyStream,
}

/// Serves a connection of SPDY: each pair of streams is a connection to the pod.
pub(crate) async fn forward_streams(link: Link, forward: PortForward) {
    let (sender, mut opened) = mpsc::channel(8);
    let serving = tokio::spawn(spdy::serve(link, sender));
    let (mut alone, mut carried) = (HashMap::new(), JoinSet::new());
    loop {
        tokio::select! {
            stream = opened.recv() => {
                let Some(stream) = stream else { break };
                if alone.len() >= MOST_ALONE {
                    alone.clear();
                }
                if let Some(pair) = paired(&mut alone, stream) {
                    carried.spawn(forward.clone().carry_stream(pair));
                }
            }
            _ = carried.join_next(), if !carried.is_empty() => {}
        }
    }
    carried.shutdown().await;
    if let Ok(Err(error)) = serving.await {
        tracing::debug!(%error, "A client that forwards ports was not understood");
    }
}

/// The pair that a stream makes complete. Both have the number of their request, and the port.
fn paired(alone: &mut HashMap<String, SpdyStream>, stream: SpdyStream) -> Option<StreamPair> {
    let key = format!("{} {}", stream.header("requestid"), stream.header("port"));
    let Some(other) = alone.remove(&key) else {
        alone.insert(key, stream);
        return None;
    };
    let port = stream.header("port").parse().ok()?;
    match (other.header("streamtype"), stream.header("streamtype")) {
        ("error", "data") => Some(StreamPair { port, data: stream, error: other }),
        ("data", "error") => Some(StreamPair { port, data: other, error: stream }),
        _ => None,
    }
}

/// Serves the channels of a WebSocket: the ports that were asked for, one connection each.
pub(crate) async fn forward_channels(channels: ForwardChannels, ports: Vec<u16>, forward: PortForward) {
    let mut carried = JoinSet::new();
    let outlets: Vec<_> = (0..ports.len()).map(|index| (channels.data(index), channels.error(index))).collect();
    let ForwardChannels { incoming, outgoing } = channels;
    for ((port, incoming), (data, error)) in ports.into_iter().zip(incoming).zip(outlets) {
        // Both channels begin with the port, so that the client knows which is which.
        let mut number = BytesMut::new();
        number.put_u16_le(port);
        data.send(number.clone().freeze()).await;
        error.send(number.freeze()).await;
        carried.spawn(forward.clone().carry(port, incoming, data, error));
    }
    tokio::select! {
        () = async { while carried.join_next().await.is_some() {} } => {}
        () = outgoing.closed() => carried.shutdown().await,
    }
}
