//! Bytes ↔ frames of SPDY 3.1 (section 2.2 of the draft).

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::SpdyError;
use super::header_block::{HeaderReader, HeaderWriter, SpdyHeaders};

/// What a frame may hold; clients send at most 32 KiB at once.
const LONGEST_FRAME: usize = 1 << 20;
/// A frame begins with two words.
const HEAD: usize = 8;
/// The first bit of a frame that is no data.
const IS_CONTROL: u32 = 1 << 31;
/// All other bits.
const STREAM: u32 = IS_CONTROL - 1;
const VERSION: u32 = 3;
/// Nothing more comes on the stream from this side.
const IS_LAST: u8 = 1;

const OPEN: u16 = 1;
const REPLY: u16 = 2;
const RESET: u16 = 3;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SpdyFrame {
    /// A stream begins.
    Open { stream: u32, is_last: bool, headers: SpdyHeaders },
    /// It is taken.
    Reply { stream: u32, headers: SpdyHeaders },
    /// What is said on it.
    Data { stream: u32, is_last: bool, data: Bytes },
    /// It ends at once.
    Reset { stream: u32, status: ResetStatus },
    /// Comes back as it is.
    Ping { id: u32 },
    /// No more streams.
    GoAway { last: u32 },
    /// Settings, windows and late headers, which nobody needs here.
    Other,
}

/// Why a stream is reset, as far as it is said here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResetStatus {
    ProtocolError = 1,
    RefusedStream = 3,
    Cancel = 5,
}

/// Bytes → frames.
#[derive(Debug)]
pub(super) struct SpdyReader {
    unread: BytesMut,
    headers: HeaderReader,
}

impl SpdyReader {
    pub(super) fn new() -> Self {
        Self { unread: BytesMut::new(), headers: HeaderReader::new() }
    }

    /// Takes in what came.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// The next frame, where all of it came.
    pub(super) fn next(&mut self) -> Result<Option<SpdyFrame>, SpdyError> {
        let Some(head) = self.unread.first_chunk::<HEAD>() else { return Ok(None) };
        let mut head = &head[..];
        let (first, second) = (head.get_u32(), head.get_u32());
        let flags = second.to_be_bytes()[0];
        let length = usize::try_from(second & 0x00ff_ffff).map_err(|_| SpdyError::TooLong)?;
        if length > LONGEST_FRAME {
            return Err(SpdyError::TooLong);
        }
        if self.unread.len() < HEAD + length {
            return Ok(None);
        }
        self.unread.advance(HEAD);
        let content = self.unread.split_to(length).freeze();
        let is_last = flags & IS_LAST != 0;
        if first & IS_CONTROL == 0 {
            return Ok(Some(SpdyFrame::Data { stream: first, is_last, data: content }));
        }
        if (first & STREAM) >> 16 != VERSION {
            return Err(SpdyError::Frame);
        }
        let [.., high, low] = first.to_be_bytes();
        self.control(u16::from_be_bytes([high, low]), is_last, content).map(Some)
    }

    fn control(&mut self, kind: u16, is_last: bool, mut content: Bytes) -> Result<SpdyFrame, SpdyError> {
        if !matches!(kind, OPEN | REPLY | RESET | PING | GO_AWAY) {
            // Late headers belong to the one stream of all headers, so that what is left out must be read nevertheless.
            if kind == LATE_HEADERS && content.len() >= 4 {
                self.headers.read(&content[4..])?;
            }
            return Ok(SpdyFrame::Other);
        }
        let word = content.try_get_u32().map_err(|_| SpdyError::Frame)?;
        let stream = word & STREAM;
        Ok(match kind {
            OPEN => {
                // The stream that it belongs to, its priority and its slot say nothing here.
                content.try_get_u32().and_then(|_| content.try_get_u16()).map_err(|_| SpdyError::Frame)?;
                SpdyFrame::Open { stream, is_last, headers: self.headers.read(&content)? }
            }
            REPLY => SpdyFrame::Reply { stream, headers: self.headers.read(&content)? },
            RESET => SpdyFrame::Reset { stream, status: ResetStatus::of(content.try_get_u32().unwrap_or_default()) },
            PING => SpdyFrame::Ping { id: word },
            _ => SpdyFrame::GoAway { last: stream },
        })
    }
}

const LATE_HEADERS: u16 = 8;

impl ResetStatus {
    fn of(number: u32) -> Self {
        match number {
            1 => Self::ProtocolError,
            3 => Self::RefusedStream,
            _ => Self::Cancel,
        }
    }
}

/// Frames → bytes, for those that carry headers and those that do not.
#[derive(Debug, Default)]
pub(super) struct SpdyWriter {
    headers: HeaderWriter,
}

impl SpdyWriter {
    pub(super) fn write(&mut self, frame: &SpdyFrame) -> Bytes {
        match frame {
            SpdyFrame::Open { stream, is_last, headers } => {
                let mut content = vec![0; 10];
                content[..4].copy_from_slice(&stream.to_be_bytes());
                content.extend(self.headers.write(headers));
                control(OPEN, *is_last, &content)
            }
            SpdyFrame::Reply { stream, headers } => {
                let mut content = stream.to_be_bytes().to_vec();
                content.extend(self.headers.write(headers));
                control(REPLY, false, &content)
            }
            SpdyFrame::Data { stream, is_last, data } => data_frame(*stream, *is_last, data),
            SpdyFrame::Reset { stream, status } => control(RESET, false, &words(*stream, *status as u32)),
            SpdyFrame::Ping { id } => control(PING, false, &id.to_be_bytes()),
            SpdyFrame::GoAway { last } => control(GO_AWAY, false, &words(*last, 0)),
            SpdyFrame::Other => Bytes::new(),
        }
    }
}

/// A frame of data; longer data are cut into several.
pub(super) fn data_frame(stream: u32, is_last: bool, data: &Bytes) -> Bytes {
    let mut out = BytesMut::with_capacity(data.len() + HEAD);
    let mut rest = data.clone();
    loop {
        let part = rest.split_to(rest.len().min(LONGEST_FRAME));
        out.put_u32(stream & STREAM);
        out.put_u32(second_word(is_last && rest.is_empty(), part.len()));
        out.put(part);
        if rest.is_empty() {
            return out.freeze();
        }
    }
}

fn control(kind: u16, is_last: bool, content: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(content.len() + HEAD);
    out.put_u32(IS_CONTROL | VERSION << 16 | u32::from(kind));
    out.put_u32(second_word(is_last, content.len()));
    out.put(content);
    out.freeze()
}

fn second_word(is_last: bool, length: usize) -> u32 {
    let flags = if is_last { u32::from(IS_LAST) << 24 } else { 0 };
    flags | u32::try_from(length).expect("frames are cut so that they fit")
}

fn words(first: u32, second: u32) -> Vec<u8> {
    [first.to_be_bytes(), second.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame() -> impl Strategy<Value = SpdyFrame> {
        let stream = 1..STREAM;
        let text = "[a-z0-9-]{0,20}";
        let headers = proptest::collection::vec((text, text), 0..5);
        let status =
            prop_oneof![Just(ResetStatus::ProtocolError), Just(ResetStatus::RefusedStream), Just(ResetStatus::Cancel)];
        let data = proptest::collection::vec(any::<u8>(), 0..200);
        prop_oneof![
            (stream.clone(), any::<bool>(), headers.clone()).prop_map(|(stream, is_last, headers)| SpdyFrame::Open {
                stream,
                is_last,
                headers
            }),
            (stream.clone(), headers).prop_map(|(stream, headers)| SpdyFrame::Reply { stream, headers }),
            (stream.clone(), any::<bool>(), data).prop_map(|(stream, is_last, data)| SpdyFrame::Data {
                stream,
                is_last,
                data: data.into()
            }),
            (stream.clone(), status).prop_map(|(stream, status)| SpdyFrame::Reset { stream, status }),
            any::<u32>().prop_map(|id| SpdyFrame::Ping { id }),
            stream.prop_map(|last| SpdyFrame::GoAway { last }),
        ]
    }

    /// All frames of some bytes that come in parts of a size.
    fn read(bytes: &[u8], part: usize) -> Result<Vec<SpdyFrame>, SpdyError> {
        let (mut reader, mut frames) = (SpdyReader::new(), Vec::new());
        for part in bytes.chunks(part) {
            reader.feed(part);
            while let Some(frame) = reader.next()? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written_however_they_are_cut(
            frames in proptest::collection::vec(frame(), 0..10), part in 1..500_usize,
        ) {
            let mut writer = SpdyWriter::default();
            let bytes: Vec<u8> = frames.iter().flat_map(|frame| writer.write(frame)).collect();

            prop_assert_eq!(read(&bytes, part), Ok(frames));
        }

        #[test]
        fn whatever_comes_is_read_or_refused_and_never_kept_without_bound(
            bytes in proptest::collection::vec(any::<u8>(), 0..2000), is_control in any::<bool>(), kind in 0..12_u8,
        ) {
            let head = if is_control { vec![0x80, 3, 0, kind, 0, 0, 0, 40] } else { Vec::new() };

            let mut reader = SpdyReader::new();
            reader.feed(&[head, bytes].concat());
            while let Ok(Some(_)) = reader.next() {}

            prop_assert!(reader.unread.len() <= 2008);
        }

        #[test]
        fn a_frame_that_was_damaged_on_its_way_is_read_or_refused(
            frames in proptest::collection::vec(frame(), 1..5), at in any::<prop::sample::Index>(), bit in 0..8_u8,
        ) {
            let mut writer = SpdyWriter::default();
            let mut bytes: Vec<u8> = frames.iter().flat_map(|frame| writer.write(frame)).collect();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;

            // Whatever it says: it ends.
            prop_assert!(read(&bytes, 64).is_ok_and(|read| read.len() <= bytes.len()) || read(&bytes, 64).is_err());
        }
    }

    #[test]
    fn frames_that_are_longer_than_they_may_be_are_refused_before_they_came() {
        assert_eq!(read(&[0, 0, 0, 1, 0, 0xff, 0xff, 0xff], 8), Err(SpdyError::TooLong));
    }

    #[test]
    fn other_versions_are_refused_and_unknown_frames_are_left_out() {
        assert_eq!(read(&[0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1], 12), Err(SpdyError::Frame));
        assert_eq!(read(&[0x80, 3, 0, 4, 0, 0, 0, 4, 0, 0, 0, 0], 12), Ok(vec![SpdyFrame::Other]));
    }

    #[test]
    fn long_data_are_cut_into_frames_of_which_the_last_ends_the_stream() {
        let data = Bytes::from(vec![7; LONGEST_FRAME + 5]);

        let frames = read(&data_frame(3, true, &data), 4096).unwrap();

        let ends: Vec<(usize, bool)> = frames
            .iter()
            .map(|frame| match frame {
                SpdyFrame::Data { data, is_last, .. } => (data.len(), *is_last),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ends, [(LONGEST_FRAME, false), (5, true)]);
    }
}
