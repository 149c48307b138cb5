//! An upgraded connection → what comes and what goes, whichever protocol it speaks: messages of a WebSocket, or bytes.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};

/// Messages that wait in either direction.
const MOST_WAITING: usize = 8;
/// What a message may hold; clients send at most 64 KiB at once.
const LONGEST_MESSAGE: usize = 1 << 20;
/// Bytes that are read at once.
const PART: usize = 32 * 1024;
/// How often a client that says nothing is asked whether it is there: one whose machine is gone is found by that.
const ASKS: Duration = Duration::from_secs(10);
/// How long a client may take to hear the last words.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Both directions of a connection. It is closed when nobody can say anything more.
#[derive(Debug)]
pub(crate) struct Link {
    /// What the client says; ends when it is gone.
    pub(crate) incoming: mpsc::Receiver<Bytes>,
    /// What the client is told; closed when it is gone.
    pub(crate) outgoing: mpsc::Sender<Bytes>,
}

impl Link {
    /// The messages of a WebSocket.
    pub(crate) async fn messages(upgraded: Upgraded) -> Self {
        let mut config = WebSocketConfig::default();
        config.max_message_size = Some(LONGEST_MESSAGE);
        config.max_frame_size = Some(LONGEST_MESSAGE);
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        let (link, heard, told) = Self::ends();
        tokio::spawn(carry_messages(socket, heard, told));
        link
    }

    /// Bytes as they come.
    pub(crate) fn bytes(upgraded: Upgraded) -> Self {
        let (link, heard, told) = Self::ends();
        tokio::spawn(carry_bytes(TokioIo::new(upgraded), heard, told));
        link
    }

    fn ends() -> (Self, mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
        let (heard, incoming) = mpsc::channel(MOST_WAITING);
        let (outgoing, told) = mpsc::channel(MOST_WAITING);
        (Self { incoming, outgoing }, heard, told)
    }
}

async fn carry_messages<S>(socket: WebSocketStream<S>, heard: mpsc::Sender<Bytes>, mut told: mpsc::Receiver<Bytes>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = socket.split();
    let mut asks = tokio::time::interval_at(tokio::time::Instant::now() + ASKS, ASKS);
    let listening = async {
        while let Some(Ok(message)) = stream.next().await {
            let bytes = match message {
                Message::Binary(bytes) => bytes,
                Message::Text(text) => text.into(),
                Message::Close(_) => break,
                // Pings are answered by the library.
                _ => continue,
            };
            if heard.send(bytes).await.is_err() {
                discard(&mut stream).await;
            }
        }
    };
    let telling = async {
        loop {
            let message = tokio::select! {
                bytes = told.recv() => bytes.map(Message::Binary),
                _ = asks.tick() => Some(Message::Ping(Bytes::new())),
            };
            let Some(message) = message else { return Said::Everything };
            if sink.send(message).await.is_err() {
                return Said::ToNobody;
            }
        }
    };
    let said = {
        let (mut listening, mut telling) = (std::pin::pin!(listening), std::pin::pin!(telling));
        tokio::select! {
            () = &mut listening => Said::ToNobody,
            said = &mut telling => said,
        }
    };
    if said == Said::Everything {
        // Clients take an end without a code for a connection that broke.
        let end = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        farewell(sink.send(Message::Close(Some(end))), discard(&mut stream)).await;
    }
}

#[derive(PartialEq, Eq)]
enum Said {
    Everything,
    ToNobody,
}

/// Closes, and hears the client out: an end with words unread would take from it what it was told last.
async fn farewell<E>(closing: impl Future<Output = Result<(), E>>, hearing_out: impl Future<Output = ()>) {
    let both = async {
        if closing.await.is_ok() {
            hearing_out.await;
        }
    };
    // A client that does not hear is left.
    let _ = tokio::time::timeout(LAST_WORDS, both).await;
}

/// Reads on for nobody, to the end.
async fn discard<S, T, E>(stream: &mut S)
where
    S: futures::Stream<Item = Result<T, E>> + Unpin,
{
    while let Some(Ok(_)) = stream.next().await {}
}

async fn carry_bytes<S>(socket: S, heard: mpsc::Sender<Bytes>, mut told: mpsc::Receiver<Bytes>)
where
    S: AsyncRead + AsyncWrite,
{
    let (mut reader, mut writer) = tokio::io::split(socket);
    let listening = async {
        while let Ok(Some(bytes)) = part(&mut reader).await {
            if heard.send(bytes).await.is_err() {
                hear_out(&mut reader).await;
            }
        }
    };
    let telling = async {
        while let Some(bytes) = told.recv().await {
            if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
                return Said::ToNobody;
            }
        }
        Said::Everything
    };
    let said = {
        let (mut listening, mut telling) = (std::pin::pin!(listening), std::pin::pin!(telling));
        tokio::select! {
            () = &mut listening => Said::ToNobody,
            said = &mut telling => said,
        }
    };
    if said == Said::Everything {
        farewell(writer.shutdown(), hear_out(&mut reader)).await;
    }
}

async fn hear_out(reader: &mut (impl AsyncRead + Unpin)) {
    while let Ok(Some(_)) = part(reader).await {}
}

/// The next bytes of a reader; none at its end.
pub(crate) async fn part(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Bytes>> {
    let mut part = BytesMut::with_capacity(PART);
    let count = reader.read_buf(&mut part).await?;
    Ok((count > 0).then(|| part.freeze()))
}
