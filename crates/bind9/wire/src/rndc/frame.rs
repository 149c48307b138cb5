//! A command and a key → the bytes on the control channel; bytes from there → the answer, if the key signed it.
//!
//! The protocol is BIND's own (lib/isccc/cc.c): a length, a version, then tables. `_auth` comes first and signs all that stands behind
//! it; `_ctrl` has a serial, the time and the nonce that the server gave for this connection; `_data` has the command line.

use base64::{Engine, prelude::BASE64_STANDARD};

use super::table::{Table, Value};
use crate::{
    message::{MalformedMessage, WireReader},
    tsig::{HmacAlgorithm, HmacKey},
};

/// The one version there is.
const VERSION: u32 = 1;
/// Bytes of a signature in base64, padded with NUL: those of the longest.
const SIGNATURE: usize = 88;
/// Where a signature stands in `_auth`: after its name, kind and length, those of `hsha`, and the algorithm.
const AUTH: usize = 1 + 5 + 1 + 4;
const AUTH_END: usize = AUTH + 1 + 4 + 1 + 4 + 1 + SIGNATURE;
/// Seconds for which a command is good, as rndc has it.
const GOOD_FOR: u64 = 60;
/// Bytes of a command that named 9.18 takes (bin/named/controlconf.c: 32 KiB).
pub(crate) const LONGEST_COMMAND: usize = 32_768;
/// Bytes of an answer that is read: named's own limit for the text is below this.
pub(crate) const LONGEST_ANSWER: u32 = 4 << 20;

/// What is sent around the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandEnvelope {
    pub(crate) serial: u32,
    /// Seconds since 1970.
    pub(crate) now: u64,
    /// What the server gave for this connection; the first command asks for it.
    pub(crate) nonce: Option<u32>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) serial: Option<u32>,
    pub(crate) nonce: Option<u32>,
    pub(crate) result: u32,
    pub(crate) error: Option<String>,
    pub(crate) text: Option<String>,
}

/// Why an answer is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFault {
    Malformed(MalformedMessage),
    /// Who sent it does not have the key.
    Forged,
}

impl From<MalformedMessage> for FrameFault {
    fn from(why: MalformedMessage) -> Self {
        Self::Malformed(why)
    }
}

/// The bytes of a command, its length before it.
pub(crate) fn write(command: &str, envelope: CommandEnvelope, key: &HmacKey) -> Vec<u8> {
    let CommandEnvelope { serial, now, nonce } = envelope;
    let mut control = Table::default()
        .with_text("_ser", serial.to_string())
        .with_text("_tim", now.to_string())
        .with_text("_exp", (now + GOOD_FOR).to_string());
    if let Some(nonce) = nonce {
        control = control.with_text("_nonce", nonce.to_string());
    }
    let data = Table::default().with_text("type", command);
    let mut signed = Vec::new();
    Table::default().with("_ctrl", Value::Table(control)).with("_data", Value::Table(data)).write(&mut signed);
    sealed(&signed, key)
}

fn sealed(signed: &[u8], key: &HmacKey) -> Vec<u8> {
    let mut signature = vec![number_of(key.algorithm())];
    signature.extend(BASE64_STANDARD.encode(key.sign(&[signed])).into_bytes());
    signature.resize(1 + SIGNATURE, 0);
    let auth = Table::default().with("hsha", Value::Text(signature));
    let mut body = VERSION.to_be_bytes().to_vec();
    Table::default().with("_auth", Value::Table(auth)).write(&mut body);
    body.extend_from_slice(signed);
    let length = u32::try_from(body.len()).expect("a command is checked to be short");
    [&length.to_be_bytes()[..], &body].concat()
}

/// Reads an answer, without the length before it.
pub(crate) fn read(body: &[u8], key: &HmacKey) -> Result<Frame, FrameFault> {
    let mut reader = WireReader::new(body);
    if reader.u32()? != VERSION {
        return Err(MalformedMessage::Value("it has another version").into());
    }
    let tables = reader.rest();
    let all = Table::read(&mut WireReader::new(tables))?;
    check(&all, tables, key)?;
    let (control, data) = (all.table("_ctrl"), all.table("_data"));
    let data = data.ok_or(MalformedMessage::Value("it has no _data"))?;
    Ok(Frame {
        serial: control.and_then(|control| control.number("_ser")),
        nonce: control.and_then(|control| control.number("_nonce")),
        result: data.number("result").unwrap_or(0),
        error: data.text("err").filter(|text| !text.is_empty()),
        text: data.text("text").filter(|text| !text.is_empty()),
    })
}

/// The signature stands at a fixed place, since `_auth` is the first table and always as long.
fn check(all: &Table, tables: &[u8], key: &HmacKey) -> Result<(), FrameFault> {
    let Some(Value::Text(signature)) = all.table("_auth").and_then(|auth| auth.get("hsha")) else {
        return Err(FrameFault::Forged);
    };
    let (Some((algorithm, signature)), Some(signed)) = (signature.split_first(), tables.get(AUTH_END..)) else {
        return Err(FrameFault::Forged);
    };
    let digits = signature.split(|byte| *byte == 0).next().unwrap_or_default();
    let signature = BASE64_STANDARD.decode(digits).map_err(|_| FrameFault::Forged)?;
    let is_ours = *algorithm == number_of(key.algorithm()) && tables.starts_with(b"\x05_auth");
    let is_whole = signature.len() == key.algorithm().width();
    if is_ours && is_whole && key.verifies(&[signed], &signature) { Ok(()) } else { Err(FrameFault::Forged) }
}

/// The numbers of algorithms on the control channel (lib/isccc/include/isccc/cc.h).
fn number_of(algorithm: HmacAlgorithm) -> u8 {
    match algorithm {
        HmacAlgorithm::Sha1 => 161,
        HmacAlgorithm::Sha224 => 162,
        HmacAlgorithm::Sha256 => 163,
        HmacAlgorithm::Sha384 => 164,
        HmacAlgorithm::Sha512 => 165,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(secret: &str) -> HmacKey {
        HmacKey::new("control", HmacAlgorithm::Sha256, secret).unwrap()
    }

    fn answer(result: &str) -> Vec<u8> {
        let control = Table::default().with_text("_ser", "7").with_text("_rpl", "1").with_text("_nonce", "99");
        let data = Table::default().with_text("result", result).with_text("err", "not found").with_text("text", "no\0");
        let mut signed = Vec::new();
        Table::default().with("_ctrl", Value::Table(control)).with("_data", Value::Table(data)).write(&mut signed);
        sealed(&signed, &key("c2VjcmV0"))[4..].to_vec()
    }

    #[test]
    fn an_answer_that_the_key_signed_is_read() {
        let frame = read(&answer("23"), &key("c2VjcmV0")).unwrap();

        assert_eq!((frame.serial, frame.nonce, frame.result), (Some(7), Some(99), 23));
        assert_eq!((frame.error.as_deref(), frame.text.as_deref()), (Some("not found"), Some("no")));
        assert_eq!(read(&answer("23"), &key("b3RoZXI=")), Err(FrameFault::Forged));
    }

    #[test]
    fn a_command_has_its_length_its_version_and_its_signature_where_named_looks_for_them() {
        let bytes = write("status", CommandEnvelope { serial: 7, now: 1_000, nonce: Some(9) }, &key("c2VjcmV0"));

        assert_eq!(u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len() - 4);
        assert_eq!(bytes[4..8], [0, 0, 0, 1]);
        assert_eq!(&bytes[8..15], b"\x05_auth\x02");
        assert_eq!(bytes[8 + AUTH_END - SIGNATURE - 1], 163);
        assert_eq!(&bytes[8 + AUTH_END..8 + AUTH_END + 6], b"\x05_ctrl");
    }

    proptest! {
        #[test]
        fn no_changed_byte_of_what_is_signed_goes_unnoticed(at in AUTH_END + 4..200, flip in 1_u8..) {
            let mut bytes = answer("0");
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= flip;
                prop_assert!(read(&bytes, &key("c2VjcmV0")).is_err());
            }
        }

        #[test]
        fn any_bytes_are_an_answer_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, &key("c2VjcmV0"));
        }
    }
}
