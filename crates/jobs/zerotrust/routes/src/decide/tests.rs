use super::*;

fn published() -> RouteGoal {
    RouteGoal::Published { hash: "h1".to_owned(), uid: "u1".to_owned(), account: "a1".to_owned() }
}

fn standing() -> RecordedState {
    RecordedState {
        hash: "h1".to_owned(),
        uid: "u1".to_owned(),
        account: Some("a1".to_owned()),
        ..RecordedState::default()
    }
}

fn task(phase: Phase) -> UnderWay {
    UnderWay { phase, marked: true, current: true, hash: "h1".to_owned(), suits_token: true, ..UnderWay::default() }
}

fn facts(wish: RouteGoal, recorded: Option<RecordedState>) -> RouteFacts {
    RouteFacts {
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
    assert_eq!(decide(&facts(published(), None)), [RouteStep::Queue]);
}

#[test]
fn scenario_05_a_settled_route_needs_nothing() {
    assert_eq!(decide(&facts(published(), Some(standing()))), []);
}

#[test]
fn finding_2_a_state_that_does_not_say_which_templates_took_part_is_told_once() {
    let untold = RecordedState { untold: true, ..standing() };

    assert_eq!(decide(&facts(published(), Some(untold.clone()))), [RouteStep::NoteTemplates]);
    let edited = RecordedState { hash: "h0".to_owned(), ..untold.clone() };
    assert_eq!(decide(&facts(published(), Some(edited))), [RouteStep::Queue], "what stands was made with others");
    assert_eq!(decide(&facts(RouteGoal::Unclear, Some(untold))), []);
}

#[test]
fn scenario_08_stripped_outputs_are_restored_without_a_task() {
    let stripped = RouteFacts { outputs_differ: true, ..facts(published(), Some(standing())) };

    assert_eq!(decide(&stripped), [RouteStep::Outputs]);
}

#[test]
fn a_route_says_that_its_task_failed_while_the_task_waits() {
    let failed = RouteFacts { task: Some(task(Phase::Failed)), outputs_differ: true, ..facts(published(), None) };

    assert_eq!(decide(&failed), [RouteStep::Outputs]);
}

#[test]
fn whatever_was_asked_for_anew_is_queued() {
    let edited = RecordedState { hash: "h0".to_owned(), ..standing() };
    let recreated = RecordedState { uid: "u0".to_owned(), ..standing() };
    let revived = RecordedState { deleting: true, ..standing() };

    for recorded in [edited, recreated, revived] {
        assert_eq!(decide(&facts(published(), Some(recorded.clone()))), [RouteStep::Queue], "{recorded:?}");
    }
}

#[test]
fn drift_and_a_lost_secret_are_mended_though_nothing_was_asked_for_anew() {
    let drifted = RouteFacts { drifted: true, ..facts(published(), Some(standing())) };
    let lost = RouteFacts { secret: TokenSecret::Lost, ..facts(published(), Some(standing())) };

    assert_eq!(decide(&drifted), [RouteStep::Queue]);
    assert_eq!(decide(&lost), [RouteStep::Queue]);
}

#[test]
fn a_task_that_a_worker_has_is_never_touched() {
    for wish in [published(), RouteGoal::Unclear, RouteGoal::Absent] {
        for hash in ["h1", "other"] {
            let working = UnderWay { hash: hash.to_owned(), knows_more: true, ..task(Phase::InProgress) };
            let facts = RouteFacts { task: Some(working), ..facts(wish.clone(), Some(standing())) };

            assert_eq!(decide(&facts), [], "{wish:?} {hash}");
        }
    }
}

#[test]
fn a_task_that_is_done_is_collected_whatever_is_wanted_now() {
    for wish in [published(), RouteGoal::Unclear] {
        let other = UnderWay { hash: "other".to_owned(), ..task(Phase::Completed) };
        let facts = RouteFacts { task: Some(other), ..facts(wish, None) };

        assert_eq!(decide(&facts), [RouteStep::Collect]);
    }
}

#[test]
fn scenario_45_a_result_of_an_older_spec_is_not_collected() {
    let stale = UnderWay { current: false, ..task(Phase::Completed) };

    assert_eq!(decide(&RouteFacts { task: Some(stale), ..facts(published(), None) }), []);
}

#[test]
fn a_task_that_waits_or_failed_gets_what_is_wanted_now_and_what_it_made_is_recorded_first() {
    for phase in [Phase::Pending, Phase::Failed] {
        let other = UnderWay { hash: "other".to_owned(), ..task(phase) };
        let wise = UnderWay { knows_more: true, ..other.clone() };

        assert_eq!(decide(&RouteFacts { task: Some(task(phase)), ..facts(published(), None) }), []);
        assert_eq!(decide(&RouteFacts { task: Some(other), ..facts(published(), None) }), [RouteStep::Requeue]);
        assert_eq!(
            decide(&RouteFacts { task: Some(wise), ..facts(published(), None) }),
            [RouteStep::Harvest, RouteStep::Requeue]
        );
    }
}

#[test]
fn scenario_63_a_task_of_an_older_operator_is_taken_over_whatever_its_phase() {
    for phase in [Phase::Pending, Phase::InProgress, Phase::Failed, Phase::Completed] {
        let older = UnderWay { older: true, ..task(phase) };
        let steps = |wish: RouteGoal| decide(&RouteFacts { task: Some(older.clone()), ..facts(wish, None) });

        assert_eq!(steps(published()), [RouteStep::TakeOver, RouteStep::Requeue], "{phase:?}");
        assert_eq!(steps(RouteGoal::Absent), [RouteStep::TakeOver, RouteStep::DropTask], "{phase:?}");
    }
}

#[test]
fn what_an_older_operators_worker_may_have_made_is_looked_for() {
    let open = UnderWay { older: true, intends: true, ..task(Phase::InProgress) };
    let noted = UnderWay { phase: Phase::Pending, ..open.clone() };
    let steps = |task: UnderWay, wish: RouteGoal| decide(&RouteFacts { task: Some(task), ..facts(wish, None) });

    assert_eq!(steps(open.clone(), RouteGoal::Absent), [RouteStep::TakeOver, RouteStep::ConvertTask]);
    assert_eq!(steps(open, RouteGoal::Unclear), [RouteStep::TakeOver]);
    assert_eq!(steps(noted, RouteGoal::Unclear), [], "once is enough");
}

#[test]
fn what_an_older_operator_was_to_delete_is_recorded_before_anything_else() {
    for wish in [published(), RouteGoal::Unclear, RouteGoal::Absent] {
        let older = UnderWay { older: true, ..task(Phase::InProgress) };

        assert_eq!(decide(&RouteFacts { removal: Some(older), ..facts(wish, None) }), [RouteStep::TakeOverRemoval]);
    }
}

#[test]
fn a_task_whose_status_was_never_written_is_marked() {
    let unmarked = UnderWay { marked: false, current: false, ..task(Phase::Pending) };

    assert_eq!(decide(&RouteFacts { task: Some(unmarked), ..facts(published(), None) }), [RouteStep::MarkPending]);
}

#[test]
fn a_failed_task_is_tried_again_when_drift_is_looked_for() {
    let facts = RouteFacts { task: Some(task(Phase::Failed)), drifted: true, ..facts(published(), None) };

    assert_eq!(decide(&facts), [RouteStep::MarkPending]);
}

#[test]
fn a_template_that_is_missing_leaves_everything_as_it_is() {
    assert_eq!(decide(&facts(RouteGoal::Unclear, Some(standing()))), []);
    assert_eq!(decide(&facts(RouteGoal::Unclear, None)), []);
    let waiting = RouteFacts { task: Some(task(Phase::Pending)), ..facts(RouteGoal::Unclear, None) };
    assert_eq!(decide(&waiting), []);
}

#[test]
fn scenario_30_a_task_for_a_name_that_another_route_has_is_given_up() {
    let lost = |task| RouteFacts { task: Some(task), lost: true, ..facts(RouteGoal::Unclear, Some(standing())) };
    let wise = UnderWay { knows_more: true, ..task(Phase::Failed) };

    assert_eq!(decide(&lost(task(Phase::Failed))), [RouteStep::DropTask]);
    assert_eq!(decide(&lost(wise)), [RouteStep::Harvest, RouteStep::DropTask]);
    assert_eq!(decide(&lost(task(Phase::InProgress))), []);
    assert_eq!(decide(&lost(task(Phase::Completed))), [RouteStep::Collect]);
}

#[test]
fn scenario_51_a_route_that_goes_is_taken_down_then_forgotten() {
    let gone = facts(RouteGoal::Absent, Some(standing()));
    assert_eq!(decide(&gone), [RouteStep::BeginRemoval, RouteStep::QueueRemoval]);

    for phase in [Phase::Pending, Phase::InProgress, Phase::Failed] {
        assert_eq!(decide(&RouteFacts { removal: Some(task(phase)), ..gone.clone() }), [], "{phase:?}");
    }
    assert_eq!(decide(&RouteFacts { removal: Some(task(Phase::Completed)), ..gone }), [RouteStep::FinishRemoval]);
}

#[test]
fn a_route_with_nothing_at_cloudflare_is_forgotten_without_a_task() {
    let empty = RecordedState { empty: true, ..standing() };

    assert_eq!(decide(&facts(RouteGoal::Absent, Some(empty))), [RouteStep::Forget]);
    assert_eq!(decide(&facts(RouteGoal::Absent, None)), []);
}

#[test]
fn scenario_55_a_route_that_opts_out_loses_its_outputs_after_everything_else() {
    let marked = RouteFacts { outputs_differ: true, ..facts(RouteGoal::Absent, Some(standing())) };
    assert_eq!(decide(&marked), [RouteStep::BeginRemoval, RouteStep::QueueRemoval]);

    assert_eq!(decide(&RouteFacts { recorded: None, ..marked }), [RouteStep::Outputs]);
}

#[test]
fn scenario_52_what_a_task_made_is_recorded_before_it_is_dropped() {
    for phase in [Phase::Pending, Phase::Failed, Phase::Completed] {
        let wise = UnderWay { knows_more: true, ..task(phase) };
        let plain = RouteFacts { task: Some(task(phase)), ..facts(RouteGoal::Absent, None) };

        assert_eq!(decide(&plain), [RouteStep::DropTask]);
        assert_eq!(decide(&RouteFacts { task: Some(wise), ..plain }), [RouteStep::Harvest, RouteStep::DropTask]);
    }
}

#[test]
fn a_task_that_may_have_made_things_nobody_knows_of_takes_them_down_itself() {
    let uncertain = UnderWay { intends: true, ..task(Phase::Failed) };
    let done = UnderWay { intends: true, ..task(Phase::Completed) };

    assert_eq!(
        decide(&RouteFacts { task: Some(uncertain), ..facts(RouteGoal::Absent, None) }),
        [RouteStep::ConvertTask]
    );
    assert_eq!(decide(&RouteFacts { task: Some(done), ..facts(RouteGoal::Absent, None) }), [RouteStep::DropTask]);
}

#[test]
fn scenario_54_a_route_that_comes_back_cancels_its_removal_or_waits_for_its_end() {
    let with = |phase| RouteFacts { removal: Some(task(phase)), ..facts(published(), Some(standing())) };

    assert_eq!(decide(&with(Phase::Pending)), [RouteStep::CancelRemoval]);
    assert_eq!(decide(&with(Phase::Failed)), [RouteStep::CancelRemoval]);
    assert_eq!(decide(&with(Phase::InProgress)), []);
    assert_eq!(decide(&with(Phase::Completed)), [RouteStep::FinishRemoval]);
}

#[test]
fn a_removal_that_alone_knows_what_nobody_recorded_goes_on_to_its_end_though_the_name_is_wanted_again() {
    let removal = |phase| Some(UnderWay { intends: true, ..task(phase) });
    let wanted = |phase| decide(&RouteFacts { removal: removal(phase), ..facts(published(), None) });
    let unclear =
        |recorded| decide(&RouteFacts { removal: removal(Phase::Failed), ..facts(RouteGoal::Unclear, recorded) });

    assert_eq!((wanted(Phase::Pending), wanted(Phase::Failed)), (vec![], vec![]));
    assert_eq!(wanted(Phase::Completed), [RouteStep::FinishRemoval]);
    assert_eq!(unclear(None), []);
    assert_eq!(unclear(Some(standing())), [RouteStep::CancelRemoval], "what is known to stand stays");
}

#[test]
fn scenario_57_the_old_account_is_cleaned_after_the_new_one_stands() {
    let elsewhere = RecordedState { hash: "h0".to_owned(), account: Some("a0".to_owned()), ..standing() };
    assert_eq!(decide(&facts(published(), Some(elsewhere))), [RouteStep::SetAside, RouteStep::Queue]);

    let moved = RecordedState { leftovers: vec![Some("a0".to_owned())], ..standing() };
    let settled = facts(published(), Some(moved));
    assert_eq!(decide(&settled), [RouteStep::QueueLeftover]);
    let leftover = |phase| UnderWay { leftover: true, ..task(phase) };
    assert_eq!(decide(&RouteFacts { removal: Some(leftover(Phase::InProgress)), ..settled.clone() }), []);
    assert_eq!(
        decide(&RouteFacts { removal: Some(leftover(Phase::Completed)), ..settled }),
        [RouteStep::FinishLeftover]
    );
}

#[test]
fn a_name_that_returns_to_an_account_takes_back_what_stands_there_unless_it_is_being_taken_down() {
    let away = RecordedState {
        hash: "h0".to_owned(),
        account: Some("a0".to_owned()),
        leftovers: vec![Some("a1".to_owned())],
        ..standing()
    };
    let back = facts(published(), Some(away));
    assert_eq!(decide(&back), [RouteStep::SetAside, RouteStep::TakeBack, RouteStep::Queue]);

    let going = UnderWay { leftover: true, ..task(Phase::InProgress) };
    assert_eq!(decide(&RouteFacts { removal: Some(going), ..back }), []);
}

#[test]
fn a_deleted_route_leaves_nothing_in_any_account() {
    let recorded = RecordedState { empty: true, leftovers: vec![Some("a0".to_owned())], ..standing() };

    assert_eq!(decide(&facts(RouteGoal::Absent, Some(recorded))), [RouteStep::QueueLeftover]);
}

#[test]
fn scenario_59_the_secret_of_a_token_that_is_no_longer_wanted_goes() {
    let recorded = RecordedState { has_secret: true, ..standing() };

    assert_eq!(decide(&facts(published(), Some(recorded))), [RouteStep::DropSecret]);
}

#[test]
fn scenario_60_a_state_is_forgotten_only_where_its_user_says_so() {
    let forget = RecordedState { forget: true, ..standing() };
    let failing = RouteFacts { removal: Some(task(Phase::Failed)), ..facts(RouteGoal::Absent, Some(forget.clone())) };

    assert_eq!(decide(&facts(RouteGoal::Absent, Some(forget.clone()))), [RouteStep::Forget]);
    assert_eq!(decide(&failing), [RouteStep::CancelRemoval, RouteStep::Forget]);
    assert_eq!(decide(&facts(published(), Some(forget))), [], "a route that is published is not forgotten");
}

#[test]
fn scenario_63_a_state_with_a_secret_in_it_is_cleaned_first() {
    let unclean = RecordedState { unclean: true, ..standing() };

    assert_eq!(decide(&facts(published(), Some(unclean))), [RouteStep::Scrub]);
}

#[test]
fn ux_c4_what_takes_a_name_or_its_protection_away_is_asked_for_first() {
    let other = || RouteGoal::Published { hash: "h2".to_owned(), uid: "u1".to_owned(), account: "a1".to_owned() };
    let loses = RouteFacts { loses: true, ..facts(other(), Some(standing())) };
    assert_eq!(decide(&loses), [RouteStep::AskToLose, RouteStep::Queue]);

    let waiting = RouteFacts { task: Some(task(Phase::Pending)), ..loses.clone() };
    assert_eq!(decide(&waiting), [RouteStep::AskToLose, RouteStep::Requeue]);
    assert_eq!(decide(&RouteFacts { loses: false, ..loses.clone() }), [RouteStep::Queue]);
    let working = RouteFacts { task: Some(task(Phase::InProgress)), ..loses };
    assert_eq!(decide(&working), [], "what a worker has is awaited");
}

#[test]
fn finding_5_a_removal_whose_credential_is_replaced_is_given_the_other() {
    let removal = UnderWay { recredited: true, ..task(Phase::Failed) };
    let going = RouteFacts { removal: Some(removal.clone()), ..facts(RouteGoal::Absent, Some(standing())) };
    assert_eq!(decide(&going), [RouteStep::RecreditRemoval]);

    let working = UnderWay { phase: Phase::InProgress, ..removal };
    assert_eq!(decide(&RouteFacts { removal: Some(working), ..going }), []);
}

#[test]
fn heldout_f1_what_is_proven_to_be_ours_is_recorded_before_anything_else() {
    for wish in [published(), RouteGoal::Unclear, RouteGoal::Absent] {
        assert_eq!(
            decide(&RouteFacts { recovered: true, outputs_differ: true, ..facts(wish, None) }),
            [RouteStep::Recover]
        );
    }
}
