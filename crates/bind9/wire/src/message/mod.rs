//! Bytes on the wire ↔ messages of the DNS (RFC 1035 §4, RFC 2136 §2). Pure.
//!
//! Our own codec, since the sizes of updates are counted in bytes before they are sent, data of types that nobody here knows
//! must come back byte for byte, and signatures are over bytes as they came.

mod header;
mod name;
mod rdata;
mod reader;
mod record;
mod type_code;
mod writer;

pub use header::ResponseCode;
pub use name::{DomainName, Labels};
pub use rdata::RecordData;
pub use reader::MalformedMessage;
pub use record::ResourceRecord;
pub use type_code::TypeCode;

pub(crate) use header::{Header, Opcode};
pub(crate) use name::{unescaped, write_escaped};
pub(crate) use reader::WireReader;
pub(crate) use record::{ANY, Entry, IN, NONE};
pub(crate) use writer::WireWriter;

/// Bytes of the longest message, for its length goes before it in two bytes (RFC 1035 §4.2.2).
pub const LONGEST_MESSAGE: usize = 65_535;
/// Where the count of the last section stands.
pub(crate) const LAST_COUNT: usize = 10;

/// What is asked, or the zone of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) name: DomainName,
    pub(crate) kind: TypeCode,
    pub(crate) class: u16,
}

impl Question {
    pub(crate) fn of(name: DomainName, kind: TypeCode) -> Self {
        Self { name, kind, class: IN }
    }

    fn read(reader: &mut WireReader<'_>) -> Result<Self, MalformedMessage> {
        Ok(Self { name: reader.name()?, kind: TypeCode(reader.u16()?), class: reader.u16()? })
    }

    fn write(&self, writer: &mut WireWriter) {
        writer.name(&self.name);
        writer.u16(self.kind.0);
        writer.u16(self.class);
    }
}

/// A message that came, its signature taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DnsMessage {
    pub(crate) header: Header,
    pub(crate) questions: Vec<Question>,
    pub(crate) answers: Vec<Entry>,
    pub(crate) authorities: Vec<Entry>,
    pub(crate) additionals: Vec<Entry>,
}

impl DnsMessage {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, MalformedMessage> {
        let mut reader = WireReader::new(bytes);
        let header = Header::read(&mut reader)?;
        let counts = [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
        let [questions, answers, authorities, additionals] = counts;
        let message = Self {
            header,
            questions: (0..questions).map(|_| Question::read(&mut reader)).collect::<Result<_, _>>()?,
            answers: entries(&mut reader, answers)?,
            authorities: entries(&mut reader, authorities)?,
            additionals: entries(&mut reader, additionals)?,
        };
        reader.finish()?;
        Ok(message)
    }
}

fn entries(reader: &mut WireReader<'_>, count: u16) -> Result<Vec<Entry>, MalformedMessage> {
    (0..count).map(|_| Entry::read(reader)).collect()
}

/// A message that is being made, section by section in their order.
pub(crate) struct MessageBuilder {
    writer: WireWriter,
    section: Section,
    count: u16,
}

/// The sections that entries stand in; where their counts are is their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Question = 4,
    /// Answers; the prerequisites of an update.
    Answer = 6,
    /// Authorities; the changes of an update.
    Authority = 8,
    /// What is said besides.
    Additional = 10,
}

impl MessageBuilder {
    /// A message with its header and one question.
    pub(crate) fn new(header: Header, question: Option<&Question>) -> Self {
        let mut writer = WireWriter::default();
        header.write(&mut writer);
        writer.bytes(&[0; 8]);
        let mut builder = Self { writer, section: Section::Question, count: 0 };
        if let Some(question) = question {
            question.write(&mut builder.writer);
            builder.count = 1;
        }
        builder
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.writer.len()
    }

    /// Writes an entry into a section at or behind the last one, if the message stays as short as is said; else nothing happens.
    #[must_use]
    pub(crate) fn push_within(&mut self, section: Section, entry: &Entry, longest: usize) -> bool {
        if section != self.section {
            debug_assert!(section > self.section, "sections are written in their order");
            self.close();
            self.section = section;
        }
        let before = self.writer.len();
        entry.write(&mut self.writer);
        let fits = self.writer.len() <= longest && self.count < u16::MAX;
        if fits {
            self.count += 1;
        } else {
            self.writer.truncate(before);
        }
        fits
    }

    fn close(&mut self) {
        self.writer.overwrite(self.section as usize, self.count);
        self.count = 0;
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.close();
        self.writer.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn a_record(name: &str, last: u8) -> Entry {
        let data = RecordData::from_bytes(TypeCode::A, &[192, 0, 2, last]).unwrap();
        ResourceRecord { name: DomainName::parse(name).unwrap(), kind: TypeCode::A, ttl: 300, data }.into()
    }

    fn question() -> Question {
        Question::of(DomainName::parse("example.com").unwrap(), TypeCode::SOA)
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let header = Header::asking(7, Opcode::UPDATE);
        let mut builder = MessageBuilder::new(header, Some(&question()));
        assert!(builder.push_within(Section::Answer, &a_record("a.example.com", 1), LONGEST_MESSAGE));
        assert!(builder.push_within(Section::Authority, &a_record("b.example.com", 2), LONGEST_MESSAGE));
        assert!(builder.push_within(Section::Authority, &a_record("c.example.com", 3), LONGEST_MESSAGE));

        let message = DnsMessage::read(&builder.finish()).unwrap();

        assert_eq!(message.header, header);
        assert_eq!(message.questions, [question()]);
        assert_eq!(message.answers, [a_record("a.example.com", 1)]);
        assert_eq!(message.authorities, [a_record("b.example.com", 2), a_record("c.example.com", 3)]);
        assert_eq!(message.additionals, []);
    }

    #[test]
    fn an_entry_that_would_make_a_message_too_long_leaves_it_as_it_is() {
        let mut builder = MessageBuilder::new(Header::asking(7, Opcode::QUERY), Some(&question()));
        let longest = builder.len() + 20;

        assert!(builder.push_within(Section::Answer, &a_record("a.example.com", 1), longest));
        let length = builder.len();
        assert!(!builder.push_within(Section::Answer, &a_record("b.example.com", 2), longest));

        assert_eq!(builder.len(), length);
        assert_eq!(DnsMessage::read(&builder.finish()).unwrap().answers.len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = DnsMessage::read(&bytes);
        }

        #[test]
        fn a_message_with_bytes_changed_is_read_or_refused(at in prop::collection::vec((0_usize..90, any::<u8>()), 1..5)) {
            let mut builder = MessageBuilder::new(Header::asking(7, Opcode::QUERY), Some(&question()));
            for last in 1..4 {
                prop_assert!(builder.push_within(Section::Answer, &a_record("www.example.com", last), LONGEST_MESSAGE));
            }
            let mut bytes = builder.finish();
            for (at, byte) in at {
                if let Some(there) = bytes.get_mut(at) {
                    *there = byte;
                }
            }
            let _ = DnsMessage::read(&bytes);
        }
    }
}
