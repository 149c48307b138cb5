use proptest::prelude::*;

use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("A {n:04}.example.com")).collect()
}

fn held(verdict: &Verdict) -> (&str, &[String]) {
    match verdict {
        Verdict::Held { digest, list, .. } => (digest, list),
        Verdict::Granted => panic!("granted"),
    }
}

#[test]
fn ten_deletions_are_free_even_where_they_are_all() {
    assert_eq!(Ledger::default().consider(at(0), &names(0..10), 10), Verdict::Granted);
}

#[test]
fn more_than_ten_are_held_when_they_are_more_than_thirty_percent() {
    assert_eq!(Ledger::default().consider(at(0), &names(0..30), 100), Verdict::Granted);
    assert_eq!(held(&Ledger::default().consider(at(0), &names(0..31), 100)).1, names(0..31));
}

#[test]
fn more_than_five_hundred_are_always_held() {
    assert_eq!(Ledger::default().consider(at(0), &names(0..500), 1_000_000), Verdict::Granted);
    assert_eq!(held(&Ledger::default().consider(at(0), &names(0..501), 1_000_000)).1.len(), 501);
}

#[test]
fn deletions_of_the_last_ten_minutes_count() {
    let mut ledger = Ledger::default();
    ledger.record(at(0), &names(0..25));

    assert!(matches!(ledger.clone().consider(at(9), &names(25..31), 75), Verdict::Held { .. }));
    assert_eq!(ledger.consider(at(10), &names(25..31), 75), Verdict::Granted);
}

#[test]
fn wanted_one_by_one_the_list_grows_and_stays_held_when_the_window_has_passed() {
    let mut ledger = Ledger::default();
    let mut deleted = 0;
    for name in names(0..20) {
        let wanted = std::slice::from_ref(&name);
        if ledger.consider(at(0), wanted, 20 - deleted) == Verdict::Granted {
            ledger.record(at(0), wanted);
            deleted += 1;
        }
    }

    assert_eq!(deleted, 10);
    let later = ledger.consider(at(60), &names(19..20), 200);
    assert_eq!(held(&later).1, names(10..20), "ten of two hundred would be few by then, and nobody has agreed");
    let mut ledger = Ledger::default();
    ledger.consider(at(0), &names(0..100), 200);
    assert_eq!(held(&ledger.consider(at(60), &names(5..6), 200)).1.len(), 100);
}

#[test]
fn an_approved_list_goes_and_so_does_any_part_of_it() {
    let mut ledger = Ledger::default();
    let digest = held(&ledger.consider(at(0), &names(0..200), 200)).0.to_owned();

    assert!(ledger.approve(&digest, at(5)));

    assert_eq!(ledger.consider(at(6), &names(0..200), 200), Verdict::Granted);
    assert_eq!(ledger.consider(at(6), &names(7..9), 200), Verdict::Granted);
    assert_eq!(ledger.verdict(), Verdict::Granted);
}

#[test]
fn an_approval_lasts_an_hour_and_is_good_once() {
    let mut ledger = Ledger::default();
    let digest = held(&ledger.consider(at(0), &names(0..200), 200)).0.to_owned();
    ledger.approve(&digest, at(0));

    assert!(ledger.approve(&digest, at(59)), "the annotation is still there");
    assert_eq!(ledger.consider(at(59), &names(0..200), 200), Verdict::Granted);
    let again = ledger.consider(at(60), &names(0..200), 200);
    assert_ne!(held(&again).0, digest);
    assert!(!ledger.approve(&digest, at(60)), "an old annotation approves nothing new");
    assert!(ledger.approve(held(&again).0, at(61)));
}

#[test]
fn an_annotation_that_stands_changes_nothing_however_long() {
    let mut ledger = Ledger::default();
    ledger.record(at(0), &names(200..205));
    let digest = held(&ledger.consider(at(0), &names(0..200), 205)).0.to_owned();
    ledger.approve(&digest, at(0));
    ledger.record(at(1), &names(0..200));
    let approved = ledger.clone();

    assert!(ledger.approve(&digest, at(30)) && !ledger.approve(&digest, at(90)));

    assert_eq!(ledger, approved, "nothing to store, though the window has moved on");
}

#[test]
fn approved_deletions_leave_the_budget_for_others() {
    let mut ledger = Ledger::default();
    let digest = held(&ledger.consider(at(0), &names(0..200), 210)).0.to_owned();
    ledger.approve(&digest, at(0));
    ledger.record(at(1), &names(0..200));

    assert_eq!(ledger.consider(at(1), &names(200..205), 10), Verdict::Granted);
}

#[test]
fn what_is_not_approved_is_held_while_the_approved_goes() {
    let mut ledger = Ledger::default();
    let digest = held(&ledger.consider(at(0), &names(0..50), 100)).0.to_owned();
    ledger.approve(&digest, at(0));

    let verdict = ledger.consider(at(1), &names(0..90), 100);

    assert_eq!(held(&verdict).1, names(50..90));
    assert!(!ledger.holds("A 0049.example.com") && ledger.holds("A 0050.example.com"));
}

#[test]
fn one_approved_deletion_goes_while_others_are_held() {
    let mut ledger = Ledger::default();
    let digest = held(&ledger.consider(at(0), &names(0..50), 100)).0.to_owned();
    ledger.approve(&digest, at(0));
    ledger.consider(at(1), &names(50..90), 100);

    assert_eq!(ledger.consider(at(2), &names(3..4), 100), Verdict::Granted);
    assert_eq!(ledger.consider(at(2), &[], 100), Verdict::Granted);
    assert_eq!(held(&ledger.verdict()).1, names(50..90));
}

#[test]
fn a_list_that_grew_meanwhile_can_be_approved_as_it_was_shown() {
    let mut ledger = Ledger::default();
    let shown = held(&ledger.consider(at(0), &names(0..50), 100)).0.to_owned();
    ledger.consider(at(1), &names(50..80), 100);

    assert!(ledger.approve(&shown, at(2)));

    assert_eq!(held(&ledger.verdict()).1, names(50..80));
}

#[test]
fn an_unknown_digest_approves_nothing() {
    let mut ledger = Ledger::default();
    let before = ledger.consider(at(0), &names(0..50), 100);

    assert!(!ledger.approve("000000000000", at(0)));
    assert!(!ledger.approve("", at(0)));

    assert_eq!(ledger.verdict(), before);
}

#[test]
fn what_was_deleted_counts_as_part_of_the_scope() {
    let mut ledger = Ledger::default();
    ledger.record(at(0), &names(0..25));

    assert_eq!(ledger.consider(at(1), &names(25..30), 75), Verdict::Granted, "thirty of a hundred");
}

#[test]
fn what_was_deleted_after_all_is_no_longer_held() {
    let mut ledger = Ledger::default();
    ledger.consider(at(0), &names(0..50), 100);

    ledger.record(at(1), &names(0..5));

    assert_eq!(held(&ledger.verdict()).1, names(5..50));
}

#[test]
fn withdrawn_names_are_no_longer_held() {
    let mut ledger = Ledger::default();
    ledger.consider(at(0), &names(0..50), 100);

    ledger.withdraw(&names(0..50));

    assert_eq!(ledger.verdict(), Verdict::Granted);
    assert!(ledger.is_idle(at(0)));
}

/// Who takes back a mistake object by object must not lose the rest when little of it is left.
#[test]
fn what_is_held_stays_held_however_little_is_left_of_it() {
    let mut ledger = Ledger::default();
    ledger.consider(at(0), &names(0..12), 12);
    ledger.withdraw(&names(0..4));

    ledger.consider(at(1), &names(20..21), 12);

    assert_eq!(held(&ledger.verdict()).1, names(4..12));
    assert!(!ledger.holds(&names(20..21)[0]), "what came later is within the budget");
}

#[test]
fn a_restart_in_between_changes_nothing() {
    let mut ledger = Ledger::default();
    ledger.record(at(0), &names(300..305));
    let digest = held(&ledger.consider(at(1), &names(0..200), 200)).0.to_owned();

    let mut restarted: Ledger = serde_json::from_str(&serde_json::to_string(&ledger).unwrap()).unwrap();

    assert_eq!(restarted, ledger);
    assert!(restarted.approve(&digest, at(2)));
    let restarted: Ledger = serde_json::from_value(serde_json::to_value(&restarted).unwrap()).unwrap();
    assert_eq!(restarted.clone().consider(at(3), &names(0..200), 200), Verdict::Granted);
}

#[test]
fn considering_the_same_again_leaves_the_ledger_as_it_is() {
    let mut ledger = Ledger::default();
    ledger.consider(at(0), &names(0..50), 100);
    let before = ledger.clone();

    ledger.consider(at(30), &names(0..50), 100);

    assert_eq!(ledger, before, "nothing new to store");
}

proptest! {
    /// Whatever is asked for in whatever portions: without approval no ten minutes see more than the budget.
    #[test]
    fn no_window_ever_exceeds_the_budget(
        total in 1usize..120,
        asks in proptest::collection::vec((0i64..4, 1usize..12), 1..40),
    ) {
        let mut ledger = Ledger::default();
        let mut left: BTreeSet<String> = names(0..total).into_iter().collect();
        let mut log: Vec<i64> = Vec::new();
        let mut now = 0;
        for (pause, size) in asks {
            now += pause;
            let wanted: Vec<String> = left.iter().take(size).cloned().collect();
            ledger.consider(at(now), &wanted, left.len());
            let going: Vec<String> = wanted.into_iter().filter(|name| !ledger.holds(name)).collect();
            ledger.record(at(now), &going);
            log.extend(going.iter().map(|_| now));
            left.retain(|name| !going.contains(name));

            let recent = log.iter().filter(|then| now - **then < 10).count();
            prop_assert!(recent <= ALWAYS_FREE || recent * 100 <= (left.len() + recent) * PERCENT);
        }
    }

    /// Whatever is approved when: what goes was approved within the hour, or is within the budget.
    #[test]
    fn what_goes_beyond_the_budget_was_approved(
        asks in proptest::collection::vec((0i64..20, 0usize..100, 1usize..30, any::<bool>()), 1..30),
    ) {
        let mut ledger = Ledger::default();
        let mut approved: Vec<(i64, Vec<String>)> = Vec::new();
        // When each name last began to count.
        let mut log: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
        let mut now = 0;
        for (pause, first, size, approves) in asks {
            now += pause;
            let shown = ledger.verdict();
            if let (true, Verdict::Held { digest, list, .. }) = (approves, shown) {
                prop_assert!(ledger.approve(&digest, at(now)));
                approved.push((now, list));
            }
            let wanted = names(first..first + size);
            ledger.consider(at(now), &wanted, 130);
            let going: Vec<String> = wanted.into_iter().filter(|name| !ledger.holds(name)).collect();
            let free = |name: &&String| approved.iter().any(|(then, list)| now - then < 60 && list.contains(name));
            log.retain(|_, then| now - *then < 10);
            for name in going.iter().filter(|name| !free(name)) {
                log.entry(name.clone()).or_insert(now);
            }
            ledger.record(at(now), &going);

            let recent = log.len();
            prop_assert!(recent <= ALWAYS_FREE || recent * 100 <= (130 + recent) * PERCENT);
        }
    }

    #[test]
    fn the_digest_depends_on_the_names_and_not_on_their_order(mut order in Just(names(0..30)).prop_shuffle()) {
        let sorted = Ledger::default().consider(at(0), &names(0..30), 30);

        let shuffled = Ledger::default().consider(at(0), &order, 30);
        order.pop();
        let fewer = Ledger::default().consider(at(0), &order, 30);

        prop_assert_eq!(&shuffled, &sorted);
        prop_assert_ne!(held(&fewer).0, held(&sorted).0);
    }
}

#[test]
fn trying_the_same_deletion_again_costs_nothing() {
    let mut ledger = Ledger::default();
    let name = ["www".to_owned()];

    for minute in 0..50 {
        assert_eq!(ledger.consider(at(minute), &name, 1), Verdict::Granted, "try {minute}");
        ledger.record(at(minute), &name);
    }
}

#[test]
fn finding_6_a_ledger_of_any_number_of_long_names_fits_into_one_object() {
    let long: Vec<String> = (0..40_000).map(|n| format!("{n:05}{}", ".a-label-of-a-long-name".repeat(10))).collect();
    let mut ledger = Ledger::default();

    for part in long.chunks(700) {
        ledger.consider(at(0), part, long.len());
    }

    assert!(long.iter().all(|name| ledger.holds(name)));
    let Verdict::Held { digest, list, more } = ledger.verdict() else { panic!("held") };
    assert_eq!(list.len() + more, long.len());
    assert!(serde_json::to_string(&ledger).unwrap().len() < 400_000);

    let again = ledger.consider(at(9), &long[39_000..], long.len());
    assert_eq!(held(&again).0, digest, "asking again for what is only counted changes nothing");
    assert!(ledger.approve(&digest, at(10)));
    assert!(!ledger.holds(&long[39_999]) && ledger.consider(at(11), &long, long.len()) == Verdict::Granted);
    assert!(serde_json::to_string(&ledger).unwrap().len() < 800_000);
}

#[test]
fn finding_6_what_is_only_counted_can_be_taken_back_and_is_asked_for_again_after_a_restart() {
    let all = names(0..3000);
    let mut ledger = Ledger::default();
    ledger.consider(at(0), &all, 3000);

    let stored = serde_json::to_string(&ledger).unwrap();
    let mut restarted: Ledger = serde_json::from_str(&stored).unwrap();
    assert!(matches!(restarted.verdict(), Verdict::Held { more: 0, .. }));
    restarted.consider(at(5), &all[2990..], 3000);
    assert!(restarted.holds(&all[2999]), "the rest of the list holds it back");

    ledger.withdraw(&all);
    assert_eq!(ledger.verdict(), Verdict::Granted);
}
