//! The TSIG record at the end of a message (RFC 8945 §4.2) ↔ its parts; and the message as it was before it was signed.

use crate::message::{ANY, DomainName, LAST_COUNT, MalformedMessage, ResponseCode, TypeCode, WireReader, WireWriter};

/// Bytes of a header.
const HEADER: usize = 12;

/// The parts of a TSIG record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TsigRecord {
    pub(crate) key: DomainName,
    pub(crate) algorithm: DomainName,
    pub(crate) time: u64,
    pub(crate) fudge: u16,
    pub(crate) signature: Box<[u8]>,
    pub(crate) original_id: u16,
    pub(crate) error: ResponseCode,
    pub(crate) other: Box<[u8]>,
}

impl TsigRecord {
    /// What is signed besides the message (RFC 8945 §4.3.3): names in lower case.
    pub(crate) fn variables(&self) -> Vec<u8> {
        let mut writer = WireWriter::default();
        writer.bytes(self.key.canonical().wire());
        writer.u16(ANY);
        writer.u32(0);
        writer.bytes(self.algorithm.canonical().wire());
        writer.bytes(&self.timers());
        writer.u16(self.error.0);
        writer.u16(u16::try_from(self.other.len()).expect("other data is six bytes, or came in a message"));
        writer.bytes(&self.other);
        writer.into_bytes()
    }

    /// What is signed besides the later messages of a stream (RFC 8945 §5.3.1).
    pub(crate) fn timers(&self) -> [u8; 8] {
        // Six bytes of the time, which has two more that are 0 for millions of years, and two of the fudge.
        (self.time << 16 | u64::from(self.fudge)).to_be_bytes()
    }

    /// How long a record will be, for those who count bytes before they sign.
    pub(crate) fn width(key: &DomainName, algorithm: &DomainName, signature: usize, other: usize) -> usize {
        key.wire().len() + 10 + algorithm.wire().len() + 16 + signature + other
    }

    /// Puts the record at the end of a message.
    pub(crate) fn append_to(&self, message: &mut Vec<u8>) {
        let mut writer = WireWriter::default();
        writer.bytes(self.key.wire());
        writer.u16(TypeCode::TSIG.0);
        writer.u16(ANY);
        writer.u32(0);
        let length = self.algorithm.wire().len() + 16 + self.signature.len() + self.other.len();
        writer.u16(u16::try_from(length).expect("a name, a signature and six bytes are short"));
        writer.bytes(self.algorithm.wire());
        writer.bytes(&self.timers());
        sized(&mut writer, &self.signature);
        writer.u16(self.original_id);
        writer.u16(self.error.0);
        sized(&mut writer, &self.other);
        message.extend_from_slice(&writer.into_bytes());
        let count = u16::from_be_bytes([message[LAST_COUNT], message[LAST_COUNT + 1]]) + 1;
        message[LAST_COUNT..HEADER].copy_from_slice(&count.to_be_bytes());
    }

    fn read(key: DomainName, reader: &mut WireReader<'_>) -> Result<Self, MalformedMessage> {
        let algorithm = reader.name()?;
        let time = reader.u48()?;
        let fudge = reader.u16()?;
        let length = usize::from(reader.u16()?);
        let signature = reader.bytes(length)?.into();
        let original_id = reader.u16()?;
        let error = ResponseCode(reader.u16()?);
        let length = usize::from(reader.u16()?);
        let other = reader.bytes(length)?.into();
        reader.finish()?;
        Ok(Self { key, algorithm, time, fudge, signature, original_id, error, other })
    }
}

fn sized(writer: &mut WireWriter, bytes: &[u8]) {
    writer.u16(u16::try_from(bytes.len()).expect("signatures and other data are short"));
    writer.bytes(bytes);
}

/// Takes the TSIG record off a message, which must be the last one of all and the only one (RFC 8945 §5.1). What is left has the id
/// and the counts that it was signed with.
pub(crate) fn split(bytes: &[u8]) -> Result<(Vec<u8>, Option<TsigRecord>), MalformedMessage> {
    let mut reader = WireReader::new(bytes);
    reader.bytes(4)?;
    let [questions, answers, authorities, additionals] = [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
    for _ in 0..questions {
        reader.name()?;
        reader.bytes(4)?;
    }
    let entries = u32::from(answers) + u32::from(authorities) + u32::from(additionals);
    for number in 1..=entries {
        let start = reader.position();
        let name = reader.name()?;
        let kind = TypeCode(reader.u16()?);
        let (class, ttl) = (reader.u16()?, reader.u32()?);
        let length = usize::from(reader.u16()?);
        let mut data = reader.part(length)?;
        if kind != TypeCode::TSIG {
            continue;
        }
        // Neither is signed as it came, so neither may be anything else (RFC 8945 §4.2).
        if class != ANY || ttl != 0 {
            return Err(MalformedMessage::Value("its signature has a class or a TTL that none has"));
        }
        if number != entries || additionals == 0 {
            return Err(MalformedMessage::Value("its signature does not stand at its end"));
        }
        reader.finish()?;
        let record = TsigRecord::read(name, &mut data)?;
        return Ok((unsigned(&bytes[..start], additionals - 1, record.original_id), Some(record)));
    }
    reader.finish()?;
    Ok((bytes.to_vec(), None))
}

fn unsigned(bytes: &[u8], additionals: u16, id: u16) -> Vec<u8> {
    let mut message = bytes.to_vec();
    message[..2].copy_from_slice(&id.to_be_bytes());
    message[LAST_COUNT..HEADER].copy_from_slice(&additionals.to_be_bytes());
    message
}
