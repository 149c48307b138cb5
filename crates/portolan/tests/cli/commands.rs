//! `apply`, `get` and `delete` against `portolan apiserver`: what works, and what bad input is told.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Run, Server, config_map, example, portolan};

#[test]
fn applied_objects_are_created_then_unchanged_then_configured() {
    let server = Server::start();
    let apply = |value: &str| server.run_with_input(&["apply", "-f", "-"], &config_map("a", value)).succeeded();

    assert_eq!(apply("1"), "configmap/a created\n");
    assert_eq!(apply("1"), "configmap/a unchanged\n");
    assert_eq!(apply("2"), "configmap/a configured\n");
}

#[test]
fn a_definition_and_its_objects_are_applied_in_one_go() {
    let server = Server::start();

    let applied = server.run(&["apply", "-f", &example("voyages")]).succeeded();

    assert!(applied.contains("voyage.examples.portolan.dev/amber created"), "{applied}");
    let table = server.run(&["get", "voy", "-n", "harbour"]).succeeded();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "FROM", "TO", "DAYS", "AGE"]);
    assert_eq!(lines[1][..4], ["amber", "Genoa", "Bruges", "60"]);
    assert_eq!(lines[2][..4], ["spices", "Venice", "Alexandria", "30"], "a default of the schema");
}

#[test]
fn an_object_that_breaks_a_rule_is_refused_with_the_rules_message() {
    let server = Server::start();
    server.run(&["apply", "-f", &example("voyages")]).succeeded();

    let error = server.run(&["apply", "-f", &example("voyages-refused.yaml")]).failed();

    assert!(error.contains("a voyage must lead somewhere else"), "{error}");
    assert!(error.contains("voyages-refused.yaml, document 1"), "{error}");
}

#[test]
fn get_shows_objects_as_table_yaml_json_and_names() {
    let server = Server::start();
    server.run_with_input(&["apply", "-f", "-"], &config_map("a", "1")).succeeded();
    let get = |output: &str| server.run(&["get", "cm", "a", "-o", output]).succeeded();

    assert!(get("table").lines().nth(1).unwrap().starts_with("a "), "{}", get("table"));
    assert!(get("yaml").contains("data:\n  key: \"1\"\n"), "{}", get("yaml"));
    assert!(!get("yaml").contains("managedFields"));
    assert_eq!(get("name"), "configmap/a\n");
    let json: serde_json::Value = serde_json::from_str(&get("json")).unwrap();
    assert_eq!(json["data"]["key"], "1");
}

#[test]
fn a_list_as_yaml_can_be_applied_again() {
    let server = Server::start();
    let two = format!("{}---\n{}", config_map("a", "1"), config_map("b", "2"));
    server.run_with_input(&["apply", "-f", "-"], &two).succeeded();

    let list = server.run(&["get", "configmaps", "-l", "app in (a,b)", "-o", "json"]).succeeded();

    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&"List".into(), 2));
    assert_eq!(list["items"][1]["kind"], "ConfigMap");
}

#[test]
fn selectors_and_namespaces_narrow_what_is_shown() {
    let server = Server::start();
    let two = format!("{}---\n{}", config_map("a", "1"), config_map("b", "2"));
    server.run_with_input(&["apply", "-f", "-"], &two).succeeded();

    let labelled = server.run(&["get", "cm", "-l", "app=b", "-o", "name"]).succeeded();
    let everywhere = server.run(&["get", "cm", "-A", "-l", "app=b"]).succeeded();
    let elsewhere = server.run(&["get", "cm", "-n", "kube-system", "-l", "app=b"]);

    assert_eq!(labelled, "configmap/b\n");
    assert!(everywhere.starts_with("NAMESPACE"), "{everywhere}");
    assert!(everywhere.contains("default"), "{everywhere}");
    assert_eq!(elsewhere.stdout, "");
    assert!(elsewhere.stderr.contains("No configmaps found in namespace kube-system."), "{elsewhere}");
}

#[test]
fn get_with_watch_goes_on_showing_changes() {
    let server = Server::start();
    server.run_with_input(&["apply", "-f", "-"], &config_map("a", "1")).succeeded();
    let mut watch = server.command(&["get", "cm", "-l", "app=a", "-o", "name", "-w"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "configmap/a");

    server.run(&["delete", "cm", "a"]).succeeded();

    assert_eq!(lines.next().unwrap().unwrap(), "configmap/a", "the event of its deletion");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_dry_run_stores_nothing() {
    let server = Server::start();

    let said = server.run_with_input(&["apply", "--dry-run", "-f", "-"], &config_map("a", "1")).succeeded();

    assert_eq!(said, "configmap/a created (dry run)\n");
    server.run(&["get", "cm", "a"]).failed();
}

#[test]
fn a_field_of_another_manager_is_taken_over_only_by_force() {
    let server = Server::start();
    server.run_with_input(&["apply", "-f", "-"], &config_map("a", "1")).succeeded();
    let other = |more: &[&str]| {
        let arguments = [&["apply", "-f", "-", "--field-manager", "other"], more].concat();
        server.run_with_input(&arguments, &config_map("a", "2"))
    };

    let error = other(&[]).failed();

    assert!(error.contains("conflict with \"portolan\"") && error.contains(".data.key"), "{error}");
    assert!(error.contains("--force-conflicts"), "{error}");
    assert_eq!(other(&["--force-conflicts"]).succeeded(), "configmap/a configured\n");
}

#[test]
fn deleted_objects_are_gone_when_the_command_returns() {
    let server = Server::start();
    server.run(&["apply", "-f", &example("voyages")]).succeeded();

    let said = server.run(&["delete", "-f", &example("voyages")]).succeeded();

    assert_eq!(said.lines().count(), 4, "{said}");
    assert!(server.run(&["get", "ns", "harbour"]).failed().contains("not found"));
    assert!(server.run(&["get", "voyages"]).failed().contains("knows no kind"));
}

#[test]
fn deletion_by_selector_and_all_takes_only_what_is_meant() {
    let server = Server::start();
    let three = ["a", "b", "c"].map(|name| config_map(name, "1")).join("---\n");
    server.run_with_input(&["apply", "-f", "-"], &three).succeeded();

    assert_eq!(server.run(&["delete", "cm", "-l", "app=b"]).succeeded(), "configmap/b deleted\n");
    assert_eq!(
        server.run(&["get", "cm", "-l", "app in (a,b,c)", "-o", "name"]).succeeded(),
        "configmap/a\nconfigmap/c\n"
    );
    assert!(server.run(&["delete", "cm"]).failed().contains("which configmaps?"));
}

#[test]
fn an_object_held_by_a_finalizer_is_named_with_it() {
    let server = Server::start();
    let held = config_map("a", "1").replace("  name: a\n", "  name: a\n  finalizers: [example.com/hold]\n");
    server.run_with_input(&["apply", "-f", "-"], &held).succeeded();

    let error = server.run(&["delete", "cm", "a", "--timeout", "1"]).failed();

    assert!(error.contains("example.com/hold"), "{error}");
    assert_eq!(server.run(&["delete", "cm", "a", "--wait=false"]).succeeded(), "configmap/a deleted\n");
}

#[test]
fn what_is_not_there_can_be_ignored() {
    let server = Server::start();

    assert!(server.run(&["delete", "cm", "nope"]).failed().contains("not found"));
    assert_eq!(server.run(&["delete", "cm", "nope", "--ignore-not-found"]).succeeded(), "");
}

#[test]
fn one_bad_object_does_not_stop_the_others() {
    let server = Server::start();
    let unknown = "apiVersion: example.com/v9\nkind: Nothing\nmetadata: {name: x}\n";
    let text = format!("{}---\n{unknown}---\n{}", config_map("a", "1"), config_map("b", "2"));

    let run = server.run_with_input(&["apply", "-f", "-"], &text);

    assert_eq!(run.stdout, "configmap/a created\nconfigmap/b created\n");
    let error = run.failed();
    assert!(error.contains("standard input, document 2: the server knows no kind \"Nothing\""), "{error}");
    assert!(error.contains("1 of 3 objects could not be applied"), "{error}");
}

#[test]
fn an_unknown_kind_is_answered_with_the_nearest_one() {
    let server = Server::start();

    assert!(server.run(&["get", "confgmaps"]).failed().contains("did you mean configmaps?"));
    assert!(server.run(&["get", "starships"]).failed().contains("knows no kind called \"starships\""));
}

#[test]
fn malformed_input_is_told_with_file_document_and_line() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.yaml");
    std::fs::write(&file, format!("{}---\nkind: [oops\n", config_map("a", "1"))).unwrap();

    let error = server.run(&["apply", "-f", file.to_str().unwrap()]).failed();

    assert!(error.contains("bad.yaml, document 2 at line"), "{error}");
    assert!(error.contains("not valid YAML"), "{error}");
    server.run(&["get", "cm", "a"]).failed();
}

#[test]
fn a_missing_file_and_an_empty_folder_are_told_apart() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();

    let missing = server.run(&["apply", "-f", "/nowhere/at-all.yaml"]).failed();
    let empty = server.run(&["apply", "-f", folder.path().to_str().unwrap()]).failed();

    assert!(missing.contains("/nowhere/at-all.yaml cannot be read"), "{missing}");
    assert!(empty.contains("no objects in"), "{empty}");
}

#[test]
fn without_a_server_the_message_says_how_to_start_one() {
    let folder = tempfile::tempdir().unwrap();
    let run: Run = portolan().current_dir(folder.path()).args(["get", "pods"]).output().unwrap().into();

    let error = run.failed();

    assert!(error.contains("no server to talk to") && error.contains("portolan apiserver"), "{error}");
}

#[test]
fn a_server_that_has_stopped_is_told_from_one_that_refuses() {
    let mut server = Server::start();
    server.kill();

    let error = server.run(&["get", "pods"]).failed();

    assert!(error.contains("no answer from https://127.0.0.1:"), "{error}");
    assert!(error.contains("start the server with `portolan apiserver`"), "{error}");
}

#[test]
fn a_wrong_token_is_answered_with_where_the_right_one_is() {
    let server = Server::start();
    let text = std::fs::read_to_string(server.kubeconfig()).unwrap();
    let mut wrong: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    wrong["users"][0]["user"]["token"] = "wrong".into();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, wrong.to_string()).unwrap();

    let run: Run = portolan().args(["get", "pods", "--kubeconfig", file.to_str().unwrap()]).output().unwrap().into();

    let error = run.failed();
    assert!(error.contains("Unauthorized") && error.contains("kubeconfig"), "{error}");
}

#[test]
fn the_kubeconfig_of_the_folder_is_found_without_being_named() {
    let folder = tempfile::tempdir().unwrap();
    let _server = Server::start_on(&folder.path().join(".portolan"));

    let run: Run =
        portolan().current_dir(folder.path()).args(["get", "ns", "default", "-o", "name"]).output().unwrap().into();

    assert_eq!(run.succeeded(), "namespace/default\n");
}

#[test]
fn a_wrong_command_line_ends_with_code_two() {
    let run: Run = portolan().args(["apply"]).output().unwrap().into();

    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("--filename"), "{run}");
}

#[test]
fn a_wrong_command_line_of_plan_is_not_taken_for_changes() {
    let run: Run = portolan().args(["plan", "--no-such-flag"]).output().unwrap().into();

    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("--no-such-flag"), "{run}");
}
