//! What objects refer to → which objects refer to it: when something changes elsewhere, those whom it concerns are found
//! without a look at the others.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use portolan_core::ObjectKey;

/// Who refers to what. Kept true by [`Reconcile::seen`](crate::Reconcile::seen) or a cache's changes.
pub struct Referrers<T> {
    known: RwLock<BTreeSet<Referral<T>>>,
}

/// In the order of what is referred to, so that all who refer to the same stand side by side.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Referral<T> {
    to: T,
    /// Nobody comes before everybody: where a look begins.
    from: Option<Arc<ObjectKey>>,
}

impl<T> Default for Referrers<T> {
    fn default() -> Self {
        Self { known: RwLock::new(BTreeSet::new()) }
    }
}

impl<T: Ord + Clone> Referrers<T> {
    /// An object refers to other things than before.
    pub fn note(
        &self,
        from: impl Into<Arc<ObjectKey>>,
        before: impl IntoIterator<Item = T>,
        now: impl IntoIterator<Item = T>,
    ) {
        let (before, now): (BTreeSet<T>, BTreeSet<T>) = (before.into_iter().collect(), now.into_iter().collect());
        if before == now {
            return;
        }
        let from = from.into();
        let referral = |to: &T| Referral { to: to.clone(), from: Some(Arc::clone(&from)) };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for gone in before.difference(&now) {
            known.remove(&referral(gone));
        }
        known.extend(now.difference(&before).map(referral));
    }

    /// Who refers to it, by key.
    pub fn of(&self, to: &T) -> Vec<ObjectKey> {
        let known = self.known();
        around(&known, to).map(|from| from.as_ref().clone()).collect()
    }

    /// How many objects refer to one of these, or to several.
    pub fn count(&self, of: &[T]) -> usize {
        let known = self.known();
        match of {
            [one] => around(&known, one).count(),
            several => several.iter().flat_map(|to| around(&known, to)).collect::<BTreeSet<_>>().len(),
        }
    }

    fn known(&self) -> RwLockReadGuard<'_, BTreeSet<Referral<T>>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn around<'a, T: Ord + Clone>(known: &'a BTreeSet<Referral<T>>, to: &'a T) -> impl Iterator<Item = &'a Arc<ObjectKey>> {
    let begin = Bound::Excluded(Referral { to: to.clone(), from: None });
    let from_there = known.range((begin, Bound::Unbounded));
    from_there.take_while(move |one| one.to == *to).filter_map(|one| one.from.as_ref())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("web", name)
    }

    #[test]
    fn who_refers_to_something_is_found_until_it_refers_to_something_else() {
        let referrers = Referrers::default();
        referrers.note(key("a"), [], ["secret", "domain"]);
        referrers.note(key("b"), [], ["secret"]);
        assert_eq!(referrers.of(&"secret"), [key("a"), key("b")]);
        assert_eq!(referrers.count(&["secret", "domain"]), 2, "each counts once");

        referrers.note(key("a"), ["secret", "domain"], ["domain", "gateway"]);
        referrers.note(key("b"), ["secret"], []);

        assert_eq!(referrers.of(&"secret"), []);
        assert_eq!((referrers.of(&"domain"), referrers.of(&"gateway")), (vec![key("a")], vec![key("a")]));
        assert_eq!(referrers.count(&["domain"]), 1);
    }

    thread_local! {
        static COMPARED: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts how often it is compared.
    #[derive(Clone, PartialEq, Eq)]
    struct Counted(usize);

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    /// As many objects as things elsewhere, each object referring to one of them; then each of those is seen once.
    fn compared_for(size: usize) -> u64 {
        COMPARED.set(0);
        let referrers = Referrers::default();
        for number in 0..size {
            referrers.note(key(&format!("record-{number}")), [], [Counted(number)]);
        }
        let found: usize = (0..size).map(|number| referrers.of(&Counted(number)).len()).sum();
        assert_eq!(found, size);
        COMPARED.get()
    }

    #[test]
    fn finding_21_ten_times_as_many_secrets_and_records_cost_little_more_than_ten_times_as_much() {
        let (small, large) = (compared_for(1_000), compared_for(10_000));

        assert!(large < 15 * small, "{small} and {large} comparisons");
        assert!(large < 10_000 * 100, "{large} comparisons for 10,000 of each");
    }
}
