//! Bytes → tags, numbers and lengths. It goes wrong where the real server's reader does, with the same words.

use crate::error::ProtobufError;

/// A number that is written in as many bytes as it needs.
pub(crate) const VARINT: u8 = 0;
/// Eight bytes.
pub(crate) const FIXED64: u8 = 1;
/// A length and as many bytes.
pub(crate) const BYTES: u8 = 2;
const GROUP: u8 = 3;
const GROUP_END: u8 = 4;
const FIXED32: u8 = 5;

/// Which field follows, and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) number: u32,
    pub(crate) wire_type: u8,
}

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.rest.split_first().ok_or(ProtobufError::End)?;
            self.rest = rest;
            value |= u64::from(first & 0x7F) << shift;
            if *first < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Overflow)
    }

    /// The tag of the next field of `message`.
    pub(crate) fn tag(&mut self, message: &'static str) -> Result<Tag, ProtobufError> {
        let tag = self.varint()?;
        let wire_type = wire_type(tag);
        if wire_type == GROUP_END {
            return Err(ProtobufError::GroupInMessage { message });
        }
        #[expect(clippy::cast_possible_truncation, reason = "the real server keeps 32 bits of a field's number")]
        let number = (tag >> 3) as i32;
        match u32::try_from(number) {
            Ok(positive) if positive > 0 => Ok(Tag { number: positive, wire_type }),
            _ => Err(ProtobufError::Tag { message, number, tag }),
        }
    }

    /// A length and as many bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], ProtobufError> {
        let length = self.length()?;
        self.take(length)
    }

    pub(crate) fn fixed64(&mut self) -> Result<[u8; 8], ProtobufError> {
        Ok(self.take(8)?.try_into().expect("eight bytes were taken"))
    }

    /// Goes on behind a field that is not known.
    pub(crate) fn skip(&mut self, tag: Tag) -> Result<(), ProtobufError> {
        let mut wire_type_here = tag.wire_type;
        let mut groups = 0_usize;
        loop {
            match wire_type_here {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                BYTES => drop(self.bytes()?),
                GROUP => groups += 1,
                GROUP_END => groups = groups.checked_sub(1).ok_or(ProtobufError::EndOfGroup)?,
                FIXED32 => drop(self.take(4)?),
                other => return Err(ProtobufError::UnknownWireType(other)),
            }
            if groups == 0 {
                return Ok(());
            }
            wire_type_here = wire_type(self.varint()?);
        }
    }

    fn length(&mut self) -> Result<usize, ProtobufError> {
        let length = i64::try_from(self.varint()?).map_err(|_| ProtobufError::Length)?;
        usize::try_from(length).map_err(|_| ProtobufError::End)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::End)?;
        self.rest = rest;
        Ok(taken)
    }
}

fn wire_type(tag: u64) -> u8 {
    u8::try_from(tag & 7).expect("three bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_within_64_bits() {
        assert_eq!(WireReader::new(&[0x96, 0x01]).varint(), Ok(150));
        assert_eq!(WireReader::new(&[0x80]).varint(), Err(ProtobufError::End));
        assert_eq!(WireReader::new(&[0xFF; 11]).varint(), Err(ProtobufError::Overflow));
    }

    #[test]
    fn lengths_stay_within_the_bytes() {
        let huge = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
        let negative = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];

        assert_eq!(WireReader::new(&[2, b'a']).bytes(), Err(ProtobufError::End));
        assert_eq!(WireReader::new(&huge).bytes(), Err(ProtobufError::End));
        assert_eq!(WireReader::new(&negative).bytes(), Err(ProtobufError::Length));
    }

    #[test]
    fn groups_are_skipped_with_everything_in_them() {
        let group = Tag { number: 9, wire_type: GROUP };
        let mut reader = WireReader::new(&[0x08, 0x01, 0x13, 0x14, 0x0D, 0, 0, 0, 0, 0x4C, 0x2A]);

        reader.skip(group).unwrap();

        assert_eq!(reader.varint(), Ok(42));
        assert_eq!(WireReader::new(&[0x08, 0x01]).skip(group), Err(ProtobufError::End));
        assert_eq!(WireReader::new(&[0x0F]).skip(group), Err(ProtobufError::UnknownWireType(7)));
    }

    #[test]
    fn field_numbers_are_positive() {
        let error = WireReader::new(&[0x02]).tag("Pod").unwrap_err();
        assert_eq!(error.to_string(), "proto: Pod: illegal tag 0 (wire type 2)");

        let error = WireReader::new(&[0x0C]).tag("Pod").unwrap_err();
        assert_eq!(error.to_string(), "proto: Pod: wiretype end group for non-group");
    }
}
