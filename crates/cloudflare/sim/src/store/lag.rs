//! Listings that lag behind writes: what each collection looked like before the changes of the last while.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use crate::store::Rows;

/// The objects of a collection by scope.
pub(crate) type Scopes = BTreeMap<String, Rows>;

/// What listings still show, by collection.
#[derive(Debug, Default)]
pub(crate) struct Lag(BTreeMap<&'static str, Past>);

#[derive(Debug, Default)]
struct Past {
    lag: Duration,
    /// What stood there until then, the oldest first.
    states: VecDeque<(Instant, Scopes)>,
}

impl Lag {
    pub(crate) fn set(&mut self, collection: &'static str, lag: Duration) {
        self.0.insert(collection, Past { lag, states: VecDeque::new() });
    }

    /// Keeps what stands before a change.
    pub(crate) fn remember(&mut self, now: Instant, objects: &BTreeMap<&'static str, Scopes>) {
        for (collection, past) in &mut self.0 {
            let lag = past.lag;
            past.states.retain(|(until, _)| *until + lag > now);
            past.states.push_back((now, objects.get(collection).cloned().unwrap_or_default()));
        }
    }

    /// What a listing shows instead of what stands there; nothing where it shows just that.
    pub(crate) fn shown(&self, collection: &str, now: Instant) -> Option<&Scopes> {
        let past = self.0.get(collection)?;
        past.states.iter().find(|(until, _)| *until + past.lag > now).map(|(_, scopes)| scopes)
    }
}
