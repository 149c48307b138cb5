//! The operator is killed before and after each step of creating, changing, deleting and adopting, for every kind.

use portolan_testkit::crash::Tried;
use portolan_testkit::lifecycle::{ACTS, Act, crash_points};
use portolan_testkit::{World, paused, sample, tell};

fn killed_in(act: Act) {
    let mut all = Tried::default();
    for sample in sample::owned() {
        all += paused(crash_points(&World::builder(), &sample, act));
    }
    tell(&format!(
        "crash points: {} ({act:?}: {} steps over {} samples)",
        all.crashes,
        all.steps,
        sample::owned().len()
    ));
    assert!(all.crashes > 0 && all.crashes == 2 * all.steps);
}

#[test]
fn killed_while_it_creates_it_ends_as_if_nothing_happened() {
    killed_in(Act::Create);
}

#[test]
fn killed_while_it_updates_it_ends_as_if_nothing_happened() {
    killed_in(Act::Update);
}

#[test]
fn killed_while_it_replaces_it_ends_as_if_nothing_happened() {
    killed_in(Act::Replace);
}

#[test]
fn killed_while_it_deletes_it_ends_as_if_nothing_happened() {
    killed_in(Act::Delete);
}

#[test]
fn killed_while_it_adopts_it_ends_as_if_nothing_happened() {
    killed_in(Act::Adopt);
}

#[test]
fn killed_while_it_releases_it_ends_as_if_nothing_happened() {
    killed_in(Act::Release);
}

#[test]
fn every_act_is_tried() {
    assert_eq!(ACTS.len(), 6);
}
