//! When a task that failed is tried again. Pure: the problem, how often in a row, and a number from 0 to 1.

use std::time::Duration;

use portolan_core::{Class, Problem};

const FIRST: Duration = Duration::from_secs(15);
const MOST: Duration = Duration::from_secs(15 * 60);
/// Something that is missing at Cloudflare may appear any moment, and nothing tells us: soon if somebody is at it, else
/// probably not for long.
const FIRST_LOOK: Duration = Duration::from_secs(5);
const RARE_LOOK: Duration = Duration::from_secs(5 * 60);
const DENIED: Duration = Duration::from_secs(5 * 60);

/// What a task is for, as far as trying again goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// A name is to be as its route says: what the user has to change first is not tried again.
    Publish,
    /// A name is to go: nobody will change anything, so it is tried for ever.
    Withdraw,
}

/// How long to wait after the `failures`-th failure in a row, counted from 1; none waits for a change.
pub(crate) fn pause(problem: &Problem, aim: Aim, failures: u32, jitter: f64) -> Option<Duration> {
    let asked = problem.retry_after.unwrap_or_default();
    let usual = match (problem.class, aim) {
        (Class::Invalid, Aim::Publish) => return problem.retry_after,
        (Class::Invalid, Aim::Withdraw) | (Class::Denied, _) => spread(DENIED, jitter),
        (Class::Waiting, _) => doubled(FIRST_LOOK, failures).min(RARE_LOOK),
        (Class::Transient, _) => spread(doubled(FIRST, failures).min(MOST), jitter).min(MOST),
    };
    Some(match problem.class {
        Class::Waiting => usual,
        Class::Invalid | Class::Denied | Class::Transient => usual.max(asked),
    })
}

fn doubled(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX))
}

/// A tenth more or less, so that what failed together does not come back together.
fn spread(pause: Duration, jitter: f64) -> Duration {
    pause.mul_f64(0.9 + 0.2 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: f64 = 0.5;

    fn seconds(problem: &Problem, aim: Aim, failures: u32) -> Option<u64> {
        pause(problem, aim, failures, MIDDLE).map(|pause| pause.as_secs())
    }

    #[test]
    fn what_may_work_next_time_is_tried_from_15_seconds_to_15_minutes_without_end() {
        let problem = Problem::transient("CloudflareAPIError", "503");

        let waits: Vec<_> = (1..9).filter_map(|failures| seconds(&problem, Aim::Publish, failures)).collect();

        assert_eq!(waits, [15, 30, 60, 120, 240, 480, 900, 900]);
        assert_eq!(seconds(&problem, Aim::Publish, 4000), Some(900));
    }

    #[test]
    fn a_missing_policy_or_group_is_looked_for_soon_and_less_and_less_often() {
        let problem = Problem::waiting("PolicyNotFound", "no policy Staff");

        let waits: Vec<_> = (1..9).filter_map(|failures| seconds(&problem, Aim::Publish, failures)).collect();

        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn what_the_user_has_to_change_waits_for_the_change_unless_it_is_a_removal() {
        let problem = Problem::invalid("DNSRecordConflict", "somebody's");

        assert_eq!(seconds(&problem, Aim::Publish, 1), None);
        assert_eq!(seconds(&problem, Aim::Withdraw, 1), Some(300));
    }

    #[test]
    fn a_pause_that_cloudflare_asked_for_is_never_cut_short() {
        let limited = Problem::transient("RateLimited", "429").with_retry_after(Duration::from_secs(70));
        let denied = Problem::denied("CredentialInvalid", "403");

        assert_eq!(seconds(&limited, Aim::Publish, 1), Some(70));
        assert_eq!(seconds(&denied, Aim::Publish, 3), Some(300));
    }

    #[test]
    fn jitter_moves_a_pause_by_a_tenth_at_most_and_never_beyond_the_longest() {
        let problem = Problem::transient("CloudflareAPIError", "503");
        let tenths = |failures, jitter| pause(&problem, Aim::Publish, failures, jitter).unwrap().as_millis();

        assert_eq!((tenths(1, 0.0), tenths(1, 1.0), tenths(20, 1.0)), (13_500, 16_500, 900_000));
    }
}
