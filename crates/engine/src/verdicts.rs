//! What one controller decides and others report: posted by what it is about; whoever reports it is told what is news.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

type Listener<K, V> = Box<dyn Fn(&K, Option<&V>, Option<&V>) + Send + Sync>;

/// The last verdict about each thing.
pub struct Verdicts<K, V> {
    posted: Mutex<BTreeMap<K, V>>,
    listeners: Mutex<Vec<Listener<K, V>>>,
}

impl<K, V> Default for Verdicts<K, V> {
    fn default() -> Self {
        Self { posted: Mutex::default(), listeners: Mutex::default() }
    }
}

impl<K: Ord, V> Verdicts<K, V> {
    /// Calls back with what a verdict was about, what it was, and what it is. The callback may read the verdicts; it
    /// enqueues whoever reports them, and does not wait.
    pub fn on_news(&self, listener: impl Fn(&K, Option<&V>, Option<&V>) + Send + Sync + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    /// Looks at all of them.
    pub fn read<T>(&self, look: impl FnOnce(&BTreeMap<K, V>) -> T) -> T {
        look(&self.posted())
    }

    /// Puts a verdict in the place of the one before, and tells nobody.
    pub(crate) fn put(&self, about: K, verdict: V) {
        self.posted().insert(about, verdict);
    }

    fn posted(&self) -> MutexGuard<'_, BTreeMap<K, V>> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> Verdicts<K, V> {
    /// The verdict about something, if there is one.
    pub fn about(&self, what: &K) -> Option<V> {
        self.posted().get(what).cloned()
    }

    /// Posts a verdict, or takes one back; whoever reports it hears of it where that is news.
    pub fn post(&self, about: &K, verdict: Option<V>) {
        let before = {
            let mut posted = self.posted();
            match verdict.clone() {
                Some(verdict) => posted.insert(about.clone(), verdict),
                None => posted.remove(about),
            }
        };
        if before != verdict {
            self.tell(about, before.as_ref(), verdict.as_ref());
        }
    }

    /// Posts the only verdict that there is from now on, or that there is none.
    pub fn post_alone(&self, verdict: Option<(K, V)>) {
        let others: Vec<K> = self.read(|posted| {
            let about = verdict.as_ref().map(|(about, _)| about);
            posted.keys().filter(|one| Some(*one) != about).cloned().collect()
        });
        for one in &others {
            self.post(one, None);
        }
        if let Some((about, verdict)) = verdict {
            self.post(&about, Some(verdict));
        }
    }

    fn tell(&self, about: &K, before: Option<&V>, after: Option<&V>) {
        for listener in self.listeners.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            listener(about, before, after);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    type Told = Arc<Mutex<Vec<(u32, Option<bool>, Option<bool>)>>>;

    fn verdicts() -> (Verdicts<u32, bool>, Told) {
        let (verdicts, told) = (Verdicts::default(), Told::default());
        let heard = Arc::clone(&told);
        verdicts.on_news(move |about, before: Option<&bool>, after: Option<&bool>| {
            heard.lock().unwrap().push((*about, before.copied(), after.copied()));
        });
        (verdicts, told)
    }

    #[test]
    fn whoever_reports_hears_of_each_verdict_that_is_news_and_of_no_other() {
        let (verdicts, told) = verdicts();

        verdicts.post(&1, Some(true));
        verdicts.post(&1, Some(true));
        verdicts.post(&1, Some(false));
        verdicts.post(&1, None);
        verdicts.post(&1, None);

        let expected = [(1, None, Some(true)), (1, Some(true), Some(false)), (1, Some(false), None)];
        assert_eq!(*told.lock().unwrap(), expected);
        assert_eq!(verdicts.about(&1), None);
    }

    #[test]
    fn a_verdict_that_stands_alone_takes_the_others_back() {
        let (verdicts, told) = verdicts();
        verdicts.post_alone(Some((1, true)));

        verdicts.post_alone(Some((2, false)));
        verdicts.post_alone(Some((2, false)));

        assert_eq!((verdicts.about(&1), verdicts.about(&2)), (None, Some(false)));
        assert_eq!(*told.lock().unwrap(), [(1, None, Some(true)), (1, Some(true), None), (2, None, Some(false))]);
    }
}
