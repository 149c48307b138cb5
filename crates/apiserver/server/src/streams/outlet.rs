//! A way to one of a client's streams: a channel of a WebSocket, or a stream of SPDY.

use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::sync::mpsc;

use super::spdy::SpdySender;

/// Takes what a client is to hear on one stream.
#[derive(Clone, Debug)]
pub(crate) enum StreamOutlet {
    /// A channel by its number, which is written before each message.
    Channel(u8, mpsc::Sender<Bytes>),
    /// A stream of its own.
    Stream(SpdySender),
}

impl StreamOutlet {
    /// False where the client is gone.
    pub(super) async fn send(&self, data: Bytes) -> bool {
        match self {
            Self::Channel(number, link) => {
                let mut message = BytesMut::with_capacity(data.len() + 1);
                message.put_u8(*number);
                message.put(data);
                link.send(message.freeze()).await.is_ok()
            }
            Self::Stream(sender) => sender.send(&data).await,
        }
    }

    /// Nothing more comes. Channels end with their connection only.
    pub(super) async fn finish(&self) {
        if let Self::Stream(sender) = self {
            sender.finish().await;
        }
    }
}
