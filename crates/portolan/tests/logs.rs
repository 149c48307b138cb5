//! The log of the built binary: levels, formats, colours, and what must never be in it.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod support;

use std::process::Command;

use serde_json::Value;
use support::process::up;
use support::{Run, example};

/// The token that the quickstart's Secret holds.
const TOKEN: &str = "not-a-real-token";

/// The log of publishing the quickstart, line by line.
fn published(change: impl FnOnce(&mut Command) -> &mut Command) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = up(&folder.path().join("data"));
    command.args(["--once", &example("quickstart")]);
    let run: Run = change(&mut command).output().unwrap().into();
    assert_eq!(run.code, Some(0), "{run}");
    run.stderr.lines().map(str::to_owned).collect()
}

#[test]
fn debug_tells_every_api_call_as_json_and_no_secret() {
    let lines = published(|command| command.env("LOG_LEVEL", "DEBUG").env("LOG_FORMAT", "json"));

    let logged: Vec<Value> =
        lines.iter().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    let calls: Vec<&Value> = logged.iter().filter(|line| line["message"] == "Asked Cloudflare").collect();
    let batch =
        calls.iter().find(|line| line["path"].as_str().is_some_and(|path| path.ends_with("/dns_records/batch")));
    let batch = batch.expect("the records go out in one call");
    assert_eq!(
        (&batch["method"], &batch["status"], &batch["kind"]),
        (&"POST".into(), &200.into(), &"DNSRecord".into())
    );
    assert!(batch["duration_ms"].is_u64() && batch["level"] == "DEBUG", "{batch}");
    assert!(lines.iter().all(|line| !line.contains(TOKEN)), "{lines:#?}");
}

#[test]
fn text_is_coloured_without_a_terminal_unless_the_user_refuses() {
    let info = |line: &&String| line.contains("INFO") && line.contains("The job starts here");
    let coloured = published(|command| command.env("LOG_LEVEL", "INFO").env_remove("NO_COLOR"));
    let plain = published(|command| command.env("LOG_LEVEL", "INFO"));

    assert!(coloured.iter().find(info).is_some_and(|line| line.contains("\u{1b}[32m INFO\u{1b}[0m")), "{coloured:#?}");
    assert!(plain.iter().find(info).is_some_and(|line| !line.contains('\u{1b}')), "{plain:#?}");
}

#[test]
fn an_unknown_level_is_told_and_the_work_goes_on_at_info() {
    let lines = published(|command| command.env("LOG_LEVEL", "LOUD"));

    assert!(lines.iter().any(|line| line.contains("WARN LOG_LEVEL \"LOUD\" is not known")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("INFO The job starts here")), "{lines:#?}");
}
