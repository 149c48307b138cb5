//! Numbers, names and slices → the bytes of a message; owners of records are compressed.

use std::collections::HashMap;

use super::name::DomainName;

/// The last place that a pointer can point to (RFC 1035 §4.1.4).
const FARTHEST: usize = 0x3fff;

/// A message that is being written.
#[derive(Default)]
pub(crate) struct WireWriter {
    bytes: Vec<u8>,
    names: HashMap<Box<[u8]>, u16>,
}

impl WireWriter {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn u16(&mut self, number: u16) {
        self.bytes.extend(number.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, number: u32) {
        self.bytes.extend(number.to_be_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Puts a number where another one stood.
    pub(crate) fn overwrite(&mut self, at: usize, number: u16) {
        self.bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
    }

    /// Takes back what was written after a place, names included.
    pub(crate) fn truncate(&mut self, to: usize) {
        self.bytes.truncate(to);
        self.names.retain(|_, at| usize::from(*at) < to);
    }

    /// A name as labels and a pointer to where its end stands already.
    pub(crate) fn name(&mut self, name: &DomainName) {
        for suffix in name.suffixes() {
            let [width, rest @ ..] = suffix else { return };
            if *width == 0 {
                self.bytes.push(0);
                return;
            }
            let key: Box<[u8]> = suffix.to_ascii_lowercase().into();
            if let Some(at) = self.names.get(&key) {
                self.u16(0xc000 | at);
                return;
            }
            if let Some(at) = u16::try_from(self.bytes.len()).ok().filter(|at| usize::from(*at) <= FARTHEST) {
                self.names.insert(key, at);
            }
            self.bytes.push(*width);
            self.bytes.extend_from_slice(&rest[..usize::from(*width)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::reader::WireReader, *};

    fn name(text: &str) -> DomainName {
        DomainName::parse(text).unwrap()
    }

    #[test]
    fn what_two_names_end_in_is_written_once_and_read_twice() {
        let mut writer = WireWriter::default();
        for text in ["www.example.com", "mail.Example.com", "example.com", "."] {
            writer.name(&name(text));
        }
        let bytes = writer.into_bytes();

        assert_eq!(bytes.len(), 17 + 7 + 2 + 1);
        let mut reader = WireReader::new(&bytes);
        for text in ["www.example.com", "mail.example.com", "example.com", "."] {
            assert_eq!(reader.name().unwrap(), name(text));
        }
    }

    #[test]
    fn nothing_points_to_what_was_taken_back() {
        let mut writer = WireWriter::default();
        writer.name(&name("example.com"));
        let before = writer.len();
        writer.name(&name("gone.example.org"));
        writer.truncate(before);
        writer.name(&name("example.org"));

        let bytes = writer.into_bytes();
        let mut reader = WireReader::new(&bytes);
        reader.name().unwrap();
        assert_eq!(reader.name().unwrap(), name("example.org"));
    }
}
