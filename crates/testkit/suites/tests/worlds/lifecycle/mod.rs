//! The lifecycle suite on the embedded API server: every check for every kind.

mod crash_points;

use std::sync::{Mutex, PoisonError};

use portolan_testkit_suites::lifecycle::{CheckTally, OBSERVED, OWNED, SINGLE};
use portolan_testkit_suites::{cloudflare_world, paused, sample, tell};

fn owned(name: &str) {
    let check = OWNED.iter().find(|check| check.name == name).expect("the suite has the check");
    let mut tally = CheckTally::default();
    for sample in sample::owned() {
        tally.add(paused((check.run)(&cloudflare_world(), &sample)));
    }
    count(tally);
}

fn observed(name: &str) {
    let check = OBSERVED.iter().find(|check| check.name == name).expect("the suite has the check");
    let mut tally = CheckTally::default();
    for sample in sample::observed() {
        tally.add(paused((check.run)(&cloudflare_world(), &sample)));
    }
    count(tally);
}

fn single(name: &str) {
    let check = SINGLE.iter().find(|check| check.name == name).expect("the suite has the check");
    let mut tally = CheckTally::default();
    for sample in sample::single() {
        tally.add(paused((check.run)(&cloudflare_world(), &sample)));
    }
    count(tally);
}

/// What the checks of this process did so far, and how many have ended; the last one tells.
static SO_FAR: Mutex<(CheckTally, usize)> = Mutex::new((CheckTally { ran: 0, nothing: 0 }, 0));

fn count(of_one: CheckTally) {
    assert!(of_one.ran > 0, "no sample has anything to try this with");
    let mut so_far = SO_FAR.lock().unwrap_or_else(PoisonError::into_inner);
    so_far.0 += of_one;
    so_far.1 += 1;
    if so_far.1 == OWNED.len() + OBSERVED.len() + SINGLE.len() {
        let samples = sample::owned().len() + sample::observed().len() + sample::single().len();
        let CheckTally { ran, nothing } = so_far.0;
        tell(&format!("lifecycle: {ran} checks ran over {samples} samples, {nothing} more had nothing to do"));
    }
}

macro_rules! suite {
    ($run:ident in $module:ident: $($name:ident),+ $(,)?) => {
        mod $module {
            pub(super) const NAMES: &[&str] = &[$(stringify!($name)),+];
            $(
                #[test]
                fn $name() {
                    super::$run(stringify!($name));
                }
            )+
        }
    };
}

suite! { owned in owns_something:
    it_is_created_after_its_finalizer_and_says_so,
    at_rest_it_costs_no_write_over_ten_passes,
    drift_is_repaired_with_one_write,
    a_changed_spec_is_written_once,
    what_cannot_change_in_place_is_replaced,
    gone_remotely_it_is_made_again,
    it_goes_with_its_object,
    deleting_what_is_gone_already_succeeds,
    refused_deletes_keep_the_finalizer,
    orphaned_it_stays,
    too_many_requests_are_obeyed,
    a_lost_answer_makes_no_second_one,
    the_same_made_by_hand_is_taken_over_and_released,
    something_else_is_left_alone_until_adopted,
    foreign_marks_are_respected,
    of_two_that_want_the_same_the_older_has_it,
    missing_credentials_are_waited_for,
    refused_credentials_are_asked_rarely_and_at_once_when_changed,
    a_rotated_token_is_used_at_once,
}

suite! { observed in only_looks:
    it_is_ready_once_what_it_looks_for_is_there,
    at_rest_it_costs_no_write_over_ten_passes,
    deleting_it_changes_nothing_at_cloudflare,
    refused_credentials_are_said_and_forgotten_when_changed,
}

suite! { single in there_is_one:
    only_what_is_mentioned_is_written,
    at_rest_it_costs_no_write_over_ten_passes,
    drift_is_put_right_with_one_write,
    what_is_not_mentioned_is_left_as_others_make_it,
    of_two_the_older_has_it,
    the_younger_has_it_once_the_older_is_gone,
    deletion_leaves_it_as_it_is,
    faults_pass,
    forbidden_it_says_so_and_goes_on_when_allowed,
}

#[test]
fn every_kind_of_the_table_goes_through_every_check() {
    let (owners, lookers) = (sample::owned(), sample::observed());
    let singles = sample::single();
    let sampled = owners.iter().map(|one| one.kind).chain(lookers.iter().map(|one| one.kind));
    let sampled: Vec<&str> = sampled.chain(singles.iter().map(|one| one.kind)).collect();
    let kinds: Vec<&str> = portolan_cloudflare::kinds::table().iter().map(|row| row.kind).collect();

    let missing: Vec<&&str> = kinds.iter().filter(|kind| !sampled.contains(kind)).collect();

    tell(&format!("lifecycle: {} kinds in {} samples", kinds.len(), sampled.len()));
    assert!(missing.is_empty(), "kinds without a sample: {missing:?}");
    assert_eq!(owns_something::NAMES, OWNED.iter().map(|check| check.name).collect::<Vec<_>>());
    assert_eq!(there_is_one::NAMES, SINGLE.iter().map(|check| check.name).collect::<Vec<_>>());
    assert_eq!(only_looks::NAMES, OBSERVED.iter().map(|check| check.name).collect::<Vec<_>>());
}
