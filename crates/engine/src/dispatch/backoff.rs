//! When an object that failed is tried again: a pure function of the problem, the count of failures and a seed.

use std::time::Duration;

use portolan_core::{Class, ObjectKey, Problem};
use rand::{Rng as _, SeedableRng as _};

use crate::context::Timing;

/// How long to wait after the `failures`-th failure in a row (the first is 0); none waits for a change.
pub(crate) fn delay(timing: &Timing, problem: &Problem, failures: u32, jitter: f64) -> Option<Duration> {
    let usual = match problem.class {
        Class::Invalid => return problem.retry_after,
        Class::Waiting => timing.waiting,
        Class::Denied => timing.denied,
        Class::Transient => exponential(timing, failures),
    };
    let asked = problem.retry_after.unwrap_or_default();
    if problem.retry_after.is_some() && (failures == 0 || problem.class != Class::Transient) {
        return Some(asked);
    }
    // Jitter never makes a wait shorter than what the other side asked for.
    Some(usual.mul_f64(0.9 + 0.2 * jitter).min(usual.max(timing.transient_most)).max(asked))
}

fn exponential(timing: &Timing, failures: u32) -> Duration {
    timing.transient.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX)).min(timing.transient_most)
}

/// A number from 0 to 1 that depends on nothing but its arguments, so that a run can be repeated in any order.
pub fn jitter(seed: u64, kind: &str, key: &ObjectKey, failures: u32) -> f64 {
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    let parts = [kind, key.namespace.as_deref().unwrap_or_default(), key.name.as_str()];
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])).chain(failures.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    rand::rngs::StdRng::seed_from_u64(hash).random()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: f64 = 0.5;

    fn seconds(problem: &Problem, failures: u32) -> Option<u64> {
        delay(&Timing::default(), problem, failures, MIDDLE).map(|delay| delay.as_secs())
    }

    #[test]
    fn transient_problems_back_off_from_ten_seconds_to_five_minutes() {
        let problem = Problem::transient("APIError", "503");

        let waits: Vec<_> = (0..7).filter_map(|failures| seconds(&problem, failures)).collect();

        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(seconds(&problem, 200), Some(300));
    }

    #[test]
    fn jitter_spreads_a_wait_by_a_tenth_and_never_beyond_the_longest() {
        let problem = Problem::transient("APIError", "503");
        let at = |failures, jitter| delay(&Timing::default(), &problem, failures, jitter).unwrap();

        assert_eq!(at(0, 0.0), Duration::from_secs(9));
        assert_eq!(at(0, 1.0), Duration::from_secs(11));
        assert_eq!(at(9, 0.0), Duration::from_secs(270));
        assert_eq!(at(9, 1.0), Duration::from_secs(300));
    }

    #[test]
    fn what_the_other_side_asks_for_is_obeyed_exactly_at_first_and_never_undercut() {
        let problem = Problem::transient("RateLimited", "429").with_retry_after(Duration::from_secs(47));

        assert_eq!(delay(&Timing::default(), &problem, 0, 0.0), Some(Duration::from_secs(47)));
        assert_eq!(delay(&Timing::default(), &problem, 1, 0.0), Some(Duration::from_secs(47)));
        assert_eq!(seconds(&problem, 3), Some(80));
    }

    #[test]
    fn denied_is_slow_waiting_is_short_and_invalid_waits_for_a_change() {
        assert_eq!(seconds(&Problem::denied("Forbidden", "no"), 0), Some(300));
        assert_eq!(seconds(&Problem::waiting("DependencyError", "not yet"), 4), Some(30));
        assert_eq!(seconds(&Problem::invalid("InvalidConfig", "bad"), 0), None);
    }

    #[test]
    fn jitter_depends_on_the_object_the_attempt_and_the_seed_alone() {
        let key = |name: &str| ObjectKey { namespace: Some("default".to_owned()), name: name.to_owned() };

        let first = jitter(1, "DNSRecord", &key("a"), 0);

        assert!((0.0..1.0).contains(&first));
        assert!((first - jitter(1, "DNSRecord", &key("a"), 0)).abs() < f64::EPSILON);
        for other in [
            jitter(2, "DNSRecord", &key("a"), 0),
            jitter(1, "DNSRecord", &key("b"), 0),
            jitter(1, "DNSRecord", &key("a"), 1),
            jitter(1, "Gadget", &key("a"), 0),
        ] {
            assert!((first - other).abs() > f64::EPSILON);
        }
    }
}
