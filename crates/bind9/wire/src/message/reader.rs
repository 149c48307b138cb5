//! Bytes from somebody else → numbers, names and slices, or what is wrong with them. Nothing here can loop or overrun.

use super::name::{DomainName, NameBuilder};

/// What is wrong with bytes that should have been a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedMessage {
    /// It ends in the middle of something.
    #[error("it ends too early")]
    Short,
    /// Something stands behind its end.
    #[error("something stands behind its end")]
    Trailing,
    /// A name with a pointer that does not point back, or that is too long.
    #[error("a name in it cannot be read")]
    Name,
    /// A part that does not fit its length, or a value that nothing may have.
    #[error("{0}")]
    Value(&'static str),
}

/// What is still to be read of a message; names may point back to all of it.
#[derive(Clone)]
pub(crate) struct WireReader<'a> {
    message: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> WireReader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { message, at: 0, end: message.len() }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    pub(crate) fn finish(&self) -> Result<(), MalformedMessage> {
        if self.is_at_end() { Ok(()) } else { Err(MalformedMessage::Trailing) }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], MalformedMessage> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.end).ok_or(MalformedMessage::Short)?;
        let bytes = &self.message[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let bytes = &self.message[self.at..self.end];
        self.at = self.end;
        bytes
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedMessage> {
        self.bytes(N).map(|bytes| bytes.try_into().expect("as many bytes were taken"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, MalformedMessage> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, MalformedMessage> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, MalformedMessage> {
        self.array().map(u32::from_be_bytes)
    }

    /// Seconds since 1970 in the six bytes of a TSIG record.
    pub(crate) fn u48(&mut self) -> Result<u64, MalformedMessage> {
        let high = u64::from(self.u16()?);
        Ok(high << 32 | u64::from(self.u32()?))
    }

    /// A length and as many bytes (RFC 1035 §3.3).
    pub(crate) fn character_string(&mut self) -> Result<&'a [u8], MalformedMessage> {
        let length = self.u8()?;
        self.bytes(usize::from(length))
    }

    /// The next so many bytes as a reader of their own, whose names may point before them.
    pub(crate) fn part(&mut self, length: usize) -> Result<Self, MalformedMessage> {
        let at = self.at;
        self.bytes(length)?;
        Ok(Self { message: self.message, at, end: self.at })
    }

    /// A name, which may end in a pointer (RFC 1035 §4.1.4). A pointer must point before whatever led to it, so that no chain of
    /// them is without an end.
    pub(crate) fn name(&mut self) -> Result<DomainName, MalformedMessage> {
        let mut name = NameBuilder::default();
        let mut jumped: Option<Self> = None;
        let mut before = self.at;
        loop {
            let reader = jumped.as_mut().unwrap_or(self);
            let width = reader.u8()?;
            match width {
                0 => return Ok(name.finish()),
                1..=63 => {
                    let label = reader.bytes(usize::from(width))?;
                    name.push(label).map_err(|_| MalformedMessage::Name)?;
                }
                0b1100_0000.. => {
                    let to = usize::from(width & 0b0011_1111) << 8 | usize::from(reader.u8()?);
                    if to >= before {
                        return Err(MalformedMessage::Name);
                    }
                    jumped = Some(Self { message: self.message, at: to, end: before });
                    before = to;
                }
                _ => return Err(MalformedMessage::Name),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_ends_in_a_pointer_to_an_earlier_one() {
        let message = b"\x07example\x03com\0\x03www\xc0\x00rest";
        let mut reader = WireReader::new(message);

        assert_eq!(reader.name().unwrap().to_string(), "example.com.");
        assert_eq!(reader.name().unwrap().to_string(), "www.example.com.");
        assert_eq!(reader.rest(), b"rest");
    }

    #[test]
    fn pointers_that_do_not_point_back_are_refused() {
        for message in
            [&b"\xc0\x00"[..], b"\x01a\xc0\x00", b"\xc0\x02\xc0\x00", b"\x01a\xc0\x09", b"\x41a\0", b"\x05ab"]
        {
            assert!(WireReader::new(message).name().is_err(), "{message:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_name_or_refused(message in prop::collection::vec(any::<u8>(), 0..600), at in 0_usize..600) {
            let mut reader = WireReader::new(&message);
            let _ = reader.bytes(at);
            if let Ok(name) = reader.name() {
                prop_assert!(name.wire().len() <= 255);
            }
        }
    }
}
