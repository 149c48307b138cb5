//! `portolan sim`: what it says, what it serves, and what bad input is told.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::io::{Read as _, Write as _};

use crate::support::process::{ask_edge, http_get, http_put, simulator};
use crate::support::{Run, portolan};

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
fn the_edge_answers_for_published_names_and_reaches_origins_where_it_is_told() {
    let origin = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = origin.local_addr().unwrap();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = origin.accept().unwrap();
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").unwrap();
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seed.yaml");
    let tunnel = "11111111-2222-3333-4444-555555555555";
    std::fs::write(
        &file,
        format!(
            "accounts: [{{id: 0123456789abcdef0123456789abcdef, name: Ours}}]\n\
             zones: [{{id: z1, name: example.net, account: 0123456789abcdef0123456789abcdef, records: \
             [{{type: CNAME, name: www.example.net, content: {tunnel}.cfargotunnel.com, proxied: true, ttl: 1}}]}}]\n\
             tunnels: [{{account: 0123456789abcdef0123456789abcdef, id: {tunnel}, name: home, config_src: cloudflare}}]\n"
        ),
    )
    .unwrap();
    let origin = format!("web.apps.svc={address}");
    let (mut process, url) =
        simulator(&["--seed", &file.display().to_string(), "--edge", "127.0.0.1:0", "--edge-origin", &origin]);
    let edge = process.line_with("Its edge at ").rsplit(' ').next().unwrap().to_owned();
    let path = format!("{url}/accounts/0123456789abcdef0123456789abcdef/cfd_tunnel/{tunnel}/configurations");
    let rules = r#"{"config":{"ingress":[{"hostname":"www.example.net","service":"http://web.apps.svc:80"},{"service":"http_status:404"}]}}"#;
    assert!(http_put(&path, rules).contains("\"success\":true"));

    let published = ask_edge(&edge, "www.example.net", &[]);
    let unknown = ask_edge(&edge, "other.example.net", &[]);

    assert!(published.starts_with("HTTP/1.0 200") && published.ends_with("hello"), "{published}");
    assert!(unknown.starts_with("HTTP/1.0 530") && unknown.contains("1016"), "{unknown}");
    assert!(answering.join().unwrap().to_lowercase().contains("host: www.example.net"));
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
