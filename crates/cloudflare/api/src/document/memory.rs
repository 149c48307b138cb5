//! What is known of a document without asking. Pure.

use std::sync::Arc;
use std::time::Duration;

use portolan_commit::{Freshness, Moment, Validity};

use super::Content;
use crate::call::error::ApiError;

/// A document as last read or written by this process.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownDocument {
    /// The document.
    pub content: Arc<Content>,
    /// Time since that request began.
    pub age: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    validity: Validity<ApiError>,
    last: Option<(Moment, Arc<Content>)>,
}

impl Memory {
    /// A moment in the order of things.
    pub(super) fn begin(&mut self) -> Moment {
        self.validity.now()
    }

    pub(super) fn known(&self) -> Option<KnownDocument> {
        let (began, content) = self.last.as_ref()?;
        Some(KnownDocument { content: Arc::clone(content), age: began.at().elapsed() })
    }

    /// What a caller who asked at `asked` may take without a request of their own: a document, or a failure they waited for.
    pub(super) fn answer(&self, freshness: Freshness, asked: Moment) -> Option<Result<Arc<Content>, ApiError>> {
        let began = self.last.as_ref().map(|(began, _)| *began);
        match (self.validity.answer(began, freshness, asked)?, &self.last) {
            (Ok(()), last) => last.as_ref().map(|(_, content)| Ok(Arc::clone(content))),
            (Err(error), _) => Some(Err(error)),
        }
    }

    /// Takes in what a request showed, unless something newer is known.
    pub(super) fn store(&mut self, began: Moment, content: &Arc<Content>) {
        self.validity.succeed();
        if !self.last.as_ref().is_some_and(|(last, known)| is_newer((*last, known), (began, content))) {
            self.last = Some((began, Arc::clone(content)));
        }
    }

    pub(super) fn fail(&mut self, error: ApiError) {
        self.validity.fail(error);
    }

    /// Something may have been written that is not known here.
    pub(super) fn doubt(&mut self) {
        self.last = None;
    }
}

/// By version where both have one, else by the order of the requests.
fn is_newer((one, known): (Moment, &Content), (other, content): (Moment, &Content)) -> bool {
    match (known.version, content.version) {
        (Some(known), Some(version)) if known != version => known > version,
        _ => one.is_after(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(version: i64) -> Arc<Content> {
        Arc::new(Content { version: Some(version), ..Content::default() })
    }

    fn shown(memory: &Memory) -> Option<i64> {
        memory.known().and_then(|known| known.content.version)
    }

    #[test]
    fn a_slow_read_does_not_hide_what_was_written_meanwhile() {
        let mut memory = Memory::default();
        let read = memory.begin();
        let write = memory.begin();
        memory.store(write, &version(8));

        memory.store(read, &version(7));

        assert_eq!(shown(&memory), Some(8));
    }

    #[test]
    fn after_a_doubt_nothing_is_known() {
        let mut memory = Memory::default();
        let began = memory.begin();
        memory.store(began, &version(1));

        memory.doubt();

        assert!(memory.known().is_none() && memory.answer(Freshness::Any, began).is_none());
    }

    #[test]
    fn only_those_who_asked_before_a_failure_share_it() {
        let mut memory = Memory::default();
        let before = memory.begin();
        memory.fail(ApiError::gone("t1"));
        let after = memory.begin();

        assert!(memory.answer(Freshness::Any, before).is_some_and(|answer| answer.is_err()));
        assert!(memory.answer(Freshness::Any, after).is_none());
    }
}
