//! Scenarios 64–69: the operator's own Deployments, on the embedded API server.

use portolan_testkit_suites::zerotrust::fleet::checks;
use portolan_testkit_suites::{Builder, tell};

/// The embedded API server with its own controllers of workloads, which parity holds to be as the real ones.
fn world() -> Builder {
    portolan_testkit_suites::zerotrust::world().workloads()
}

#[tokio::test(start_paused = true)]
async fn scenario_64_a_fresh_configuration_is_applied_and_workers_exist() {
    checks::fresh_configuration(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn scenario_65_what_a_configuration_does_not_say_stays_as_deployed() {
    checks::absent_fields(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn scenario_66_a_variable_has_exactly_one_entry() {
    checks::one_entry(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn scenario_67_another_digest_of_the_image_rolls_both_workers() {
    checks::new_digest(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn scenario_67_another_image_rolls_the_workers_once_the_new_manager_runs() {
    checks::new_image(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn scenario_68_workers_are_restored_and_go_with_the_manager() {
    checks::workers_restored(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn scenario_69_pods_that_no_node_takes_are_told() {
    checks::unschedulable(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_configuration_replaced_comes_back_when_it_goes() {
    checks::released_fields(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn who_deploys_anew_changes_what_comes_back_later() {
    checks::deployed_anew(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn of_several_configurations_the_oldest_is_in_force() {
    checks::several(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_cannot_be_applied_says_why() {
    checks::refused(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_does_not_know_its_deployment_says_what_to_set() {
    checks::outside(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn one_process_shapes_its_own_deployment_and_makes_no_workers() {
    checks::single(&world()).await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_killed_anywhere_ends_what_it_began() {
    let crashes = checks::crashes(&world()).await;

    tell(&format!("crash points: {crashes} of a configuration that comes and goes"));
    assert!(crashes > 15, "{crashes}");
}
