//! How many things an account may have: known beforehand, and learnt from refusals.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something of which an account may have only so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// Access applications.
    Apps,
    /// Service tokens.
    Tokens,
    /// Reusable Access policies.
    Policies,
}

impl Counted {
    /// What the API grants unless more was agreed.
    pub fn default_limit(self) -> usize {
        match self {
            Self::Apps | Self::Policies => 500,
            Self::Tokens => 50,
        }
    }

    /// How users call them.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Apps => "Access applications",
            Self::Tokens => "service tokens",
            Self::Policies => "reusable Access policies",
        }
    }
}

/// The limits of all accounts, and what is being made right now; clones share everything.
#[derive(Clone, Debug, Default)]
pub struct Quotas {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    limits: BTreeMap<(String, Counted), usize>,
    defaults: BTreeMap<Counted, usize>,
    reserved: BTreeMap<(String, Counted), usize>,
}

impl Quotas {
    /// The same limit in every account of which nothing else was learnt.
    pub fn with_default(self, what: Counted, limit: usize) -> Self {
        self.inner().defaults.insert(what, limit);
        self
    }

    /// How many an account may have.
    pub fn limit(&self, account: &str, what: Counted) -> usize {
        self.inner().limit(account, what)
    }

    /// An account refused another one while it had so many.
    pub fn learn(&self, account: &str, what: Counted, had: usize) {
        self.inner().limits.insert((account.to_owned(), what), had);
    }

    /// Room for one more beside those that exist and those that are being made; none if there is none.
    pub fn reserve(&self, account: &str, what: Counted, existing: usize) -> Option<Reserved> {
        let mut inner = self.inner();
        let limit = inner.limit(account, what);
        let key = (account.to_owned(), what);
        let reserved = inner.reserved.entry(key.clone()).or_default();
        if existing + *reserved >= limit {
            return None;
        }
        *reserved += 1;
        Some(Reserved { inner: Arc::clone(&self.inner), key })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn limit(&self, account: &str, what: Counted) -> usize {
        let learnt = self.limits.get(&(account.to_owned(), what));
        learnt.or_else(|| self.defaults.get(&what)).copied().unwrap_or_else(|| what.default_limit())
    }
}

/// Room for one that is being made; given back when it is dropped.
#[derive(Debug)]
pub struct Reserved {
    inner: Arc<Mutex<Inner>>,
    key: (String, Counted),
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reserved) = inner.reserved.get_mut(&self.key) {
            *reserved = reserved.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_being_made_count_too_until_they_are_done() {
        let quotas = Quotas::default().with_default(Counted::Apps, 3);

        let first = quotas.reserve("a", Counted::Apps, 2);

        assert!(first.is_some());
        assert!(quotas.reserve("a", Counted::Apps, 2).is_none());
        assert!(quotas.reserve("b", Counted::Apps, 2).is_some());
        drop(first);
        assert!(quotas.reserve("a", Counted::Apps, 2).is_some());
    }

    #[test]
    fn a_refusal_teaches_the_limit_of_its_account() {
        let quotas = Quotas::default();

        quotas.learn("a", Counted::Tokens, 7);

        assert_eq!((quotas.limit("a", Counted::Tokens), quotas.limit("b", Counted::Tokens)), (7, 50));
    }
}
