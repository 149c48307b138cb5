//! A message and a key → the signed message; a signed message and what went before it → who sent it, or why it cannot be believed
//! (RFC 8945). Pure: the time is an argument.
//!
//! ```text
//! asking:    Signer::request ─► bytes, Conversation ─► Conversation::verify, for every message of the answer
//! answering: Verified (by `check_request`) ─► Conversation::sign, for every message of the answer
//! ```

mod key;
mod record;
#[cfg(test)]
mod tests;

use record::TsigRecord;
pub(crate) use record::split;

pub use key::{HmacAlgorithm, HmacKey};

use crate::message::{DomainName, MalformedMessage, ResponseCode};

/// Seconds by which the clocks of both sides may differ (RFC 8945 §10).
pub(crate) const FUDGE: u16 = 300;
/// So many messages of a stream may go without a signature (RFC 8945 §5.3.1).
const UNSIGNED_AT_MOST: u32 = 99;

/// Why a signature does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFault {
    /// The server does not know the key, or knows another algorithm for it.
    #[error("the server does not know the key {0} (BADKEY)")]
    BadKey(DomainName),
    /// The server has another secret under the key's name.
    #[error("the server has another secret for the key {0} (BADSIG)")]
    BadSignature(DomainName),
    /// The clocks differ by more than five minutes.
    #[error("the server's clock says {server}, and ours {ours} (BADTIME): set both")]
    BadTime {
        /// Seconds since 1970 at the server.
        server: u64,
        /// Seconds since 1970 here.
        ours: u64,
    },
    /// The answer has no signature, so anybody may have sent it.
    #[error("the answer is not signed")]
    Unsigned,
    /// The answer has a signature that is not that of the key over these bytes.
    #[error("the answer's signature does not hold")]
    Forged,
    /// The server found fault in some other way.
    #[error("the server refuses the signature: {0}")]
    Other(ResponseCode),
}

/// What both sides go by after a request was signed: the signatures so far, of which every later one depends on the last.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    key: HmacKey,
    previous: Box<[u8]>,
    /// Messages since the last signature, one behind the other.
    unsigned: Vec<u8>,
    unsigned_count: u32,
    is_first: bool,
    id: u16,
}

/// How much longer a message gets by being signed.
pub(crate) fn signature_width(key: &HmacKey) -> usize {
    TsigRecord::width(key.name(), &key.algorithm().name(), key.algorithm().width(), 0)
}

/// Signs a request. `now` is in seconds since 1970.
pub(crate) fn sign_request(mut message: Vec<u8>, key: &HmacKey, now: u64) -> (Vec<u8>, Conversation) {
    let id = id_of(&message);
    let mut record = unsigned_record(key, now, id);
    record.signature = key.sign(&[&message, &record.variables()]);
    record.append_to(&mut message);
    (message, Conversation::begun(key, record.signature, id))
}

fn unsigned_record(key: &HmacKey, now: u64, id: u16) -> TsigRecord {
    TsigRecord {
        key: key.name().clone(),
        algorithm: key.algorithm().name(),
        time: now,
        fudge: FUDGE,
        signature: Box::default(),
        original_id: id,
        error: ResponseCode::NOERROR,
        other: Box::default(),
    }
}

fn id_of(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}

/// A request as it came: what was signed, and what is to be thought of its signature.
#[derive(Debug)]
pub(crate) enum Checked {
    /// Somebody who has the key sent it.
    Verified(Vec<u8>, Conversation),
    /// It has no signature.
    Unsigned,
    /// It has one that does not hold; the answer says so with NOTAUTH, signed only where just the time is wrong (RFC 8945 §5.2).
    Refused(Rejection),
}

/// What is answered to a signature that does not hold.
#[derive(Debug)]
pub(crate) struct Rejection {
    record: TsigRecord,
    key: Option<HmacKey>,
    request_signature: Box<[u8]>,
}

/// Checks a request's signature with the key that its zone has, if it has one.
pub(crate) fn check_request(
    bytes: &[u8],
    key_of: impl FnOnce(&DomainName) -> Option<HmacKey>,
    now: u64,
) -> Result<Checked, MalformedMessage> {
    let (message, record) = split(bytes)?;
    let Some(record) = record else { return Ok(Checked::Unsigned) };
    let refused = |error, key, other: Box<[u8]>| {
        let request_signature = record.signature.clone();
        let record = TsigRecord { signature: Box::default(), error, other, ..record.clone() };
        Rejection { record, key, request_signature }
    };
    let Some(key) = key_of(&record.key).filter(|key| record.algorithm == key.algorithm().name()) else {
        return Ok(Checked::Refused(refused(ResponseCode::BADKEY, None, Box::default())));
    };
    if !key.verifies(&[&message, &record.variables()], &record.signature) {
        return Ok(Checked::Refused(refused(ResponseCode::BADSIG, None, Box::default())));
    }
    if now.abs_diff(record.time) > u64::from(record.fudge) {
        let ours = now.to_be_bytes()[2..].into();
        return Ok(Checked::Refused(refused(ResponseCode::BADTIME, Some(key), ours)));
    }
    let id = id_of(&message);
    Ok(Checked::Verified(message, Conversation::begun(&key, record.signature, id)))
}

impl Rejection {
    /// Puts what is wrong with the request's signature into the answer.
    pub(crate) fn seal(mut self, mut answer: Vec<u8>) -> Vec<u8> {
        if let Some(key) = &self.key {
            let before = prefixed(&self.request_signature);
            self.record.signature = key.sign(&[&before, &answer, &self.record.variables()]);
        }
        self.record.append_to(&mut answer);
        answer
    }
}

fn prefixed(signature: &[u8]) -> Vec<u8> {
    let length = u16::try_from(signature.len()).expect("a signature came in a message, or is short");
    [&length.to_be_bytes()[..], signature].concat()
}

impl Conversation {
    fn begun(key: &HmacKey, signature: Box<[u8]>, id: u16) -> Self {
        Self { key: key.clone(), previous: signature, unsigned: Vec::new(), unsigned_count: 0, is_first: true, id }
    }

    /// How much longer a message of the answer gets by being signed.
    pub(crate) fn signature_width(&self) -> usize {
        signature_width(&self.key)
    }

    /// Signs the next message of the answer.
    pub(crate) fn sign(&mut self, mut message: Vec<u8>, now: u64) -> Vec<u8> {
        let mut record = unsigned_record(&self.key, now, id_of(&message));
        record.signature = self.key.sign(&[&prefixed(&self.previous), &message, &self.variables(&record)]);
        self.previous.clone_from(&record.signature);
        self.is_first = false;
        record.append_to(&mut message);
        message
    }

    fn variables(&self, record: &TsigRecord) -> Vec<u8> {
        if self.is_first { record.variables() } else { record.timers().to_vec() }
    }

    /// Checks the next message of the answer. Later ones of a stream may be without a signature, some at a time: what they say
    /// is believed once the next signature holds, so who goes by it earlier must be able to take it back.
    pub(crate) fn verify(&mut self, bytes: &[u8], now: u64) -> Result<Vec<u8>, VerifyError> {
        let (message, record) = split(bytes)?;
        let Some(record) = record else { return self.take_unsigned(message).map_err(VerifyError::Fault) };
        if record.key != *self.key.name() || record.algorithm != self.key.algorithm().name() {
            return Err(self.told(&record, now).unwrap_or(SignatureFault::Forged).into());
        }
        // Who does not know the key, or has another secret for it, cannot sign.
        if [ResponseCode::BADKEY, ResponseCode::BADSIG].contains(&record.error) && record.signature.is_empty() {
            return Err(self.told(&record, now).unwrap_or(SignatureFault::Forged).into());
        }
        let parts: [&[u8]; 4] = [&prefixed(&self.previous), &self.unsigned, &message, &self.variables(&record)];
        if !self.key.verifies(&parts, &record.signature) {
            return Err(SignatureFault::Forged.into());
        }
        if let Some(fault) = self.told(&record, now) {
            return Err(fault.into());
        }
        if now.abs_diff(record.time) > u64::from(record.fudge) {
            return Err(SignatureFault::BadTime { server: record.time, ours: now }.into());
        }
        self.previous = record.signature;
        self.is_first = false;
        self.unsigned.clear();
        self.unsigned_count = 0;
        Ok(message)
    }

    /// Whether all that was taken so far has been covered by a signature.
    pub(crate) fn is_sealed(&self) -> bool {
        self.unsigned_count == 0 && !self.is_first
    }

    fn take_unsigned(&mut self, message: Vec<u8>) -> Result<Vec<u8>, SignatureFault> {
        if self.is_first || self.unsigned_count >= UNSIGNED_AT_MOST || id_of(&message) != self.id {
            return Err(SignatureFault::Unsigned);
        }
        self.unsigned_count += 1;
        self.unsigned.extend_from_slice(&message);
        Ok(message)
    }

    /// What the other side says of our signature.
    fn told(&self, record: &TsigRecord, now: u64) -> Option<SignatureFault> {
        match record.error {
            ResponseCode::NOERROR => None,
            ResponseCode::BADKEY => Some(SignatureFault::BadKey(self.key.name().clone())),
            ResponseCode::BADSIG => Some(SignatureFault::BadSignature(self.key.name().clone())),
            ResponseCode::BADTIME => {
                let server = record.other.iter().fold(0, |seconds, byte| seconds << 8 | u64::from(*byte));
                Some(SignatureFault::BadTime { server, ours: now })
            }
            other => Some(SignatureFault::Other(other)),
        }
    }
}

/// Why a message of an answer is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VerifyError {
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    #[error(transparent)]
    Fault(#[from] SignatureFault),
}
