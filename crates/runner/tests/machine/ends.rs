//! How processes begin and end.

use portolan_runner::machine::processes::ProcessEnd;
use rustix::process::Signal;

use crate::support::{Home, other_user, wrote};

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
async fn a_program_has_ended_even_where_one_that_hid_itself_holds_its_output() {
    let home = Home::new();

    let end = home.run(home.script("a", "env -i setsid sleep 30 & echo up")).await;

    assert_eq!(end, ended(0));
    assert_eq!(home.output("a"), ["up"]);
}

#[tokio::test]
async fn a_program_that_multiplies_faster_than_it_is_found_is_ended_with_all_of_it() {
    let home = Home::new();
    // Each ends after a moment and leaves two, at most so many at once; none of them would go on for longer than the test.
    let script = "export N=$((N + 1)); [ $N -gt 400 ] && exit; sh -c \"$BOMB\" & sh -c \"$BOMB\" & sleep 0.01";
    let mut launch = home.script("a", "echo up; sh -c \"$BOMB\" & sh -c \"$BOMB\" & sleep 60");
    launch.environment.insert("BOMB".to_owned(), script.to_owned());
    launch.order.user = other_user();
    launch.order.limits.processes = other_user().map(|_| 200);
    // Whoever runs this without the right to be another user has other processes as well.
    if launch.order.limits.processes.is_none() {
        launch.environment.insert("N".to_owned(), "394".to_owned());
    }
    let (log, id) = (launch.log.clone(), launch.id.clone());
    let started = home.start(launch).await;
    wrote(&log, "up").await;
    let handle = started.handle();

    tokio::task::spawn_blocking(move || handle.kill()).await.unwrap().unwrap();

    assert_eq!(started.ended().await.unwrap().exit_code, 137);
    let bears = |path: &std::path::Path| {
        std::fs::read(path.join("environ")).is_ok_and(|text| String::from_utf8_lossy(&text).contains(&id))
    };
    let left = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(|entry| bears(&entry.path())).count();
    assert_eq!(left, 0);
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
