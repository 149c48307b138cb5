//! The twelve bytes before every message (RFC 1035 §4.1.1): what it is about, and how it went.

use std::fmt;

use super::{
    reader::{MalformedMessage, WireReader},
    writer::WireWriter,
};

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opcode(pub(crate) u8);

impl Opcode {
    pub(crate) const QUERY: Self = Self(0);
    #[cfg(test)]
    pub(crate) const NOTIFY: Self = Self(4);
    pub(crate) const UPDATE: Self = Self(5);
}

/// How a server answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResponseCode(pub u16);

macro_rules! codes {
    ($($name:ident = $number:literal;)+) => {
        #[expect(missing_docs, reason = "the names are those of the RFCs")]
        impl ResponseCode {
            $(pub const $name: Self = Self($number);)+
        }

        impl fmt::Display for ResponseCode {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str(stringify!($name)),)+
                    Self(number) => write!(f, "RCODE{number}"),
                }
            }
        }
    };
}

codes! {
    NOERROR = 0;
    FORMERR = 1;
    SERVFAIL = 2;
    NXDOMAIN = 3;
    NOTIMP = 4;
    REFUSED = 5;
    YXDOMAIN = 6;
    YXRRSET = 7;
    NXRRSET = 8;
    NOTAUTH = 9;
    NOTZONE = 10;
    BADSIG = 16;
    BADKEY = 17;
    BADTIME = 18;
    BADTRUNC = 22;
}

impl fmt::Debug for ResponseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The header, without the counts of what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: u16,
    pub(crate) is_answer: bool,
    pub(crate) opcode: Opcode,
    pub(crate) is_authoritative: bool,
    pub(crate) is_truncated: bool,
    pub(crate) code: ResponseCode,
}

const ANSWER: u16 = 1 << 15;
const AUTHORITATIVE: u16 = 1 << 10;
const TRUNCATED: u16 = 1 << 9;

impl Header {
    /// The header of a question.
    pub(crate) fn asking(id: u16, opcode: Opcode) -> Self {
        Self { id, is_answer: false, opcode, is_authoritative: false, is_truncated: false, code: ResponseCode::NOERROR }
    }

    /// The header of the answer to a message.
    pub(crate) fn answering(self, code: ResponseCode) -> Self {
        let is_authoritative = code == ResponseCode::NOERROR;
        Self { is_answer: true, is_authoritative, is_truncated: false, code, ..self }
    }

    pub(crate) fn read(reader: &mut WireReader<'_>) -> Result<Self, MalformedMessage> {
        let id = reader.u16()?;
        let flags = reader.u16()?;
        Ok(Self {
            id,
            is_answer: flags & ANSWER != 0,
            opcode: Opcode((flags >> 11 & 0xf) as u8),
            is_authoritative: flags & AUTHORITATIVE != 0,
            is_truncated: flags & TRUNCATED != 0,
            code: ResponseCode(flags & 0xf),
        })
    }

    pub(crate) fn write(self, writer: &mut WireWriter) {
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        writer.u16(self.id);
        writer.u16(
            flag(self.is_answer, ANSWER)
                | u16::from(self.opcode.0) << 11
                | flag(self.is_authoritative, AUTHORITATIVE)
                | flag(self.is_truncated, TRUNCATED)
                | self.code.0 & 0xf,
        );
    }
}
