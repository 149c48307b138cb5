//! What objects claim → who has it: of those that claim the same, the oldest.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use jiff::Timestamp;
use kube::api::ObjectMeta;
use portolan_core::ObjectKey;

use crate::dispatch::fingerprint::key_of;
use crate::dispatch::store::Projected;

/// Who comes first: the older object; of two that were made in the same second, the first by key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seniority {
    /// When the object was made. One that does not say is the youngest.
    created: Timestamp,
    key: Arc<ObjectKey>,
}

impl Seniority {
    /// That of an object that was made then.
    pub fn new(created: Option<Timestamp>, key: impl Into<Arc<ObjectKey>>) -> Self {
        Self { created: created.unwrap_or(Timestamp::MAX), key: key.into() }
    }

    /// That of an object, by its metadata.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self::new(meta.creation_timestamp.as_ref().map(|time| time.0), key_of(meta))
    }
}

/// Who claims what, the oldest first. Objects that are being deleted, or that do not parse, claim nothing.
pub struct Claims<C> {
    claimants: RwLock<BTreeSet<Claimant<C>>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Claimant<C> {
    claim: C,
    /// Nobody comes before everybody: where a look begins.
    who: Option<Seniority>,
}

impl<C> Default for Claims<C> {
    fn default() -> Self {
        Self { claimants: RwLock::new(BTreeSet::new()) }
    }
}

impl<C: Ord + Clone> Claims<C> {
    /// What is known of an object is news, as [`Reconcile::seen`](crate::Reconcile::seen) tells it. Answers what it claims
    /// no longer: others may have it now.
    pub fn seen<P>(
        &self,
        before: Option<&Projected<P>>,
        after: Option<&Projected<P>>,
        claim: impl Fn(&P) -> Option<C>,
    ) -> Option<C> {
        let of = |one: &Projected<P>| {
            let claim = one.projection.as_ref().filter(|_| !one.deleting).and_then(&claim)?;
            Some((claim, Seniority::new(one.created, Arc::clone(&one.key))))
        };
        self.note(before.and_then(of), after.and_then(of))
    }

    /// Somebody claims something else than before. Answers what is claimed no longer.
    pub fn note(&self, before: Option<(C, Seniority)>, after: Option<(C, Seniority)>) -> Option<C> {
        if before == after {
            return None;
        }
        let claimant = |(claim, who)| Claimant { claim, who: Some(who) };
        let (before, after) = (before.map(claimant), after.map(claimant));
        let stays = |before: &Claimant<C>| after.as_ref().is_some_and(|after| after.claim == before.claim);
        let released = before.as_ref().filter(|before| !stays(before)).map(|before| before.claim.clone());
        let mut claimants = self.claimants.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = &before {
            claimants.remove(before);
        }
        claimants.extend(after);
        released
    }

    /// Who claims it, the oldest first.
    pub fn of(&self, claim: &C) -> Vec<ObjectKey> {
        let claimants = self.claimants();
        from(&claimants, claim, None).map(|who| who.key.as_ref().clone()).collect()
    }

    /// The oldest that claims it, is older than this one, and counts. Nobody is asked whether one counts that is younger.
    pub fn elder(&self, claim: &C, than: &Seniority, counts: impl Fn(&ObjectKey) -> bool) -> Option<ObjectKey> {
        portolan_core::waypoint!();
        let mut last = None;
        loop {
            // Whether one counts is foreign code: it is not asked under the lock.
            let next = from(&self.claimants(), claim, last.as_ref()).next().filter(|next| *next < than)?.clone();
            if counts(&next.key) {
                return Some(next.key.as_ref().clone());
            }
            last = Some(next);
        }
    }

    fn claimants(&self) -> RwLockReadGuard<'_, BTreeSet<Claimant<C>>> {
        self.claimants.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those who claim something, after one of them.
fn from<'a, C: Ord + Clone>(
    claimants: &'a BTreeSet<Claimant<C>>,
    claim: &'a C,
    after: Option<&Seniority>,
) -> impl Iterator<Item = &'a Seniority> + use<'a, C> {
    let begin = Bound::Excluded(Claimant { claim: claim.clone(), who: after.cloned() });
    let rest = claimants.range((begin, Bound::Unbounded));
    rest.take_while(move |one| one.claim == *claim).filter_map(|one| one.who.as_ref())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("web", name)
    }

    fn made(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("it is not far from 1970")
    }

    fn object(name: &str, second: i64, claim: &'static str) -> Projected<&'static str> {
        Projected {
            key: Arc::new(key(name)),
            uid: "u".into(),
            generation: 1,
            created: Some(made(second)),
            deleting: false,
            ready: None,
            projection: Some(claim),
            version: 1,
            passed: 0,
        }
    }

    fn claims_of(objects: &[(&str, i64)]) -> Claims<&'static str> {
        let claims = Claims::default();
        for (name, second) in objects {
            claims.seen(None, Some(&object(name, *second, "name")), |claim| Some(*claim));
        }
        claims
    }

    #[test]
    fn the_oldest_has_it_and_of_two_of_one_second_the_first_by_key() {
        let claims = claims_of(&[("b", 7), ("c", 5), ("a", 7)]);
        let elder =
            |name: &str, second| claims.elder(&"name", &Seniority::new(Some(made(second)), key(name)), |_| true);

        assert_eq!(claims.of(&"name"), [key("c"), key("a"), key("b")]);
        assert_eq!(elder("b", 7), Some(key("c")));
        assert_eq!(elder("c", 5), None, "nobody is older");
        assert_eq!(claims.elder(&"other", &Seniority::new(None, key("b")), |_| true), None);
    }

    #[test]
    fn one_that_does_not_count_keeps_nobody_from_it() {
        let claims = claims_of(&[("a", 1), ("b", 2), ("c", 3)]);
        let own = Seniority::new(Some(made(3)), key("c"));

        assert_eq!(claims.elder(&"name", &own, |one| *one != key("a")), Some(key("b")));
        assert_eq!(claims.elder(&"name", &own, |_| false), None);
    }

    #[test]
    fn who_is_being_deleted_breaks_or_wants_something_else_releases_what_it_claimed() {
        let claims = claims_of(&[("a", 1), ("b", 2)]);
        let (before, moved, other) = (object("a", 1, "name"), object("a", 1, "other"), object("b", 2, "name"));
        let leaving = Projected { deleting: true, ..before.clone() };
        let broken = Projected { projection: None, ..other.clone() };
        let seen = |before, after| claims.seen(before, after, |claim| Some(*claim));

        assert_eq!(seen(Some(&before), Some(&before)), None, "nothing is new");
        assert_eq!(seen(Some(&before), Some(&moved)), Some("name"));
        assert_eq!((claims.of(&"name"), claims.of(&"other")), (vec![key("b")], vec![key("a")]));
        assert_eq!(seen(Some(&moved), Some(&leaving)), Some("other"));
        assert_eq!(seen(Some(&other), Some(&broken)), Some("name"));
        assert_eq!(seen(Some(&broken), None), None, "it was released before");

        assert_eq!(claims.of(&"name"), []);
    }

    #[test]
    fn finding_23_of_many_who_claim_the_same_each_asks_once_whether_the_oldest_counts() {
        let asked_by = |size: i64| {
            let claims = Claims::default();
            for number in 0..size {
                let route = object(&format!("route-{number}"), number, "name");
                claims.seen(None, Some(&route), |claim| Some(*claim));
            }
            let asked = Cell::new(0);
            for number in 0..size {
                let own = Seniority::new(Some(made(number)), key(&format!("route-{number}")));
                let elder = claims.elder(&"name", &own, |_| {
                    asked.set(asked.get() + 1);
                    true
                });
                assert_eq!(elder, (number > 0).then(|| key("route-0")));
            }
            asked.get()
        };

        assert_eq!((asked_by(100), asked_by(1_000)), (99, 999));
    }
}
