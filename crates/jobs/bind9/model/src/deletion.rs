//! A zone that is being deleted, and servers that do not answer → whether it is waited for them, and how long.
//!
//! A server that is gone for good must not hold a zone for ever: after a grace the zone goes, and what a server still has of it is taken
//! away when it comes back, since nobody claims it then.

use jiff::{SignedDuration, Timestamp};

use crate::zone_plan::{ZoneState, ZoneView, steps};

/// How long is waited for servers that do not answer.
pub const GRACE: SignedDuration = SignedDuration::from_mins(5);

/// Whether a zone that is being deleted may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// No server has it any more, or nobody waits for those that may.
    Now,
    /// Servers that answer still have it: there is something to do first.
    AfterSteps,
    /// Some servers do not answer; until then it is waited for them.
    WaitsUntil(Timestamp),
}

/// Whether a zone may go that was asked to at `since`. An `orphan` is not waited for.
pub fn farewell(view: &ZoneView, since: Timestamp, now: Timestamp, orphan: Orphan) -> Farewell {
    if !steps(view).is_empty() {
        return Farewell::AfterSteps;
    }
    let silent = view.leaving.values().any(|state| *state == ZoneState::Unknown);
    let until = since.checked_add(GRACE).unwrap_or(Timestamp::MAX);
    match (silent, orphan) {
        (true, Orphan::No) if now < until => Farewell::WaitsUntil(until),
        (true | false, Orphan::No | Orphan::Yes) => Farewell::Now,
    }
}

/// Whether the user says that servers that do not answer are not to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orphan {
    /// They are waited for.
    No,
    /// They are not.
    Yes,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::key;

    fn view(states: &[(&str, ZoneState)]) -> ZoneView {
        let leaving: BTreeMap<_, _> = states.iter().map(|(name, state)| (key(name), *state)).collect();
        ZoneView { leaving, ..ZoneView::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn scenario_40_a_server_that_does_not_answer_is_waited_for_and_not_for_ever() {
        let silent = view(&[("gone", ZoneState::Unknown), ("there", ZoneState::Absent)]);

        assert_eq!(farewell(&silent, at(0), at(299), Orphan::No), Farewell::WaitsUntil(at(300)));
        assert_eq!(farewell(&silent, at(0), at(300), Orphan::No), Farewell::Now);
        assert_eq!(farewell(&silent, at(0), at(0), Orphan::Yes), Farewell::Now);
    }

    #[test]
    fn a_server_that_answers_loses_the_zone_first_however_long_that_takes() {
        let there = view(&[("there", ZoneState::Open(7))]);

        assert_eq!(farewell(&there, at(0), at(9_000), Orphan::Yes), Farewell::AfterSteps);
        assert_eq!(farewell(&view(&[("there", ZoneState::Absent)]), at(0), at(0), Orphan::No), Farewell::Now);
    }
}
