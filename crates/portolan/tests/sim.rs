//! `portolan sim`: what it says, what it serves, and what bad input is told.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod support;

use support::process::{http_get, simulator};
use support::{Run, portolan};

#[test]
fn it_begins_with_an_account_and_zones_and_accepts_any_token() {
    let (mut process, url) = simulator(&[]);

    let zones = http_get(&format!("{url}/zones"));

    assert!(zones.contains("\"success\":true") && zones.contains("example.com"), "{zones}");
    assert_eq!(process.terminate(), Some(0));
}

#[test]
fn requests_are_recorded_as_lines_of_json_without_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let (_process, url) = simulator(&["--record", &file.display().to_string()]);

    http_get(&format!("{url}/zones?name=example.com"));

    let text = std::fs::read_to_string(&file).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&line["method"], &line["status"]), (&"GET".into(), &200.into()));
    assert!(!text.contains("Bearer"), "{text}");
}

#[test]
fn a_seed_says_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seed.yaml");
    std::fs::write(&file, "accounts: [{id: a1, name: Ours}]\nzones: [{id: z1, name: example.net, account: a1}]\n")
        .unwrap();

    let (_process, url) = simulator(&["--seed", &file.display().to_string()]);

    let zones = http_get(&format!("{url}/zones"));
    assert!(zones.contains("example.net") && !zones.contains("example.com"), "{zones}");
}

#[test]
fn the_rate_limit_is_the_one_that_was_asked_for() {
    let (_process, url) = simulator(&["--rate-limit", "2/60s"]);

    let answers: Vec<String> = (0..3).map(|_| http_get(&format!("{url}/zones"))).collect();

    assert!(answers[1].contains("\"success\":true"), "{answers:?}");
    assert!(answers[2].contains("\"success\":false"), "{answers:?}");
}

#[test]
fn bad_input_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let seed = folder.path().join("seed.json");
    std::fs::write(&seed, r#"{"planets": []}"#).unwrap();
    let run = |arguments: &[&str]| Run::from(portolan().arg("sim").args(arguments).output().unwrap());

    let refused = run(&["--listen", "127.0.0.1:0", "--seed", &seed.display().to_string()]).failed();
    assert!(refused.contains("planets") && refused.contains("--seed"), "{refused}");
    let missing = run(&["--seed", "nowhere.json"]).failed();
    assert!(missing.contains("nowhere.json"), "{missing}");
    let unwritable = run(&["--listen", "127.0.0.1:0", "--record", "/nowhere/at/all.jsonl"]).failed();
    assert!(unwritable.contains("--record"), "{unwritable}");
    let limit = run(&["--rate-limit", "fast"]);
    assert!(limit.code == Some(2) && limit.stderr.contains("1200/300s"), "{limit}");
}
