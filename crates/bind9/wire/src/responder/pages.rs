//! A zone's records → the messages of its transfer, one at a time, each as full as is allowed. Pure.

use std::iter::once;

use super::reply::{Fetch, soa_entry};
use crate::message::{Entry, Header, LONGEST_MESSAGE, MessageBuilder, Question, Section, TypeCode};

/// Bytes that a message is filled to, as named fills its own.
const FULL: usize = 20_480;

/// The messages of a transfer, unsigned.
pub(super) struct Pages {
    header: Header,
    question: Option<Question>,
    longest: usize,
    entries: Box<dyn Iterator<Item = Entry> + Send>,
    left: Option<Entry>,
}

/// A record that fits no message: nobody could ever be told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordTooLong;

impl Pages {
    /// The zone's SOA record, all others, the SOA record again (RFC 5936 §2.2).
    pub(super) fn new(fetch: &Fetch) -> Self {
        let soa = soa_entry(&fetch.question.name, &fetch.seed);
        let others = fetch.seed.records().filter(|record| record.kind != TypeCode::SOA).map(Entry::from);
        Self {
            header: fetch.header,
            question: Some(fetch.question.clone()),
            longest: LONGEST_MESSAGE - fetch.conversation.signature_width(),
            entries: Box::new(once(soa.clone()).chain(others).chain(once(soa))),
            left: None,
        }
    }

    /// The next message, if there is one more. Only the first one repeats the question (RFC 5936 §2.2.2 leaves that free).
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, RecordTooLong> {
        let Some(first) = self.left.take().or_else(|| self.entries.next()) else { return Ok(None) };
        let mut builder = MessageBuilder::new(self.header, self.question.take().as_ref());
        if !builder.push_within(Section::Answer, &first, self.longest) {
            return Err(RecordTooLong);
        }
        for entry in self.entries.by_ref() {
            if !builder.push_within(Section::Answer, &entry, FULL) {
                self.left = Some(entry);
                break;
            }
        }
        Ok(Some(builder.finish()))
    }
}
