//! The edits that wait for a document's writer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portolan_core::WriteGate;
use serde_json::Value;
use tokio::sync::oneshot;
use tracing::Span;

use super::Committed;
use crate::error::ApiError;
use crate::manner::Manner;
use crate::urgency::Urgency;
use portolan_commit::Linger;

pub(super) type DocumentEdit = Box<dyn Fn(&mut Value) + Send + Sync>;
type Reply = oneshot::Sender<Result<Committed, ApiError>>;

/// One caller's edit.
pub(super) struct PendingEdit {
    name: String,
    manner: Manner,
    /// What the caller's lines carry in the log.
    span: Span,
    edit: DocumentEdit,
    gate: WriteGate,
    replies: Vec<Reply>,
}

impl PendingEdit {
    /// Whether somebody waits for it who may still write.
    pub(super) fn may_go(&self) -> bool {
        self.is_wanted() && self.gate.is_open()
    }

    pub(super) fn apply(&self, value: &mut Value) {
        (self.edit)(value);
    }

    pub(super) fn answer(self, answer: &Result<Committed, ApiError>) {
        for reply in self.replies {
            // A caller that went away does not mind.
            let _ = reply.send(answer.clone());
        }
    }

    fn is_wanted(&self) -> bool {
        self.replies.iter().any(|reply| !reply.is_closed())
    }
}

#[derive(Default)]
pub(super) struct EditQueue {
    waiting: Mutex<VecDeque<PendingEdit>>,
    pub(super) gathering: Arc<Linger>,
    pub(super) urgency: Urgency,
}

impl EditQueue {
    pub(super) fn push(&self, (manner, gate): (Manner, WriteGate), name: &str, edit: DocumentEdit, reply: Reply) {
        let mut waiting = self.waiting();
        match waiting.iter_mut().find(|source| source.name == name) {
            Some(older) => {
                older.edit = edit;
                older.gate = gate;
                older.manner = Manner::shared([older.manner, manner]).unwrap_or(manner);
                older.replies.push(reply);
            }
            None => waiting.push_back(PendingEdit {
                name: name.to_owned(),
                manner,
                span: Span::current(),
                edit,
                gate,
                replies: vec![reply],
            }),
        }
        self.urgency.raise(manner.lane);
        self.gathering.arrived();
    }

    /// How the next commit goes, and in whose span; none if nobody waits.
    pub(super) fn next(&self) -> Option<(Manner, Span)> {
        let mut waiting = self.waiting();
        let (ready, late): (VecDeque<PendingEdit>, VecDeque<PendingEdit>) =
            waiting.drain(..).partition(PendingEdit::may_go);
        *waiting = ready;
        lapse(late);
        let manner = Manner::shared(waiting.iter().map(|source| source.manner))?;
        waiting.front().map(|source| (manner, source.span.clone()))
    }

    pub(super) fn take(&self) -> Vec<PendingEdit> {
        self.waiting().drain(..).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<PendingEdit>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells those who may not write any more.
pub(super) fn lapse(sources: impl IntoIterator<Item = PendingEdit>) {
    for source in sources {
        source.answer(&Err(ApiError::lapsed()));
    }
}
