//! What a killed runner leaves.

use std::process::{Command, Stdio};

use portolan_runner::machine::leftovers::end_leftovers;
use portolan_runner::machine::measures::{ProcessTable, WantedProcesses};
use portolan_runner::machine::processes::INIT_COMMAND;

use crate::support::{Home, until, wrote};

#[tokio::test]
async fn processes_of_a_runner_that_is_gone_are_found_and_ended() {
    let home = Home::new();
    let launch = home.script("a", "sleep 1000 & echo up; wait");
    let log = launch.log.clone();
    let started = home.start(launch).await;
    wrote(&log, "up").await;

    // Another runner on the same notes; the first one never learns of it.
    let notes = home.notes.clone();
    let ended = tokio::task::spawn_blocking(move || end_leftovers(&notes)).await.unwrap().unwrap();

    assert_eq!(ended, 2);
    assert_eq!(home.notes.all().unwrap(), []);
    assert_eq!(started.ended().await.unwrap().exit_code, 137);
}

#[tokio::test]
async fn a_number_that_was_given_anew_ends_nobody() {
    let home = Home::new();
    let started = home.start(home.script("a", "echo up; read line; sleep 1000")).await;
    let mut note = home.notes.all().unwrap().remove(0);
    home.notes.forget(&note.id).unwrap();
    note.id.push_str("-earlier");
    note.born -= 1;
    home.notes.keep(&note).unwrap();

    let notes = home.notes.clone();
    let ended = tokio::task::spawn_blocking(move || end_leftovers(&notes)).await.unwrap().unwrap();

    assert_eq!(ended, 0);
    let handle = started.handle();
    tokio::task::spawn_blocking(move || handle.kill()).await.unwrap().unwrap();
    started.ended().await.unwrap();
}

#[tokio::test]
async fn processes_whose_parents_are_gone_are_not_left_dead_where_the_runner_is_the_first_process() {
    // As the first process of a container is: whoever loses its parent gets this one.
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).unwrap();
    let home = Home::new();
    let launch = home.script("a", "(sleep 0 & sleep 0 &); echo up; exec sleep 60");
    let log = launch.log.clone();
    let started = home.start(launch).await;
    wrote(&log, "up").await;
    let leader = started.handle().process();
    let dead = || dead_of_group(leader);
    until(|| dead() == 2).await;

    let wanted = WantedProcesses {
        leaders: [(leader, ("u-1".to_owned(), "r".to_owned()))].into(),
        ..WantedProcesses::default()
    };
    let found = ProcessTable::default().look(&wanted).unwrap();

    assert_eq!(dead(), 0);
    assert_eq!(found.counts.get("u-1"), Some(&1));
    let handle = started.handle();
    tokio::task::spawn_blocking(move || handle.kill()).await.unwrap().unwrap();
    assert_eq!(started.ended().await.unwrap().exit_code, 137);
}

/// How many processes of a group have ended, and nobody has heard of it.
fn dead_of_group(group: i32) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let of_group = |stat: &String| {
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        fields[0] == "Z" && fields[2] == group.to_string()
    };
    stats.filter(of_group).count()
}

#[test]
fn a_process_whose_runner_is_gone_before_it_was_noted_never_becomes_its_program() {
    let home = Home::new();
    let launch = home.script("a", "echo up");
    let order = serde_json::to_string(&launch.order).unwrap();

    // Its input ends without the byte that tells it to go on.
    let output = Command::new(env!("CARGO_BIN_EXE_portolan-pod"))
        .args([INIT_COMMAND, &order])
        .stdin(Stdio::null())
        .output()
        .unwrap();

    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(128), &b""[..]));
}
