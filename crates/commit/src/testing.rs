//! A source that remembers what it was told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::queue::Source;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    Protect,
    Change,
    Drift,
}

/// What a source was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate(Arc<Mutex<Option<String>>>);

impl Fate {
    pub(crate) fn told(&self) -> Option<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) name: String,
    lane: Lane,
    size: usize,
    touches: Vec<String>,
    is_forbidden: AtomicBool,
    fate: Fate,
}

pub(crate) fn named(name: &str) -> Edit {
    Edit {
        name: name.to_owned(),
        lane: Lane::Change,
        size: 1,
        touches: Vec::new(),
        is_forbidden: AtomicBool::new(false),
        fate: Fate::default(),
    }
}

pub(crate) fn names(edits: &[Edit]) -> Vec<&str> {
    edits.iter().map(|edit| edit.name.as_str()).collect()
}

impl Edit {
    pub(crate) fn in_lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    pub(crate) fn of_size(self, size: usize) -> Self {
        Self { size, ..self }
    }

    pub(crate) fn touching(self, thing: &str) -> Self {
        Self { touches: vec![thing.to_owned()], ..self }
    }

    pub(crate) fn forbid(&self) {
        self.is_forbidden.store(true, Ordering::Relaxed);
    }

    pub(crate) fn fate(&self) -> Fate {
        self.fate.clone()
    }

    pub(crate) fn tell(self, fate: &str) {
        *self.fate.0.lock().unwrap() = Some(fate.to_owned());
    }
}

impl Source for Edit {
    type Lane = Lane;

    fn lane(&self) -> Lane {
        self.lane
    }

    fn is_paced(&self) -> bool {
        self.lane != Lane::Protect
    }

    fn may_go(&self) -> bool {
        !self.is_forbidden.load(Ordering::Relaxed)
    }

    fn lapse(self) {
        self.tell("lapsed");
    }

    fn size(&self) -> usize {
        self.size
    }

    fn touches(&self) -> Vec<String> {
        self.touches.clone()
    }
}
