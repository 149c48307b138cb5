//! The operator is killed before and after each step of creating, changing, deleting and adopting, for every shape of
//! kinds; for every kind in a soak.

use portolan_testkit_suites::crash::Tried;
use portolan_testkit_suites::lifecycle::{ACTS, Act, crash_points, single_crash_points};
use portolan_testkit_suites::{cloudflare_world, paused, sample, tell};

fn killed_in(act: Act) {
    let samples = sample::crashed();
    let mut all = Tried::default();
    for sample in &samples {
        let Some(tried) = paused(crash_points(&cloudflare_world(), sample, act)) else { continue };
        // One at Cloudflare and one in the cluster, at least.
        assert!(tried.steps >= 2, "{act:?} of {}: {tried:?}", sample.label);
        assert_eq!(tried.missed, 0, "{act:?} of {}: under a paused clock the same steps come again", sample.label);
        all += tried;
    }
    assert!(all.crashes > 0, "no sample has anything to try {act:?} with");
    let (tried, there_are) = (samples.len(), sample::owned().len());
    tell(&format!("crash points: {} ({act:?}: {} steps over {tried} of {there_are} samples)", all.crashes, all.steps));
}

macro_rules! acts {
    ($(fn $name:ident() => $act:ident;)+) => {
        const TRIED: &[Act] = &[$(Act::$act),+];
        $(
            #[test]
            fn $name() {
                killed_in(Act::$act);
            }
        )+
    };
}

acts! {
    fn killed_while_it_creates_it_ends_as_if_nothing_happened() => Create;
    fn killed_while_it_updates_it_ends_as_if_nothing_happened() => Update;
    fn killed_while_it_replaces_it_ends_as_if_nothing_happened() => Replace;
    fn killed_while_it_deletes_it_ends_as_if_nothing_happened() => Delete;
    fn killed_while_it_adopts_it_ends_as_if_nothing_happened() => Adopt;
    fn killed_while_it_releases_it_ends_as_if_nothing_happened() => Release;
}

#[test]
fn killed_while_it_changes_what_there_is_one_of_it_ends_as_if_nothing_happened() {
    for sample in sample::single() {
        let tried = paused(single_crash_points(&cloudflare_world(), &sample));
        assert!(tried.steps >= 4 && tried.crashes > 0, "{}: {tried:?}", sample.kind);
        assert_eq!(tried.missed, 0, "{}: under a paused clock the same steps come again", sample.kind);
    }
}

#[test]
fn every_act_has_its_crashes() {
    assert_eq!(TRIED, ACTS);
}
