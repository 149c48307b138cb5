//! What a look for drift takes next: candidates with their costs and last looks, and what is left of drift's share of the
//! budget in; the chosen ones out. Pure.
//!
//! Looks come at an interval. Each may spend its part of the share: where everything fits, everything is looked at each
//! time; where it does not, in rotation, oldest first. What is known to have changed comes earlier, with at most half of a
//! look, so that the rest is not forgotten for it. The governor counts what is really spent, and holds back what is too much.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// What drift may spend of a credential's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriftShare {
    /// Requests in a window.
    pub most: u32,
    /// Of those, left now.
    pub left: u32,
    /// The window.
    pub window: Duration,
}

impl DriftShare {
    /// Requests that one look may make. Half of what is left stays for others who look with the same credential.
    fn of_a_look(&self, every: Duration) -> u32 {
        let part = every.as_secs_f64() / self.window.as_secs_f64().max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not more than `most`, not negative"
        )]
        let even = (f64::from(self.most) * part.min(1.0)) as u32;
        even.max(1).min(self.left.div_ceil(2))
    }
}

/// What is looked at as a whole: a zone's records, an account's collection.
#[derive(Clone, Debug)]
pub struct Candidate<K> {
    /// What it is.
    pub key: K,
    /// What is read for it, and the requests that each part takes. A part that several have is read once.
    pub parts: Vec<(Arc<str>, u32)>,
    /// When it was looked at last, or was first known.
    pub looked: Instant,
    /// Somebody is known to have changed something there since.
    pub changed: bool,
}

/// What is looked at now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenScopes<K> {
    /// In this order.
    pub keys: Vec<K>,
    /// Whether that is all that was due.
    pub complete: bool,
}

/// Something that waited so many times longer than a whole turn takes is looked at whatever it costs: others who look with
/// the same credential leave too little for it, and the governor spreads it.
const PATIENCE: u32 = 3;

/// What to look at now, if looks are so far apart.
pub fn choose<K: Ord + Clone>(
    candidates: Vec<Candidate<K>>,
    share: &DriftShare,
    every: Duration,
    now: Instant,
) -> ChosenScopes<K> {
    let mut due: Vec<Candidate<K>> = candidates.into_iter().filter(|one| now >= one.looked + every).collect();
    due.sort_by(|one, other| (one.looked, &one.key).cmp(&(other.looked, &other.key)));
    let count = due.len();
    let mut basket = Basket::default();
    let limit = limit(&due, share, every, now);
    let mut due = due.into_iter();
    // The oldest comes first, so that everything has its turn; what does not fit yet is saved for.
    if let Some(oldest) = due.next().filter(|oldest| basket.with(oldest) <= limit) {
        basket.take(oldest);
        let (changed, rest): (Vec<_>, Vec<_>) = due.partition(|one| one.changed);
        let later = basket.take_while(changed, limit / 2);
        let mut rest: Vec<Candidate<K>> = later.into_iter().chain(rest).collect();
        rest.sort_by(|one, other| (one.looked, &one.key).cmp(&(other.looked, &other.key)));
        basket.take_while(rest, limit);
    }
    ChosenScopes { complete: basket.keys.len() == count, keys: basket.keys }
}

/// What may be spent now. The oldest may take more than the part of a look where the window has it.
fn limit<K>(due: &[Candidate<K>], share: &DriftShare, every: Duration, now: Instant) -> u32 {
    let usual = share.of_a_look(every);
    let Some(oldest) = due.first() else { return usual };
    let cost = cost_of(oldest);
    if cost <= usual {
        usual
    } else if cost <= share.left {
        share.left
    } else if share.left == share.most || now >= oldest.looked + turn(due, share) * PATIENCE {
        cost
    } else {
        usual
    }
}

fn cost_of<K>(one: &Candidate<K>) -> u32 {
    one.parts.iter().map(|(_, cost)| cost).sum()
}

/// How long it takes until everything was looked at once.
fn turn<K>(due: &[Candidate<K>], share: &DriftShare) -> Duration {
    let cost = due.iter().map(cost_of).fold(0_u32, u32::saturating_add);
    share.window.saturating_mul(cost / share.most.max(1) + 1)
}

/// What was chosen so far.
struct Basket<K> {
    keys: Vec<K>,
    parts: BTreeMap<Arc<str>, u32>,
}

impl<K> Default for Basket<K> {
    fn default() -> Self {
        Self { keys: Vec::new(), parts: BTreeMap::new() }
    }
}

impl<K> Basket<K> {
    /// What it would cost with one more.
    fn with(&self, one: &Candidate<K>) -> u32 {
        let more = one.parts.iter().filter(|(part, _)| !self.parts.contains_key(part)).map(|(_, cost)| cost);
        self.parts.values().chain(more).sum()
    }

    fn take(&mut self, one: Candidate<K>) {
        self.keys.push(one.key);
        self.parts.extend(one.parts);
    }

    /// Takes what comes until the limit is reached; gives back the rest.
    fn take_while(&mut self, all: Vec<Candidate<K>>, limit: u32) -> Vec<Candidate<K>> {
        let mut all = all.into_iter().peekable();
        while let Some(one) = all.next_if(|one| self.with(one) <= limit) {
            self.take(one);
        }
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const WINDOW: Duration = Duration::from_secs(300);

    fn candidate(key: usize, cost: u32, looked: Instant) -> Candidate<usize> {
        Candidate { key, parts: vec![(format!("{key}").into(), cost)], looked, changed: false }
    }

    /// An account that is looked at for a while, as the governor would count it.
    struct Account {
        costs: Vec<u32>,
        /// What all of them need.
        common: u32,
        looked: Vec<Instant>,
        changed: Vec<bool>,
        spent: VecDeque<(Instant, u32)>,
        most: u32,
        now: Instant,
    }

    impl Account {
        fn new(costs: Vec<u32>, most: u32) -> Self {
            let now = Instant::now();
            let count = costs.len();
            Self {
                costs,
                common: 0,
                looked: vec![now; count],
                changed: vec![false; count],
                spent: VecDeque::new(),
                most,
                now,
            }
        }

        fn in_window(&self) -> u32 {
            self.spent.iter().filter(|(at, _)| *at + WINDOW > self.now).map(|(_, cost)| cost).sum()
        }

        /// Waits a minute and looks; answers what it looked at.
        fn look(&mut self) -> ChosenScopes<usize> {
            self.now += MINUTE;
            let share =
                DriftShare { most: self.most, left: self.most.saturating_sub(self.in_window()), window: WINDOW };
            let candidates = (0..self.costs.len()).map(|key| {
                let mut one = candidate(key, self.costs[key], self.looked[key]);
                one.changed = self.changed[key];
                if self.common > 0 {
                    one.parts.push(("common".into(), self.common));
                }
                one
            });
            let chosen = choose(candidates.collect(), &share, MINUTE, self.now);
            let common = if chosen.keys.is_empty() { 0 } else { self.common };
            let cost = chosen.keys.iter().map(|key| self.costs[*key]).sum::<u32>() + common;
            self.spent.push_back((self.now, cost));
            for key in &chosen.keys {
                self.looked[*key] = self.now;
                self.changed[*key] = false;
            }
            chosen
        }
    }

    #[test]
    fn a_small_account_is_looked_at_as_a_whole_every_minute() {
        let mut account = Account::new(vec![1; 50], 360);

        for _ in 0..30 {
            assert!(account.look().complete);
        }
    }

    #[test]
    fn two_thousand_zones_take_turns_and_none_waits_longer_than_the_share_needs() {
        let mut account = Account::new(vec![1; 2_000], 360);
        let mut minutes = 0;

        while account.looked.iter().any(|at| *at + MINUTE * minutes == account.now || minutes == 0) {
            account.look();
            minutes += 1;
        }

        // 2,000 of 60 a minute.
        assert!((30..=36).contains(&minutes), "{minutes}");
    }

    #[test]
    fn what_changed_comes_before_its_turn_and_the_others_go_on() {
        let mut account = Account::new(vec![1; 2_000], 360);
        account.look();
        account.changed[1_999] = true;

        let chosen = account.look();

        assert!(chosen.keys.contains(&1_999));
        assert!(chosen.keys.len() > 50, "{}", chosen.keys.len());
    }

    #[test]
    fn what_changes_all_the_time_takes_at_most_half_of_a_look() {
        let mut account = Account::new(vec![1; 500], 360);
        let mut idle = vec![0; 500];
        for _ in 0..60 {
            for key in 0..200 {
                account.changed[key] = true;
            }
            for key in account.look().keys {
                idle[key] += 1;
            }
        }

        assert!(idle[200..].iter().all(|looks| *looks > 0));
    }

    #[test]
    fn a_part_that_several_share_is_paid_once() {
        let mut account = Account::new(vec![1; 40], 360);
        account.common = 20;

        assert!(account.look().complete);
    }

    #[test]
    fn two_jobs_with_one_credential_leave_room_for_each_other() {
        let (mut first, mut second) = (Account::new(vec![1; 2_000], 360), Account::new(vec![1; 2_000], 360));
        for _ in 0..30 {
            first.look();
            // The governor counts both.
            second.spent.push_back(*first.spent.back().expect("it has looked"));
            second.look();
            first.spent.push_back(*second.spent.back().expect("it has looked"));
        }

        let latest = |account: &Account| account.looked.iter().filter(|at| **at + WINDOW > account.now).count();
        assert!(latest(&first) > 100 && latest(&second) > 100, "{} {}", latest(&first), latest(&second));
        assert!(first.in_window() <= 360);
    }

    proptest! {
        #[test]
        fn no_window_takes_more_than_the_share_and_everything_has_its_turn(
            costs in prop::collection::vec(1_u32..300, 1..60),
            common in 0_u32..50,
            most in 350_u32..2_000,
            hints in prop::collection::vec((0_usize..60, 0_usize..200), 0..200),
        ) {
            let mut account = Account::new(costs, most);
            account.common = common;
            let began = account.now;
            for round in 0..200 {
                for (key, _) in hints.iter().filter(|(key, at)| *at == round && *key < account.costs.len()) {
                    account.changed[*key] = true;
                }
                account.look();
                prop_assert!(account.in_window() <= most);
            }
            prop_assert!(account.looked.iter().all(|at| *at > began));
        }
    }
}
