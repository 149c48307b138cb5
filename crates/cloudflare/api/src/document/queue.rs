//! The edits that wait for a document's writer.

use portolan_commit::{PendingWrite, Queue, Source};
use portolan_core::WriteGate;
use serde_json::Value;
use tokio::sync::oneshot;
use tracing::Span;

use super::Committed;
use crate::budget::governor::Lane;
use crate::call::error::ApiError;
use crate::call::options::CallOptions;

pub(super) type DocumentEdit = Box<dyn Fn(&mut Value) + Send + Sync>;
type Reply = oneshot::Sender<Result<Committed, ApiError>>;

/// One caller's edit.
pub(super) struct PendingEdit {
    name: String,
    options: CallOptions,
    /// What the caller's lines carry in the log.
    span: Span,
    edit: DocumentEdit,
    gate: WriteGate,
    replies: Vec<Reply>,
}

impl PendingEdit {
    pub(super) fn apply(&self, value: &mut Value) {
        (self.edit)(value);
    }

    pub(super) fn answer(self, answer: &Result<Committed, ApiError>) {
        for reply in self.replies {
            // A caller that went away does not mind.
            let _ = reply.send(answer.clone());
        }
    }

    /// A newer edit of the same source takes this one's place, and both get its result.
    fn give_way_to(&mut self, newer: Self) {
        let shared = CallOptions::shared([self.options, newer.options]).unwrap_or(newer.options);
        (self.edit, self.gate, self.options) = (newer.edit, newer.gate, shared);
        self.replies.extend(newer.replies);
    }
}

impl Source for PendingEdit {
    type Lane = Lane;

    fn lane(&self) -> Lane {
        self.options.lane
    }

    fn is_paced(&self) -> bool {
        self.lane() != Lane::Protect
    }

    fn may_go(&self) -> bool {
        self.replies.iter().any(|reply| !reply.is_closed()) && self.gate.is_open()
    }

    fn lapse(self) {
        self.answer(&Err(ApiError::lapsed()));
    }
}

/// The edits of one document.
#[derive(Default)]
pub(super) struct EditQueue(Queue<PendingEdit>);

impl EditQueue {
    pub(super) fn push(&self, (options, gate): (CallOptions, WriteGate), name: &str, edit: DocumentEdit, reply: Reply) {
        portolan_core::waypoint!();
        let (name, replies, span) = (name.to_owned(), vec![reply], Span::current());
        let source = PendingEdit { name: name.clone(), options, span, edit, gate, replies };
        self.0.push_or_join(source, |older| older.name == name, PendingEdit::give_way_to);
    }

    pub(super) fn expect(&self) -> PendingWrite {
        self.0.expect()
    }

    pub(super) fn sources(&self) -> &Queue<PendingEdit> {
        &self.0
    }

    /// How the next commit goes, and in whose span; none if nobody waits.
    pub(super) fn next(&self) -> Option<(CallOptions, Span)> {
        self.0.look(|waiting| {
            let options = CallOptions::shared(waiting.iter().map(|source| source.options))?;
            waiting.front().map(|source| (options, source.span.clone()))
        })
    }
}
