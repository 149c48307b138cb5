//! How processes begin and end.

use portolan_runner::machine::processes::ProcessEnd;
use rustix::process::Signal;

use crate::support::{Home, wrote};

fn ended(exit_code: i32) -> ProcessEnd {
    ProcessEnd { exit_code, not_started: None }
}

#[tokio::test]
async fn what_a_program_writes_is_in_its_log_and_its_exit_code_is_told() {
    let home = Home::new();

    let end = home.run(home.script("a", "echo out $COLOUR; echo err >&2; exit 7")).await;

    assert_eq!(end, ended(7));
    let mut output = home.output("a");
    output.sort();
    assert_eq!(output, ["err", "out red"]);
}

#[tokio::test]
async fn a_program_sees_its_own_variables_only() {
    let home = Home::new();

    home.run(home.script("a", "env")).await;

    let mut names: Vec<String> =
        home.output("a").iter().filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect();
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
    names.sort();
    assert_eq!(names, ["COLOUR", "PATH", "PORTOLAN_POD_UID", "PORTOLAN_RUN_ID"]);
}

#[tokio::test]
async fn a_program_that_is_told_to_end_may_do_so_in_its_own_way() {
    let home = Home::new();
    let script = "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done";
    let launch = home.script("a", script);
    let log = launch.log.clone();
    let started = home.start(launch).await;
    wrote(&log, "up").await;

    started.handle().tell(Signal::TERM).unwrap();

    assert_eq!(started.ended().await.unwrap(), ended(3));
    assert_eq!(home.output("a"), ["up", "bye"]);
}

#[tokio::test]
async fn a_program_that_does_not_listen_is_killed_with_all_that_it_started() {
    let home = Home::new();
    // The grandchild leaves the group, and is found all the same.
    let script = "trap '' TERM; (trap '' TERM; setsid sleep 1000) & echo up; while :; do sleep 0.05; done";
    let launch = home.script("a", script);
    let log = launch.log.clone();
    let started = home.start(launch).await;
    wrote(&log, "up").await;
    let handle = started.handle();
    handle.tell(Signal::TERM).unwrap();

    let killed = tokio::task::spawn_blocking(move || handle.kill()).await.unwrap().unwrap();

    assert!(killed >= 2, "{killed}");
    assert_eq!(started.ended().await.unwrap(), ended(137));
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let home = Home::new();

    // Would the child that holds the output live on, this would wait for it.
    let end = home.run(home.script("a", "sleep 1000 & echo up")).await;

    assert_eq!(end, ended(0));
    assert_eq!(home.output("a"), ["up"]);
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_says_why() {
    let home = Home::new();
    let mut launch = home.script("a", "");
    launch.order.executable = "/none/such".into();

    let end = home.run(launch).await;

    assert_eq!(end.exit_code, 128);
    let told = end.not_started.unwrap();
    assert!(told.contains("/none/such") && told.contains("No such file"), "{told}");
}

#[tokio::test]
async fn a_program_that_ends_with_128_itself_was_started() {
    let home = Home::new();

    assert_eq!(home.run(home.script("a", "exit 128")).await, ended(128));
}

#[tokio::test]
async fn a_limit_holds_for_the_program() {
    let home = Home::new();
    let mut launch = home.script("a", "ulimit -n");
    launch.order.limits.files = Some(17);

    home.run(launch).await;

    assert_eq!(home.output("a"), ["17"]);
}
