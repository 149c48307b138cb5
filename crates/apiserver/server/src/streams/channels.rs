//! Messages of a WebSocket ↔ channels: the first byte of each says which one it belongs to.
//!
//! `staging/src/k8s.io/streaming/pkg/httpstream/wsstream` of Kubernetes has channels, KEP 4006 has their fifth version, which
//! can end one of them.

use bytes::{Buf as _, Bytes};
use futures::FutureExt as _;
use tokio::sync::{mpsc, oneshot};

use super::exec::{ExecLink, ExecPlan, MOST_WAITING};
use super::link::Link;
use super::outlet::StreamOutlet;
use crate::pod_streams::TerminalSize;

const INPUT: u8 = 0;
const OUTPUT: u8 = 1;
const ERRORS: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// The next byte says which channel ends.
const CLOSE: u8 = 255;

/// What a client of a program says.
#[derive(Debug, PartialEq, Eq)]
enum ExecMessage {
    Input(Bytes),
    InputEnds,
    Resize(TerminalSize),
    /// Nothing that is known.
    Other,
}

impl ExecMessage {
    fn read(mut message: Bytes) -> Self {
        let Ok(channel) = message.try_get_u8() else { return Self::Other };
        match channel {
            INPUT => Self::Input(message),
            RESIZE => serde_json::from_slice(&message).map_or(Self::Other, Self::Resize),
            CLOSE if message.first() == Some(&INPUT) => Self::InputEnds,
            _ => Self::Other,
        }
    }
}

/// The streams of a program on the channels of a connection.
pub(crate) async fn exec_channels(link: Link, plan: ExecPlan) -> ExecLink {
    let Link { incoming, outgoing } = link;
    let outlet = |number: u8| StreamOutlet::Channel(number, outgoing.clone());
    let lowest = if plan.has_output {
        OUTPUT
    } else if plan.has_errors {
        ERRORS
    } else {
        STATUS
    };
    // An empty message says that the connection stands; some clients wait for it.
    outlet(lowest).send(Bytes::new()).await;
    let (input, taken) = mpsc::channel(MOST_WAITING);
    let (sizes, resized) = mpsc::channel(MOST_WAITING);
    let (here, left) = oneshot::channel::<()>();
    tokio::spawn(async move {
        hear(incoming, input, sizes).await;
        drop(here);
    });
    let closed = outgoing.clone();
    let gone = async move {
        tokio::select! { _ = left => {}, () = closed.closed() => {} }
    };
    ExecLink {
        input: taken,
        sizes: resized,
        output: plan.has_output.then(|| outlet(OUTPUT)),
        errors: plan.has_errors.then(|| outlet(ERRORS)),
        status: outlet(STATUS),
        gone: gone.boxed(),
    }
}

/// Hands on what a client says until it is gone. What nobody wants any more is dropped.
async fn hear(mut incoming: mpsc::Receiver<Bytes>, input: mpsc::Sender<Bytes>, sizes: mpsc::Sender<TerminalSize>) {
    let mut input = Some(input);
    while let Some(message) = incoming.recv().await {
        match ExecMessage::read(message) {
            ExecMessage::Input(bytes) => {
                if let Some(input) = &input {
                    let _ = input.send(bytes).await;
                }
            }
            ExecMessage::InputEnds => input = None,
            ExecMessage::Resize(size) => {
                let _ = sizes.try_send(size);
            }
            ExecMessage::Other => {}
        }
    }
}

/// The two channels that each forwarded port has, in the order in which the ports were asked for.
pub(crate) struct ForwardChannels {
    /// What the client says on each port; ends when it is gone.
    pub(super) incoming: Vec<mpsc::Receiver<Bytes>>,
    pub(super) outgoing: mpsc::Sender<Bytes>,
}

impl ForwardChannels {
    /// Data and error of each port on the channels of a connection.
    pub(crate) fn of(link: Link, ports: usize) -> Self {
        let Link { incoming, outgoing } = link;
        let (senders, receivers) = (0..ports).map(|_| mpsc::channel(MOST_WAITING)).unzip();
        tokio::spawn(share_out(incoming, senders));
        Self { incoming: receivers, outgoing }
    }

    pub(super) fn data(&self, port: usize) -> StreamOutlet {
        StreamOutlet::Channel(channel(port * 2), self.outgoing.clone())
    }

    pub(super) fn error(&self, port: usize) -> StreamOutlet {
        StreamOutlet::Channel(channel(port * 2 + 1), self.outgoing.clone())
    }
}

fn channel(number: usize) -> u8 {
    u8::try_from(number).expect("not so many ports are forwarded")
}

async fn share_out(mut incoming: mpsc::Receiver<Bytes>, ports: Vec<mpsc::Sender<Bytes>>) {
    while let Some(mut message) = incoming.recv().await {
        let Ok(channel) = message.try_get_u8() else { continue };
        // Nobody has anything to say on the channels of errors.
        let port = ports.get(usize::from(channel / 2)).filter(|_| channel.is_multiple_of(2));
        if let Some(port) = port {
            // A port that is done wants no more.
            let _ = port.send(message).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &'static [u8]) -> ExecMessage {
        ExecMessage::read(Bytes::from_static(bytes))
    }

    #[test]
    fn the_first_byte_says_what_a_message_is() {
        assert_eq!(read(b"\x00ls"), ExecMessage::Input(Bytes::from_static(b"ls")));
        assert_eq!(read(b"\xff\x00"), ExecMessage::InputEnds);
        let size = TerminalSize { width: 80, height: 24 };
        assert_eq!(read(b"\x04{\"Width\":80,\"Height\":24}"), ExecMessage::Resize(size));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        for other in [&b""[..], b"\xff", b"\xff\x01", b"\x01x", b"\x04{", b"\x04{\"Width\":-1,\"Height\":2}", b"\x09"] {
            assert_eq!(ExecMessage::read(Bytes::from_static(other)), ExecMessage::Other, "{other:?}");
        }
    }
}
