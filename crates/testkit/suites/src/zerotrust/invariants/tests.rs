//! The checker itself: a sound world passes, and planted violations are found and named.

use serde_json::json;

use super::*;
use crate::manifests::ZONE_ID;
use crate::zerotrust::{ACCOUNT, TUNNEL, foreign_config};

fn record(id: &str, name: &str) -> Value {
    json!({ "id": id, "type": "CNAME", "name": name, "content": "x", "proxied": true })
}

fn app(id: &str, domain: &str) -> Value {
    json!({ "id": id, "name": "app", "domain": domain, "policies": [] })
}

fn simulated(records: &Value, apps: &Value, tokens: &Value, config: &Value) -> Value {
    json!({
        "dns_records": { ZONE_ID: records }, "access_apps": { ACCOUNT: apps }, "access_policies": {}, "access_groups": {},
        "service_tokens": { ACCOUNT: tokens }, "configurations": { TUNNEL: { "version": 3, "config": config } },
    })
}

fn with_rule(hostname: &str) -> Value {
    let mut config = foreign_config();
    config["ingress"]
        .as_array_mut()
        .expect("there are rules")
        .insert(0, json!({ "hostname": hostname, "service": "http://x" }));
    config
}

/// A route with a record, an application and a token, beside things of somebody else.
fn sound() -> Evidence {
    let ids = json!({ "cnameRecordId": "r1", "accessAppId": "a1", "serviceTokenId": "t1" });
    let state = json!({
        "metadata": { "name": "cfzt-default-api" },
        "data": {
            "httproute_namespace": "default", "httproute_name": "api", "hostname": "api.example.com",
            "cloudflare_ids": ids.to_string(),
        },
    });
    let theirs = (record("f1", "theirs.example.com"), app("f2", "theirs.example.com"));
    Evidence {
        state: simulated(
            &json!([record("r1", "api.example.com"), theirs.0]),
            &json!([app("a1", "api.example.com"), theirs.1]),
            &json!([{ "id": "t1", "name": "api-service-token" }]),
            &with_rule("api.example.com"),
        ),
        seeded: simulated(&json!([theirs.0]), &json!([theirs.1]), &json!([]), &foreign_config()),
        routes: vec![json!({ "metadata": { "namespace": "default", "name": "api" } })],
        config_maps: vec![state],
        secrets: vec![
            json!({ "metadata": { "name": "api-cfzt-service-token" }, "data": { "client_secret": "Y2FuYXJ5LW9uY2U=" } }),
        ],
        told: vec!["canary-once".to_owned()],
        texts: vec![("the log".to_owned(), "nothing to see".to_owned())],
        ..Evidence::default()
    }
}

fn objects<'a>(evidence: &'a mut Evidence, collection: &str, scope: &str) -> &'a mut Vec<Value> {
    evidence.state[collection][scope].as_array_mut().expect("the collection is there")
}

fn rules(evidence: &mut Evidence) -> &mut Vec<Value> {
    evidence.state["configurations"][TUNNEL]["config"]["ingress"].as_array_mut().expect("there are rules")
}

#[test]
fn a_sound_world_violates_nothing() {
    assert_eq!(check(&sound()), []);
}

#[test]
fn a_second_token_record_or_application_is_found() {
    for (collection, scope) in [("service_tokens", ACCOUNT), ("access_apps", ACCOUNT), ("dns_records", ZONE_ID)] {
        let mut evidence = sound();
        let mut second = objects(&mut evidence, collection, scope)[0].clone();
        second["id"] = json!("second");
        objects(&mut evidence, collection, scope).push(second);

        assert!(matches!(check(&evidence).as_slice(), [Violation::LeftBehind(what)] if what.contains(collection)));
    }
}

#[test]
fn what_is_recorded_and_gone_is_found() {
    let mut evidence = sound();
    objects(&mut evidence, "access_apps", ACCOUNT).remove(0);

    assert!(matches!(check(&evidence).as_slice(), [Violation::Missing(what)] if what.contains("accessAppId a1")));
}

#[test]
fn rules_that_stand_twice_for_nobody_or_not_any_more_are_found() {
    let mut evidence = sound();
    let double = rules(&mut evidence)[0].clone();
    rules(&mut evidence).insert(0, double);
    assert!(matches!(check(&evidence).as_slice(), [Violation::Duplicate(_)]), "{:?}", check(&evidence));

    let mut evidence = sound();
    rules(&mut evidence).insert(0, json!({ "hostname": "left.example.com", "service": "http://x" }));
    assert!(matches!(check(&evidence).as_slice(), [Violation::ForeignTouched(_)]));

    let mut evidence = sound();
    rules(&mut evidence).remove(1);
    assert!(matches!(check(&evidence).as_slice(), [Violation::ForeignTouched(_)]));
}

#[test]
fn changed_settings_of_others_are_found() {
    let mut evidence = sound();
    evidence.state["configurations"][TUNNEL]["config"]["warp-routing"]["enabled"] = json!(false);
    assert!(matches!(check(&evidence).as_slice(), [Violation::ForeignTouched(_)]));

    let mut evidence = sound();
    objects(&mut evidence, "access_apps", ACCOUNT)[1]["session_duration"] = json!("1h");
    assert!(matches!(check(&evidence).as_slice(), [Violation::ForeignTouched(_)]));
}

#[test]
fn a_secret_is_found_wherever_it_may_not_stand() {
    let places: [fn(&mut Evidence); 4] = [
        |evidence| evidence.texts.push(("a task".to_owned(), "{\"clientSecret\":\"canary-once\"}".to_owned())),
        |evidence| evidence.texts.push(("the log".to_owned(), format!("Bearer {CANARY}"))),
        |evidence| objects(evidence, "service_tokens", ACCOUNT)[0]["client_secret"] = json!("canary-once"),
        |evidence| {
            evidence
                .secrets
                .push(json!({ "metadata": { "name": "cfzt-hand-over" }, "data": { "x": "Y2FuYXJ5LW9uY2U=" } }));
        },
    ];
    for plant in places {
        let mut evidence = sound();
        plant(&mut evidence);
        assert!(matches!(check(&evidence).as_slice(), [Violation::SecretSeen(_)]), "{:?}", check(&evidence));
    }
}

#[test]
fn states_without_their_route_and_results_that_nobody_took_are_found() {
    let mut evidence = sound();
    evidence.routes.clear();
    assert!(matches!(check(&evidence).as_slice(), [Violation::Forgotten(_)]));

    let mut evidence = sound();
    let task = json!({ "kind": "CloudflareTask", "metadata": { "name": "cfzt-default-api" }, "status": { "phase": "Completed" } });
    evidence.tasks.push(task);
    assert!(matches!(check(&evidence).as_slice(), [Violation::Forgotten(_)]));
}

#[test]
fn secrets_that_open_nothing_and_writes_at_rest_are_found() {
    let evidence = Evidence { locked: vec!["api.example.com".to_owned()], ..sound() };
    assert!(matches!(check(&evidence).as_slice(), [Violation::LockedOut(_)]));

    let evidence = Evidence { late_writes: vec!["PUT configurations".to_owned()], ..sound() };
    assert!(matches!(check(&evidence).as_slice(), [Violation::WroteAtRest(_)]));
}
