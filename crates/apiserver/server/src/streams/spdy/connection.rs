//! A connection of SPDY → the streams that the client opens, each with what comes and a way to answer.

use std::collections::HashMap;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::SpdyError;
use super::frames::{ResetStatus, SpdyFrame, SpdyReader, SpdyWriter, data_frame};
use super::header_block::SpdyHeaders;
use crate::streams::link::Link;

/// Streams that are open at once on a connection; a forwarded connection has two.
const MOST_STREAMS: usize = 256;
/// Frames of data that wait on one stream until they are taken. Then the whole connection waits, as it does with a kubelet.
const MOST_WAITING: usize = 32;

/// A stream that the client opened.
pub(crate) struct SpdyStream {
    headers: SpdyHeaders,
    /// What the client says; ends when it has said everything.
    pub(crate) incoming: mpsc::Receiver<Bytes>,
    /// Answers.
    pub(crate) outgoing: SpdySender,
    /// Comes when the client wants no more of it, or is gone.
    pub(crate) reset: oneshot::Receiver<()>,
}

impl SpdyStream {
    /// A header of the stream; empty where it has none. Names are asked for in lower case.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(one, _)| one == name);
        found.map_or("", |(_, value)| value)
    }
}

/// What says something on a stream.
#[derive(Clone, Debug)]
pub(crate) struct SpdySender {
    stream: u32,
    link: mpsc::Sender<Bytes>,
}

impl SpdySender {
    /// False where the client is gone.
    pub(crate) async fn send(&self, data: &Bytes) -> bool {
        self.link.send(data_frame(self.stream, false, data)).await.is_ok()
    }

    /// Says that nothing more comes.
    pub(crate) async fn finish(&self) {
        // A client that is gone needs to know nothing.
        let _ = self.link.send(data_frame(self.stream, true, &Bytes::new())).await;
    }
}

/// A stream as the connection knows it.
struct OpenStream {
    /// None once the client has said everything.
    data: Option<mpsc::Sender<Bytes>>,
    /// Closed where nobody has the stream any more.
    reset: oneshot::Sender<()>,
}

/// One connection.
struct SpdyConnection {
    writer: SpdyWriter,
    outgoing: mpsc::Sender<Bytes>,
    opened: mpsc::Sender<SpdyStream>,
    streams: HashMap<u32, OpenStream>,
    /// The number of the client's last stream; they only grow.
    last: u32,
}

/// Whether the connection goes on.
#[derive(Debug, PartialEq, Eq)]
enum Onward {
    Goes,
    Ends,
}

/// Serves a connection to its end. It ends with an error where the client is not understood.
pub(crate) async fn serve(link: Link, opened: mpsc::Sender<SpdyStream>) -> Result<(), SpdyError> {
    let Link { mut incoming, outgoing } = link;
    let (mut reader, gone) = (SpdyReader::new(), outgoing.clone());
    let mut connection =
        SpdyConnection { writer: SpdyWriter::default(), outgoing, opened, streams: HashMap::new(), last: 0 };
    let answering = async {
        while let Some(bytes) = incoming.recv().await {
            reader.feed(&bytes);
            while let Some(frame) = reader.next()? {
                if connection.take(frame).await == Onward::Ends {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    tokio::select! {
        ended = answering => ended,
        // A client that is gone is not waited for, however much waits for others.
        () = gone.closed() => Ok(()),
    }
}

impl SpdyConnection {
    async fn take(&mut self, frame: SpdyFrame) -> Onward {
        match frame {
            SpdyFrame::Open { stream, is_last, headers } => self.open(stream, is_last, headers).await,
            SpdyFrame::Data { stream, is_last, data } => self.data(stream, is_last, data).await,
            SpdyFrame::Reset { stream, .. } => {
                if let Some(open) = self.streams.remove(&stream) {
                    // Nobody may have it any more.
                    let _ = open.reset.send(());
                }
                Onward::Goes
            }
            // Odd numbers are the client's.
            SpdyFrame::Ping { id } if id % 2 == 1 => self.send(&SpdyFrame::Ping { id }).await,
            SpdyFrame::GoAway { .. } => Onward::Ends,
            SpdyFrame::Ping { .. } | SpdyFrame::Reply { .. } | SpdyFrame::Other => Onward::Goes,
        }
    }

    async fn open(&mut self, stream: u32, is_last: bool, headers: SpdyHeaders) -> Onward {
        if stream.is_multiple_of(2) || stream <= self.last {
            return self.send(&SpdyFrame::Reset { stream, status: ResetStatus::ProtocolError }).await;
        }
        self.last = stream;
        self.streams.retain(|_, open| !open.reset.is_closed());
        if self.streams.len() >= MOST_STREAMS {
            return self.send(&SpdyFrame::Reset { stream, status: ResetStatus::RefusedStream }).await;
        }
        // Data before the reply are dropped by clients.
        if self.send(&SpdyFrame::Reply { stream, headers: SpdyHeaders::new() }).await == Onward::Ends {
            return Onward::Ends;
        }
        let (data, incoming) = mpsc::channel(MOST_WAITING);
        let (reset, told) = oneshot::channel();
        self.streams.insert(stream, OpenStream { data: (!is_last).then_some(data), reset });
        let outgoing = SpdySender { stream, link: self.outgoing.clone() };
        match self.opened.send(SpdyStream { headers, incoming, outgoing, reset: told }).await {
            Ok(()) => Onward::Goes,
            Err(_) => Onward::Ends,
        }
    }

    async fn data(&mut self, stream: u32, is_last: bool, data: Bytes) -> Onward {
        let Some(open) = self.streams.get_mut(&stream) else { return Onward::Goes };
        if let Some(sender) = &open.data
            && !data.is_empty()
        {
            // Who has the stream may want no more of it.
            let _ = sender.send(data).await;
        }
        if is_last {
            open.data = None;
        }
        Onward::Goes
    }

    async fn send(&mut self, frame: &SpdyFrame) -> Onward {
        match self.outgoing.send(self.writer.write(frame)).await {
            Ok(()) => Onward::Goes,
            Err(_) => Onward::Ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client: what it says, what it hears, and the streams at the other end.
    struct Client {
        says: mpsc::Sender<Bytes>,
        hears: mpsc::Receiver<Bytes>,
        opened: mpsc::Receiver<SpdyStream>,
        writer: SpdyWriter,
        reader: SpdyReader,
        serving: tokio::task::JoinHandle<Result<(), SpdyError>>,
    }

    impl Client {
        fn new() -> Self {
            let (says, incoming) = mpsc::channel(8);
            let (outgoing, hears) = mpsc::channel(8);
            let (sender, opened) = mpsc::channel(MOST_STREAMS * 2);
            let serving = tokio::spawn(serve(Link { incoming, outgoing }, sender));
            Self { says, hears, opened, writer: SpdyWriter::default(), reader: SpdyReader::new(), serving }
        }

        async fn say(&mut self, frame: &SpdyFrame) {
            self.says.send(self.writer.write(frame)).await.unwrap();
        }

        async fn open(&mut self, stream: u32, name: &str) {
            let headers = vec![("streamtype".to_owned(), name.to_owned())];
            self.say(&SpdyFrame::Open { stream, is_last: false, headers }).await;
        }

        async fn hear(&mut self) -> SpdyFrame {
            loop {
                if let Some(frame) = self.reader.next().unwrap() {
                    return frame;
                }
                let bytes = self.hears.recv().await.expect("the connection goes on");
                self.reader.feed(&bytes);
            }
        }
    }

    fn data(stream: u32, text: &'static str, is_last: bool) -> SpdyFrame {
        SpdyFrame::Data { stream, is_last, data: Bytes::from_static(text.as_bytes()) }
    }

    #[tokio::test]
    async fn a_stream_is_replied_to_heard_and_answered_to_its_end() {
        let mut client = Client::new();
        client.open(1, "data").await;
        client.say(&data(1, "ping", true)).await;

        let mut stream = client.opened.recv().await.unwrap();
        assert_eq!(client.hear().await, SpdyFrame::Reply { stream: 1, headers: Vec::new() });
        assert_eq!((stream.header("streamtype"), stream.header("port")), ("data", ""));
        assert_eq!(stream.incoming.recv().await.as_deref(), Some(&b"ping"[..]));
        assert_eq!(stream.incoming.recv().await, None);

        assert!(stream.outgoing.send(&Bytes::from_static(b"pong")).await);
        stream.outgoing.finish().await;
        assert_eq!(client.hear().await, data(1, "pong", false));
        assert_eq!(client.hear().await, data(1, "", true));
    }

    #[tokio::test]
    async fn a_reset_is_told_to_who_has_the_stream() {
        let mut client = Client::new();
        client.open(1, "data").await;
        let stream = client.opened.recv().await.unwrap();

        client.say(&SpdyFrame::Reset { stream: 1, status: ResetStatus::Cancel }).await;

        assert_eq!(stream.reset.await, Ok(()));
    }

    #[tokio::test]
    async fn pings_come_back_and_a_farewell_ends_the_connection() {
        let mut client = Client::new();
        client.say(&SpdyFrame::Ping { id: 7 }).await;
        assert_eq!(client.hear().await, SpdyFrame::Ping { id: 7 });

        client.say(&SpdyFrame::GoAway { last: 0 }).await;
        assert_eq!(client.serving.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn streams_with_wrong_numbers_and_too_many_streams_are_refused() {
        let mut client = Client::new();
        client.open(3, "data").await;
        let first = client.opened.recv().await.unwrap();
        assert!(matches!(client.hear().await, SpdyFrame::Reply { stream: 3, .. }));
        for wrong in [2, 1, 3] {
            client.open(wrong, "data").await;
            let refused = SpdyFrame::Reset { stream: wrong, status: ResetStatus::ProtocolError };
            assert_eq!(client.hear().await, refused);
        }

        let mut held = vec![first];
        let mut number = 5;
        for _ in 1..MOST_STREAMS {
            client.open(number, "data").await;
            assert!(matches!(client.hear().await, SpdyFrame::Reply { .. }));
            held.push(client.opened.recv().await.unwrap());
            number += 2;
        }
        client.open(number, "data").await;
        let refused = SpdyFrame::Reset { stream: number, status: ResetStatus::RefusedStream };
        assert_eq!(client.hear().await, refused);

        // One that nobody has any more makes room.
        held.pop();
        client.open(number + 2, "data").await;
        assert!(matches!(client.hear().await, SpdyFrame::Reply { .. }));
    }

    #[tokio::test]
    async fn a_client_that_is_not_understood_ends_its_connection() {
        let client = Client::new();
        client.says.send(Bytes::from_static(&[0x80, 9, 0, 1, 0, 0, 0, 0])).await.unwrap();

        assert_eq!(client.serving.await.unwrap(), Err(SpdyError::Frame));
    }

    #[tokio::test]
    async fn a_client_that_is_gone_is_not_waited_for_although_a_stream_takes_nothing() {
        let mut client = Client::new();
        client.open(1, "data").await;
        let _held = client.opened.recv().await.unwrap();
        for _ in 0..MOST_WAITING + 4 {
            client.say(&data(1, "x", false)).await;
        }

        drop(client.hears);

        assert_eq!(client.serving.await.unwrap(), Ok(()));
    }
}
