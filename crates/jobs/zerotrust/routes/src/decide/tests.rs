use super::*;

fn published() -> Wish {
    Wish::Published { hash: "h1".to_owned(), uid: "u1".to_owned(), account: "a1".to_owned() }
}

fn standing() -> Recorded {
    Recorded { hash: "h1".to_owned(), uid: "u1".to_owned(), account: Some("a1".to_owned()), ..Recorded::default() }
}

fn task(phase: Phase) -> UnderWay {
    UnderWay { phase, marked: true, current: true, hash: "h1".to_owned(), suits_token: true, ..UnderWay::default() }
}

fn facts(wish: Wish, recorded: Option<Recorded>) -> Facts {
    Facts {
        wish,
        recorded,
        task: None,
        removal: None,
        secret: TokenSecret::Unwanted,
        drifted: false,
        lost: false,
        outputs_differ: false,
        loses: false,
        recovered: false,
    }
}

#[test]
fn a_new_route_is_queued() {
    assert_eq!(decide(&facts(published(), None)), [Step::Queue]);
}

#[test]
fn scenario_05_a_settled_route_needs_nothing() {
    assert_eq!(decide(&facts(published(), Some(standing()))), []);
}

#[test]
fn finding_2_a_state_that_does_not_say_which_templates_took_part_is_told_once() {
    let untold = Recorded { untold: true, ..standing() };

    assert_eq!(decide(&facts(published(), Some(untold.clone()))), [Step::NoteTemplates]);
    let edited = Recorded { hash: "h0".to_owned(), ..untold.clone() };
    assert_eq!(decide(&facts(published(), Some(edited))), [Step::Queue], "what stands was made with others");
    assert_eq!(decide(&facts(Wish::Unclear, Some(untold))), []);
}

#[test]
fn scenario_08_stripped_outputs_are_restored_without_a_task() {
    let stripped = Facts { outputs_differ: true, ..facts(published(), Some(standing())) };

    assert_eq!(decide(&stripped), [Step::Outputs]);
}

#[test]
fn a_route_says_that_its_task_failed_while_the_task_waits() {
    let failed = Facts { task: Some(task(Phase::Failed)), outputs_differ: true, ..facts(published(), None) };

    assert_eq!(decide(&failed), [Step::Outputs]);
}

#[test]
fn whatever_was_asked_for_anew_is_queued() {
    let edited = Recorded { hash: "h0".to_owned(), ..standing() };
    let recreated = Recorded { uid: "u0".to_owned(), ..standing() };
    let revived = Recorded { deleting: true, ..standing() };

    for recorded in [edited, recreated, revived] {
        assert_eq!(decide(&facts(published(), Some(recorded.clone()))), [Step::Queue], "{recorded:?}");
    }
}

#[test]
fn drift_and_a_lost_secret_are_mended_though_nothing_was_asked_for_anew() {
    let drifted = Facts { drifted: true, ..facts(published(), Some(standing())) };
    let lost = Facts { secret: TokenSecret::Lost, ..facts(published(), Some(standing())) };

    assert_eq!(decide(&drifted), [Step::Queue]);
    assert_eq!(decide(&lost), [Step::Queue]);
}

#[test]
fn a_task_that_a_worker_has_is_never_touched() {
    for wish in [published(), Wish::Unclear, Wish::Absent] {
        for hash in ["h1", "other"] {
            let working = UnderWay { hash: hash.to_owned(), knows_more: true, ..task(Phase::InProgress) };
            let facts = Facts { task: Some(working), ..facts(wish.clone(), Some(standing())) };

            assert_eq!(decide(&facts), [], "{wish:?} {hash}");
        }
    }
}

#[test]
fn a_task_that_is_done_is_collected_whatever_is_wanted_now() {
    for wish in [published(), Wish::Unclear] {
        let other = UnderWay { hash: "other".to_owned(), ..task(Phase::Completed) };
        let facts = Facts { task: Some(other), ..facts(wish, None) };

        assert_eq!(decide(&facts), [Step::Collect]);
    }
}

#[test]
fn scenario_45_a_result_of_an_older_spec_is_not_collected() {
    let stale = UnderWay { current: false, ..task(Phase::Completed) };

    assert_eq!(decide(&Facts { task: Some(stale), ..facts(published(), None) }), []);
}

#[test]
fn a_task_that_waits_or_failed_gets_what_is_wanted_now_and_what_it_made_is_recorded_first() {
    for phase in [Phase::Pending, Phase::Failed] {
        let other = UnderWay { hash: "other".to_owned(), ..task(phase) };
        let wise = UnderWay { knows_more: true, ..other.clone() };

        assert_eq!(decide(&Facts { task: Some(task(phase)), ..facts(published(), None) }), []);
        assert_eq!(decide(&Facts { task: Some(other), ..facts(published(), None) }), [Step::Requeue]);
        assert_eq!(decide(&Facts { task: Some(wise), ..facts(published(), None) }), [Step::Harvest, Step::Requeue]);
    }
}

#[test]
fn scenario_63_a_task_of_an_older_operator_is_taken_over_whatever_its_phase() {
    for phase in [Phase::Pending, Phase::InProgress, Phase::Failed, Phase::Completed] {
        let older = UnderWay { older: true, ..task(phase) };
        let steps = |wish: Wish| decide(&Facts { task: Some(older.clone()), ..facts(wish, None) });

        assert_eq!(steps(published()), [Step::TakeOver, Step::Requeue], "{phase:?}");
        assert_eq!(steps(Wish::Absent), [Step::TakeOver, Step::DropTask], "{phase:?}");
    }
}

#[test]
fn what_an_older_operators_worker_may_have_made_is_looked_for() {
    let open = UnderWay { older: true, intends: true, ..task(Phase::InProgress) };
    let noted = UnderWay { phase: Phase::Pending, ..open.clone() };
    let steps = |task: UnderWay, wish: Wish| decide(&Facts { task: Some(task), ..facts(wish, None) });

    assert_eq!(steps(open.clone(), Wish::Absent), [Step::TakeOver, Step::ConvertTask]);
    assert_eq!(steps(open, Wish::Unclear), [Step::TakeOver]);
    assert_eq!(steps(noted, Wish::Unclear), [], "once is enough");
}

#[test]
fn what_an_older_operator_was_to_delete_is_recorded_before_anything_else() {
    for wish in [published(), Wish::Unclear, Wish::Absent] {
        let older = UnderWay { older: true, ..task(Phase::InProgress) };

        assert_eq!(decide(&Facts { removal: Some(older), ..facts(wish, None) }), [Step::TakeOverRemoval]);
    }
}

#[test]
fn a_task_whose_status_was_never_written_is_marked() {
    let unmarked = UnderWay { marked: false, current: false, ..task(Phase::Pending) };

    assert_eq!(decide(&Facts { task: Some(unmarked), ..facts(published(), None) }), [Step::MarkPending]);
}

#[test]
fn a_failed_task_is_tried_again_when_drift_is_looked_for() {
    let facts = Facts { task: Some(task(Phase::Failed)), drifted: true, ..facts(published(), None) };

    assert_eq!(decide(&facts), [Step::MarkPending]);
}

#[test]
fn a_template_that_is_missing_leaves_everything_as_it_is() {
    assert_eq!(decide(&facts(Wish::Unclear, Some(standing()))), []);
    assert_eq!(decide(&facts(Wish::Unclear, None)), []);
    let waiting = Facts { task: Some(task(Phase::Pending)), ..facts(Wish::Unclear, None) };
    assert_eq!(decide(&waiting), []);
}

#[test]
fn scenario_30_a_task_for_a_name_that_another_route_has_is_given_up() {
    let lost = |task| Facts { task: Some(task), lost: true, ..facts(Wish::Unclear, Some(standing())) };
    let wise = UnderWay { knows_more: true, ..task(Phase::Failed) };

    assert_eq!(decide(&lost(task(Phase::Failed))), [Step::DropTask]);
    assert_eq!(decide(&lost(wise)), [Step::Harvest, Step::DropTask]);
    assert_eq!(decide(&lost(task(Phase::InProgress))), []);
    assert_eq!(decide(&lost(task(Phase::Completed))), [Step::Collect]);
}

#[test]
fn scenario_51_a_route_that_goes_is_taken_down_then_forgotten() {
    let gone = facts(Wish::Absent, Some(standing()));
    assert_eq!(decide(&gone), [Step::BeginRemoval, Step::QueueRemoval]);

    for phase in [Phase::Pending, Phase::InProgress, Phase::Failed] {
        assert_eq!(decide(&Facts { removal: Some(task(phase)), ..gone.clone() }), [], "{phase:?}");
    }
    assert_eq!(decide(&Facts { removal: Some(task(Phase::Completed)), ..gone }), [Step::FinishRemoval]);
}

#[test]
fn a_route_with_nothing_at_cloudflare_is_forgotten_without_a_task() {
    let empty = Recorded { empty: true, ..standing() };

    assert_eq!(decide(&facts(Wish::Absent, Some(empty))), [Step::Forget]);
    assert_eq!(decide(&facts(Wish::Absent, None)), []);
}

#[test]
fn scenario_55_a_route_that_opts_out_loses_its_outputs_after_everything_else() {
    let marked = Facts { outputs_differ: true, ..facts(Wish::Absent, Some(standing())) };
    assert_eq!(decide(&marked), [Step::BeginRemoval, Step::QueueRemoval]);

    assert_eq!(decide(&Facts { recorded: None, ..marked }), [Step::Outputs]);
}

#[test]
fn scenario_52_what_a_task_made_is_recorded_before_it_is_dropped() {
    for phase in [Phase::Pending, Phase::Failed, Phase::Completed] {
        let wise = UnderWay { knows_more: true, ..task(phase) };
        let plain = Facts { task: Some(task(phase)), ..facts(Wish::Absent, None) };

        assert_eq!(decide(&plain), [Step::DropTask]);
        assert_eq!(decide(&Facts { task: Some(wise), ..plain }), [Step::Harvest, Step::DropTask]);
    }
}

#[test]
fn a_task_that_may_have_made_things_nobody_knows_of_takes_them_down_itself() {
    let uncertain = UnderWay { intends: true, ..task(Phase::Failed) };
    let done = UnderWay { intends: true, ..task(Phase::Completed) };

    assert_eq!(decide(&Facts { task: Some(uncertain), ..facts(Wish::Absent, None) }), [Step::ConvertTask]);
    assert_eq!(decide(&Facts { task: Some(done), ..facts(Wish::Absent, None) }), [Step::DropTask]);
}

#[test]
fn scenario_54_a_route_that_comes_back_cancels_its_removal_or_waits_for_its_end() {
    let with = |phase| Facts { removal: Some(task(phase)), ..facts(published(), Some(standing())) };

    assert_eq!(decide(&with(Phase::Pending)), [Step::CancelRemoval]);
    assert_eq!(decide(&with(Phase::Failed)), [Step::CancelRemoval]);
    assert_eq!(decide(&with(Phase::InProgress)), []);
    assert_eq!(decide(&with(Phase::Completed)), [Step::FinishRemoval]);
}

#[test]
fn a_removal_that_alone_knows_what_nobody_recorded_goes_on_to_its_end_though_the_name_is_wanted_again() {
    let removal = |phase| Some(UnderWay { intends: true, ..task(phase) });
    let wanted = |phase| decide(&Facts { removal: removal(phase), ..facts(published(), None) });
    let unclear = |recorded| decide(&Facts { removal: removal(Phase::Failed), ..facts(Wish::Unclear, recorded) });

    assert_eq!((wanted(Phase::Pending), wanted(Phase::Failed)), (vec![], vec![]));
    assert_eq!(wanted(Phase::Completed), [Step::FinishRemoval]);
    assert_eq!(unclear(None), []);
    assert_eq!(unclear(Some(standing())), [Step::CancelRemoval], "what is known to stand stays");
}

#[test]
fn scenario_57_the_old_account_is_cleaned_after_the_new_one_stands() {
    let elsewhere = Recorded { hash: "h0".to_owned(), account: Some("a0".to_owned()), ..standing() };
    assert_eq!(decide(&facts(published(), Some(elsewhere))), [Step::SetAside, Step::Queue]);

    let moved = Recorded { leftovers: vec![Some("a0".to_owned())], ..standing() };
    let settled = facts(published(), Some(moved));
    assert_eq!(decide(&settled), [Step::QueueLeftover]);
    let leftover = |phase| UnderWay { leftover: true, ..task(phase) };
    assert_eq!(decide(&Facts { removal: Some(leftover(Phase::InProgress)), ..settled.clone() }), []);
    assert_eq!(decide(&Facts { removal: Some(leftover(Phase::Completed)), ..settled }), [Step::FinishLeftover]);
}

#[test]
fn a_name_that_returns_to_an_account_takes_back_what_stands_there_unless_it_is_being_taken_down() {
    let away = Recorded {
        hash: "h0".to_owned(),
        account: Some("a0".to_owned()),
        leftovers: vec![Some("a1".to_owned())],
        ..standing()
    };
    let back = facts(published(), Some(away));
    assert_eq!(decide(&back), [Step::SetAside, Step::TakeBack, Step::Queue]);

    let going = UnderWay { leftover: true, ..task(Phase::InProgress) };
    assert_eq!(decide(&Facts { removal: Some(going), ..back }), []);
}

#[test]
fn a_deleted_route_leaves_nothing_in_any_account() {
    let recorded = Recorded { empty: true, leftovers: vec![Some("a0".to_owned())], ..standing() };

    assert_eq!(decide(&facts(Wish::Absent, Some(recorded))), [Step::QueueLeftover]);
}

#[test]
fn scenario_59_the_secret_of_a_token_that_is_no_longer_wanted_goes() {
    let recorded = Recorded { has_secret: true, ..standing() };

    assert_eq!(decide(&facts(published(), Some(recorded))), [Step::DropSecret]);
}

#[test]
fn scenario_60_a_state_is_forgotten_only_where_its_user_says_so() {
    let forget = Recorded { forget: true, ..standing() };
    let failing = Facts { removal: Some(task(Phase::Failed)), ..facts(Wish::Absent, Some(forget.clone())) };

    assert_eq!(decide(&facts(Wish::Absent, Some(forget.clone()))), [Step::Forget]);
    assert_eq!(decide(&failing), [Step::CancelRemoval, Step::Forget]);
    assert_eq!(decide(&facts(published(), Some(forget))), [], "a route that is published is not forgotten");
}

#[test]
fn scenario_63_a_state_with_a_secret_in_it_is_cleaned_first() {
    let unclean = Recorded { unclean: true, ..standing() };

    assert_eq!(decide(&facts(published(), Some(unclean))), [Step::Scrub]);
}

#[test]
fn ux_c4_what_takes_a_name_or_its_protection_away_is_asked_for_first() {
    let other = || Wish::Published { hash: "h2".to_owned(), uid: "u1".to_owned(), account: "a1".to_owned() };
    let loses = Facts { loses: true, ..facts(other(), Some(standing())) };
    assert_eq!(decide(&loses), [Step::AskToLose, Step::Queue]);

    let waiting = Facts { task: Some(task(Phase::Pending)), ..loses.clone() };
    assert_eq!(decide(&waiting), [Step::AskToLose, Step::Requeue]);
    assert_eq!(decide(&Facts { loses: false, ..loses.clone() }), [Step::Queue]);
    let working = Facts { task: Some(task(Phase::InProgress)), ..loses };
    assert_eq!(decide(&working), [], "what a worker has is awaited");
}

#[test]
fn finding_5_a_removal_whose_credential_is_replaced_is_given_the_other() {
    let removal = UnderWay { recredited: true, ..task(Phase::Failed) };
    let going = Facts { removal: Some(removal.clone()), ..facts(Wish::Absent, Some(standing())) };
    assert_eq!(decide(&going), [Step::RecreditRemoval]);

    let working = UnderWay { phase: Phase::InProgress, ..removal };
    assert_eq!(decide(&Facts { removal: Some(working), ..going }), []);
}

#[test]
fn heldout_f1_what_is_proven_to_be_ours_is_recorded_before_anything_else() {
    for wish in [published(), Wish::Unclear, Wish::Absent] {
        assert_eq!(decide(&Facts { recovered: true, outputs_differ: true, ..facts(wish, None) }), [Step::Recover]);
    }
}
