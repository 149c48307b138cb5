//! Header blocks ↔ names and values. All blocks of one direction are one zlib stream (SPDY 3.1, section 2.6.10).
//!
//! What is written is not compressed: a stored block of deflate (RFC 1951, section 3.2.4) is as valid, and the answers to streams
//! have no headers worth the work.

use flate2::{Decompress, FlushDecompress, Status};

use super::SpdyError;
use super::dictionary::{checksum, dictionary};

/// Names and values of a block, in their order. Names are lower case.
pub(crate) type SpdyHeaders = Vec<(String, String)>;

/// What a block may come to, in bytes. Those of streams into pods have a hundred.
const LONGEST_BLOCK: usize = 32 * 1024;
/// Names of a block.
const MOST_NAMES: u32 = 100;
/// Set in the second byte of a zlib stream that names a dictionary.
const NAMES_DICTIONARY: u8 = 0x20;
/// Deflate, in the low half of the first byte.
const DEFLATE: u8 = 8;

/// Reads blocks of one direction.
#[derive(Debug)]
pub(super) struct HeaderReader {
    inflate: Decompress,
    has_begun: bool,
}

impl HeaderReader {
    pub(super) fn new() -> Self {
        Self { inflate: Decompress::new(false), has_begun: false }
    }

    /// The next block.
    pub(super) fn read(&mut self, compressed: &[u8]) -> Result<SpdyHeaders, SpdyError> {
        let deflated = if self.has_begun { compressed } else { self.begin(compressed)? };
        let block = self.inflated(deflated)?;
        parse(&block).ok_or(SpdyError::Headers)
    }

    /// Reads what a zlib stream begins with, and takes the dictionary in: as a stored block that came before all others, which
    /// every implementation of deflate knows to refer to.
    fn begin<'c>(&mut self, compressed: &'c [u8]) -> Result<&'c [u8], SpdyError> {
        let (&[method, flags], rest) = compressed.split_first_chunk().ok_or(SpdyError::Headers)?;
        if method & 0x0f != DEFLATE || !u16::from_be_bytes([method, flags]).is_multiple_of(31) {
            return Err(SpdyError::Headers);
        }
        self.has_begun = true;
        if flags & NAMES_DICTIONARY == 0 {
            return Ok(rest);
        }
        let words = dictionary();
        let (named, rest) = rest.split_first_chunk().ok_or(SpdyError::Headers)?;
        if u32::from_be_bytes(*named) != checksum(&words) {
            return Err(SpdyError::Headers);
        }
        self.inflated(&stored(&words))?;
        Ok(rest)
    }

    fn inflated(&mut self, deflated: &[u8]) -> Result<Vec<u8>, SpdyError> {
        let before = self.inflate.total_in();
        let mut out = Vec::with_capacity(LONGEST_BLOCK);
        let mut rest = deflated;
        // Each turn takes something in or gives something out, and both are bounded.
        loop {
            let (taken, given) = (self.inflate.total_in(), out.len());
            let status = self.inflate.decompress_vec(rest, &mut out, FlushDecompress::Sync);
            if status.map_err(|_| SpdyError::Headers)? == Status::StreamEnd {
                return Err(SpdyError::Headers);
            }
            let read = usize::try_from(self.inflate.total_in() - before).map_err(|_| SpdyError::Headers)?;
            rest = &deflated[read..];
            if out.len() == LONGEST_BLOCK {
                return Err(SpdyError::TooLong);
            }
            if self.inflate.total_in() == taken && out.len() == given {
                return if rest.is_empty() { Ok(out) } else { Err(SpdyError::Headers) };
            }
        }
    }
}

fn parse(block: &[u8]) -> Option<SpdyHeaders> {
    let mut rest = block;
    let count = number(&mut rest).filter(|count| *count <= MOST_NAMES)?;
    let mut headers = Vec::new();
    for _ in 0..count {
        headers.push((text(&mut rest)?, text(&mut rest)?));
    }
    rest.is_empty().then_some(headers)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_be_bytes(*bytes))
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(bytes.to_vec()).ok()
}

/// Writes blocks of one direction.
#[derive(Debug, Default)]
pub(super) struct HeaderWriter {
    has_begun: bool,
}

impl HeaderWriter {
    /// The next block.
    pub(super) fn write(&mut self, headers: &SpdyHeaders) -> Vec<u8> {
        let mut block = size(headers.len()).to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.extend_from_slice(&size(text.len()));
            block.extend_from_slice(text.as_bytes());
        }
        // Deflate with the smallest window, and no dictionary.
        let mut out = if std::mem::replace(&mut self.has_begun, true) { Vec::new() } else { vec![0x78, 0x01] };
        out.extend(block.chunks(usize::from(u16::MAX)).flat_map(stored));
        // An empty block: whoever reads gives out what came before it.
        out.extend(stored(&[]));
        out
    }
}

fn size(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("headers are short").to_be_bytes()
}

/// A block of deflate that holds bytes as they are, and is not the last.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("it is cut so that it fits");
    let mut block = vec![0];
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&(!length).to_le_bytes());
    block.extend_from_slice(bytes);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> SpdyHeaders {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn blocks_of_one_direction_are_read_as_they_were_written() {
        let (mut writer, mut reader) = (HeaderWriter::default(), HeaderReader::new());
        let long = "x".repeat(20_000);
        for pairs in [&[("streamtype", "data"), ("port", "80")][..], &[], &[("a", ""), ("b", &long)]] {
            let block = writer.write(&headers(pairs));
            assert_eq!(reader.read(&block), Ok(headers(pairs)));
        }
    }

    #[test]
    fn blocks_of_a_client_that_compresses_against_the_dictionary_are_read() {
        // What `compress/zlib` of Go writes at its best, one after the other.
        let first = [
            0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2, 0x02, 0x25, 0x3a, 0x70, 0x3a, 0x2b, 0x29, 0x4a, 0x4d, 0xcc, 0x45, 0x2a,
            0x4a, 0x12, 0x21, 0xa5, 0x72, 0x11, 0x28, 0x05, 0x33, 0x59, 0x18, 0x30, 0x30, 0x30, 0x70, 0x16, 0x41, 0xe2,
            0x30, 0x13, 0x94, 0xb6, 0x19, 0x0d, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
        ];
        let second = [0x02, 0x11, 0x18, 0x3a, 0x59, 0x53, 0x41, 0x51, 0x04, 0x00, 0x00, 0x00, 0xff, 0xff];
        let mut reader = HeaderReader::new();

        let read = reader.read(&first).unwrap();
        assert_eq!(read, headers(&[("streamtype", "data"), ("port", "80"), ("requestid", "0")]));
        assert_eq!(reader.read(&second), Ok(headers(&[("streamtype", "error")])));
    }

    #[test]
    fn blocks_that_grow_without_end_or_are_none_are_refused() {
        use std::io::Write as _;
        let mut bomb = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        bomb.write_all(&vec![0; 1 << 20]).unwrap();
        bomb.flush().unwrap();

        assert_eq!(HeaderReader::new().read(bomb.get_ref()), Err(SpdyError::TooLong));
        for none in [&b""[..], b"x", b"xx", &[0x78, 0xbb, 0, 0, 0, 0], &[0x78, 0x01, 0xff, 0xff]] {
            assert_eq!(HeaderReader::new().read(none), Err(SpdyError::Headers), "{none:?}");
        }
    }
}
