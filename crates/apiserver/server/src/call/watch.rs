//! `?watch`: a stream of events that ends only with its time, its client or its history.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::Call;
use super::list::{ListSelection, bad_version};
use crate::answer::{self, Answer};
use crate::api::{self, Api};
use crate::negotiate::ObjectForm;
use crate::status::ApiError;
use crate::store::{Compacted, Event, EventKind, Range, StoredObject, Watch};
use crate::table::{self, Include};

const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(45 * 60);
const MOST_PER_CHUNK: usize = 256;
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Where a watch begins.
struct Start {
    from: u64,
    initial: Vec<Arc<StoredObject>>,
    /// Whether a bookmark closes the initial events.
    closing_bookmark: bool,
}

impl Call {
    pub(super) fn watch(&mut self) -> Result<Answer, ApiError> {
        let selection = self.selection()?;
        self.check_watch_options()?;
        let slot = Slot::take(&self.api)?;
        let start = self.start(&selection)?;
        let bookmarks = self.query.flag("allowWatchBookmarks");
        let timeout = match self.query.number("timeoutSeconds")?.map(u64::try_from) {
            Some(Ok(seconds)) if seconds > 0 => Duration::from_secs(seconds),
            _ => DEFAULT_TIMEOUT,
        };
        let watch = match start {
            Ok(start) => self.api.store.watch(&self.resource.collection, start.from).map(|watch| (start, watch)),
            Err(compacted) => Err(compacted),
        };
        let view = EventView { call: self.view(), selection, headed: false };
        let mut stream = Stream {
            view,
            watch: None,
            pending: VecDeque::new(),
            deadline: Instant::now() + timeout,
            next_bookmark: bookmarks.then(|| next_bookmark(Instant::now() + timeout)),
            position: 0,
            ended: false,
            _slot: slot,
        };
        match watch {
            Ok((start, watch)) => stream.begin(start, watch),
            Err(compacted) => stream.expire(compacted, self.query.get("resourceVersion")),
        }
        Ok(Answer::stream(futures::stream::unfold(stream, Stream::next).boxed()))
    }

    /// A copy of what rendering needs.
    fn view(&self) -> Self {
        let mut call = Self::internal(self.api.clone(), self.resource.clone(), self.target.clone());
        call.accepted = self.accepted;
        call.query = self.query.clone();
        call
    }

    fn start(&self, selection: &ListSelection) -> Result<Result<Start, Compacted>, ApiError> {
        let text = self.query.get("resourceVersion");
        let version: u64 = if text.is_empty() { 0 } else { text.parse().map_err(|_| bad_version(text))? };
        let asked = self.query.find("sendInitialEvents").map(|_| self.query.flag("sendInitialEvents"));
        let wants_initial = asked.unwrap_or(version == 0);
        if !wants_initial {
            let from = if version == 0 { self.api.store.version() } else { version };
            return Ok(Ok(Start { from, initial: Vec::new(), closing_bookmark: false }));
        }
        if version > self.api.store.version() {
            return Err(ApiError::too_large_version(version, self.api.store.version()));
        }
        let range = Range { collection: &self.resource.collection, prefix: &selection.prefix, after: "", at: None };
        let Ok(listing) = self.api.store.list(&range) else {
            return Err(ApiError::internal("the present is gone"));
        };
        let matches = |s: &Arc<StoredObject>| self.selects(selection, s);
        let initial = listing.objects.into_iter().filter(matches).collect();
        Ok(Ok(Start { from: listing.version, initial, closing_bookmark: asked == Some(true) }))
    }

    fn selects(&self, selection: &ListSelection, stored: &StoredObject) -> bool {
        stored.key.path.starts_with(&selection.prefix)
            && selection.labels.matches(&stored.body.labels)
            && self.fields_match(&selection.fields, stored)
    }

    fn check_watch_options(&self) -> Result<(), ApiError> {
        let root = Path::root();
        let (matching, initial) = (self.query.get("resourceVersionMatch"), self.query.find("sendInitialEvents"));
        let path = root.field("resourceVersionMatch");
        let mut errors = Vec::new();
        if initial.is_some() && matching != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if !matching.is_empty() && initial.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if !matching.is_empty() && matching != "NotOlderThan" {
            errors.push(FieldError::not_supported(&path, &json!(matching), &["NotOlderThan"]));
        }
        if !self.query.get("continue").is_empty() {
            errors.push(FieldError::forbidden(&root.field("continue"), "continue is forbidden for watch"));
        }
        if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &errors)) }
    }
}

/// One of the watches that may be open at once.
struct Slot(Arc<Api>);

impl Slot {
    fn take(api: &Arc<Api>) -> Result<Self, ApiError> {
        let open = api.open_watches.fetch_add(1, Ordering::Relaxed);
        let slot = Self(api.clone());
        if open < api.limits.watches {
            Ok(slot)
        } else {
            Err(ApiError::too_many_requests("too many watches are open, please try again later"))
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open_watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How events are shown.
struct EventView {
    call: Call,
    selection: ListSelection,
    /// Whether the columns of a table were sent already.
    headed: bool,
}

impl EventView {
    /// What a client that selects sees of an event.
    fn seen(&mut self, event: &Event, out: &mut Vec<u8>) {
        let was = event.previous.as_ref().is_some_and(|p| self.call.selects(&self.selection, p));
        let is = event.kind != EventKind::Deleted && self.call.selects(&self.selection, &event.object);
        match (was, is) {
            (false, false) => {}
            (false, true) => self.line("ADDED", &event.object, out),
            (true, true) => self.line("MODIFIED", &event.object, out),
            (true, false) => {
                // The last state that the client knew, in the version in which it went.
                let last = event.previous.as_ref().unwrap_or(&event.object);
                let gone = StoredObject { version: event.version(), ..StoredObject::clone(last) };
                self.line("DELETED", &gone, out);
            }
        }
    }

    fn line(&mut self, kind: &str, stored: &StoredObject, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        let resource = &self.call.resource;
        match self.call.accepted.shape {
            ObjectForm::Object | ObjectForm::Discovery => {
                api::write_shown(out, resource, stored, Some(&resource.type_meta()));
            }
            ObjectForm::Partial | ObjectForm::PartialList => {
                self.write(out, &answer::partial(&self.call.api.object(resource, stored)));
            }
            ObjectForm::Table => {
                let shown = self.row(&self.call.api.object(resource, stored));
                self.write(out, &shown);
            }
        }
        out.extend_from_slice(b"}\n");
    }

    fn row(&mut self, object: &Value) -> Value {
        let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let include = Include::of(&self.call.query);
        let now = (self.call.api.clock)();
        let mut shown = table::table(&self.call.resource, std::slice::from_ref(object), metadata, include, now);
        if self.headed {
            shown["columnDefinitions"] = Value::Null;
        }
        self.headed = true;
        shown
    }

    fn write(&self, out: &mut Vec<u8>, value: &Value) {
        serde_json::to_writer(out, value).expect("JSON values are written to memory");
    }

    fn bookmark(&self, version: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if initial_end {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let object = match self.call.accepted.shape {
            ObjectForm::Object | ObjectForm::Discovery => {
                let resource = &self.call.resource;
                json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata})
            }
            ObjectForm::Partial | ObjectForm::PartialList => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            ObjectForm::Table => {
                let row = json!({"cells": [], "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}});
                json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version.to_string()},
                       "columnDefinitions": null, "rows": [row]})
            }
        };
        json_line(&json!({"type": "BOOKMARK", "object": object}))
    }
}

/// The next regular time, or shortly before the end so that the client knows where to go on.
fn next_bookmark(deadline: Instant) -> Instant {
    let now = Instant::now();
    match deadline.checked_sub(BOOKMARK_BEFORE_END) {
        Some(last) if last > now => (now + BOOKMARK_EVERY).min(last),
        _ => now + BOOKMARK_EVERY,
    }
}

fn json_line(value: &Value) -> Bytes {
    let mut text = serde_json::to_vec(value).expect("JSON values are written to memory");
    text.push(b'\n');
    Bytes::from(text)
}

/// A watch's life.
struct Stream {
    view: EventView,
    watch: Option<Watch>,
    pending: VecDeque<Bytes>,
    deadline: Instant,
    next_bookmark: Option<Instant>,
    position: u64,
    ended: bool,
    _slot: Slot,
}

impl Stream {
    fn begin(&mut self, start: Start, watch: Watch) {
        for chunk in start.initial.chunks(MOST_PER_CHUNK) {
            let mut text = Vec::new();
            for stored in chunk {
                self.view.line("ADDED", stored, &mut text);
            }
            self.pending.push_back(Bytes::from(text));
        }
        if start.closing_bookmark {
            self.pending.push_back(self.view.bookmark(start.from, true));
        }
        self.position = start.from;
        self.watch = Some(watch);
    }

    fn expire(&mut self, compacted: Compacted, asked: &str) {
        let asked = if asked.is_empty() { self.position.to_string() } else { asked.to_owned() };
        let error = ApiError::expired(format!("too old resource version: {asked} ({})", compacted.oldest));
        self.pending.push_back(json_line(&json!({"type": "ERROR", "object": error.status()})));
        self.ended = true;
    }

    /// The next piece of the answer.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            if let Some(chunk) = self.pending.pop_front() {
                return Some((chunk, self));
            }
            if self.ended || Instant::now() >= self.deadline {
                return None;
            }
            self.gather();
            if self.pending.is_empty() && !self.ended {
                self.wait().await;
            }
        }
    }

    /// Renders what has happened since.
    fn gather(&mut self) {
        let Some(watch) = self.watch.as_mut() else { return };
        match watch.ready(MOST_PER_CHUNK) {
            Err(compacted) => self.expire(compacted, ""),
            Ok((events, position)) => {
                self.position = position;
                let mut text = Vec::new();
                for event in &events {
                    self.view.seen(event, &mut text);
                }
                if !text.is_empty() {
                    self.pending.push_back(Bytes::from(text));
                }
            }
        }
    }

    /// Waits for a change, the next bookmark or the end.
    async fn wait(&mut self) {
        let Some(watch) = self.watch.as_mut() else { return };
        let wake = self.next_bookmark.map_or(self.deadline, |at| at.min(self.deadline));
        tokio::select! {
            changed = watch.changed() => self.ended = !changed,
            () = sleep_until(wake) => {
                if self.next_bookmark.is_some_and(|at| at <= Instant::now()) {
                    self.next_bookmark = Some(next_bookmark(self.deadline));
                    self.gather();
                    self.pending.push_back(self.view.bookmark(self.position, false));
                }
            }
        }
    }
}
