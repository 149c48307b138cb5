use super::*;

fn name(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

fn to(service: &str) -> Rule {
    Rule { tunnel_id: "t1".to_owned(), service: service.to_owned(), origin_request: Map::new() }
}

fn ensure_of(hostname: &str, service: &str) -> RuleEdits {
    RuleEdits::Ensure { hostname: name(hostname), rule: to(service) }
}

fn merged(mut config: Value, edits: &[RuleEdits]) -> Value {
    merge(&mut config, edits);
    config
}

/// The hosts (and paths) in order.
fn order(config: &Value) -> Vec<String> {
    config["ingress"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| match rule["path"].as_str() {
            Some(path) => format!("{}{path}", text(rule, "hostname")),
            None if text(rule, "hostname").is_empty() => format!("({})", text(rule, "service")),
            None => text(rule, "hostname").to_owned(),
        })
        .collect()
}

fn hosts(rules: &[&str]) -> Value {
    let rule = |name: &&str| match name.split_once('/') {
        Some((host, path)) => json!({"hostname": host, "path": format!("/{path}"), "service": "http://theirs"}),
        None => json!({"hostname": name, "service": "http://theirs"}),
    };
    let mut ingress: Vec<Value> = rules.iter().map(rule).collect();
    ingress.push(json!({"service": "http_status:503"}));
    json!({ "ingress": ingress })
}

#[test]
fn a_configuration_that_was_never_written_gets_the_rule_and_a_catch_all() {
    for never in [Value::Null, json!({}), json!({"ingress": null}), json!({"ingress": []})] {
        let config = merged(never, &[ensure_of("a.example.com", "http://web")]);

        let rules = json!([{"hostname": "a.example.com", "service": "http://web"}, {"service": "http_status:404"}]);
        assert_eq!(config["ingress"], rules);
    }
}

#[test]
fn removing_from_a_configuration_that_was_never_written_changes_nothing() {
    assert_eq!(merged(Value::Null, &[RuleEdits::Remove(name("a.example.com"))]), Value::Null);
    assert_eq!(merged(json!({"x": 1}), &[RuleEdits::Remove(name("a.example.com"))]), json!({"x": 1}));
}

#[test]
fn everything_of_others_stays_as_it_is() {
    let theirs = json!({
        "ingress": [
            {"hostname": "a.example.com", "path": "/api", "service": "http://api", "originRequest": {"noTLSVerify": true}},
            {"hostname": "b.example.com", "service": "http://b", "new-field": [1, {"x": null}]},
            {"service": "http://custom-catch-all", "originRequest": {"connectTimeout": 5}},
        ],
        "originRequest": {"connectTimeout": 30, "unknown": {"z": 1, "a": 2}},
        "warp-routing": {"enabled": true},
        "unknown": "kept",
    });

    let with_ours = merged(theirs.clone(), &[ensure_of("a.example.com", "http://web")]);

    assert_eq!(order(&with_ours), ["a.example.com/api", "b.example.com", "a.example.com", "(http://custom-catch-all)"]);
    let without = merged(with_ours, &[RuleEdits::Remove(name("a.example.com"))]);
    assert_eq!(without.to_string(), theirs.to_string());
}

#[test]
fn our_rule_is_replaced_in_its_place_and_what_we_do_not_write_stays_in_it() {
    let mut config = hosts(&["a.example.com", "b.example.com"]);
    config["ingress"][0]["id"] = json!("r1");
    config["ingress"][0]["originRequest"] = json!({"noTLSVerify": true});

    let config = merged(config, &[ensure_of("a.example.com", "http://new")]);

    assert_eq!(config["ingress"][0], json!({"hostname": "a.example.com", "service": "http://new", "id": "r1"}));
    assert_eq!(order(&config)[1], "b.example.com");
}

#[test]
fn a_rule_that_means_the_same_is_not_touched() {
    let config = json!({"ingress": [
        {"hostname": "A.example.com", "service": "http://web", "originRequest": {}},
        {"service": "http_status:404"},
    ]});

    assert_eq!(merged(config.clone(), &[ensure_of("a.example.com", "http://web")]), config);
}

#[test]
fn exact_names_come_before_wildcards_and_longer_wildcards_first() {
    let edits = ["*.com", "*.x.com", "a.x.com", "*.y.x.com", "b.y.x.com", "z.org"];
    let expected = ["a.x.com", "b.y.x.com", "z.org", "*.y.x.com", "*.x.com", "*.com", "(http_status:503)"];

    for turn in 0..edits.len() {
        let mut turned = edits.to_vec();
        turned.rotate_left(turn);
        let edits: Vec<RuleEdits> = turned.iter().map(|host| ensure_of(host, "http://web")).collect();
        let config = merged(hosts(&[]), &edits);

        let mut exact = order(&config);
        exact[..3].sort();
        assert_eq!(exact, expected, "{turned:?}");
    }
}

#[test]
fn a_wildcard_published_later_does_not_hide_a_name() {
    let config = merged(hosts(&["a.x.com", "*.org", "b.x.com"]), &[ensure_of("*.x.com", "http://web")]);

    assert_eq!(order(&config), ["a.x.com", "*.org", "b.x.com", "*.x.com", "(http_status:503)"]);
}

#[test]
fn a_name_stands_before_a_wildcard_that_would_hide_it_and_behind_others_paths() {
    assert_eq!(
        order(&merged(hosts(&["a.x.com/api", "*.x.com"]), &[ensure_of("a.x.com", "http://web")])),
        ["a.x.com/api", "a.x.com", "*.x.com", "(http_status:503)"]
    );
    assert_eq!(
        order(&merged(hosts(&["*.org", "a.x.com/api"]), &[ensure_of("a.x.com", "http://web")])),
        ["*.org", "a.x.com/api", "a.x.com", "(http_status:503)"]
    );
    assert_eq!(
        order(&merged(hosts(&["*.x.com", "a.x.com/api"]), &[ensure_of("a.x.com", "http://web")])),
        ["a.x.com", "*.x.com", "a.x.com/api", "(http_status:503)"]
    );
}

#[test]
fn path_rules_of_our_host_are_never_ours() {
    let config = hosts(&["a.x.com/api"]);

    assert_eq!(find(&config, &name("a.x.com")), None);
    assert_eq!(merged(config.clone(), &[RuleEdits::Remove(name("a.x.com"))]), config);
}

#[test]
fn a_hosted_status_rule_is_no_catch_all() {
    let config = json!({"ingress": [{"hostname": "down.x.com", "service": "http_status:404"}]});

    let config = merged(config, &[ensure_of("a.x.com", "http://web")]);

    assert_eq!(order(&config), ["down.x.com", "a.x.com", "(http_status:404)"]);
}

#[test]
fn a_path_for_all_hosts_in_the_middle_stays_before_us() {
    let config = json!({"ingress": [
        {"path": "/health", "service": "http://health"},
        {"hostname": "*", "service": "http://rest"},
    ]});

    let config = merged(config, &[ensure_of("a.x.com", "http://web")]);

    assert_eq!(order(&config), ["/health", "a.x.com", "*"]);
}

#[test]
fn a_thousand_sources_come_and_go_and_leave_what_was_there() {
    let theirs = hosts(&["b.x.com", "b.x.com/api", "*.x.com", "*.com"]);
    let names: Vec<String> = (0..1_000).map(|n| format!("{}.x.com", (n * 7_919) % 1_000 + 1_000)).collect();
    let add: Vec<RuleEdits> = names.iter().map(|host| ensure_of(host, "http://web")).collect();
    let drop: Vec<RuleEdits> = names.iter().rev().map(|host| RuleEdits::Remove(name(host))).collect();

    let full = merged(theirs.clone(), &add);

    assert_eq!(full["ingress"].as_array().unwrap().len(), 1_005);
    assert_eq!(merged(full.clone(), &add), full);
    assert_eq!(merged(full, &drop).to_string(), theirs.to_string());
}

#[test]
fn the_digest_tells_what_was_about_to_be_written() {
    let (host, rule) = (name("a.x.com"), to("http://web"));
    let config = merged(Value::Null, &[RuleEdits::Ensure { hostname: host.clone(), rule: rule.clone() }]);

    let found = find(&config, &host).unwrap();

    assert_eq!(digest_found("t1", &host, found), digest(&host, &rule));
    assert_ne!(digest(&host, &to("http://other")), digest(&host, &rule));
    assert_ne!(digest_found("t2", &host, found), digest(&host, &rule));
}
